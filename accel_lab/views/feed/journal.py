"""The journal of a system as its feed sends it: the newest part, then what is added.

Each reader is told at its own pace: the groups are the store's, and only as many are taken out of
it as the reader has room for. What the store forgets meanwhile is counted for it.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.journal.journal import Journal
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.memory import MemoryStore
from accel_lab.journal.stores.replaced import is_replaced
from accel_lab.journal.stores.store import Store
from accel_lab.views.scene.observer import Lab

TOLD_BYTES = 8 << 20
"""How much of what was before it came a reader is told; and so much a reader keeps."""
PIECE_BYTES = 128 << 10  # at a time
EVERY_S = 0.5
LATE = "its store gave the rest too late, after the system had ended"


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
        self._lost = journal.lost
        self._lost_before = self._lost()
        self._after = -1  # nothing was looked at
        self._first = 0
        self._positions: dict[str, int] = {}  # how far each session was looked at
        self._due = 0.0
        self._why = ""  # the last look did not find all
        self._reading: threading.Thread | None = None
        self._hurries = self._given_up = False
        self._found: deque[Passage] = deque()

    def take(self) -> Iterator[Passage]:
        """Yield what was found since, and have more looked for; does not wait for a disk."""
        is_reading = self._reading is not None and self._reading.is_alive()
        if not is_reading and not self._found and time.monotonic() >= self._due:
            self._look(self._read)
        while self._found:
            yield self._found.popleft()

    def hurry(self) -> None:
        """Have all that is left looked for; does not wait for a disk. Safe to repeat."""
        if not self._hurries:
            self._hurries = True
            self._look(partial(self._read_on, self._reading))

    def rest(self, until: float) -> tuple[list[Passage], str]:
        """Return what is left, as far as it was found until then, and why that is not all.

        Waits no longer for the store. Nothing is looked for any more.

        Parameters:
            until: monotonic seconds.
        """
        self.hurry()
        why = ""
        if self._reading is not None:
            self._reading.join(max(0.0, until - time.monotonic()))
            if self._reading.is_alive():
                self._given_up = True
                why = LATE
        return list(self._found), why or self._why

    def _look(self, read: Callable[[], None]) -> None:
        if isinstance(self._store, MemoryStore):
            read()
            return
        reading = threading.Thread(target=read, name="accel_lab feed journal", daemon=True)
        try:
            reading.start()
        except RuntimeError as error:  # no thread can be had
            self._why = str(error)
        else:
            self._reading = reading

    def _read_on(self, before: threading.Thread | None) -> None:
        """Find piece after piece, as much as a reader is told."""
        if before is not None:
            before.join()
        while not self._given_up:
            after = self._after
            self._read()
            if self._after == after:
                return
            if sum(passage.group.nbytes for passage in self._found) > TOLD_BYTES:
                self._why = f"more than {TOLD_BYTES >> 20} MiB of it were left when it ended"
                return

    def _read(self) -> None:
        """Find the next piece; a store that is away or damaged is tried again later."""
        nbytes, self._why = 0, ""
        try:
            if self._after < 0:
                self._begin()
            elif is_replaced(self._store, self._after, self._was_read):
                self._after = 0
            before, self._lost_before = self._lost_before, self._lost()
            self._first += self._lost_before - before
            for group in self._store.groups(self._after):
                if group.number > self._after + 1:
                    self._first = self._before(group.number)
                self._say(group)
                nbytes += group.nbytes
                if nbytes >= PIECE_BYTES:
                    break
        except (AccelError, OSError) as error:
            self._why = str(error)
        self._due = time.monotonic() + (0.0 if nbytes >= PIECE_BYTES else EVERY_S)

    def _say(self, group: Group) -> None:
        self._found.append(Passage(group=group, first=self._first))
        self._first += group.entries
        self._after = group.number
        self._pass(group)

    def _pass(self, group: Group) -> None:
        """Note that a group was looked at; that of a session's facts may come again."""
        self._positions[group.session] = max(group.position, self._positions.get(group.session, 0))

    def _was_read(self, group: Group) -> bool:
        """Whether a group of the store was looked at."""
        return group.position <= self._positions.get(group.session, -1)

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
                self._pass(passed)
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
