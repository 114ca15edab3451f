"""The messages that both backends evaluate with the functions that NumPy and CuPy share."""

from typing import Any

import numpy as np

from accel_lab.libraries.dnn.activation import Activate, ActivateGradient
from accel_lab.libraries.dnn.convolution import (
    Conv,
    ConvDataGradient,
    ConvFilterGradient,
    ConvTranspose,
)
from accel_lab.libraries.dnn.evaluation import activating, convolving
from accel_lab.libraries.dnn.evaluation.kit import Kit
from accel_lab.libraries.dnn.message import moved, moved_back
from accel_lab.libraries.dnn.windows import windows


class Convolutions:
    """Convolutions by products of matrices.

    Parameters:
        kit: the backend's arrays.
    """

    def __init__(self, kit: Kit) -> None:
        self.kit = kit

    @np.errstate(all="ignore")
    def conv(self, m: Conv, x: Any, w: Any, bias: Any, out: Any, workspace: Any) -> None:
        """Write the sums, with their bias, and activated."""
        del workspace  # columns are arrays
        x, w = self.first(m, x, m.x.dtype), self.first(m, w, m.x.dtype)
        y = convolving.forward(self.kit.xp, x, w, windows(m, w.shape[2:]), m.groups)
        self.finish(m, y, bias, out)

    @np.errstate(all="ignore")
    def finish(self, m: Conv, y: Any, bias: Any, out: Any) -> None:
        """Write sums with their bias, and activated."""
        if bias is not None:
            wide = self.kit.widened(bias, m.x.dtype)
            y = y + wide.reshape(-1, *(1,) * (y.ndim - 2))
        y = activating.activated(self.kit, m.activation, y)
        self.kit.store(moved_back(y, m.layout), out, m.x.dtype)

    @np.errstate(all="ignore")
    def conv_data_gradient(
        self, m: ConvDataGradient, dy: Any, w: Any, out: Any, workspace: Any
    ) -> None:
        """Write the gradient by what was convolved."""
        del workspace  # columns are arrays
        dy, w = self.first(m, dy, m.dy.dtype), self.first(m, w, m.dy.dtype)
        slides = windows(m, w.shape[2:])
        dx = convolving.data_gradient(self.kit.xp, dy, w, m.extents, slides, m.groups)
        self.kit.store(moved_back(dx, m.layout), out, m.dy.dtype)

    @np.errstate(all="ignore")
    def conv_filter_gradient(
        self, m: ConvFilterGradient, x: Any, dy: Any, out: Any, workspace: Any
    ) -> None:
        """Write the gradient by the filters."""
        del workspace  # columns are arrays
        x, dy = self.first(m, x, m.x.dtype), self.first(m, dy, m.x.dtype)
        dw = convolving.filter_gradient(self.kit.xp, x, dy, windows(m, m.window), m.groups)
        self.kit.store(moved_back(dw, m.layout), out, m.x.dtype)

    @np.errstate(all="ignore")
    def conv_transpose(
        self, m: ConvTranspose, x: Any, w: Any, bias: Any, out: Any, workspace: Any
    ) -> None:
        """Write the data gradient, with its bias."""
        del workspace  # columns are arrays
        x, w = self.first(m, x, m.x.dtype), self.first(m, w, m.x.dtype)
        slides = windows(m, w.shape[2:])
        y = convolving.data_gradient(self.kit.xp, x, w, m.extents(), slides, m.groups)
        if bias is not None:
            y = y + self.kit.widened(bias, m.x.dtype).reshape(-1, *(1,) * (y.ndim - 2))
        self.kit.store(moved_back(y, m.layout), out, m.x.dtype)

    def first(self, m: Any, x: Any, dtype: str) -> Any:
        """Return an operand as it is computed with, its channels behind its first axis."""
        return moved(self.kit.widened(x, dtype), m.layout)


class Activations:
    """Functions of each element.

    Parameters:
        kit: the backend's arrays.
    """

    def __init__(self, kit: Kit) -> None:
        self.kit = kit

    @np.errstate(all="ignore")
    def activate(self, m: Activate, x: Any, out: Any, alpha: Any) -> None:
        """Write a function of each element."""
        dtype = m.x.dtype
        value = activating.activated(self.kit, m.op, self.kit.widened(x, dtype), alpha)
        self.kit.store(value, out, dtype)

    @np.errstate(all="ignore")
    def activate_gradient(self, m: ActivateGradient, x: Any, dy: Any, out: Any, alpha: Any) -> None:
        """Write the derivative times what comes from behind."""
        dtype = m.x.dtype
        x, dy = self.kit.widened(x, dtype), self.kit.widened(dy, dtype)
        self.kit.store(activating.derivative(self.kit, m.op, x, alpha) * dy, out, dtype)
