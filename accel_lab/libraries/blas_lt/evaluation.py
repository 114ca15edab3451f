"""What the fields of a message mean, step by step: the reference of both backends.

`xp` is NumPy or CuPy. Arrays are in the dtype that is computed in: float32, float64 or int32.
"""

from typing import Any, NamedTuple

from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.blas_lt.epilogue import activated, aux_of, slope
from accel_lab.libraries.blas_lt.fused import FLOAT8, Fused

LARGEST = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}
"""The largest finite number of each."""


class FusedOperands(NamedTuple):
    """The operands of a message, in the order of its fields, as arrays of any kind."""

    a: Any
    b: Any
    c: Any = None
    bias: Any = None
    aux: Any = None
    scale_a: Any = None
    scale_b: Any = None
    scale_d: Any = None


class Parts(NamedTuple):
    """What a message answers with, as arrays; None for what it is not asked for."""

    d: Any
    aux: Any
    bias_gradient: Any
    amax: Any


def computed_in(dtype: str, made: str) -> str:
    """Return the dtype in which a product of one dtype is computed that has another."""
    if made in ("int32", "float64"):
        return made
    return "float32" if dtype != "float64" else "float64"


def combined(product: Any, alpha: Number, c: Any, beta: Number, bias: Any) -> Any:
    """Return alpha product + beta c + bias; where alpha is 0 the product is to be zeros."""
    value = product if alpha in (0, 1) else product * alpha
    if c is not None and beta:
        value = value + (c if beta == 1 else c * beta)
    return value if bias is None else value + bias[..., None, :]


def evaluate(
    xp: Any, m: Fused[Any], product: Any, x: FusedOperands, factors: tuple[Number, Number]
) -> Parts:
    """Return all that a message answers with, not yet rounded to its dtypes.

    Parameters:
        product: op(a) @ op(b), not scaled; zeros if it counts for nothing.
        x: the operands; `a` and `b` are there as op(a) and op(b) if a gradient sums them.
    """
    for scale, axis in ((x.scale_a, 1), (x.scale_b, 0)):
        if scale is not None:
            product = product * (xp.expand_dims(scale, axis) if scale.ndim else scale)
    value = combined(product, factors[0], x.c, factors[1], x.bias)
    aux = aux_of(xp, m.activation, value) if m.keep_aux else None
    if x.aux is None:
        value = activated(xp, m.activation, value)
    else:
        value = value * slope(xp, m.activation, x.aux, value.shape[1])
    amax = None
    if m.amax:
        amax = xp.abs(value).max() if value.size else xp.zeros((), value.dtype)
    gradient = _gradient(m, value, x)
    if x.scale_d is not None:
        value = value * x.scale_d
    return Parts(clipped(xp, value, m.made_dtype), aux, gradient, amax)


def clipped(xp: Any, value: Any, dtype: str) -> Any:
    """Return what float8 can hold of values: the nearest, where they are too large; NaN stays."""
    if dtype not in FLOAT8:
        return value
    return xp.clip(value, -LARGEST[dtype], LARGEST[dtype])


def _gradient(m: Fused[Any], value: Any, x: FusedOperands) -> Any:
    if m.bias_gradient == "d":
        return value.sum(axis=0)
    if m.bias_gradient == "a":
        summed = x.a.sum(axis=1)
        return summed if x.scale_a is None else summed * x.scale_a
    if m.bias_gradient == "b":
        summed = x.b.sum(axis=0)
        return summed if x.scale_b is None else summed * x.scale_b
    return None
