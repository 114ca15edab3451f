"""Where in a store which entry is, so that the last of a million are read without the others."""

from bisect import bisect_right
from contextlib import suppress

import msgspec

from accel_lab.errors import JournalDamaged, JournalError
from accel_lab.journal.entries.damage import damage_in
from accel_lab.journal.entries.entry import entries_of
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.store import Store
from accel_lab.libraries.jit.messages import Compile

_COMPILE = msgspec.msgpack.encode(Compile.__struct_config__.tag)


class Index:
    """The numbers of a store's groups, and how many entries stand before each.

    Attributes:
        total: how many entries there are.
        kernels: the names of compiled kernels, by session and device: a launch has only the number.
        damage: what has ended a reading, or is on record as found damaged, if something has been.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._numbers: list[int] = []
        self._starts: list[int] = []
        self._first: tuple[int, str, int] | None = None
        self.total = 0
        self.kernels: dict[tuple[str, str], dict[int, str]] = {}
        self.damage: JournalDamaged | None = None

    def refresh(self) -> None:
        """Take in what was appended and trimmed since; blocks while new groups are read.

        A journal that has taken the place of the one before is read from its beginning.
        """
        if self._numbers and self._begins() != self._first:
            self._clear()
        if not self._numbers:
            self._first = self._begins()
        try:
            for group in self._store.groups(self._numbers[-1] if self._numbers else 0):
                self._numbers.append(group.number)
                self._starts.append(self.total)
                self.total += group.entries
                if text := damage_in(group):
                    self.damage = self.damage or JournalDamaged(text)
                if _COMPILE in group.data:
                    self._name_kernels(group)
        except JournalDamaged as error:
            self.damage = error

    def place(self, number: int) -> tuple[int, int]:
        """Return after which group entry `number` is found, and the first entry found there."""
        where = bisect_right(self._starts, number) - 1
        return self._numbers[where] - 1, self._starts[where]

    def _name_kernels(self, group: Group) -> None:
        """Take in the names of the kernels that were compiled in a group, if it does hold one."""
        with suppress(JournalError):  # whoever reads the group is told
            for entry in entries_of([group]):
                if entry.name == Compile.__name__:
                    known = self.kernels.setdefault((entry.session, entry.device), {})
                    known |= entry.aftermath.kernels

    def _clear(self) -> None:
        self._numbers.clear()
        self._starts.clear()
        self.total = 0

    def _begins(self) -> tuple[int, str, int] | None:
        """Return what tells the oldest group of a device from any other of any journal."""
        try:
            return next((group.identity for group in self._store.groups() if group.device), None)
        except JournalDamaged:
            return None
