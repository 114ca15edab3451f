"""Comparing two things fairly on a machine that others use too: many short, interleaved rounds."""

from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

Measure = Callable[[], float]


class Comparison(NamedTuple):
    """Two figures and what one is to the other; see `Row` for the words."""

    theirs: float
    ours: float
    ratio: float
    low: float
    high: float
    rounds: int


def compare(theirs: Measure, ours: Measure, rounds: int, *, warm_up: int = 1) -> Comparison:
    """Measure both in turn, first the one and then the other, and compare round by round.

    Blocks for as long as both take; runs them in the calling thread. What the first `warm_up`
    rounds give is dropped.
    """
    pairs: list[tuple[float, float]] = []
    for number in range(warm_up + rounds):
        if number % 2:
            mine = ours()
            pairs.append((theirs(), mine))
        else:
            other = theirs()
            pairs.append((other, ours()))
    return compared(pairs[warm_up:])


def compared(pairs: Sequence[tuple[float, float]]) -> Comparison:
    """Compare the figures (theirs, ours) of several rounds."""
    ratios = [mine / other for other, mine in pairs]
    low, middle, high = (float(q) for q in np.percentile(ratios, (25, 50, 75)))
    return Comparison(
        median(other for other, _ in pairs),
        median(mine for _, mine in pairs),
        middle,
        low,
        high,
        len(pairs),
    )


def percentile(samples: Sequence[float], percent: float) -> float:
    """Return a percentile, in the samples' unit."""
    return float(np.percentile(samples, percent))
