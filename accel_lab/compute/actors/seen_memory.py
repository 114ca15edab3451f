"""Which memory user code has seen: a function may return what another was given, or gave, before.

A module or an object may hold an array, and a later function return it again, or a part of it. It
has its one storage then, as views have.
"""

from typing import TYPE_CHECKING, Any

from accel_lab.compute.execution.stream import Storage

if TYPE_CHECKING:
    from accel_lab.compute.execution.backend import Memory

FEW = 64


class SeenMemory:
    """Where the arrays lie that functions were given or have returned; keeps none of them.

    For the dispatcher thread.
    """

    def __init__(self, memory: "Memory") -> None:
        self._memory = memory
        self._ranges: dict[Storage, tuple[int, int]] = {}
        self._look_at = FEW

    def note(self, storage: Storage, array: Any) -> None:
        """Remember where a storage lies, of which this is an array; quick for one that is known."""
        storage.seen = True
        if storage in self._ranges:
            return
        if len(self._ranges) >= self._look_at:
            self._forget_freed()
        whole = self._whole(array)
        start = self._memory.address(whole)
        if start is not None and whole.nbytes:
            self._ranges[storage] = start, start + whole.nbytes

    def storage_of(self, array: Any) -> Storage | None:
        """Return the storage in whose memory an array begins; None if no function has seen it."""
        at = self._memory.address(array)
        if at is None or not array.nbytes:
            return None
        for storage, (start, end) in self._ranges.items():
            if start <= at < end and storage.users:
                return storage
        return None

    def _whole(self, array: Any) -> Any:
        """Return the array of which this one is a view."""
        base = getattr(array, "base", None)
        while base is not None and self._memory.address(base) is not None:
            array, base = base, getattr(base, "base", None)
        return array

    def _forget_freed(self) -> None:
        self._ranges = {storage: at for storage, at in self._ranges.items() if storage.users}
        self._look_at = 2 * len(self._ranges) + FEW
