"""The journal of a system as its feed tells it: the newest of what there is, then what is added.

Each reader is told at its own pace: the groups are the store's, and only as many are taken out of
it as the reader has room for. What the store forgets meanwhile is counted for it.
"""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator

import msgspec

from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.journal.group import Group
from accel_lab.journal.journal import Journal
from accel_lab.journal.memory_store import MemoryStore
from accel_lab.journal.store import Store
from accel_lab.views.observer import Lab

TOLD_BYTES = 8 << 20
"""How much of what was before it came a reader is told; and so much a reader keeps."""
PIECE_BYTES = 128 << 10  # at a time
EVERY_S = 0.5


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """A line with a piece of the journal of the system that the last topic named.

    Attributes:
        group: as it was committed.
        first: how many entries the journal had before it, as far as is known.
    """

    group: Group
    first: int

    @property
    def line(self) -> bytes:
        """It as it is sent."""
        return msgspec.json.encode(self) + b"\n"


def journal_of(lab: Lab) -> Journal | None:
    """Return the journal of a system; None if it keeps none."""
    try:
        journal: Journal | None = getattr(lab, "journal", None)
    except InvalidArgument:
        return None
    return journal


class Telling:
    """What one reader was told of one journal.

    A store in another process or on a disk is read in a thread of its own.
    """

    def __init__(self, journal: Journal) -> None:
        self._store: Store = journal.store
        self._dropped = journal.dropped
        self._after = -1  # nothing was looked at
        self._first = 0
        self._due = 0.0
        self._reading: threading.Thread | None = None
        self._found: deque[Passage] = deque()

    def take(self) -> Iterator[Passage]:
        """Yield what was found since, and have more looked for; does not wait for a disk."""
        is_reading = self._reading is not None and self._reading.is_alive()
        if not is_reading and not self._found and time.monotonic() >= self._due:
            self._look()
        while self._found:
            yield self._found.popleft()

    def rest(self) -> Iterator[Passage]:
        """Yield all that is left; waits for the store."""
        if self._reading is not None:
            self._reading.join()
        found = True
        while found:
            yield from self._found
            self._found.clear()
            self._read()
            found = bool(self._found)

    def _look(self) -> None:
        if isinstance(self._store, MemoryStore):
            self._read()
            return
        self._reading = threading.Thread(
            target=self._read, name="accel_lab feed journal", daemon=True
        )
        self._reading.start()

    def _read(self) -> None:
        """Find the next piece; a store that is away or damaged is tried again later."""
        nbytes = 0
        with contextlib.suppress(AccelError, OSError):
            if self._after < 0:
                self._begin()
            for group in self._store.groups(self._after):
                if group.number > self._after + 1:
                    self._first = self._before(group.number)
                self._say(group)
                nbytes += group.nbytes
                if nbytes >= PIECE_BYTES:
                    break
        self._due = time.monotonic() + (0.0 if nbytes >= PIECE_BYTES else EVERY_S)

    def _say(self, group: Group) -> None:
        self._found.append(Passage(group=group, first=self._first))
        self._first += group.entries
        self._after = group.number

    def _begin(self) -> None:
        """Pass over all but the newest, and say in which sessions these are."""
        newest: deque[Group] = deque()
        begun: dict[str, tuple[Group, int]] = {}
        nbytes, first = 0, self._dropped
        for group in self._store.groups():
            newest.append(group)
            nbytes += group.nbytes
            while nbytes > TOLD_BYTES:
                passed = newest.popleft()
                nbytes -= passed.nbytes
                if not passed.device:
                    begun[passed.session] = passed, first
                first += passed.entries
        for session in dict.fromkeys(group.session for group in newest):
            if session in begun:
                header, self._first = begun[session]
                self._say(header)
        self._first = first
        self._after = newest[0].number - 1 if newest else 0

    def _before(self, number: int) -> int:
        """Count the entries before a group, after some were forgotten."""
        if not isinstance(self._store, MemoryStore):
            return self._first
        held = sum(one.entries for one in self._store.groups() if one.number < number)
        return max(self._first, self._store.dropped + held)
