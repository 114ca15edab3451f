"""Which notebook cells have sent which requests of a device.

A cell sends many requests after each other, so only where another cell begins is kept.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from math import inf
from operator import itemgetter

KEPT = 4096
"""Of so many cells it is known, at least; what older ones have sent is forgotten."""

Begins = tuple[tuple[int, int | None], ...]
"""The number of the first request and the cell that sent it, ascending; None for a program."""


class Senders:
    """The cells of one device's requests; one thread at a time adds, any thread reads."""

    def __init__(self, begins: Iterable[tuple[int, int | None]] = ()) -> None:
        self._begins: list[tuple[int, int | None]] = list(begins)

    def begin(self, seq: int, cell: int | None) -> None:
        """Take it that requests from this number on, the highest so far, are this cell's."""
        self._begins.append((seq, cell))
        if len(self._begins) > 2 * KEPT:  # a new list, for others may read the old one
            self._begins = self._begins[-KEPT:]

    def learn(self, begins: Begins) -> None:
        """Take what `since` of others has told."""
        for seq, cell in begins:
            if not self._begins or seq > self._begins[-1][0]:
                self.begin(seq, cell)
            elif self._begins[place := bisect_left(self._begins, seq, key=_number)][0] != seq:
                self._begins.insert(place, (seq, cell))

    def since(self, seq: int) -> Begins:
        """Return what tells of this request and of all later ones."""
        begins = self._begins
        return tuple(begins[max(0, bisect_right(begins, seq, key=_number) - 1) :])

    def cell_of(self, seq: int) -> int | None:
        """Return the cell that has sent a request; None of a program, or where nobody knows."""
        begins = self._begins
        place = bisect_right(begins, seq, key=_number)
        return begins[place - 1][1] if place else None

    def span_of(self, seq: int) -> tuple[int, float, int | None]:
        """Return the first request of the cell that has sent one, the first after them, the cell.

        The bounds are those of now: they hold until something is added.
        """
        begins = self._begins
        place = bisect_right(begins, seq, key=_number)
        first, cell = begins[place - 1] if place else (0, None)
        return first, begins[place][0] if place < len(begins) else inf, cell

    def copy(self) -> "Senders":
        """Return one that goes on by itself from what this one knows."""
        return Senders(self._begins)


_number = itemgetter(0)
