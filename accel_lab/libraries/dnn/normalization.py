"""Batch, layer, RMS, group and instance norm, and their gradients.

x is normalized to mean 0 and variance 1, or to a mean square of 1, over some of its axes; then it
is scaled and a bias is added, by parameters of the dtype of x. `epsilon` is
added to the variance.
"""

from typing import Any, NamedTuple

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import named, one_dtype
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.dnn.message import (
    LAYOUTS,
    DataLayout,
    Layer,
    channels_first,
    refusal,
    require_choice,
    require_int,
    require_real,
    require_shape,
    spec_of,
)


class BatchNormed(NamedTuple):
    """What training makes of a batch.

    Attributes:
        y: the result.
        mean: the running means, moved towards those of the batch.
        variance: the running variances, likewise, by the unbiased ones of the batch.
    """

    y: AccelRef
    mean: AccelRef
    variance: AccelRef


class NormGradients(NamedTuple):
    """The gradients of a norm.

    Attributes:
        x: by what was normalized.
        scale: by the scale, also where there was none.
        bias: by the bias, likewise.
    """

    x: AccelRef
    scale: AccelRef
    bias: AccelRef


class RmsGradients(NamedTuple):
    """The gradients of an RMS norm.

    Attributes:
        x: by what was normalized.
        scale: by the scale, also where there was none.
    """

    x: AccelRef
    scale: AccelRef


class BatchNorm(Layer[BatchNormed], frozen=True, tag=650):
    """Normalize each channel over a batch, to train, and move the running statistics.

    They move by `momentum` of the way towards those of the batch.
    """

    x: AccelRef
    scale: AccelRef
    bias: AccelRef
    mean: AccelRef
    variance: AccelRef
    _: Options
    momentum: float = 0.1
    epsilon: float = 1e-5
    layout: DataLayout = "channels_first"

    def infer(self) -> tuple[Spec, Spec, Spec]:
        """Return the shapes of `x` and of the statistics."""
        count = of_channels(self, self.scale, self.bias, self.mean, self.variance)
        require_real(self, "momentum", 0.0, 1.0)
        if self.x.size < 2 * count or not count:  # the unbiased variance of one is none
            raise refusal(self, f"{named(self, self.x)}; a channel needs two elements to train")
        of = Spec((count,), self.x.dtype)
        return Spec(self.x.shape, self.x.dtype), of, of


class BatchNormInference(Layer[AccelRef], frozen=True, tag=651):
    """Normalize each channel by the running statistics."""

    x: AccelRef
    scale: AccelRef
    bias: AccelRef
    mean: AccelRef
    variance: AccelRef
    _: Options
    epsilon: float = 1e-5
    layout: DataLayout = "channels_first"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of `x`."""
        of_channels(self, self.scale, self.bias, self.mean, self.variance)
        return spec_of(
            self, self.x.shape, self.x.dtype, self.scale, self.bias, self.mean, self.variance
        )


class BatchNormGradient(Layer[NormGradients], frozen=True, tag=652):
    """Return the gradients of `BatchNorm`, or of `BatchNormInference` if given its statistics."""

    x: AccelRef
    dy: AccelRef
    scale: AccelRef
    mean: AccelRef | None = None
    variance: AccelRef | None = None
    _: Options
    epsilon: float = 1e-5
    layout: DataLayout = "channels_first"

    def infer(self) -> tuple[Spec, Spec, Spec]:
        """Return the shapes of `x` and of the parameters."""
        count = of_channels(self, self.scale, self.mean, self.variance)
        if (self.mean is None) != (self.variance is None):
            raise refusal(self, "mean and variance are given together, or neither")
        x, of = of_gradient(self, (count,))
        return x, of, of


class LayerNorm(Layer[AccelRef], frozen=True, tag=653):
    """Normalize over the last `axes` axes; scale and bias have the shape of these."""

    x: AccelRef
    scale: AccelRef | None = None
    bias: AccelRef | None = None
    _: Options
    axes: int = 1
    epsilon: float = 1e-5
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of `x`."""
        of_last(self, self.scale, self.bias)
        return spec_of(self, self.x.shape, self.x.dtype, self.scale, self.bias)


class LayerNormGradient(Layer[NormGradients], frozen=True, tag=654):
    """Return the gradients of `LayerNorm`."""

    x: AccelRef
    dy: AccelRef
    scale: AccelRef | None = None
    _: Options
    axes: int = 1
    epsilon: float = 1e-5

    def infer(self) -> tuple[Spec, Spec, Spec]:
        """Return the shapes of `x` and of the parameters."""
        x, of = of_gradient(self, of_last(self, self.scale))
        return x, of, of


