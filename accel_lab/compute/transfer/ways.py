"""Which way copies between the devices of one system go, and how many went which way."""

import threading
from typing import Literal, NamedTuple

Way = Literal["shared memory", "staged", "ipc"]
"""Through memory that both processes share; through such memory, page-locked, by two copies of the
cards; or by one card from the memory of the other."""


class Taken(NamedTuple):
    """The copies of one pair of devices that went one way, so far."""

    source: str
    target: str
    way: Way
    copies: int
    nbytes: int


class Ways:
    """Chooses the way of each copy; any thread.

    Attributes:
        direct: whether a card may read another's memory where the driver lets it. Off: what
            goes that way is not sent again after a loss.

    Parameters:
        is_card: whether the devices are cards.
    """

    def __init__(self, *, is_card: bool) -> None:
        self.direct = False
        self._is_card = is_card
        self._lock = threading.Lock()
        self._refused: set[tuple[str, str]] = set()
        self._taken: dict[tuple[str, str, Way], tuple[int, int]] = {}

    def choose(self, source: str, target: str, *, is_kept: bool) -> Way:
        """Return which way the next copy goes.

        Parameters:
            is_kept: whether the record keeps its contents, which have to come by the host then.
        """
        if not self._is_card:
            return "shared memory"
        is_refused = is_kept or source == target or (source, target) in self._refused
        return "ipc" if self.direct and not is_refused else "staged"

    def refuse(self, source: str, target: str) -> None:
        """Have the next copies of two devices staged: one cannot read the other's memory."""
        with self._lock:
            self._refused.add((source, target))

    def took(self, source: str, target: str, way: Way, nbytes: int) -> None:
        """Count a copy that was sent."""
        with self._lock:
            copies, before = self._taken.get((source, target, way), (0, 0))
            self._taken[source, target, way] = copies + 1, before + nbytes

    def taken(self) -> list[Taken]:
        """Return how many copies went which way, by devices."""
        with self._lock:
            return [Taken(*key, *counts) for key, counts in sorted(self._taken.items())]
