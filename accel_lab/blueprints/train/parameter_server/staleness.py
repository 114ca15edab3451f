"""How old the parameters of a gradient may be, and whose turn it is to push."""

from collections.abc import Collection
from typing import NamedTuple


class Push(NamedTuple):
    """A gradient that was applied.

    Attributes:
        worker: its number.
        batch: the number of the batch that it is of.
        pulled: how many pushes had made the parameters that it is of.
        applied: how many had made those that it was applied to.
        loss: of the batch.
    """

    worker: int
    batch: int
    pulled: int
    applied: int
    loss: float

    @property
    def staleness(self) -> int:
        """How many pushes came between."""
        return self.applied - self.pulled


def may_push(version: int, others: Collection[int], bound: int) -> bool:
    """Whether all others still come in time if a push makes the next version now.

    They do if they can come in the order of their age.

    Parameters:
        others: the versions that the other workers have pulled and not pushed.
    """
    ages = enumerate(sorted(others), start=version + 1)
    return all(at - pulled <= bound for at, pulled in ages)
