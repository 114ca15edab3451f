"""Arithmetic by name, as NumPy names it: one function for each operation.

They send `Unary`, `Binary` and `Reduce` of `array` and return at once. What a function takes and
refuses, those messages say: shapes broadcast, dtypes promote as NumPy's.
"""

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.array.elementwise import Operand, binary, unary
from accel_lab.libraries.array.reduction import reduce
from accel_lab.libraries.authoring.shape import Integers

# ruff: noqa: A001 - NumPy's names


def negative(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the negative; does not block."""
    return unary("negative", x, out=out)


def positive(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return a copy; of bool there is none; does not block."""
    return unary("positive", x, out=out)


def absolute(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the absolute value; of complex numbers it is real; does not block."""
    return unary("absolute", x, out=out)


def sign(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return -1, 0 or 1; of complex numbers x / |x|; does not block."""
    return unary("sign", x, out=out)


def square(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the square; does not block."""
    return unary("square", x, out=out)


def reciprocal(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return 1 / x; of integers it is cut off; does not block."""
    return unary("reciprocal", x, out=out)


def sqrt(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the square root; does not block."""
    return unary("sqrt", x, out=out)


def exp(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return e to the power of it; does not block."""
    return unary("exp", x, out=out)


def expm1(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return exp(x) - 1, exact near 0; does not block."""
    return unary("expm1", x, out=out)


def log(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the natural logarithm; does not block."""
    return unary("log", x, out=out)


def log1p(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return log(1 + x), exact near 0; does not block."""
    return unary("log1p", x, out=out)


def log2(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the logarithm to base 2; does not block."""
    return unary("log2", x, out=out)


def log10(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the logarithm to base 10; does not block."""
    return unary("log10", x, out=out)


def sin(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the sine, of radians; does not block."""
    return unary("sin", x, out=out)


def cos(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the cosine, of radians; does not block."""
    return unary("cos", x, out=out)


def tan(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the tangent, of radians; does not block."""
    return unary("tan", x, out=out)


def arcsin(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the inverse sine, in radians; does not block."""
    return unary("arcsin", x, out=out)


def arccos(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the inverse cosine, in radians; does not block."""
    return unary("arccos", x, out=out)


def arctan(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the inverse tangent, in radians; does not block."""
    return unary("arctan", x, out=out)


def sinh(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the hyperbolic sine; does not block."""
    return unary("sinh", x, out=out)


def cosh(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the hyperbolic cosine; does not block."""
    return unary("cosh", x, out=out)


def tanh(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the hyperbolic tangent; does not block."""
    return unary("tanh", x, out=out)


def floor(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the largest integer not above it, in the dtype of `x`; does not block."""
    return unary("floor", x, out=out)


def ceil(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the smallest integer not below it, in the dtype of `x`; does not block."""
    return unary("ceil", x, out=out)


def trunc(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the integer towards 0, in the dtype of `x`; does not block."""
    return unary("trunc", x, out=out)


def rint(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the nearest integer, the even one of two, in a floating dtype; does not block."""
    return unary("rint", x, out=out)


def isnan(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return whether it is no number; does not block."""
    return unary("isnan", x, out=out)


def isinf(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return whether it is infinite; does not block."""
    return unary("isinf", x, out=out)


def isfinite(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return whether it is a number and finite; does not block."""
    return unary("isfinite", x, out=out)


def conjugate(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return the complex conjugate; does not block."""
    return unary("conjugate", x, out=out)


def invert(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return every bit inverted; of bool, not; does not block."""
    return unary("invert", x, out=out)


def logical_not(x: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Return whether it is zero; does not block."""
    return unary("logical_not", x, out=out)


def add(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return x + y; does not block."""
    return binary("add", x, y, out=out)


def subtract(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return x - y; does not block."""
    return binary("subtract", x, y, out=out)


def multiply(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return x * y; does not block."""
    return binary("multiply", x, y, out=out)


def divide(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return x / y; of integers it is float64; does not block."""
    return binary("divide", x, y, out=out)


def floor_divide(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return x / y, rounded down; does not block."""
    return binary("floor_divide", x, y, out=out)


def remainder(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return what `floor_divide` leaves; it has the sign of `y`; does not block."""
    return binary("remainder", x, y, out=out)


def power(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return x to the power of y; does not block."""
    return binary("power", x, y, out=out)


def arctan2(y: Operand, x: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return the angle of the point (y, x), in radians; does not block."""
    return binary("arctan2", y, x, out=out)


def maximum(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return the larger one; NaN if one is; does not block."""
    return binary("maximum", x, y, out=out)


def minimum(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return the smaller one; NaN if one is; does not block."""
    return binary("minimum", x, y, out=out)


def equal(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return whether x == y; does not block."""
    return binary("equal", x, y, out=out)


def not_equal(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return whether x != y; does not block."""
    return binary("not_equal", x, y, out=out)


def less(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return whether x < y; does not block."""
    return binary("less", x, y, out=out)


def less_equal(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return whether x <= y; does not block."""
    return binary("less_equal", x, y, out=out)


def greater(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return whether x > y; does not block."""
    return binary("greater", x, y, out=out)


def greater_equal(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return whether x >= y; does not block."""
    return binary("greater_equal", x, y, out=out)


def logical_and(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return whether neither is zero; does not block."""
    return binary("logical_and", x, y, out=out)


def logical_or(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return whether one is not zero; does not block."""
    return binary("logical_or", x, y, out=out)


def logical_xor(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return whether exactly one is not zero; does not block."""
    return binary("logical_xor", x, y, out=out)


def bitwise_and(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return x & y; does not block."""
    return binary("bitwise_and", x, y, out=out)


def bitwise_or(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return x | y; does not block."""
    return binary("bitwise_or", x, y, out=out)


def bitwise_xor(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return x ^ y; does not block."""
    return binary("bitwise_xor", x, y, out=out)


def left_shift(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return x << y; does not block."""
    return binary("left_shift", x, y, out=out)


def right_shift(x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return x >> y; does not block."""
    return binary("right_shift", x, y, out=out)


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
