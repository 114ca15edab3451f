"""Which order of a contraction is the fastest, found by trying each."""

from collections.abc import Callable
from dataclasses import dataclass

from accel_lab.libraries.tensor.path import Optimize, Step, steps_of

RUNS = 3
_ORDERS: tuple[Optimize, ...] = ("auto", "greedy", "dp", "optimal")
_MOST_OPTIMAL = 8
"""Of so many tensors at most all orders are looked at: it takes long for more."""


@dataclass(frozen=True)
class Tuned:
    """What was measured for a contraction.

    Attributes:
        optimize: what to give `contract` for the fastest order.
        orders: how many different ones there were.
        first_us: the time of the one that "auto" takes, in microseconds.
        best_us: the time of the fastest.
    """

    optimize: Optimize
    orders: int
    first_us: float
    best_us: float


def tuned(
    text: str,
    shapes: tuple[tuple[int, ...], ...],
    time_us: Callable[[tuple[Step, ...]], float],
) -> Tuned:
    """Return which order is the fastest; `time_us` is given the steps of each once."""
    known = [one for one in _ORDERS if one != "optimal" or len(shapes) <= _MOST_OPTIMAL]
    steps = {order: steps_of(text, shapes, order) for order in known}
    times: dict[tuple[Step, ...], float] = {}
    for one in steps.values():
        if one not in times:
            times[one] = time_us(one)
    best = min(known, key=lambda order: times[steps[order]])
    return Tuned(best, len(times), times[steps["auto"]], times[steps[best]])
