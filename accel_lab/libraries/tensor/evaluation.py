"""What the messages mean, step by step: the reference of both backends, and products by BLAS.

`xp` is NumPy or CuPy. Arrays are in the dtype that is computed in.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.tensor.library import Binary, Permute, Reduce, Trinary
from accel_lab.libraries.tensor.message import named_axes
from accel_lab.libraries.tensor.modes import Modes
from accel_lab.libraries.tensor.path import Step

Multiply: TypeAlias = Callable[[Any, Any, str, str, str], Any]

_UNARY: dict[str, Callable[[Any, Any], Any]] = {
    "conj": lambda xp, x: xp.conjugate(x),
    "rcp": lambda xp, x: xp.divide(1, x),
    "relu": lambda xp, x: xp.maximum(x, 0),
    "sigmoid": lambda xp, x: 0.5 * (1 + xp.tanh(0.5 * x)),
    "swish": lambda xp, x: x * (0.5 * (1 + xp.tanh(0.5 * x))),
    "soft_plus": lambda xp, x: xp.logaddexp(x, xp.zeros_like(x)),
    "soft_sign": lambda xp, x: x / (1 + xp.abs(x)),
}
_NUMPYS = {
    "identity": "positive",
    "neg": "negative",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
}
_NUMPYS |= {"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}
_BINARY = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}
_REDUCE = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}


def unary(xp: Any, op: str, x: Any) -> Any:
    """Return cuTENSOR's function of each element."""
    own = _UNARY.get(op)
    return own(xp, x) if own else getattr(xp, _NUMPYS.get(op, op))(x)


def joined(xp: Any, op: str, x: Any, y: Any) -> Any:
    """Return cuTENSOR's function of two, element by element."""
    return getattr(xp, _BINARY[op])(x, y)


def scaled(x: Any, factor: Number) -> Any:
    """Return a multiple."""
    return x if factor == 1 else x * factor


def reduce(xp: Any, m: Reduce, x: Any, alpha: Number) -> Any:
    """Return what `Reduce` makes."""
    modes = named_axes(m, (m.x,))
    return scaled(reduced(xp, m.op, x, modes.takes[0], modes.makes), alpha)


def permute(xp: Any, m: Permute, x: Any, alpha: Number) -> Any:
    """Return what `Permute` makes."""
    modes = named_axes(m, (m.x,))
    return arranged(scaled(unary(xp, m.op, x), alpha), modes.takes[0], modes.makes)


def binary(xp: Any, m: Binary, arrays: tuple[Any, ...], factors: tuple[Number, ...]) -> Any:
    """Return what `Binary` makes."""
    modes = named_axes(m, (m.a, m.c))
    return joined(xp, m.op, *_sides(xp, modes, (m.op_a, m.op_c), arrays, factors))


def trinary(xp: Any, m: Trinary, arrays: tuple[Any, ...], factors: tuple[Number, ...]) -> Any:
    """Return what `Trinary` makes."""
    modes = named_axes(m, (m.a, m.b, m.c))
    a, b, c = _sides(xp, modes, (m.op_a, m.op_b, m.op_c), arrays, factors)
    return joined(xp, m.op_abc, joined(xp, m.op_ab, a, b), c)


def _sides(
    xp: Any,
    modes: Modes,
    ops: tuple[str, ...],
    arrays: tuple[Any, ...],
    factors: tuple[Number, ...],
) -> list[Any]:
    """Return each operand's function and multiple, its axes as the result has them."""
    several = zip(modes.takes, ops, arrays, factors, strict=True)
    return [
        arranged(scaled(unary(xp, op, x), f), takes, modes.makes) for takes, op, x, f in several
    ]


def reduced(xp: Any, op: str, x: Any, takes: str, makes: str) -> Any:
    """Return the axes that are named in the result, in its order; the others are reduced."""
    x, takes = diagonal(xp, x, takes)
    axes = tuple([at for at, name in enumerate(takes) if name not in makes])
    if axes:
        x = xp.asarray(getattr(xp, _REDUCE[op])(x, axis=axes))
    return arranged(x, "".join(name for name in takes if name in makes), makes)


