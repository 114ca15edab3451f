"""Host memory that the card may read and write by itself: page-locked."""

from typing import Any

import numpy as np
from cupy.cuda import runtime

IDLE_BYTES = 4 << 30
"""How much may lie idle, to be used again: locking a GiB takes as long as copying ten."""
_ROUNDING = 2 << 20
_PORTABLE = 1  # cudaHostRegisterPortable, cudaHostAllocPortable


class PinnedSegments:
    """Page-locks segments and releases them; for one thread at a time, any thread.

    Attributes:
        notes: why segments could not be page-locked; a segment works without, but slower.
    """

    def __init__(self, device: int) -> None:
        self._device = device
        self._registered: dict[int, int] = {}  # how much, by where
        self.notes: tuple[str, ...] = ()

    @property
    def nbytes(self) -> int:
        """How much is page-locked; any thread."""
        return sum(list(self._registered.values()))

    def add(self, view: Any) -> None:
        """Page-lock the memory of a uint8 array; blocks, about 0.1 s a GiB."""
        address = view.__array_interface__["data"][0]
        if not view.nbytes or address in self._registered:
            return
        runtime.setDevice(self._device)
        try:
            runtime.hostRegister(address, view.nbytes, _PORTABLE)
        except runtime.CUDARuntimeError as error:
            note = (
                f"host memory could not be page-locked ({error}), so copies run at a fraction of "
                "the link's speed; a larger `ulimit -l` may help"
            )
            if note not in self.notes:
                self.notes = (*self.notes, note)
        else:
            self._registered[address] = view.nbytes

    def remove(self, view: Any) -> None:
        """Release the memory; blocks until no copy uses it."""
        address = view.__array_interface__["data"][0]
        if address in self._registered:
            del self._registered[address]
            runtime.setDevice(self._device)
            runtime.hostUnregister(address)


class PinnedPool:
    """Page-locked memory for arrays that give way; the dispatcher's thread.

    CuPy's own pool gives powers of two, twice what is asked at worst.
    """

    def __init__(self, device: int) -> None:
        self._device = device
        self._idle: dict[int, list[int]] = {}
        self._idle_bytes = self._used_bytes = self._locked = self._reused = 0

    def counted(self) -> tuple[int, int, int, int]:
        """Return the bytes in use and idle, and how often some were locked and used again."""
        return self._used_bytes, self._idle_bytes, self._locked, self._reused

    def array(self, nbytes: int) -> Any:
        """Return a uint8 array, whose memory comes back with its last reference.

        Blocks to lock memory, about 0.2 s a GiB, unless some of the size lies idle.

        Raises:
            MemoryError: the system gives no more.
        """
        size = -(-nbytes // _ROUNDING) * _ROUNDING
        idle = self._idle.get(size)
        if idle:
            self._idle_bytes -= size
            address = idle.pop()
            self._reused += 1
        else:
            address = self._lock(size)
            self._locked += 1
        self._used_bytes += size
        return np.asarray(_Block(self, address, size))[:nbytes]

    def give_back(self, address: int, size: int) -> None:
        """Take memory that nobody uses any more."""
        self._used_bytes -= size
        if self._idle_bytes + size > IDLE_BYTES:
            runtime.freeHost(address)
        else:
            self._idle.setdefault(size, []).append(address)
            self._idle_bytes += size

    def release(self) -> None:
        """Unlock and free what lies idle."""
        for addresses in self._idle.values():
            for address in addresses:
                runtime.freeHost(address)
        self._idle.clear()
        self._idle_bytes = 0

    def _lock(self, size: int) -> int:
        runtime.setDevice(self._device)
        for _ in range(2):
            try:
                address: int = runtime.hostAlloc(size, _PORTABLE)
            except runtime.CUDARuntimeError as error:
                reason = error
                self.release()
            else:
                return address
        raise MemoryError(str(reason)) from reason


class _Block:
    """Page-locked memory as NumPy sees it."""

    def __init__(self, pool: PinnedPool, address: int, size: int) -> None:
        self._pool, self._address, self._size = pool, address, size
        self.__array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": (size,),
            "typestr": "|u1",
        }

    def __del__(self) -> None:
        self._pool.give_back(self._address, self._size)
