"""Arithmetic by name, as NumPy names it: one function for each operation.

They send `Unary`, `Binary` and `Reduce` of `array` and return at once. What a function takes and
refuses, those messages say: shapes broadcast, dtypes promote as NumPy's.
"""

from typing import Any

import numpy as np

from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.array.elementwise import Operand, binary, device_among, unary
from accel_lab.libraries.array.reduction import ReduceOp, reduce
from accel_lab.libraries.authoring.function import named
from accel_lab.libraries.authoring.shape import Integers

# ruff: noqa: A001 - NumPy's names


_HELP = "Return {text}; does not block."
_unary, _binary = named(unary, _HELP), named(binary, _HELP)

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
arcsinh = _unary("arcsinh", "the inverse hyperbolic sine")
arccosh = _unary("arccosh", "the inverse hyperbolic cosine")
arctanh = _unary("arctanh", "the inverse hyperbolic tangent")
floor = _unary("floor", "the largest integer not above it, in the dtype of `x`")
ceil = _unary("ceil", "the smallest integer not below it, in the dtype of `x`")
trunc = _unary("trunc", "the integer towards 0, in the dtype of `x`")
rint = _unary("rint", "the nearest integer, the even one of two, in a floating dtype")
isnan = _unary("isnan", "whether it is no number")
isinf = _unary("isinf", "whether it is infinite")
isfinite = _unary("isfinite", "whether it is a number and finite")
signbit = _unary("signbit", "whether its sign is a minus, also of -0.0")
conjugate = _unary("conjugate", "the complex conjugate")
real = _unary("real", "the real part, a copy")
imag = _unary("imag", "the imaginary part, a copy; of real numbers 0")
invert = _unary("invert", "every bit inverted; of bool, not")
logical_not = _unary("logical_not", "whether it is zero")

add = _binary("add", "x + y")
subtract = _binary("subtract", "x - y")
multiply = _binary("multiply", "x * y")
divide = _binary("divide", "x / y; of integers it is float64")
floor_divide = _binary("floor_divide", "x / y, rounded down")
remainder = _binary("remainder", "what `floor_divide` leaves; it has the sign of `y`")
power = _binary("power", "x to the power of y")
hypot = _binary("hypot", "sqrt(x * x + y * y), which does not overflow in between")
logaddexp = _binary("logaddexp", "log(exp(x) + exp(y)), which does not overflow in between")
copysign = _binary("copysign", "the absolute value of x with the sign of y")
nextafter = _binary("nextafter", "the next number of the dtype after x towards y")


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


def _sum(
    op: ReduceOp,
    x: AccelRef,
    axis: Integers | None = None,
    dtype: object = None,
    out: AccelRef | None = None,
    *,
    keepdims: bool = False,
) -> AccelRef:
    return reduce(op, x, axis, keepdims=keepdims, dtype=dtype, out=out)


def _spread(
    op: ReduceOp,
    x: AccelRef,
    axis: Integers | None = None,
    dtype: object = None,
    out: AccelRef | None = None,
    *,
    ddof: int = 0,
    keepdims: bool = False,
) -> AccelRef:
    return reduce(op, x, axis, keepdims=keepdims, ddof=ddof, dtype=dtype, out=out)


def _choice(
    op: ReduceOp,
    x: AccelRef,
    axis: Integers | None = None,
    out: AccelRef | None = None,
    *,
    keepdims: bool = False,
) -> AccelRef:
    return reduce(op, x, axis, keepdims=keepdims, out=out)


def _place(
    op: ReduceOp,
    x: AccelRef,
    axis: int | None = None,
    out: AccelRef | None = None,
    *,
    keepdims: bool = False,
) -> AccelRef:
    return reduce(op, x, axis, keepdims=keepdims, out=out)


_sums, _spreads = named(_sum, _HELP), named(_spread, _HELP)
_chooses, _places = named(_choice, _HELP), named(_place, _HELP)
sum = _sums("sum", "the sum; of bool and small integers in 64 bits")
prod = _sums("prod", "the product; of bool and small integers in 64 bits")
mean = _sums("mean", "the mean; of integers in float64")
std = _spreads("std", "the standard deviation, by n - ddof")
var = _spreads("var", "the variance, by n - ddof")
max = _chooses("max", "the largest element; NaN if one is")
min = _chooses("min", "the smallest element; NaN if one is")
any = _chooses("any", "whether an element is not zero")
all = _chooses("all", "whether no element is zero")
argmax = _places("argmax", "where the first largest element is, as int64")
argmin = _places("argmin", "where the first smallest element is, as int64")


def clip(
    x: AccelRef,
    a_min: Operand | None = None,
    a_max: Operand | None = None,
    out: AccelRef | None = None,
) -> AccelRef:
    """Return the elements, those below `a_min` or above `a_max` as these; does not block.

    NaN stays NaN. Without both it is a copy.
    """
    if a_min is None and a_max is None:
        return maximum(x, x, out=out)
    if a_min is None or a_max is None:
        end = a_max if a_min is None else a_min
        assert end is not None
        return minimum(x, end, out=out) if a_min is None else maximum(x, end, out=out)
    return minimum(maximum(x, a_min), a_max, out=out)


def isclose(
    a: Operand, b: Operand, rtol: float = 1e-5, atol: float = 1e-8, *, equal_nan: bool = False
) -> AccelRef:
    """Return whether `abs(a - b) <= atol + rtol * abs(b)`, or both are one infinity.

    Does not block. With `equal_nan` NaN is close to NaN.

    Raises:
        InvalidArgument: neither is a buffer, or they do not broadcast.
    """
    device = device_among(a, b)
    left, right = (device.put(x) if isinstance(x, np.ndarray) else x for x in (a, b))
    right = _inexact(right)
    near = binary("less_equal", abs(left - right), atol + rtol * abs(right))
    if isinstance(right, AccelRef):
        near = logical_and(near, unary("isfinite", right))
    elif not np.isfinite(right):
        near = logical_and(near, False)  # noqa: FBT003 - an operand
    close = logical_or(near, binary("equal", left, right))
    if not equal_nan:
        return close
    return logical_or(close, logical_and(_isnan(left, near), _isnan(right, near)))


def allclose(
    a: Operand, b: Operand, rtol: float = 1e-5, atol: float = 1e-8, *, equal_nan: bool = False
) -> AccelRef:
    """Return whether all are close, as `isclose` says, as a buffer; does not block, `bool` does.

    Raises:
        InvalidArgument: neither is a buffer, or they do not broadcast.
    """
    return all(isclose(a, b, rtol, atol, equal_nan=equal_nan))


def _inexact(x: Any) -> Any:
    """Return what has no smallest integer, whose absolute value it lacks."""
    if isinstance(x, AccelRef):
        return x.astype("float64") if numpy_dtype(x.dtype).kind in "biu" else x
    return float(x) if isinstance(x, int | np.integer | np.bool_) else x


def _isnan(x: Any, like: AccelRef) -> AccelRef:
    """Return whether it is NaN; of a number for each element of another buffer."""
    if isinstance(x, AccelRef):
        return unary("isnan", x)
    return logical_or(logical_and(like, False), bool(np.isnan(x)))  # noqa: FBT003 - as above
