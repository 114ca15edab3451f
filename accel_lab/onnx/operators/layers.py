"""Activations and norms: those of `dnn`, and others made of functions of each element."""

import math
from typing import Any

import numpy as np

from accel_lab.libraries.array import library as array
from accel_lab.libraries.dnn import library as dnn
from accel_lab.onnx.node import Call
from accel_lab.onnx.registry import operator
from accel_lab.onnx.values import axis_from_0, cast, dtype_of, is_floating, like

_DNN = {"Sigmoid": dnn.sigmoid, "Softplus": dnn.softplus}
_EPSILON = 1e-5
_NEAR = 0.25
"""Below it erf is a series: further out it is a difference that loses nothing."""
_SERIES = [(-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(9)]


@operator(*_DNN)
def of_dnn(call: Call, x: Any) -> Any:
    """Return an activation that `dnn` has."""
    return _DNN[call.node.op_type](x)


@operator("Relu")
def relu(call: Call, x: Any) -> Any:
    """Return max(x, 0)."""
    return dnn.relu(x) if is_floating(x) else array.maximum(x, 0)


@operator("Erf")
def erf(call: Call, x: Any) -> Any:
    """Return the error function: of the normal distribution's, which gelu is made of."""
    wide = x if dtype_of(x) == "float64" else cast(x, "float32")
    root = math.sqrt(2.0)
    is_near = array.less(abs(wide), _NEAR)
    z = array.where(is_near, 1.0, wide) * root
    # Where gelu is infinite or 0/0 its limits stand.
    far = array.clip(dnn.gelu(z) / z * 2.0 - 1.0, -1.0, 1.0)
    far = array.where(array.isinf(wide), array.sign(wide), far)
    t, near = wide * wide, array.where(is_near, wide, 0.0) * 0.0 + _SERIES[-1]
    for coefficient in reversed(_SERIES[:-1]):
        near = near * t + coefficient
    return like(x, array.where(is_near, near * wide * (2 / math.sqrt(math.pi)), far))


@operator("Gelu")
def gelu(call: Call, x: Any) -> Any:
    """Return gelu, exact or by a hyperbolic tangent."""
    return dnn.gelu_tanh(x) if call.get("approximate", "none") == "tanh" else dnn.gelu(x)


@operator("Elu")
def elu(call: Call, x: Any) -> Any:
    """Return x, and alpha (exp(x) - 1) below 0."""
    return dnn.elu(x, alpha=call.get("alpha", 1.0))


@operator("Celu")
def celu(call: Call, x: Any) -> Any:
    """Return x, and alpha (exp(x / alpha) - 1) below 0."""
    alpha = call.get("alpha", 1.0)
    return like(x, array.maximum(x, 0.0) + dnn.elu(array.minimum(x, 0.0) / alpha) * alpha)


@operator("Selu")
def selu(call: Call, x: Any) -> Any:
    """Return elu, scaled."""
    alpha, gamma = call.get("alpha", 1.6732632), call.get("gamma", 1.0507010)
    return like(x, dnn.elu(x, alpha=alpha) * gamma)


@operator("Swish")
def swish(call: Call, x: Any) -> Any:
    """Return x sigmoid(alpha x)."""
    return dnn.swish(x, alpha=call.get("alpha", 1.0))


@operator("LeakyRelu")
def leaky_relu(call: Call, x: Any) -> Any:
    """Return x, and alpha x below 0."""
    return like(x, array.where(x < 0, x * call.get("alpha", 0.01), x))


@operator("PRelu")
def prelu(call: Call, x: Any, slope: Any) -> Any:
    """Return x, and x by its slope below 0."""
    return array.where(x < 0, x * slope, x)


@operator("ThresholdedRelu")
def thresholded_relu(call: Call, x: Any) -> Any:
    """Return x where it is above alpha, else 0."""
    return like(x, array.where(x > call.get("alpha", 1.0), x, 0.0))


@operator("HardSigmoid")
def hard_sigmoid(call: Call, x: Any) -> Any:
    """Return alpha x + beta, cut to 0 to 1."""
    line = x * call.get("alpha", 0.2) + call.get("beta", 0.5)
    return like(x, array.clip(line, 0.0, 1.0))


@operator("HardSwish")
def hard_swish(call: Call, x: Any) -> Any:
    """Return x times x / 6 + 1 / 2, cut to 0 to 1."""
    return like(x, x * array.clip(x * (1 / 6) + 0.5, 0.0, 1.0))


@operator("Mish")
def mish(call: Call, x: Any) -> Any:
    """Return x tanh(softplus(x))."""
    return x * array.tanh(dnn.softplus(x))


@operator("Softsign")
def softsign(call: Call, x: Any) -> Any:
    """Return x / (1 + |x|)."""
    return like(x, x / (abs(x) + 1.0))


@operator("Shrink")
def shrink(call: Call, x: Any) -> Any:
    """Return x moved towards 0 by a bias, and 0 within a limit."""
    bias, limit = call.get("bias", 0.0), call.get("lambd", 0.5)
    wide = x if is_floating(x) else cast(x, "float64")
    moved = array.where(wide > limit, wide - bias, array.where(wide < -limit, wide + bias, 0.0))
    return like(x, moved)


@operator("Softmax", "LogSoftmax", "Hardmax")
def softmax(call: Call, x: Any) -> Any:
    """Return softmax, its logarithm, or 1 at the first maximum, along an axis.

    Before version 13 all axes from this one on are taken as one.
    """
    has_one = call.version >= 13  # noqa: PLR2004 - the operator set
    axis = call.get("axis", -1 if has_one else 1)
    flat = x
    if not has_one:
        at = axis + x.ndim if axis < 0 else axis
        flat, axis = x.reshape((math.prod(x.shape[:at]), math.prod(x.shape[at:]))), 1
    if call.node.op_type == "Softmax":
        made = dnn.softmax(flat, axis)
    elif call.node.op_type == "LogSoftmax":
        made = dnn.log_softmax(flat, axis)
    else:
        made = array.zeros(call.device, flat.shape, dtype_of(x))
        array.put_along_axis(made, array.argmax(flat, axis, keepdims=True), 1, axis)
    return made if flat is x else made.reshape(x.shape)


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
