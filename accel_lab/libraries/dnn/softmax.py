"""Softmax and its logarithm along an axis, and their gradients."""

from typing import ClassVar

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.dnn.message import Layer, require_axis


class OfAxis(Layer[AccelRef], frozen=True):
    """What softmax and its logarithm have in common."""

    shapes: ClassVar = "(...)->(...)"
    in_place: ClassVar = ("x",)
    x: AccelRef
    axis: int = -1
    _: Options
    out: AccelRef | None = None

    def check(self) -> None:
        """Refuse an axis that `x` does not have."""
        require_axis(self, self.x)


class OfAxisGradient(Layer[AccelRef], frozen=True):
    """What their gradients have in common, which are made of their results."""

    shapes: ClassVar = "(...),(...)->(...)"
    in_place: ClassVar = ("y", "dy")
    y: AccelRef
    dy: AccelRef
    axis: int = -1
    _: Options
    out: AccelRef | None = None

    def check(self) -> None:
        """Refuse an axis that `y` does not have."""
        require_axis(self, self.y)


class Softmax(OfAxis, frozen=True, tag=632):
    """Return exp(x) over its sum along an axis."""


class LogSoftmax(OfAxis, frozen=True, tag=633):
    """Return the logarithm of `Softmax`, without the loss that taking it would cost."""


class SoftmaxGradient(OfAxisGradient, frozen=True, tag=634):
    """Return the gradient of `Softmax` by its input, of its result `y` and the gradient by that."""


class LogSoftmaxGradient(OfAxisGradient, frozen=True, tag=635):
    """Return the gradient of `LogSoftmax` by its input, of its result `y` and that by it."""


softmax = function(Softmax)
log_softmax = function(LogSoftmax)
softmax_gradient = function(SoftmaxGradient)
log_softmax_gradient = function(LogSoftmaxGradient)
