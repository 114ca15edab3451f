"""Softmax and its logarithm along an axis, and their gradients."""

from typing import ClassVar

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.dnn.message import Layer, require_axis


class Softmax(Layer[AccelRef], frozen=True, tag=632):
    """Return exp(x) over its sum along an axis."""

    shapes: ClassVar = "(...)->(...)"
    in_place: ClassVar = ("x",)
    x: AccelRef
    axis: int = -1
    _: Options
    out: AccelRef | None = None

    def check(self) -> None:
        """Refuse an axis that `x` does not have."""
        require_axis(self, self.x)


class LogSoftmax(Layer[AccelRef], frozen=True, tag=633):
    """Return the logarithm of `Softmax`, without the loss that taking it would cost."""

    shapes: ClassVar = "(...)->(...)"
    in_place: ClassVar = ("x",)
    x: AccelRef
    axis: int = -1
    _: Options
    out: AccelRef | None = None

    def check(self) -> None:
        """Refuse an axis that `x` does not have."""
        require_axis(self, self.x)


class SoftmaxGradient(Layer[AccelRef], frozen=True, tag=634):
    """Return the gradient of `Softmax` by its input, of its result `y` and the gradient by that."""

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


class LogSoftmaxGradient(Layer[AccelRef], frozen=True, tag=635):
    """Return the gradient of `LogSoftmax` by its input, of its result `y` and that by it."""

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


softmax = function(Softmax)
log_softmax = function(LogSoftmax)
softmax_gradient = function(SoftmaxGradient)
log_softmax_gradient = function(LogSoftmaxGradient)
