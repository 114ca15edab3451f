"""A journal's store that goes away and comes back."""

from collections.abc import Iterator, Mapping, Sequence

from accel_lab.errors import JournalUnavailable
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.memory import MemoryStore
from accel_lab.journal.stores.store import Store, Trimmed

LIMIT_BYTES = 32 << 20


class Fickle(Store):
    """Keeps groups in memory, and takes none while it is away.

    Attributes:
        away: how many have sent it away.
        refusals: how often it was asked in vain.
        gaps: how many groups of its one session never came.
    """

    name = "fickle"

    def __init__(self) -> None:
        self.away = self.refusals = self.gaps = 0
        self._inner = MemoryStore()
        self._position = -1

    def append(self, groups: Sequence[Group], contents: Mapping[str, bytes]) -> int:
        """Add groups, unless it is away."""
        if self.away:
            self.refusals += 1
            raise JournalUnavailable(f"{self.name} is away")
        for group in groups:
            self.gaps += max(0, group.position - self._position - 1)
            self._position = max(self._position, group.position)
        return self._inner.append(groups, contents)

    def groups(self, after: int = 0) -> Iterator[Group]:
        """Yield what is kept."""
        return self._inner.groups(after)

    def content(self, key: str) -> bytes | None:
        """Return the bytes of a key."""
        return self._inner.content(key)

    def trim(self, keep_bytes: int) -> Trimmed:
        """Forget the oldest."""
        return self._inner.trim(keep_bytes)

    def close(self) -> None:
        """Do nothing."""
