"""The journal that lives as long as its process."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from operator import lt

from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.store import Store, Trimmed, Weighed, judge

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
        self._contents: dict[str, bytes] = {}
        self._last = 0
        self._used_bytes = 0
        self._positions: dict[str, int] = {}

    def append(self, groups: Sequence[Group], contents: Mapping[str, bytes]) -> int:
        """Add groups and contents."""
        with self._lock:
            for key, data in contents.items():
                if key not in self._contents:
                    self._contents[key] = data
                    self._used_bytes += len(data)
            for group in groups:
                if group.position <= self._positions.get(group.session, -1):
                    continue
                self._positions[group.session] = group.position
                self._last += 1
                self._groups[self._last] = group.numbered(self._last)
                self._used_bytes += group.nbytes
            return self._last

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
        if self._used_bytes > limit_bytes:
            self.trim(limit_bytes - limit_bytes // 8)

    def trim(self, keep_bytes: int) -> Trimmed:
        """Forget the oldest groups until so much is left."""
        with self._lock:
            weighed = [
                Weighed(
                    group.number,
                    group.session,
                    group.device,
                    group.entries,
                    group.nbytes,
                    group.keys,
                )
                for group in self._groups.values()
            ]
            sizes = {key: len(data) for key, data in self._contents.items()}
            verdict = judge(weighed, sizes, self._last, keep_bytes)
            for number in verdict.groups:
                del self._groups[number]
            for key in verdict.keys:
                del self._contents[key]
            self._used_bytes = verdict.kept_bytes
            self.dropped += verdict.entries
            return verdict.trimmed

    def close(self) -> None:
        """Do nothing: what is kept can still be read."""
