"""Host memory for the status that a library's work writes, as LAPACK's `info`.

A status is a few bytes, and page-locked memory comes in pages. So many of them share a piece.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accel_lab.compute.execution.context import Context

SLOT_BYTES = 64
SLOTS = 1024


class Readback:
    """A status on its way to the host; for the dispatcher thread."""

    __slots__ = ("_dtype", "_memory", "_shape", "_target")

    def __init__(self, memory: "StatusMemory", array: Any, target: Any) -> None:
        self._memory, self._target = memory, target
        self._shape, self._dtype = array.shape, array.dtype

    def take(self) -> Any:
        """Return the values as a NumPy array; call it once, when the stream is there."""
        size = self._dtype.itemsize
        for extent in self._shape:
            size *= extent
        values = self._target[:size].view(self._dtype).reshape(self._shape).copy()
        self.drop()
        return values

    def drop(self) -> None:
        """Give the memory back unread, when the stream is there."""
        self._memory.give_back(self._target)


class StatusMemory:
    """Pieces of host memory that are used again; a service of the context."""

    def __init__(self, context: "Context") -> None:
        self._backend = context.backend
        self._free: list[Any] = []

    def copy(self, array: Any) -> Readback:
        """Begin to copy an array to the host, in order on the active stream.

        Raises:
            MemoryError: the system gives no memory.
        """
        target = self._take(array.nbytes)
        self._backend.download(array, target)
        return Readback(self, array, target)

    def give_back(self, target: Any) -> None:
        """Take memory to which nothing is copied any more."""
        if target.nbytes == SLOT_BYTES:
            self._free.append(target)

    def _take(self, nbytes: int) -> Any:
        if nbytes > SLOT_BYTES:
            # Other than a slot, so that it is not taken for one.
            return self._backend.host_memory(max(nbytes, SLOT_BYTES + 1))
        if not self._free:
            piece = self._backend.host_memory(SLOTS * SLOT_BYTES)
            starts = range(0, SLOTS * SLOT_BYTES, SLOT_BYTES)
            self._free = [piece[start : start + SLOT_BYTES] for start in starts]
        return self._free.pop()
