"""Reductions along axes."""

from typing import Any

import numpy as np

from accel_lab.onnx.node import Call
from accel_lab.onnx.operators.shaping import axes_given
from accel_lab.onnx.registry import operator
from accel_lab.onnx.values import cast, dtype_of, is_floating, limits

_SUMS: dict[str, Any] = {
    "ReduceSum": lambda x: x,
    "ReduceL1": np.absolute,
    "ReduceL2": np.square,
    "ReduceSumSquare": np.square,
    "ReduceLogSum": lambda x: x,
}
_AFTER = {"ReduceL2": np.sqrt, "ReduceLogSum": np.log}


def _axes(call: Call, x: Any, axes: Any) -> tuple[int, ...] | None:
    """Return the axes to be reduced; None where nothing is to be done."""
    given = axes_given(call, axes)
    if given:
        return given
    return None if call.get("noop_with_empty_axes", 0) else tuple(range(x.ndim))


@operator(*_SUMS, host=(1,), anywhere=True)
def sums(call: Call, x: Any, axes: Any = None) -> Any:
    """Return sums along axes, of the elements or of what is made of them."""
    name, along = call.node.op_type, _axes(call, x, axes)
    dtype = dtype_of(x)
    made = _SUMS[name](x)
    if along is not None:
        made = made.sum(axis=along, dtype=_wide(x), keepdims=bool(call.get("keepdims", 1)))
    if name in _AFTER:
        made = _AFTER[name](made if is_floating(x) else cast(made, "float64"))
    return cast(made, dtype)


def _wide(x: Any) -> Any:
    """Return in what sums are formed: 16 bits in 32, others in themselves."""
    dtype = dtype_of(x)
    return "float32" if dtype in ("float16", "bfloat16") else dtype


@operator("ReduceLogSumExp", host=(1,), anywhere=True)
def log_sum_exp(call: Call, x: Any, axes: Any = None) -> Any:
    """Return the logarithm of a sum of powers of e, which does not overflow in between."""
    along, keep = _axes(call, x, axes), bool(call.get("keepdims", 1))
    if along is None:
        return x
    wide = x if is_floating(x) else cast(x, "float64")
    if 0 in x.shape:
        return cast(np.log(np.exp(wide).sum(axis=along, keepdims=keep)), dtype_of(x))
    most = wide.max(axis=along, keepdims=True)
    most = call.xp.where(np.isfinite(most), most, 0.0)
    total = np.log(np.exp(wide - most).sum(axis=along, keepdims=keep))
    return cast(total + (most if keep else most.reshape(total.shape)), dtype_of(x))


@operator("ReduceMean", host=(1,), anywhere=True)
def mean(call: Call, x: Any, axes: Any = None) -> Any:
    """Return means along axes."""
    along = _axes(call, x, axes)
    if along is None:
        return x
    return cast(x.mean(axis=along, keepdims=bool(call.get("keepdims", 1))), dtype_of(x))


@operator("ReduceProd", host=(1,), anywhere=True)
def product(call: Call, x: Any, axes: Any = None) -> Any:
    """Return products along axes."""
    along = _axes(call, x, axes)
    if along is None:
        return x
    keep = bool(call.get("keepdims", 1))
    return cast(x.prod(axis=along, dtype=_wide(x), keepdims=keep), dtype_of(x))


@operator("ReduceMax", "ReduceMin", host=(1,), anywhere=True)
def extreme(call: Call, x: Any, axes: Any = None) -> Any:
    """Return the largest or the least elements along axes; of none the other end of the dtype."""
    along, keep = _axes(call, x, axes), bool(call.get("keepdims", 1))
    if along is None:
        return x
    is_max = call.node.op_type == "ReduceMax"
    at = {axis % x.ndim for axis in along} if x.ndim else set()
    if any(x.shape[axis] == 0 for axis in at):
        low, high = limits(dtype_of(x))
        kept = [1 if axis in at else n for axis, n in enumerate(x.shape)]
        shape = kept if keep else [n for axis, n in enumerate(x.shape) if axis not in at]
        return call.ref(np.full(shape, low if is_max else high, x.dtype))
    found = x.max(axis=along, keepdims=keep) if is_max else x.min(axis=along, keepdims=keep)
    return cast(found, dtype_of(x))
