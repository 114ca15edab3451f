"""Softmax and its logarithm; the largest is subtracted first, so that nothing overflows."""

from typing import Any

import numpy as np

from accel_lab.libraries.dnn.evaluation.kit import Kit
from accel_lab.libraries.dnn.softmax import (
    LogSoftmax,
    LogSoftmaxGradient,
    Softmax,
    SoftmaxGradient,
)


class Exponentials:
    """Softmax, and what belongs to it.

    Parameters:
        kit: the backend's arrays.
    """

    def __init__(self, kit: Kit) -> None:
        self.kit = kit

    @np.errstate(all="ignore")
    def softmax(self, m: Softmax, x: Any, out: Any) -> None:
        """Write exp(x) over its sum."""
        if out.size:
            e = self.kit.xp.exp(shifted(self.kit.widened(x, m.x.dtype), m.axis))
            self.kit.store(e / e.sum(axis=m.axis, keepdims=True), out, m.x.dtype)

    @np.errstate(all="ignore")
    def log_softmax(self, m: LogSoftmax, x: Any, out: Any) -> None:
        """Write its logarithm."""
        if out.size:
            made = log_softmax(self.kit.xp, self.kit.widened(x, m.x.dtype), m.axis)
            self.kit.store(made, out, m.x.dtype)

    @np.errstate(all="ignore")
    def softmax_gradient(self, m: SoftmaxGradient, y: Any, dy: Any, out: Any) -> None:
        """Write y (dy - sum(y dy))."""
        y, dy = (self.kit.widened(one, m.y.dtype) for one in (y, dy))
        made = y * (dy - (y * dy).sum(axis=m.axis, keepdims=True))
        self.kit.store(made, out, m.y.dtype)

    @np.errstate(all="ignore")
    def log_softmax_gradient(self, m: LogSoftmaxGradient, y: Any, dy: Any, out: Any) -> None:
        """Write dy - exp(y) sum(dy)."""
        y, dy = (self.kit.widened(one, m.y.dtype) for one in (y, dy))
        made = dy - self.kit.xp.exp(y) * dy.sum(axis=m.axis, keepdims=True)
        self.kit.store(made, out, m.y.dtype)


def shifted(x: Any, axis: int) -> Any:
    """Return an array less its largest along an axis."""
    return x - x.max(axis=axis, keepdims=True)


def log_softmax(xp: Any, x: Any, axis: int) -> Any:
    """Return the logarithm of softmax."""
    less = shifted(x, axis)
    return less - xp.log(xp.exp(less).sum(axis=axis, keepdims=True))
