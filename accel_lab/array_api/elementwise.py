"""Functions of each element, by the standard's names.

Either operand of two may be a number of Python's. Shapes broadcast, and dtypes promote as NumPy's,
which is the standard's promotion where that says one.
"""

from typing import Any, cast

from accel_lab.array_api.dtypes import isdtype
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.array import library as array
from accel_lab.libraries.array.elementwise import BinaryOp, Operand, UnaryOp, binary, unary
from accel_lab.libraries.authoring.function import named

# ruff: noqa: A001, A002 - the standard's names

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]

_NUMPYS = {
    "abs": "absolute",
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "conj": "conjugate",
    "pow": "power",
}
"""What NumPy, and so `array`, calls otherwise."""


def _one(name: str, x: AccelRef) -> AccelRef:
    return unary(cast("UnaryOp", _NUMPYS.get(name, name)), x)


def _two(name: str, x1: Operand, x2: Operand) -> AccelRef:
    return binary(cast("BinaryOp", _NUMPYS.get(name, name)), x1, x2)


_HELP = "Return {text}; does not block."
_unary, _binary = named(_one, _HELP), named(_two, _HELP)

abs = _unary("abs", "the absolute value; of complex numbers it is real")
acos = _unary("acos", "the inverse cosine, in radians")
acosh = _unary("acosh", "the inverse hyperbolic cosine")
asin = _unary("asin", "the inverse sine, in radians")
asinh = _unary("asinh", "the inverse hyperbolic sine")
atan = _unary("atan", "the inverse tangent, in radians")
atanh = _unary("atanh", "the inverse hyperbolic tangent")
bitwise_invert = _unary("bitwise_invert", "every bit inverted; of bool, not")
ceil = _unary("ceil", "the smallest integer not below it, in the dtype of `x`")
conj = _unary("conj", "the complex conjugate")
cos = _unary("cos", "the cosine, of radians")
cosh = _unary("cosh", "the hyperbolic cosine")
exp = _unary("exp", "e to the power of it")
expm1 = _unary("expm1", "exp(x) - 1, exact near 0")
floor = _unary("floor", "the largest integer not above it, in the dtype of `x`")
imag = _unary("imag", "the imaginary part")
isfinite = _unary("isfinite", "whether it is a number and finite")
isinf = _unary("isinf", "whether it is infinite")
isnan = _unary("isnan", "whether it is no number")
log = _unary("log", "the natural logarithm")
log1p = _unary("log1p", "log(1 + x), exact near 0")
log2 = _unary("log2", "the logarithm to base 2")
log10 = _unary("log10", "the logarithm to base 10")
logical_not = _unary("logical_not", "whether it is zero")
negative = _unary("negative", "the negative")
positive = _unary("positive", "a copy")
real = _unary("real", "the real part")
reciprocal = _unary("reciprocal", "1 / x")
sign = _unary("sign", "-1, 0 or 1; of complex numbers `x / abs(x)`")
signbit = _unary("signbit", "whether its sign is a minus, also of -0.0")
sin = _unary("sin", "the sine, of radians")
sinh = _unary("sinh", "the hyperbolic sine")
sqrt = _unary("sqrt", "the square root")
square = _unary("square", "the square")
tan = _unary("tan", "the tangent, of radians")
tanh = _unary("tanh", "the hyperbolic tangent")
trunc = _unary("trunc", "the integer towards 0, in the dtype of `x`")

add = _binary("add", "x1 + x2")
atan2 = _binary("atan2", "the angle of the point (x2, x1), in radians")
bitwise_and = _binary("bitwise_and", "x1 & x2")
bitwise_left_shift = _binary("bitwise_left_shift", "x1 << x2")
bitwise_or = _binary("bitwise_or", "x1 | x2")
bitwise_right_shift = _binary("bitwise_right_shift", "x1 >> x2")
bitwise_xor = _binary("bitwise_xor", "x1 ^ x2")
copysign = _binary("copysign", "the absolute value of x1 with the sign of x2")
divide = _binary("divide", "x1 / x2; of integers it is float64")
equal = _binary("equal", "whether x1 == x2")
floor_divide = _binary("floor_divide", "x1 / x2, rounded down")
greater = _binary("greater", "whether x1 > x2")
greater_equal = _binary("greater_equal", "whether x1 >= x2")
hypot = _binary("hypot", "sqrt(x1 * x1 + x2 * x2), which does not overflow in between")
less = _binary("less", "whether x1 < x2")
less_equal = _binary("less_equal", "whether x1 <= x2")
logaddexp = _binary("logaddexp", "log(exp(x1) + exp(x2)), which does not overflow in between")
logical_and = _binary("logical_and", "whether neither is zero")
logical_or = _binary("logical_or", "whether one is not zero")
logical_xor = _binary("logical_xor", "whether exactly one is not zero")
maximum = _binary("maximum", "the larger one; NaN if one is")
minimum = _binary("minimum", "the smaller one; NaN if one is")
multiply = _binary("multiply", "x1 * x2")
nextafter = _binary("nextafter", "the next number of the dtype after x1 towards x2")
not_equal = _binary("not_equal", "whether x1 != x2")
pow = _binary("pow", "x1 to the power of x2")
remainder = _binary("remainder", "what `floor_divide` leaves; it has the sign of x2")
subtract = _binary("subtract", "x1 - x2")


def round(x: AccelRef, /) -> AccelRef:
    """Return the nearest integer, the even one of two, in the dtype of `x`; does not block."""
    return unary("positive" if isdtype(x.dtype, "integral") else "rint", x)


def clip(x: AccelRef, /, min: Any = None, max: Any = None) -> AccelRef:
    """Return the elements, those below `min` or above `max` as these; does not block.

    The dtype is that of `x`, whatever that of the bounds is.
    """
    bounds = [one.astype(x.dtype) if isinstance(one, AccelRef) else one for one in (min, max)]
    return array.clip(x, *bounds)
