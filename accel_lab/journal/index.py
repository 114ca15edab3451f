"""Where in a store which entry is, so that the last of a million are read without the others."""

from bisect import bisect_right

from accel_lab.errors import JournalDamaged
from accel_lab.journal.store import Store


class Index:
    """The numbers of a store's groups, and how many entries stand before each.

    Attributes:
        total: how many entries there are.
        damage: what ended the reading, if something did.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._numbers: list[int] = []
        self._starts: list[int] = []
        self._first: int | None = None
        self.total = 0
        self.damage: JournalDamaged | None = None

    def refresh(self) -> None:
        """Take in what was appended and trimmed since; blocks while new groups are read."""
        if self._numbers and self._begins() != self._first:
            self._clear()
        if not self._numbers:
            self._first = self._begins()
        self.damage = None
        try:
            for group in self._store.groups(self._numbers[-1] if self._numbers else 0):
                self._numbers.append(group.number)
                self._starts.append(self.total)
                self.total += group.entries
        except JournalDamaged as error:
            self.damage = error

    def place(self, number: int) -> tuple[int, int]:
        """Return after which group entry `number` is found, and the first entry found there."""
        where = bisect_right(self._starts, number) - 1
        return self._numbers[where] - 1, self._starts[where]

    def _clear(self) -> None:
        self._numbers.clear()
        self._starts.clear()
        self.total = 0

    def _begins(self) -> int | None:
        """Return the number of the oldest group of a device."""
        try:
            return next((group.number for group in self._store.groups() if group.device), None)
        except JournalDamaged:
            return None
