"""An allocation by itself, of which other processes get a handle."""

from typing import Any

import cupy
from cupy.cuda import memory

from accel_lab.backends.cuda.device.interop import storage_of
from accel_lab.compute.shared.shared_file import SharedFile

PAGE_BYTES = 2 << 20
"""What is smaller may have a page together with others, which its handle would share, too."""


class CudaSharedBlock:
    """Memory of cudaMalloc and not of the pool; its arrays keep it, the last reference frees it."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = -(-max(nbytes, 1) // PAGE_BYTES) * PAGE_BYTES
        self.file = SharedFile(1)
        self._memory = memory.MemoryPointer(memory.Memory(self.nbytes), 0)

    def array(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Return the array in C order at its begin."""
        return cupy.ndarray(shape, storage_of(dtype), self._memory)
