"""Functions of each element: NumPy's, which handles answer too."""

from functools import reduce as over
from typing import Any

import numpy as np

from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.errors import InvalidArgument
from accel_lab.onnx.node import Call, Node
from accel_lab.onnx.registry import operator
from accel_lab.onnx.values import cast, dtype_of, is_floating, like

_ONE = {
    "Abs": np.absolute,
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "BitwiseNot": np.invert,
    "Ceil": np.ceil,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Exp": np.exp,
    "Floor": np.floor,
    "IsNaN": np.isnan,
    "Log": np.log,
    "Neg": np.negative,
    "Not": np.logical_not,
    "Reciprocal": np.reciprocal,
    "Round": np.rint,
    "Sign": np.sign,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Sqrt": np.sqrt,
    "Tan": np.tan,
    "Tanh": np.tanh,
}
_TWO = {
    "Add": np.add,
    "And": np.logical_and,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Mul": np.multiply,
    "Or": np.logical_or,
    "Sub": np.subtract,
    "Xor": np.logical_xor,
}


@operator(*_ONE, anywhere=True)
def one(call: Call, x: Any) -> Any:
    """Return NumPy's function of each element."""
    return _ONE[call.node.op_type](x)


@operator(*_TWO, anywhere=True)
def two(call: Call, x: Any, y: Any) -> Any:
    """Return NumPy's function of two operands, which broadcast."""
    return _TWO[call.node.op_type](x, y)


@operator("Div", anywhere=True)
def div(call: Call, x: Any, y: Any) -> Any:
    """Return x / y; of integers it is cut off."""
    if is_floating(x):
        return np.divide(x, y)
    down = np.floor_divide(x, y)
    if dtype_of(x).startswith("u"):
        return down
    is_below = np.logical_and(np.not_equal(down * y, x), np.less(down, 0))
    return down + like(x, is_below)


@operator("Mod", anywhere=True)
def mod(call: Call, x: Any, y: Any) -> Any:
    """Return the remainder with the sign of `y`, or, with fmod, of `x`."""
    left = np.remainder(x, y)
    if not call.get("fmod", 0) or dtype_of(x).startswith("u"):
        return left
    is_other = np.logical_and(np.not_equal(left, 0), np.not_equal(np.less(x, 0), np.less(left, 0)))
    return call.xp.where(is_other, left - y, left)


@operator("Pow", anywhere=True)
def power(call: Call, x: Any, y: Any) -> Any:
    """Return x to the power of y, in the dtype of x."""
    if dtype_of(y) != dtype_of(x) and is_floating(x):
        y = like(x, y)
    return like(x, np.power(x, y))


@operator("BitShift", anywhere=True)
def bit_shift(call: Call, x: Any, y: Any) -> Any:
    """Return the bits shifted."""
    shift = np.left_shift if call.get("direction") == "LEFT" else np.right_shift
    return shift(x, y)


@operator("Max", anywhere=True)
def maximum(call: Call, *xs: Any) -> Any:
    """Return the largest of all; NaN if one is."""
    return over(np.maximum, xs)


@operator("Min", anywhere=True)
def minimum(call: Call, *xs: Any) -> Any:
    """Return the least of all; NaN if one is."""
    return over(np.minimum, xs)


@operator("Sum", anywhere=True)
def total(call: Call, *xs: Any) -> Any:
    """Return the sum of all."""
    return over(np.add, xs)


@operator("Mean", anywhere=True)
def mean(call: Call, *xs: Any) -> Any:
    """Return the mean of all."""
    return like(xs[0], over(np.add, xs) / len(xs))


@operator("Where", anywhere=True)
def where(call: Call, condition: Any, x: Any, y: Any) -> Any:
    """Return elements of x where a condition holds, else of y."""
    return call.xp.where(condition, x, y)


@operator("Clip", anywhere=True, since=11)
def clip(call: Call, x: Any, low: Any = None, high: Any = None) -> Any:
    """Return the elements within limits."""
    above = x if low is None else np.maximum(x, low)
    return above if high is None else np.minimum(above, high)


@operator("IsInf", anywhere=True)
def is_inf(call: Call, x: Any) -> Any:
    """Return whether elements are infinite, of one sign or of both."""
    found = np.isinf(x)
    if not call.get("detect_positive", 1):
        found = np.logical_and(found, np.less(x, 0))
    if not call.get("detect_negative", 1):
        found = np.logical_and(found, np.greater(x, 0))
    return found


def no_dtype(name: str) -> Any:
    """Return what says of a node that a dtype it names is none of accel_lab's."""

    def missing(node: Node) -> str | None:
        code = node.get(name, 0)
        dtype = "string" if code == 8 else str(onnx_dtype(code)) if code else ""  # noqa: PLR2004
        return f"dtype {dtype}" if dtype and dtype not in NAMES else None

    return missing


@operator("Cast", "CastLike", anywhere=True, refuses=no_dtype("to"))
def casting(call: Call, x: Any, model: Any = None) -> Any:
    """Return the elements in another dtype."""
    to = call.node.attributes["to"] if model is None else None
    dtype = dtype_of(model) if to is None else str(onnx_dtype(to))
    if dtype.startswith("float8") and is_floating(x) and call.get("saturate", 1):
        x = saturated(call, cast(x, "float32"), dtype)
    return cast(x, dtype)


def saturated(call: Call, x: Any, dtype: str) -> Any:
    """Return numbers cut to the range of a narrow float; NaN stays."""
    import ml_dtypes  # a dependency, which is not needed before

    most = float(ml_dtypes.finfo(numpy_dtype(dtype)).max)  # type: ignore[no-untyped-call]
    return np.minimum(np.maximum(x, -most), most)


def onnx_dtype(code: int) -> np.dtype[Any]:
    """Return the dtype of a number of ONNX's."""
    import onnx  # an extra; it has read the file

    dtype: np.dtype[Any] = onnx.helper.tensor_dtype_to_np_dtype(code)
    return dtype


@operator("Identity", anywhere=True)
def identity(call: Call, x: Any) -> Any:
    """Return the same."""
    return x


@operator("Dropout", anywhere=True, host=(2,))
def dropout(call: Call, x: Any, _ratio: Any = None, training: Any = None) -> Any:
    """Return the same, and a mask of what is kept: all."""
    if training is not None and bool(training):
        raise InvalidArgument("Dropout with training_mode: a model is run to infer here")
    if not call.wants(1):
        return x
    return x, np.equal(x, x) | np.not_equal(x, x)
