"""Arithmetic by name, as NumPy names it: one function for each operation.

They send `Unary`, `Binary` and `Reduce` of `array` and return at once. What a function takes and
refuses, those messages say: shapes broadcast, dtypes promote as NumPy's.
"""

from typing import Any, Protocol

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.array.elementwise import BinaryOp, Operand, UnaryOp, binary, unary
from accel_lab.libraries.array.reduction import reduce
from accel_lab.libraries.authoring.shape import Integers

# ruff: noqa: A001 - NumPy's names


def _name(function: Any, op: str, returns: str) -> None:
    """Give a function the name by which it is called, pickled and profiled, and its help."""
    function.__name__ = function.__qualname__ = op
    function.__doc__ = f"Return {returns}; does not block."
    function.__code__ = function.__code__.replace(co_name=op, co_qualname=op)


class _Unary(Protocol):
    def __call__(self, x: AccelRef, *, out: AccelRef | None = None) -> AccelRef: ...


def _unary(op: UnaryOp, returns: str) -> _Unary:
    def function(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
        return unary(op, x, out=out)

    _name(function, op, returns)
    return function


class _Binary(Protocol):
    def __call__(self, x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef: ...


def _binary(op: BinaryOp, returns: str) -> _Binary:
    def function(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
        return binary(op, x, y, out=out)

    _name(function, op, returns)
    return function


negative = _unary("negative", "the negative")
positive = _unary("positive", "a copy; of bool there is none")
absolute = _unary("absolute", "the absolute value; of complex numbers it is real")
sign = _unary("sign", "-1, 0 or 1; of complex numbers `x / abs(x)`")
square = _unary("square", "the square")
reciprocal = _unary("reciprocal", "1 / x; of integers it is cut off")
sqrt = _unary("sqrt", "the square root")
exp = _unary("exp", "e to the power of it")
expm1 = _unary("expm1", "exp(x) - 1, exact near 0")
log = _unary("log", "the natural logarithm")
log1p = _unary("log1p", "log(1 + x), exact near 0")
log2 = _unary("log2", "the logarithm to base 2")
log10 = _unary("log10", "the logarithm to base 10")
sin = _unary("sin", "the sine, of radians")
cos = _unary("cos", "the cosine, of radians")
tan = _unary("tan", "the tangent, of radians")
arcsin = _unary("arcsin", "the inverse sine, in radians")
arccos = _unary("arccos", "the inverse cosine, in radians")
arctan = _unary("arctan", "the inverse tangent, in radians")
sinh = _unary("sinh", "the hyperbolic sine")
cosh = _unary("cosh", "the hyperbolic cosine")
tanh = _unary("tanh", "the hyperbolic tangent")
floor = _unary("floor", "the largest integer not above it, in the dtype of `x`")
ceil = _unary("ceil", "the smallest integer not below it, in the dtype of `x`")
trunc = _unary("trunc", "the integer towards 0, in the dtype of `x`")
rint = _unary("rint", "the nearest integer, the even one of two, in a floating dtype")
isnan = _unary("isnan", "whether it is no number")
isinf = _unary("isinf", "whether it is infinite")
isfinite = _unary("isfinite", "whether it is a number and finite")
conjugate = _unary("conjugate", "the complex conjugate")
invert = _unary("invert", "every bit inverted; of bool, not")
logical_not = _unary("logical_not", "whether it is zero")

add = _binary("add", "x + y")
subtract = _binary("subtract", "x - y")
multiply = _binary("multiply", "x * y")
divide = _binary("divide", "x / y; of integers it is float64")
floor_divide = _binary("floor_divide", "x / y, rounded down")
remainder = _binary("remainder", "what `floor_divide` leaves; it has the sign of `y`")
power = _binary("power", "x to the power of y")


def arctan2(y: Operand, x: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return the angle of the point (y, x), in radians; does not block."""
    return binary("arctan2", y, x, out=out)


maximum = _binary("maximum", "the larger one; NaN if one is")
minimum = _binary("minimum", "the smaller one; NaN if one is")
equal = _binary("equal", "whether x == y")
not_equal = _binary("not_equal", "whether x != y")
less = _binary("less", "whether x < y")
less_equal = _binary("less_equal", "whether x <= y")
greater = _binary("greater", "whether x > y")
greater_equal = _binary("greater_equal", "whether x >= y")
logical_and = _binary("logical_and", "whether neither is zero")
logical_or = _binary("logical_or", "whether one is not zero")
logical_xor = _binary("logical_xor", "whether exactly one is not zero")
bitwise_and = _binary("bitwise_and", "x & y")
bitwise_or = _binary("bitwise_or", "x | y")
bitwise_xor = _binary("bitwise_xor", "x ^ y")
left_shift = _binary("left_shift", "x << y")
right_shift = _binary("right_shift", "x >> y")


def sum(
    x: AccelRef,
    axis: Integers | None = None,
    dtype: object = None,
    out: AccelRef | None = None,
    *,
    keepdims: bool = False,
) -> AccelRef:
    """Return the sum; of bool and small integers in 64 bits; does not block."""
    return reduce("sum", x, axis, keepdims=keepdims, dtype=dtype, out=out)


def prod(
    x: AccelRef,
    axis: Integers | None = None,
    dtype: object = None,
    out: AccelRef | None = None,
    *,
    keepdims: bool = False,
) -> AccelRef:
    """Return the product; of bool and small integers in 64 bits; does not block."""
    return reduce("prod", x, axis, keepdims=keepdims, dtype=dtype, out=out)


def mean(
    x: AccelRef,
    axis: Integers | None = None,
    dtype: object = None,
    out: AccelRef | None = None,
    *,
    keepdims: bool = False,
) -> AccelRef:
    """Return the mean; of integers in float64; does not block."""
    return reduce("mean", x, axis, keepdims=keepdims, dtype=dtype, out=out)


def std(
    x: AccelRef,
    axis: Integers | None = None,
    dtype: object = None,
    out: AccelRef | None = None,
    *,
    ddof: int = 0,
    keepdims: bool = False,
) -> AccelRef:
    """Return the standard deviation, by n - ddof; does not block."""
    return reduce("std", x, axis, keepdims=keepdims, ddof=ddof, dtype=dtype, out=out)


def var(
    x: AccelRef,
    axis: Integers | None = None,
    dtype: object = None,
    out: AccelRef | None = None,
    *,
    ddof: int = 0,
    keepdims: bool = False,
) -> AccelRef:
    """Return the variance, by n - ddof; does not block."""
    return reduce("var", x, axis, keepdims=keepdims, ddof=ddof, dtype=dtype, out=out)


def max(
    x: AccelRef,
    axis: Integers | None = None,
    out: AccelRef | None = None,
    *,
    keepdims: bool = False,
) -> AccelRef:
    """Return the largest element; NaN if one is; does not block."""
    return reduce("max", x, axis, keepdims=keepdims, out=out)


def min(
    x: AccelRef,
    axis: Integers | None = None,
    out: AccelRef | None = None,
    *,
    keepdims: bool = False,
) -> AccelRef:
    """Return the smallest element; NaN if one is; does not block."""
    return reduce("min", x, axis, keepdims=keepdims, out=out)


def any(
    x: AccelRef,
    axis: Integers | None = None,
    out: AccelRef | None = None,
    *,
    keepdims: bool = False,
) -> AccelRef:
    """Return whether an element is not zero; does not block."""
    return reduce("any", x, axis, keepdims=keepdims, out=out)


def all(
    x: AccelRef,
    axis: Integers | None = None,
    out: AccelRef | None = None,
    *,
    keepdims: bool = False,
) -> AccelRef:
    """Return whether no element is zero; does not block."""
    return reduce("all", x, axis, keepdims=keepdims, out=out)


def argmax(
    x: AccelRef,
    axis: int | None = None,
    out: AccelRef | None = None,
    *,
    keepdims: bool = False,
) -> AccelRef:
    """Return where the first largest element is, as int64; does not block."""
    return reduce("argmax", x, axis, keepdims=keepdims, out=out)


def argmin(
    x: AccelRef,
    axis: int | None = None,
    out: AccelRef | None = None,
    *,
    keepdims: bool = False,
) -> AccelRef:
    """Return where the first smallest element is, as int64; does not block."""
    return reduce("argmin", x, axis, keepdims=keepdims, out=out)