class RmsNorm(Layer[AccelRef], frozen=True, tag=655):
    """Divide by the root of the mean square over the last `axes` axes, and scale."""

    x: AccelRef
    scale: AccelRef | None = None
    _: Options
    axes: int = 1
    epsilon: float = 1e-5
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of `x`."""
        of_last(self, self.scale)
        return spec_of(self, self.x.shape, self.x.dtype, self.scale)


class RmsNormGradient(Layer[RmsGradients], frozen=True, tag=656):
    """Return the gradients of `RmsNorm`."""

    x: AccelRef
    dy: AccelRef
    scale: AccelRef | None = None
    _: Options
    axes: int = 1
    epsilon: float = 1e-5

    def infer(self) -> tuple[Spec, Spec]:
        """Return the shapes of `x` and of the scale."""
        return of_gradient(self, of_last(self, self.scale))


class GroupNorm(Layer[AccelRef], frozen=True, tag=657):
    """Normalize each image over its extents and the channels of each group.

    With groups=0 each channel is a group: instance norm.
    """

    x: AccelRef
    scale: AccelRef | None = None
    bias: AccelRef | None = None
    _: Options
    groups: int = 0
    epsilon: float = 1e-5
    layout: DataLayout = "channels_first"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of `x`."""
        of_groups(self, self.scale, self.bias)
        return spec_of(self, self.x.shape, self.x.dtype, self.scale, self.bias)


class GroupNormGradient(Layer[NormGradients], frozen=True, tag=658):
    """Return the gradients of `GroupNorm`; groups=0 is instance norm."""

    x: AccelRef
    dy: AccelRef
    scale: AccelRef | None = None
    _: Options
    groups: int = 0
    epsilon: float = 1e-5
    layout: DataLayout = "channels_first"

    def infer(self) -> tuple[Spec, Spec, Spec]:
        """Return the shapes of `x` and of the parameters."""
        x, of = of_gradient(self, (of_groups(self, self.scale),))
        return x, of, of


def of_channels(message: Any, *parameters: AccelRef | None) -> int:
    """Return how many channels `x` has; each parameter has as many elements.

    Raises:
        InvalidArgument: something does not fit.
    """
    require_real(message, "epsilon", 0.0, 1.0)
    require_choice(message, "layout", LAYOUTS)
    x: AccelRef = message.x
    if x.ndim < 2:  # noqa: PLR2004 - batch and channels
        raise refusal(message, f"{named(message, x)}, which is to have a batch and channels")
    one_dtype(message, x, *parameters)
    count = channels_first(x.shape, message.layout)[1]
    for ref in parameters:
        require_shape(message, ref, (count,))
    return count


def of_last(message: Any, *parameters: AccelRef | None) -> tuple[int, ...]:
    """Return the last `axes` extents of `x`, which are those of the parameters.

    Raises:
        InvalidArgument: something does not fit.
    """
    require_real(message, "epsilon", 0.0, 1.0)
    x: AccelRef = message.x
    shape = x.shape[x.ndim - require_int(message, "axes", 1, x.ndim) :]
    one_dtype(message, x, *parameters)
    for ref in parameters:
        require_shape(message, ref, shape)
    return shape


def of_groups(message: Any, *parameters: AccelRef | None) -> int:
    """Return how many channels `x` has, which its groups share.

    Raises:
        InvalidArgument: something does not fit.
    """
    count = of_channels(message, *parameters)
    groups = require_int(message, "groups", 0)
    if groups and count % groups:
        text = f"{named(message, message.x)} has {count} channels, no multiple of groups={groups}"
        raise refusal(message, text)
    return count


def of_gradient(message: Any, shape: tuple[int, ...]) -> tuple[Spec, Spec]:
    """Return what the gradients by `x` and by a parameter of this shape are.

    Raises:
        InvalidArgument: `dy` does not fit.
    """
    x: AccelRef = message.x
    one_dtype(message, x, message.dy)
    require_shape(message, message.dy, x.shape)
    return Spec(x.shape, x.dtype), Spec(shape, x.dtype)


batch_norm = function(BatchNorm)
batch_norm_inference = function(BatchNormInference)
batch_norm_gradient = function(BatchNormGradient)
layer_norm = function(LayerNorm)
layer_norm_gradient = function(LayerNormGradient)
rms_norm = function(RmsNorm)
rms_norm_gradient = function(RmsNormGradient)
group_norm = function(GroupNorm)
group_norm_gradient = function(GroupNormGradient)
