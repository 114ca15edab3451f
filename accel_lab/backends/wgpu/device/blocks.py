"""The memory of a device: buffers that are used again, and what stands for their addresses."""

import ctypes
import itertools
import math
import threading
from collections import deque
from typing import Any

import numpy as np
import wgpu

from accel_lab.errors import InvalidArgument

LEAST_BYTES = 256
_STEP = 1 << 20
_PAGE = 4096
_USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
# WebGPU has no addresses. NumPy needs some to tell which views overlap, and reads nothing there.
REACH_BYTES = 1 << 36
"""How far they lie apart, so that no block is larger."""
_starts = itertools.count(1 << 52, REACH_BYTES)


class Block:
    """A buffer of the device; it returns to its pool with its last array, in any thread.

    Attributes:
        buffer: WebGPU's.
        nbytes: its size.
        whole: an array of NumPy's that has the shape and the strides, and nothing behind it.
    """

    __slots__ = ("_pool", "buffer", "nbytes", "start", "whole")

    def __init__(
        self, pool: "Blocks", buffer: Any, nbytes: int, shape: tuple[int, ...], dtype: Any
    ) -> None:
        self._pool, self.buffer, self.nbytes = pool, buffer, nbytes
        self.start = next(_starts)
        there = (ctypes.c_uint8 * (math.prod(shape) * dtype.itemsize)).from_address(self.start)
        self.whole: Any = np.ndarray(shape, dtype, there)

    def __del__(self) -> None:
        if hasattr(self, "whole"):
            self._pool.returned.append((self.buffer, self.nbytes))


class Blocks:
    """Makes the blocks of one device, and keeps what is free; for any thread.

    Attributes:
        returned: what came back, which `take` and `trim` look at.
        held_bytes: what all buffers have, used or not.
        most_bytes: how much one buffer can have.
    """

    def __init__(self, device: Any, most_bytes: int) -> None:
        self._device = device
        self.most_bytes = most_bytes
        self._lock = threading.Lock()
        self.returned: deque[tuple[Any, int]] = deque()
        self._free: dict[int, list[Any]] = {}
        # All there are. A collection of cycles would end a buffer whose block hands it back.
        self._made: set[Any] = set()
        self.held_bytes = self.free_bytes = 0

    def take(self, nbytes: int, shape: tuple[int, ...], dtype: Any) -> Block:
        """Return a block of at least this many bytes.

        Raises:
            InvalidArgument: no buffer can have as many.
            MemoryError: the device has no room.
        """
        size = _size(nbytes)
        if size > self.most_bytes:
            raise InvalidArgument(
                f"{dtype}{list(shape)} takes {nbytes} bytes on wgpu, and a buffer of this adapter "
                f"has at most {self.most_bytes}; use several buffers"
            )
        with self._lock:
            self._collect()
            free = self._free.get(size)
            if free:
                self.free_bytes -= size
                return Block(self, free.pop(), size, shape, dtype)
        try:
            buffer = self._device.create_buffer(size=size, usage=_USAGE)
        except wgpu.GPUOutOfMemoryError as error:
            self.trim()
            raise MemoryError(f"wgpu has no room for {size} bytes") from error
        with self._lock:
            self.held_bytes += size
            self._made.add(buffer)
        return Block(self, buffer, size, shape, dtype)

    def trim(self) -> None:
        """Give the device what is free; it keeps what queued work needs until that is done."""
        with self._lock:
            self._collect()
            for size, free in self._free.items():
                self.held_bytes -= size * len(free)
                self._made.difference_update(free)
            self._free.clear()
            self.free_bytes = 0

    def _collect(self) -> None:
        while self.returned:
            buffer, size = self.returned.popleft()
            self._free.setdefault(size, []).append(buffer)
            self.free_bytes += size


def _size(nbytes: int) -> int:
    """Return how large a buffer is made, so that few sizes serve all."""
    if nbytes <= LEAST_BYTES:
        return LEAST_BYTES
    if nbytes <= _STEP:
        return 1 << (nbytes - 1).bit_length()
    return -(-nbytes // _STEP) * _STEP
