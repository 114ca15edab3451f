"""Pooling, one element of the window after the other at all places."""

from typing import Any

import numpy as np

from accel_lab.libraries.dnn.evaluation.kit import Kit
from accel_lab.libraries.dnn.message import channels_first, moved, moved_back
from accel_lab.libraries.dnn.pooling import (
    AveragePool,
    AveragePoolGradient,
    MaxPool,
    MaxPoolGradient,
)
from accel_lab.libraries.dnn.windows import Windows, windows


class Pooling:
    """Maxima and averages of windows.

    Parameters:
        kit: the backend's arrays.
    """

    def __init__(self, kit: Kit) -> None:
        self.kit = kit

    @np.errstate(all="ignore")
    def max_pool(self, m: MaxPool, x: Any, out: Any) -> None:
        """Write the maximum of each window."""
        xp, dtype, slides = self.kit.xp, m.x.dtype, windows(m, m.window)
        x = moved(self.kit.widened(x, dtype), m.layout)
        padded = slides.padded(xp, x, -np.inf)
        made = xp.full((*x.shape[:2], *slides.places(x.shape[2:])), -np.inf, x.dtype)
        for _, lies in slides.slices(made.shape[2:]):
            made = xp.maximum(made, padded[lies])
        self.kit.store(moved_back(made, m.layout), out, dtype)

    @np.errstate(all="ignore")
    def max_pool_gradient(self, m: MaxPoolGradient, x: Any, dy: Any, out: Any) -> None:
        """Write what comes from behind to where the maximum was."""
        xp, dtype, slides = self.kit.xp, m.x.dtype, windows(m, m.window)
        x, dy = (moved(self.kit.widened(one, dtype), m.layout) for one in (x, dy))
        padded = slides.padded(xp, x, -np.inf)
        highest = xp.full(dy.shape, -np.inf, x.dtype)
        place = xp.full(dy.shape, -1, np.int64)
        several = [*slides.slices(dy.shape[2:])]
        inside = slides.padded(xp, xp.ones(x.shape[2:], bool), 0.0)
        for at, (_, lies) in enumerate(several):
            one = padded[lies]
            # The first of equals; a NaN stays; of a window of -inf the first that is no padding.
            more = (one > highest) | (xp.isnan(one) & ~xp.isnan(highest)) | (place < 0)
            more &= inside[lies]
            place = xp.where(more, at, place)
            highest = xp.where(more, one, highest)
        dx = xp.zeros(padded.shape, x.dtype)
        for at, (_, lies) in enumerate(several):
            dx[lies] += xp.where(place == at, dy, 0)
        self.kit.store(moved_back(slides.inside(dx), m.layout), out, dtype)

    @np.errstate(all="ignore")
    def average_pool(self, m: AveragePool, x: Any, out: Any) -> None:
        """Write the average of each window."""
        xp, dtype, slides = self.kit.xp, m.x.dtype, windows(m, m.window)
        x = moved(self.kit.widened(x, dtype), m.layout)
        padded = slides.padded(xp, x)
        made = xp.zeros((*x.shape[:2], *slides.places(x.shape[2:])), x.dtype)
        for _, lies in slides.slices(made.shape[2:]):
            made += padded[lies]
        made /= self._counts(m, slides, x.shape[2:], x.dtype)
        self.kit.store(moved_back(made, m.layout), out, dtype)

    @np.errstate(all="ignore")
    def average_pool_gradient(self, m: AveragePoolGradient, dy: Any, out: Any) -> None:
        """Write to each element its share of what comes from behind."""
        xp, dtype, slides = self.kit.xp, m.dy.dtype, windows(m, m.window)
        dy = moved(self.kit.widened(dy, dtype), m.layout)
        shares = dy / self._counts(m, slides, m.extents, dy.dtype)
        shape = channels_first(out.shape, m.layout)
        dx = xp.zeros(slides.padded_shape(shape), dy.dtype)
        for _, lies in slides.slices(dy.shape[2:]):
            dx[lies] += shares
        self.kit.store(moved_back(slides.inside(dx), m.layout), out, dtype)

    def _counts(self, m: Any, slides: Windows, extents: Any, dtype: Any) -> Any:
        """Return by how much the sum of each window is divided."""
        if m.count_padding:
            return float(np.prod(slides.window))
        xp, places = self.kit.xp, slides.places(extents)
        ones = slides.padded(xp, xp.ones(extents, dtype))
        counts = xp.zeros(places, dtype)
        for _, lies in slides.slices(places):
            counts += ones[lies]
        return counts
