"""Observers: how far from 0 the numbers go that 8 bits should still tell apart."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from accel_lab.errors import InvalidArgument

BINS = 2048
"""Of a histogram of absolute values."""
LEVELS = 128
"""Absolute values of int8 without its least number."""
_STEP = 16
"""Bins from one limit to the next that `Entropy` compares."""


class Observer(Protocol):
    """Chooses a limit.

    Attributes:
        counts: whether it needs a histogram, and so a second look at the samples.
    """

    counts: ClassVar[bool]

    def limit(self, most: float, histogram: npt.NDArray[Any] | None) -> float:
        """Return the limit, of the largest absolute value and a histogram from 0 to it."""


@dataclass(frozen=True, slots=True)
class MinMax:
    """Nothing is cut off: the limit is the largest absolute value."""

    counts: ClassVar[bool] = False

    def limit(self, most: float, histogram: npt.NDArray[Any] | None) -> float:  # noqa: ARG002
        """Return the largest absolute value."""
        return most


@dataclass(frozen=True, slots=True)
class Percentile:
    """So many in a hundred of the absolute values are within the limit, to a bin's width."""

    share: float = 99.99
    counts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.share <= 100:  # noqa: PLR2004 - a percentage
            raise InvalidArgument(f"Percentile: share is {self.share}; it is above 0 and up to 100")

    def limit(self, most: float, histogram: npt.NDArray[Any] | None) -> float:
        """Return the end of the bin in which the share is reached."""
        assert histogram is not None
        sums = np.cumsum(histogram)
        at = int(np.searchsorted(sums, sums[-1] * self.share / 100))
        return most * (min(at, BINS - 1) + 1) / BINS


@dataclass(frozen=True, slots=True)
class Entropy:
    """The limit within which 128 levels lose the least information.

    That is measured by the Kullback-Leibler divergence of the quantized distribution from the
    observed one, in which what is cut off counts as the largest that is left (S. Migacz, "8-bit
    inference with TensorRT", 2017).
    """

    counts: ClassVar[bool] = True

    def limit(self, most: float, histogram: npt.NDArray[Any] | None) -> float:
        """Return the end of the bins of which the divergence is the least."""
        assert histogram is not None
        ends = range(LEVELS, BINS + 1, _STEP)
        losses = [_divergence(histogram.astype(float), end) for end in ends]
        return most * ends[int(np.argmin(losses))] / BINS


def _divergence(histogram: npt.NDArray[Any], end: int) -> float:
    """Return by how much levels over the first bins tell less than these bins do."""
    inside = histogram[:end]
    observed = inside.copy()
    observed[-1] += histogram[end:].sum()
    level = np.arange(end) * LEVELS // end
    is_there = inside > 0
    sums = np.bincount(level, inside, LEVELS)
    shared = np.bincount(level, is_there, LEVELS)
    quantized = np.where(is_there, (sums / np.maximum(shared, 1))[level], 0)
    total = quantized.sum()
    if not total:
        return float("inf")
    p, q = observed / observed.sum(), quantized / total
    counted = p > 0
    # Where only what was cut off is, the levels have nothing: a large loss, and no infinite one.
    return float(np.sum(p[counted] * np.log(p[counted] / np.maximum(q[counted], 1e-9))))


OBSERVERS: dict[str, Callable[[], Observer]] = {
    "minmax": MinMax,
    "entropy": Entropy,
    "percentile": Percentile,
}
"""The observers by the words that name them."""
