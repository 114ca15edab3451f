"""Norms: an array is viewed so that some of its axes are normalized, and is turned back."""

import math
from typing import Any

import numpy as np

from accel_lab.libraries.dnn.evaluation.kit import Kit
from accel_lab.libraries.dnn.message import moved, moved_back
from accel_lab.libraries.dnn.normalization import (
    BatchNorm,
    BatchNormGradient,
    BatchNormInference,
    GroupNorm,
    GroupNormGradient,
    LayerNorm,
    LayerNormGradient,
    RmsNorm,
    RmsNormGradient,
)


class Norms:
    """Norms and their gradients.

    Parameters:
        kit: the backend's arrays.
    """

    def __init__(self, kit: Kit) -> None:
        self.kit = kit

    @np.errstate(all="ignore")
    def batch_norm(
        self, m: BatchNorm, x: Any, scale: Any, bias: Any, mean: Any, variance: Any, out: Any
    ) -> None:
        """Write the normalized batch, and the moved statistics."""
        dtype, xp = m.x.dtype, self.kit.xp
        x, scale, bias, *running = self._wide(
            dtype, moved(x, m.layout), scale, bias, mean, variance
        )
        axes = _but_channels(x)
        count = x.size // x.shape[1]
        of_batch, squares = _moments(x, axes)
        made = (x - of_batch) / xp.sqrt(squares + m.epsilon)
        made = made * _along(scale, x) + _along(bias, x)
        self.kit.store(moved_back(made, m.layout), out.y, dtype)
        unbiased = squares.reshape(-1) * (count / (count - 1))
        way = m.momentum
        self.kit.store(running[0] * (1 - way) + of_batch.reshape(-1) * way, out.mean, dtype)
        self.kit.store(running[1] * (1 - way) + unbiased * way, out.variance, dtype)

    @np.errstate(all="ignore")
    def batch_norm_inference(
        self,
        m: BatchNormInference,
        x: Any,
        scale: Any,
        bias: Any,
        mean: Any,
        variance: Any,
        out: Any,
    ) -> None:
        """Write what the running statistics make of it."""
        dtype = m.x.dtype
        x, *parameters = self._wide(dtype, moved(x, m.layout), scale, bias, mean, variance)
        scale, bias, mean, variance = (_along(one, x) for one in parameters)
        made = (x - mean) / self.kit.xp.sqrt(variance + m.epsilon) * scale + bias
        self.kit.store(moved_back(made, m.layout), out, dtype)

    @np.errstate(all="ignore")
    def batch_norm_gradient(
        self, m: BatchNormGradient, x: Any, dy: Any, scale: Any, mean: Any, variance: Any, out: Any
    ) -> None:
        """Write the gradients."""
        dtype, xp = m.x.dtype, self.kit.xp
        x, dy = self._wide(dtype, moved(x, m.layout), moved(dy, m.layout))
        scale, mean, variance = self._wide(dtype, scale, mean, variance)
        axes, along = _but_channels(x), _along(scale, x)
        if mean is None:
            dx, hat = _gradient(xp, x, dy * along, axes, m.epsilon)
        else:
            inverse = 1 / xp.sqrt(_along(variance, x) + m.epsilon)
            dx, hat = dy * along * inverse, (x - _along(mean, x)) * inverse
        self.kit.store(moved_back(dx, m.layout), out.x, dtype)
        self.kit.store((dy * hat).sum(axis=axes), out.scale, dtype)
        self.kit.store(dy.sum(axis=axes), out.bias, dtype)

    @np.errstate(all="ignore")
    def layer_norm(self, m: LayerNorm, x: Any, scale: Any, bias: Any, out: Any) -> None:
        """Write the normalized rows."""
        dtype = m.x.dtype
        x, scale, bias = self._wide(dtype, x, scale, bias)
        mean, squares = _moments(x, _last(x, m.axes))
        made = (x - mean) / self.kit.xp.sqrt(squares + m.epsilon)
        self.kit.store(_scaled(made, scale, bias), out, dtype)

    @np.errstate(all="ignore")
    def layer_norm_gradient(
        self, m: LayerNormGradient, x: Any, dy: Any, scale: Any, out: Any
    ) -> None:
        """Write the gradients."""
        dtype = m.x.dtype
        x, dy, scale = self._wide(dtype, x, dy, scale)
        dx, hat = _gradient(self.kit.xp, x, _scaled(dy, scale), _last(x, m.axes), m.epsilon)
        before = tuple(range(x.ndim - m.axes))
        self.kit.store(dx, out.x, dtype)
        self.kit.store((dy * hat).sum(axis=before), out.scale, dtype)
        self.kit.store(dy.sum(axis=before), out.bias, dtype)

    @np.errstate(all="ignore")
    def rms_norm(self, m: RmsNorm, x: Any, scale: Any, out: Any) -> None:
        """Write the rows over their root mean squares."""
        dtype = m.x.dtype
        x, scale = self._wide(dtype, x, scale)
        squares = _mean(x * x, _last(x, m.axes))
        made = x / self.kit.xp.sqrt(squares + m.epsilon)
        self.kit.store(_scaled(made, scale), out, dtype)

    @np.errstate(all="ignore")
    def rms_norm_gradient(self, m: RmsNormGradient, x: Any, dy: Any, scale: Any, out: Any) -> None:
        """Write the gradients."""
        dtype = m.x.dtype
        x, dy, scale = self._wide(dtype, x, dy, scale)
        axes = _last(x, m.axes)
        inverse = 1 / self.kit.xp.sqrt(_mean(x * x, axes) + m.epsilon)
        hat, g = x * inverse, _scaled(dy, scale)
        self.kit.store(inverse * (g - hat * _mean(g * hat, axes)), out.x, dtype)
        self.kit.store((dy * hat).sum(axis=tuple(range(x.ndim - m.axes))), out.scale, dtype)

    @np.errstate(all="ignore")
    def group_norm(self, m: GroupNorm, x: Any, scale: Any, bias: Any, out: Any) -> None:
        """Write the normalized groups."""
        dtype = m.x.dtype
        x, scale, bias = self._wide(dtype, moved(x, m.layout), scale, bias)
        rows = _grouped(x, m.groups)
        mean, squares = _moments(rows, (2,))
        made = ((rows - mean) / self.kit.xp.sqrt(squares + m.epsilon)).reshape(x.shape)
        made = _scaled(made, _along(scale, x), _along(bias, x))
        self.kit.store(moved_back(made, m.layout), out, dtype)

    @np.errstate(all="ignore")
    def group_norm_gradient(
        self, m: GroupNormGradient, x: Any, dy: Any, scale: Any, out: Any
    ) -> None:
        """Write the gradients."""
        dtype = m.x.dtype
        x, dy, scale = self._wide(dtype, moved(x, m.layout), moved(dy, m.layout), scale)
        rows = _grouped(x, m.groups)
        g = _scaled(dy, _along(scale, x)).reshape(rows.shape)
        dx, hat = _gradient(self.kit.xp, rows, g, (2,), m.epsilon)
        axes = _but_channels(x)
        self.kit.store(moved_back(dx.reshape(x.shape), m.layout), out.x, dtype)
        self.kit.store((dy * hat.reshape(x.shape)).sum(axis=axes), out.scale, dtype)
        self.kit.store(dy.sum(axis=axes), out.bias, dtype)

    def _wide(self, dtype: str, *arrays: Any) -> list[Any]:
        return [self.kit.widened(x, dtype) for x in arrays]


