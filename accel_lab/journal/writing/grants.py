"""Which contents a session keeps in its journal, within a budget."""

from collections.abc import Iterable, Mapping

from accel_lab.compute.lineage.content_store import Contents
from accel_lab.display.sizes import size

CONTENTS_BYTES = 256 << 20


class Grants:
    """Says of each content, when it is first recorded, whether the journal keeps it.

    Not thread-safe; the writer's lock is held.

    Parameters:
        contents: has the bytes.
        limit_bytes: how much one session keeps.
        store_bytes: how much the store keeps, so that larger ones would only pass through it.
    """

    def __init__(
        self,
        contents: Contents,
        limit_bytes: int = CONTENTS_BYTES,
        store_bytes: int | None = None,
    ) -> None:
        self._store_bytes = store_bytes
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._contents = contents
        self._waiting: dict[str, bytes] = {}
        self._stored: dict[str, int] = {}

    def refusal(self, key: str) -> str:
        """Return why the bytes of a key are not kept; empty when they are, or will be."""
        if key in self._stored or key in self._waiting:
            return ""
        gone = "its bytes were let go before the journal had them"
        nbytes = self._contents.nbytes(key)
        if nbytes is None:
            return gone
        if self._store_bytes is not None and nbytes > self._store_bytes:
            return f"it is larger than the {size(self._store_bytes)} that the journal keeps"
        if self.used_bytes + nbytes > self.limit_bytes:
            return f"the journal keeps {size(self.limit_bytes)} of uploads, which are used up"
        data = self._contents.get(key)
        if data is None:
            return gone
        self._waiting[key] = data
        self.used_bytes += len(data)
        return ""

    def waiting(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes of those of these that are not stored yet."""
        return {key: self._waiting[key] for key in keys if key in self._waiting}

    def nbytes(self, keys: Iterable[str]) -> int:
        """Return the size of those of these that are not stored yet."""
        return sum(len(self._waiting[key]) for key in keys if key in self._waiting)

    def stored(self, keys: Iterable[str]) -> None:
        """These are in the store."""
        for key in keys:
            self._stored[key] = len(self._waiting.pop(key))

    def trimmed(self, keys: Mapping[str, int], named: set[str]) -> None:
        """The store has forgotten these; what is `named` by groups that it has not got comes again.

        They were recorded as stored while it was forgetting.
        """
        for key in keys:
            self.used_bytes -= self._stored.pop(key, 0)
        for key in named.intersection(keys):
            self.refusal(key)

    def unnamed(self, keys: Iterable[str], named: set[str]) -> None:
        """The group that had these was lost; forget those that no other in `named` has."""
        for key in keys:
            if key not in named and key in self._waiting:
                self.used_bytes -= len(self._waiting.pop(key))
