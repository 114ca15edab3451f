"""Comparing two things fairly on a machine that others use too: many short, interleaved rounds."""

from collections.abc import Callable, Sequence
from itertools import chain
from statistics import median
from typing import NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")
Measure = Callable[[], float]
Sample = Callable[[], list[float]]


class Comparison(NamedTuple):
    """Two figures and what one is to the other; see `Row` for the words."""

    theirs: float
    ours: float
    ratio: float
    low: float | None
    high: float | None
    rounds: int


def alternate(
    theirs: Callable[[], T], ours: Callable[[], T], rounds: int, *, warm_up: int = 1
) -> list[tuple[T, T]]:
    """Measure both in turn, every second round in the other order; return (theirs, ours) of each.

    Blocks for as long as both take; runs them in the calling thread. What the first `warm_up`
    rounds give is dropped.
    """
    pairs: list[tuple[T, T]] = []
    for number in range(warm_up + rounds):
        if number % 2:
            mine = ours()
            pairs.append((theirs(), mine))
        else:
            other = theirs()
            pairs.append((other, ours()))
    return pairs[warm_up:]


def compare(theirs: Measure, ours: Measure, rounds: int, *, warm_up: int = 1) -> Comparison:
    """Measure both in alternating rounds, and compare round by round."""
    return compared(alternate(theirs, ours, rounds, warm_up=warm_up))


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


def latencies(theirs: Sample, ours: Sample, rounds: int) -> tuple[Comparison, Comparison]:
    """Sample both in turn and compare the medians of each round, and the tails of all together.

    Returns:
        of the 50th and of the 99th percentile, in the samples' unit.
    """
    pairs = alternate(theirs, ours, rounds)
    medians = compared([(percentile(a, 50), percentile(b, 50)) for a, b in pairs])
    a, b = (percentile([*chain(*side)], 99) for side in zip(*pairs, strict=True))
    return medians, Comparison(a, b, b / a, None, None, rounds)


def percentile(samples: Sequence[float], percent: float) -> float:
    """Return a percentile, in the samples' unit."""
    return float(np.percentile(samples, percent))
