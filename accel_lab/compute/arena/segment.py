"""One memfd of the host arena: memory that has a descriptor and no name."""

import fcntl
import os
from bisect import bisect_left, bisect_right, insort

import numpy as np

from accel_lab.compute.machine.free_list import FreeList
from accel_lab.compute.machine.memfd_mapping import Bytes, Mapping


class Segment:
    """`size` bytes of sealed, pre-touched shared memory, and what of it is taken.

    The memory exists nowhere in the file system: it vanishes with the last descriptor and the
    last mapping. Its size is sealed, because a context that shrank it would end the notebook
    with SIGBUS. Only the arena, under its lock, touches anything but the attributes.

    Attributes:
        id: unique in its arena, never used again.
        fd: close-on-exec; closed by the arena. Duplicate it to send it later.
        size: in bytes, a multiple of the page.
        is_shared: many small blocks, or one large.
        address: where this process sees it.

    Raises:
        OSError: no descriptor or no memory.
    """

    def __init__(self, segment_id: int, size: int, *, is_shared: bool) -> None:
        self.id = segment_id
        self.size = size
        self.is_shared = is_shared
        self.free = FreeList(size)
        self._starts: list[int] = []
        self._serials: dict[int, tuple[int, int]] = {}
        self.fd = os.memfd_create("accel_lab", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.fd, size)
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, seals)
            mapping = Mapping(self.fd, size)
            mapping.create_pages()
        except BaseException:
            os.close(self.fd)
            raise
        self.address = mapping.address
        self._bytes: Bytes | None = mapping.bytes()

    def bytes(self, offset: int, nbytes: int) -> Bytes:
        """Return a view that keeps the memory mapped; the segment must be open."""
        assert self._bytes is not None
        # An empty slice would point at the segment's start, into somebody else's block.
        return np.ndarray(nbytes, np.uint8, self._bytes, offset)

    def carve(self, serial: int, size: int) -> int | None:
        """Take `size` bytes for the block `serial`; None when they do not fit."""
        offset = self.free.take(size)
        if offset is not None:
            insort(self._starts, offset)
            self._serials[offset] = (serial, size)
        return offset

    def uncarve(self, offset: int) -> None:
        """Return the block that starts at `offset`."""
        _, size = self._serials.pop(offset)
        del self._starts[bisect_left(self._starts, offset)]
        self.free.give(offset, size)

    def serial_at(self, offset: int, nbytes: int) -> int | None:
        """Return the block that holds the whole range, in O(log n)."""
        index = bisect_right(self._starts, offset) - 1
        if index < 0:
            return None
        start = self._starts[index]
        serial, size = self._serials[start]
        return serial if offset + nbytes <= start + size else None

    def close(self) -> None:
        """Close the descriptor and drop the mapping; arrays that exist keep their memory."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        self._bytes = None