def arranged(x: Any, takes: str, makes: str) -> Any:
    """Return a view with the axes of the result: in its order, of extent 1 where there is none."""
    order = [takes.index(name) for name in makes if name in takes]
    view = x.transpose(order)
    return view[tuple([slice(None) if name in takes else None for name in makes])]


def diagonal(xp: Any, x: Any, takes: str) -> tuple[Any, str]:
    """Return an array of which each name stands once, and its names."""
    for name in dict.fromkeys(takes):
        while takes.count(name) > 1:
            first = takes.index(name)
            second = takes.index(name, first + 1)
            x = xp.diagonal(x, 0, first, second)
            takes = takes[:first] + takes[first + 1 : second] + takes[second + 1 :] + name
    return x, takes


def contracted(
    xp: Any, steps: Sequence[Step], operands: Sequence[Any], multiply: Multiply | None = None
) -> Any:
    """Return the sum of products, two operands after the other.

    Parameters:
        multiply: what a backend has for two, of which each name of one is in the other or in the
            result; products of matrices if it has nothing.
    """
    left = list(operands)
    for step in steps:
        taken = [left.pop(at) for at in step.operands]
        if len(taken) == 1:
            left.append(reduced(xp, "add", taken[0], step.takes[0], step.makes))
        else:
            (x, y), (of_x, of_y) = taken, step.takes
            sides = prepared(xp, x, y, of_x, of_y, step.makes)
            left.append((multiply or partial(product, xp))(*sides, step.makes))
    (made,) = left
    return made


def prepared(
    xp: Any, x: Any, y: Any, of_x: str, of_y: str, makes: str
) -> tuple[Any, Any, str, str]:
    """Return two operands whose names stand once in each, and all of which count."""
    x, of_x = diagonal(xp, x, of_x)
    y, of_y = diagonal(xp, y, of_y)
    x, of_x = _unspread(x, of_x, y, of_y)
    y, of_y = _unspread(y, of_y, x, of_x)
    x, of_x = _without(xp, x, of_x, of_y + makes)
    y, of_y = _without(xp, y, of_y, of_x + makes)
    return x, y, of_x, of_y


def product(xp: Any, x: Any, y: Any, of_x: str, of_y: str, makes: str) -> Any:
    """Return the sum of products of two as one stack of products of matrices."""
    batch = [name for name in of_x if name in of_y and name in makes]
    summed = [name for name in of_x if name in of_y and name not in makes]
    rows = [name for name in of_x if name not in of_y]
    columns = [name for name in of_y if name not in of_x]
    size_x, size_y = dict(zip(of_x, x.shape, strict=True)), dict(zip(of_y, y.shape, strict=True))
    b, m, k = (math.prod(size_x[name] for name in names) for names in (batch, rows, summed))
    n = math.prod(size_y[name] for name in columns)
    left = x.transpose([of_x.index(name) for name in (*batch, *rows, *summed)]).reshape(b, m, k)
    right = y.transpose([of_y.index(name) for name in (*batch, *summed, *columns)])
    made = xp.matmul(left, right.reshape(b, k, n))
    names = "".join((*batch, *rows, *columns))
    shape = [size_x[name] if name in size_x else size_y[name] for name in names]
    return arranged(made.reshape(shape), names, makes)


def _without(xp: Any, x: Any, takes: str, others: str) -> tuple[Any, str]:
    """Return an operand summed over the names that nothing else has."""
    kept = "".join(name for name in takes if name in others)
    return (x if kept == takes else reduced(xp, "add", x, takes, kept)), kept


def _unspread(x: Any, of_x: str, y: Any, of_y: str) -> tuple[Any, str]:
    """Return an operand without the axes of extent 1 that serve all of another's."""
    sizes = dict(zip(of_y, y.shape, strict=True))
    spread = [n for n, extent in zip(of_x, x.shape, strict=True) if extent == 1 != sizes.get(n, 1)]
    index = tuple([0 if name in spread else slice(None) for name in of_x])
    return x[index], "".join(name for name in of_x if name not in spread)
