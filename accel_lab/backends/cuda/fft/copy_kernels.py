"""The kernels that copy around a transform, launched with arguments that are packed once."""

from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any, TypeAlias

import cupy
import numpy as np
from cupy.cuda import driver

from accel_lab.backends.cuda.fft.copies import JOB_BYTES, Variant, source_of
from accel_lab.backends.cuda.fft.route import Copy

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

Addresses: TypeAlias = tuple[int, int, int, int]
"""Where the operand, the result and the two arrays in between begin."""
Enqueue: TypeAlias = Callable[[Addresses], None]
"""Enqueues one step of a transform."""

THREADS = 256
BLOCK_LIMIT = 1 << 16  # each thread goes on to the elements that are left
_WORD = 8
_ENDS = Struct("=QQ")


class CopyKernels:
    """Compiles each kernel at its first use; CuPy keeps it on disk for every later process."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device
        self._kernels: dict[Variant, Any] = {}

    def enqueue(self, copy: Copy, *, double: bool) -> Enqueue:
        """Return what enqueues a copy on the device's active stream."""
        variant = Variant(double, copy.read, copy.written, copy.move.wide)
        kernel = self._kernels.get(variant)
        if kernel is None:
            kernel = cupy.RawKernel(source_of(variant), "accel_lab_move").kernel
            self._kernels[variant] = kernel
        # The address of the only argument, and then the argument.
        words: Any = np.zeros(1 + JOB_BYTES // _WORD, np.uint64)
        at_words: int = words.ctypes.data
        words[0] = at_words + _WORD
        memory = memoryview(words).cast("B")
        memory[_WORD:] = copy.move.job()
        function: int = kernel.ptr
        blocks = min((copy.move.elements + THREADS - 1) // THREADS, BLOCK_LIMIT)
        source, target, device = copy.source, copy.target, self._device

        def enqueue(at: Addresses) -> None:
            # The driver copies the argument before it returns.
            _ENDS.pack_into(memory, _WORD, at[source], at[target])
            stream = device.active.ptr
            driver.launchKernel(function, blocks, 1, 1, THREADS, 1, 1, 0, stream, at_words, 0)

        return enqueue
