"""Numbers as small integers, or narrow floats, with a scale; products of them."""

from typing import Any

import numpy as np

from accel_lab.libraries.array import library as array
from accel_lab.libraries.dnn import library as dnn
from accel_lab.onnx.node import Call
from accel_lab.onnx.operators.convolution import slides
from accel_lab.onnx.operators.elementwise import no_dtype, onnx_dtype, saturated
from accel_lab.onnx.registry import operator
from accel_lab.onnx.values import axis_from_0, cast, dtype_of, limits


def _spread(call: Call, x: Any, scale: Any) -> Any:
    """Return a scale, or a zero point, as it broadcasts: of all, of an axis or of blocks."""
    if scale is None or scale.ndim == 0 or scale.size == 1:
        return scale if scale is None else scale.reshape(())
    at, block = axis_from_0(call.get("axis", 1), x.ndim), call.get("block_size", 0)
    if not block:
        return scale.reshape([-1 if k == at else 1 for k in range(x.ndim)])
    many = call.xp.repeat(scale, block, axis=at)
    return many[(*[slice(None)] * at, slice(x.shape[at]))]


@operator("QuantizeLinear", anywhere=True, refuses=no_dtype("output_dtype"))
def quantize(call: Call, x: Any, scale: Any, zero: Any = None) -> Any:
    """Return x / scale, rounded, plus the zero point, within the range of its dtype."""
    code = call.get("output_dtype", 0)
    dtype = dtype_of(zero) if zero is not None else str(onnx_dtype(code)) if code else "uint8"
    wide = cast(x, "float32") / cast(_spread(call, x, scale), "float32")
    zero = _spread(call, x, zero)
    if dtype.startswith("float8"):
        wide = wide if zero is None else wide + cast(zero, "float32")
        return cast(saturated(call, wide, dtype) if call.get("saturate", 1) else wide, dtype)
    return rounded(call, wide, zero, dtype)


def rounded(call: Call, wide: Any, zero: Any, dtype: str) -> Any:
    """Return numbers rounded to integers, plus a zero point, within the range of a dtype."""
    whole = np.rint(wide)
    whole = whole if zero is None else whole + cast(zero, dtype_of(whole))
    low, high = limits(dtype)
    return cast(np.minimum(np.maximum(whole, float(low)), float(high)), dtype)


@operator("DequantizeLinear", anywhere=True, refuses=no_dtype("output_dtype"))
def dequantize(call: Call, x: Any, scale: Any, zero: Any = None) -> Any:
    """Return x without its zero point, times the scale."""
    code = call.get("output_dtype", 0)
    wide = cast(x, "float32")
    if zero is not None:
        wide = wide - cast(_spread(call, x, zero), "float32")
    made = wide * cast(_spread(call, x, scale), "float32")
    return cast(made, str(onnx_dtype(code)) if code else dtype_of(scale))


def _exact(x: Any, zero: Any, shape: tuple[int, ...] | None = None) -> Any:
    """Return integers without their zero point, as float64, in which sums of them are exact."""
    wide = cast(x, "float64")
    if zero is None:
        return wide
    off = cast(zero, "float64")
    return wide - (
        off.reshape(()) if zero.size == 1 else off if shape is None else off.reshape(shape)
    )


def _matrices(a: Any, b: Any, a_zero: Any, b_zero: Any) -> Any:
    rows = None if a_zero is None or a_zero.ndim != 1 else (-1, 1)
    return array.matmul(_exact(a, a_zero, rows), _exact(b, b_zero))


@operator("MatMulInteger")
def matmul_integer(call: Call, a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    """Return the product of integers without their zero points, as int32."""
    return cast(_matrices(a, b, a_zero, b_zero), "int32")


@operator("QLinearMatMul")
def qlinear_matmul(
    call: Call,
    a: Any,
    a_scale: Any,
    a_zero: Any,
    b: Any,
    b_scale: Any,
    b_zero: Any,
    scale: Any,
    zero: Any,
) -> Any:
    """Return the product of quantized matrices, quantized."""
    total = _matrices(a, b, a_zero, b_zero)
    row = a_scale.reshape((-1, 1)) if a_scale.ndim == 1 and a_scale.size > 1 else a_scale
    by = cast(row, "float64") * cast(b_scale, "float64") / cast(scale, "float64")
    return rounded(call, total * by, zero, dtype_of(zero))


def _convolved(call: Call, x: Any, w: Any, x_zero: Any, w_zero: Any, bias: Any = None) -> Any:
    """Return the sums of a convolution of integers without their zero points, as float64."""
    how = slides(call, w.shape[2:], x.shape[2:])
    one = (-1, *[1] * (w.ndim - 1))
    wide = _exact(x, x_zero)
    padded = array.pad(wide, how.widths) if any(map(any, how.widths)) else wide
    return dnn.conv(
        padded,
        _exact(w, w_zero, one),
        None if bias is None else cast(bias, "float64"),
        stride=how.strides,
        dilation=how.dilations,
        groups=call.get("group", 1),
    )


@operator("ConvInteger")
def conv_integer(call: Call, x: Any, w: Any, x_zero: Any = None, w_zero: Any = None) -> Any:
    """Return the convolution of integers without their zero points, as int32."""
    return cast(_convolved(call, x, w, x_zero, w_zero), "int32")


@operator("QLinearConv")
def qlinear_conv(
    call: Call,
    x: Any,
    x_scale: Any,
    x_zero: Any,
    w: Any,
    w_scale: Any,
    w_zero: Any,
    scale: Any,
    zero: Any,
    bias: Any = None,
) -> Any:
    """Return the convolution of quantized tensors, quantized."""
    total = _convolved(call, x, w, x_zero, w_zero, bias)
    each = cast(w_scale, "float64")
    each = each.reshape((1, -1, *[1] * (x.ndim - 2))) if w_scale.size > 1 else each.reshape(())
    by = each * cast(x_scale, "float64") / cast(scale, "float64")
    return rounded(call, total * by, zero, dtype_of(zero))
