"""A cache of what was derived from some bytes, found by these bytes."""

from typing import TypeVar

T = TypeVar("T")

MOST = 256
"""So many are remembered; when there are more, all are forgotten."""
LONGEST = 512
"""Only what was worked out for up to so many bytes is."""


class BytesCache(dict[bytes, T]):
    """A dictionary that stays small, for one thread; what is in it is looked up as in any."""

    def keep(self, data: bytes, found: T) -> None:
        """Remember what was worked out for these bytes, unless they are many."""
        if len(data) > LONGEST:
            return
        if len(self) >= MOST:
            self.clear()
        self[data] = found