def _mean(x: Any, axes: tuple[int, ...]) -> Any:
    """Return the mean over some axes, which stay with extent 1; of nothing it is 0."""
    count = math.prod(x.shape[axis] for axis in axes)
    return x.sum(axis=axes, keepdims=True) / max(count, 1)


def _moments(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """Return mean and variance, in two passes."""
    mean = _mean(x, axes)
    return mean, _mean((x - mean) ** 2, axes)


def _gradient(xp: Any, x: Any, g: Any, axes: tuple[int, ...], epsilon: float) -> tuple[Any, Any]:
    """Return the gradient by `x` of that by what is normalized, and what is normalized."""
    mean, squares = _moments(x, axes)
    inverse = 1 / xp.sqrt(squares + epsilon)
    hat = (x - mean) * inverse
    return inverse * (g - _mean(g, axes) - hat * _mean(g * hat, axes)), hat


def _scaled(x: Any, scale: Any, bias: Any = None) -> Any:
    made = x if scale is None else x * scale
    return made if bias is None else made + bias


def _along(parameter: Any, x: Any) -> Any:
    """Return a parameter of each channel so that it broadcasts; None stays."""
    return None if parameter is None else parameter.reshape(-1, *(1,) * (x.ndim - 2))


def _but_channels(x: Any) -> tuple[int, ...]:
    return (0, *range(2, x.ndim))


def _last(x: Any, count: int) -> tuple[int, ...]:
    return tuple(range(x.ndim - count, x.ndim))


def _grouped(x: Any, groups: int) -> Any:
    """Return an array as (batch, groups, all else)."""
    count = groups or x.shape[1]
    each = math.prod(x.shape[1:]) // max(count, 1)
    return x.reshape(x.shape[0], count, each)
