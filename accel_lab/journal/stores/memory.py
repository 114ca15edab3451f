"""The journal that lives as long as its process."""

import threading
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from operator import lt

from accel_lab.journal.stores.group import FACTS_BYTES, Group
from accel_lab.journal.stores.store import Store, Trimmed, room_of_groups

LIMIT_BYTES = 32 << 20


class MemoryStore(Store):
    """Keeps groups in this process's memory; whoever appends has it forget the oldest.

    Attributes:
        limit_bytes: how much of it a system leaves that has no limit of its own.
        dropped: how many entries it has forgotten.

    Parameters:
        limit_bytes: contents included; None for everything.
    """

    name = "memory"

    def __init__(self, limit_bytes: int | None = LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.dropped = 0
        self._lock = threading.RLock()  # a finalizer of the user's may read in the middle
        self._groups: dict[int, Group] = {}
        self._order: deque[int] = deque()  # the groups of devices, the oldest first
        self._sessions: dict[str, _Session] = {}
        self._contents: OrderedDict[str, bytes] = OrderedDict()  # by the last group that names them
        self._named: dict[str, int] = {}  # which group that is
        self._last = 0
        self._group_bytes = self._header_bytes = self._content_bytes = 0
        self._positions: dict[str, int] = {}

    def append(self, groups: Sequence[Group], contents: Mapping[str, bytes]) -> int:
        """Add groups and contents."""
        with self._lock:
            for key, data in contents.items():
                if key not in self._contents:
                    self._contents[key] = data
                    self._content_bytes += len(data) + FACTS_BYTES
            for group in groups:
                if group.position <= self._positions.get(group.session, -1):
                    continue
                self._positions[group.session] = group.position
                self._last += 1
                self._groups[self._last] = group.numbered(self._last)
                self._count(group)
            return self._last

    def _count(self, group: Group) -> None:
        """Note what a new group is for trimming, which looks at the oldest alone."""
        session = self._sessions.setdefault(group.session, _Session())
        if group.device:
            self._group_bytes += group.weight
            self._order.append(self._last)
            session.groups += 1
        else:
            self._header_bytes += group.weight
            session.headers.append(self._last)
        for key in group.keys:
            if key in self._contents:
                self._contents.move_to_end(key)
                self._named[key] = self._last

    def groups(self, after: int = 0) -> Iterator[Group]:
        """Yield what is kept; groups that are forgotten meanwhile are left out."""
        while True:
            with self._lock:
                # They ascend, and who follows asks for the last few of many.
                numbers = list(takewhile(partial(lt, after), reversed(self._groups)))
            if not numbers:
                return
            for number in reversed(numbers):
                group = self._groups.get(number)
                if group is not None:
                    yield group
            after = numbers[0]

    def numbers(self) -> set[int]:
        """Return the numbers of the groups that are kept; does not wait for long."""
        with self._lock:
            return set(self._groups)

    def content(self, key: str) -> bytes | None:
        """Return the bytes of a key."""
        return self._contents.get(key)

    def keep_within(self, limit_bytes: int) -> None:
        """Trim if there is more than that; a little more goes than must, so that this is rare."""
        if self.used_bytes > limit_bytes:
            self.trim(limit_bytes - limit_bytes // 8)

    @property
    def used_bytes(self) -> int:
        """How much it keeps, contents included; does not wait."""
        return self._group_bytes + self._header_bytes + self._content_bytes

    def trim(self, keep_bytes: int) -> Trimmed:
        """Forget what `judge` would, in the time that takes which goes, not which stays."""
        with self._lock:
            gone = {key: len(self._contents[key]) for key in self._contents.keys() - self._named}
            self._forget(gone)
            room = room_of_groups(self._content_bytes, keep_bytes)
            groups: list[Group] = []
            while self._group_bytes > room and (
                len(self._order) > 1 or self._group_bytes > keep_bytes
            ):
                groups += self._oldest()
            left = keep_bytes - self._group_bytes
            unnamed = [key for group in groups for key in group.keys if key not in self._named]
            for key in unnamed:
                if key in self._contents:
                    gone |= self._forget({key: len(self._contents[key])})
            gone |= self._forget(
                {
                    key: len(data)
                    for key, data in self._contents.items()
                    if len(data) + FACTS_BYTES > left
                }
            )
            while self._content_bytes > left:
                key = next(iter(self._contents))
                gone |= self._forget({key: len(self._contents[key])})
            entries = sum(group.entries for group in groups)
            self.dropped += entries
            return Trimmed(len(groups), entries, gone, self.used_bytes)

    def _oldest(self) -> Iterator[Group]:
        """Take out the oldest group, with its session's facts if it was the last of it."""
        number = self._order.popleft()
        group = self._groups.pop(number)
        self._group_bytes -= group.weight
        for key in group.keys:
            if self._named.get(key) == number:
                del self._named[key]
        yield group
        session = self._sessions[group.session]
        session.groups -= 1
        if session.groups:
            return
        for header in session.headers:
            facts = self._groups.pop(header)
            self._header_bytes -= facts.weight
            yield facts
        session.headers.clear()

    def _forget(self, contents: dict[str, int]) -> dict[str, int]:
        """Take contents out; returns them."""
        for key, size in contents.items():
            del self._contents[key]
            self._named.pop(key, None)
            self._content_bytes -= size + FACTS_BYTES
        return contents

    def close(self) -> None:
        """Do nothing: what is kept can still be read."""


class _Session:
    """What a store has of one session: how many groups of devices, and which of its facts."""

    def __init__(self) -> None:
        self.groups = 0
        self.headers: list[int] = []
