"""Norms: of `dnn` where it has them."""

from typing import Any

import numpy as np

from accel_lab.libraries.array import library as array
from accel_lab.libraries.dnn import library as dnn
from accel_lab.onnx.node import Call
from accel_lab.onnx.registry import operator
from accel_lab.onnx.values import axis_from_0, cast, dtype_of, like

_EPSILON = 1e-5


@operator("BatchNormalization")
def batch_normalization(call: Call, x: Any, scale: Any, bias: Any, mean: Any, var: Any) -> Any:
    """Normalize each channel, by given statistics or by those of the batch."""
    epsilon = call.get("epsilon", _EPSILON)
    if not call.get("training_mode", 0):
        parameters = [like(x, one) for one in (scale, bias, mean, var)]
        return dnn.batch_norm_inference(x, *parameters, epsilon=epsilon)
    axes, keep = (0, *range(2, x.ndim)), call.get("momentum", 0.9)
    now, spread = x.mean(axis=axes), x.var(axis=axes)
    y = dnn.batch_norm_inference(x, like(x, scale), like(x, bias), now, spread, epsilon=epsilon)
    moved = [like(old, old * keep + new * (1 - keep)) for old, new in ((mean, now), (var, spread))]
    return y, *moved


@operator("InstanceNormalization")
def instance_normalization(call: Call, x: Any, scale: Any, bias: Any) -> Any:
    """Normalize each channel of each image."""
    return dnn.group_norm(x, scale, bias, epsilon=call.get("epsilon", _EPSILON))


@operator("GroupNormalization")
def group_normalization(call: Call, x: Any, scale: Any, bias: Any) -> Any:
    """Normalize groups of channels; before version 21 scale and bias are of groups."""
    groups, channels = call.get("num_groups"), x.shape[1]
    parameters = [
        one if one.shape[0] == channels else array.repeat(one, channels // groups)
        for one in (scale, bias)
    ]
    return dnn.group_norm(x, *parameters, groups=groups, epsilon=call.get("epsilon", _EPSILON))


@operator("LayerNormalization")
def layer_normalization(call: Call, x: Any, scale: Any, bias: Any = None) -> Any:
    """Normalize over the last axes, and on request return mean and 1 / deviation."""
    at, epsilon = axis_from_0(call.get("axis", -1), x.ndim), call.get("epsilon", _EPSILON)
    shape, axes = x.shape[at:], tuple(range(at, x.ndim))
    if not (call.wants(1) or call.wants(2)):
        parameters = [None if one is None else _spread(one, shape) for one in (scale, bias)]
        return dnn.layer_norm(x, *parameters, axes=len(axes), epsilon=epsilon)
    wide = x if dtype_of(x) == "float64" else cast(x, "float32")
    mean = wide.mean(axis=axes, keepdims=True)
    centred = wide - mean
    inverse = array.reciprocal(
        array.sqrt((centred * centred).mean(axis=axes, keepdims=True) + epsilon)
    )
    y = like(x, centred * inverse) * scale
    return (y if bias is None else y + bias), mean, inverse


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    return x if x.shape == shape else array.broadcast_to(x, shape)


@operator("RMSNormalization")
def rms_normalization(call: Call, x: Any, scale: Any) -> Any:
    """Divide by the root of the mean square over the last axes, and scale."""
    at, epsilon = axis_from_0(call.get("axis", -1), x.ndim), call.get("epsilon", _EPSILON)
    scale = like(x, _spread(scale, x.shape[at:]))
    return dnn.rms_norm(x, scale, axes=x.ndim - at, epsilon=epsilon)


@operator("LpNormalization")
def lp_normalization(call: Call, x: Any) -> Any:
    """Divide by the 1-norm or the 2-norm along an axis; what is 0 stays so."""
    axis, p = call.get("axis", -1), call.get("p", 2)
    if p == 1:
        norm = abs(x).sum(axis=axis, keepdims=True)
    else:
        norm = array.sqrt((x * x).sum(axis=axis, keepdims=True))
    return like(x, array.where(array.equal(norm, 0), 0.0, x / norm))


@operator("MeanVarianceNormalization")
def mean_variance_normalization(call: Call, x: Any) -> Any:
    """Normalize to mean 0 and variance 1 along axes."""
    axes = tuple(call.get("axes") or (0, 2, 3))
    centred = x - x.mean(axis=axes, keepdims=True)
    deviation = array.sqrt((centred * centred).mean(axis=axes, keepdims=True))
    return like(x, centred / (deviation + float(np.float32(1e-9))))
