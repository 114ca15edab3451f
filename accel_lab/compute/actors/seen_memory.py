"""Which memory user code has seen: a function may return what another was given, or gave, before.

A module or an object may hold an array, and a later function return it again, or a part of it. It
has its one storage then, as views have.
"""

from typing import TYPE_CHECKING, Any

from accel_lab.compute.arena.address_index import AddressIndex
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
        self._index = AddressIndex[Storage]()
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
            self._ranges[storage] = start, whole.nbytes
            self._index.add(start, whole.nbytes, storage)

    def storage_of(self, array: Any) -> Storage | None:
        """Return the storage in whose memory an array begins; None if no function has seen it."""
        at = self._memory.address(array)
        if at is None or not array.nbytes:
            return None
        return next((storage for storage in self._index.at(at) if storage.users), None)

    def knows(self, storage: Storage | None) -> bool:
        """Whether it is known where a storage lies."""
        return storage in self._ranges

    def _whole(self, array: Any) -> Any:
        """Return the array of which this one is a view."""
        base = getattr(array, "base", None)
        while base is not None and self._memory.address(base) is not None:
            array, base = base, getattr(base, "base", None)
        return array

    def _forget_freed(self) -> None:
        self._ranges = {storage: at for storage, at in self._ranges.items() if storage.users}
        self._index = AddressIndex()
        for storage, (start, nbytes) in self._ranges.items():
            self._index.add(start, nbytes, storage)
        self._look_at = 2 * len(self._ranges) + FEW
