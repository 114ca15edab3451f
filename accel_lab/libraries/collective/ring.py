"""The steps of a ring: which part each rank sends to the next one, and when.

`host`'s rings go by these, and the view of a world draws them.
"""

from typing import Literal, NamedTuple, TypeAlias

Phase: TypeAlias = Literal["folds", "passes"]


class Step(NamedTuple):
    """One step, which all ranks do at the same time.

    Attributes:
        phase: whether a rank folds what comes into its own part, or keeps it as it is.
        parts: the part that each rank sends to the next one, by rank.
    """

    phase: Phase
    parts: tuple[int, ...]


_ROUNDS: dict[str, tuple[tuple[Phase, int], ...]] = {
    "all_reduce": (("folds", 0), ("passes", 1)),
    "reduce_scatter": (("folds", -1),),
    "all_gather": (("passes", 0),),
}
"""The rounds of each operation: with which part a rank begins, counted from its own number."""


def part(rank: int, shift: int, step: int, size: int) -> int:
    """Return the part that a rank sends in a step of a round that begins with `rank + shift`."""
    return (rank + shift - step) % size


def shift(call: str, phase: Phase) -> int:
    """Return with which part a rank begins a round, counted from its own number."""
    return dict(_ROUNDS[call])[phase]


def steps(call: str, size: int) -> list[Step]:
    """Return the steps of an operation around a ring; none for one that takes another way."""
    return [
        Step(phase, tuple(part(rank, begin, step, size) for rank in range(size)))
        for phase, begin in _ROUNDS.get(call, ())
        for step in range(size - 1)
    ]
