"""Managed memory: the driver moves its pages between the card and the host."""

import ctypes
from typing import Any

import cupy
from cupy.cuda import memory

from accel_lab.backends.cuda.device.interop import storage_of


class CudaBlock:
    """An allocation of managed memory; its arrays keep it, and the last reference frees it."""

    def __init__(self, nbytes: int) -> None:
        self._memory = memory.malloc_managed(max(nbytes, 1))
        self.pointer = ctypes.c_uint64(self._memory.ptr)
        self.size = ctypes.c_size_t(max(nbytes, 1))

    def array(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Return the array in C order at its begin."""
        return cupy.ndarray(shape, storage_of(dtype), self._memory)
