"""Where the memory of CuPy's arrays on one card comes from.

CuPy's own pool, which is the faster one; and once PyTorch computes in this process, PyTorch's, so
that the two do not keep from each other what they hold unused. What CuPy's has given out by then
goes back to it, and from there to the card.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

import cupy
from cupy.cuda.memory import PooledMemory, PythonFunctionAllocator, PythonFunctionAllocatorMemory

from accel_lab.compute.execution.backend import MakeRoom, Peak
from accel_lab.compute.execution.pool_peak import PoolPeak

_PYTORCH = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
"""What configures PyTorch's pool, and what did before 2.9."""


def let_segments_grow() -> None:
    """Have PyTorch's pool grow what it has, so that less lies unused between arrays.

    PyTorch reads that when it is imported, from 2.9 on; what the user has set stays.
    """
    if os.environ.keys().isdisjoint(_PYTORCH):
        os.environ[_PYTORCH[0]] = "expandable_segments:True"


class Pool:
    """The pool of one card; for the dispatcher's thread, but `free_bytes` for any."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._own = cupy.get_default_memory_pool()
        self._allocate: Callable[[int], Any] = self._own.malloc
        self._torch: Any = None
        self._climber: Callable[[int], Any] | None = None
        self._peak: PoolPeak | None = None
        cupy.cuda.set_allocator(self._allocate)

    def idle_bytes(self) -> int:
        """Return what is held unused; any thread."""
        idle: int = self._own.free_bytes()
        if self._torch is not None:
            cuda = self._torch.cuda
            idle += cuda.memory_reserved(self._index) - cuda.memory_allocated(self._index)
        return idle

    def within_limit(self, free_bytes: int) -> int:
        """Return how much of what is free CuPy's own limit leaves, if it has one."""
        limit: int = self._own.get_limit()
        if not limit or self._torch is not None:
            return free_bytes
        return min(free_bytes, limit - int(self._own.used_bytes()))

    def from_card(self, free_bytes: int) -> int:
        """Return how much of what the card has free CuPy's own limit lets the pool still take."""
        limit: int = self._own.get_limit()
        if not limit or self._torch is not None:
            return free_bytes
        return max(0, min(free_bytes, limit - int(self._own.total_bytes())))

    def trim(self) -> None:
        """Give the card what is held unused; waits for the card."""
        self._own.free_all_blocks()
        if self._torch is not None:
            self._torch.cuda.empty_cache()

    def owns(self, memory: Any) -> bool:
        """Whether memory is the pool's."""
        return isinstance(memory, PooledMemory | PythonFunctionAllocatorMemory)

    def watch_peak(self) -> Callable[[], Peak | None]:
        """Begin to watch how much is in use at most; what this returns ends that, and tells.

        That is what is taken from CuPy's pool while `climbing`, and once PyTorch's serves both,
        what is taken from that. None where the user's code has an allocator of its own.
        """
        if self._torch is None:
            return self._count_peak()
        cuda, own = self._torch.cuda, int(self._own.used_bytes())
        before = own + cuda.memory_allocated(self._index)
        cuda.reset_peak_memory_stats(self._index)
        return lambda: Peak(before, own + cuda.max_memory_allocated(self._index), "in use")

    def _count_peak(self) -> Callable[[], Peak | None]:
        counting = cupy.cuda.get_allocator()
        count = self._peak = PoolPeak(self._own.used_bytes)

        def tell() -> Peak | None:
            self._peak = None
            counted = counting is self._climber and counting is cupy.cuda.get_allocator()
            return count.tell() if counted else None

        return tell

    @contextmanager
    def climbing(self, make_room: MakeRoom) -> Iterator[None]:
        """Have CuPy's allocations ask for room before they fail, where they are from this pool.

        An allocator that the user has set, before or meanwhile, stays.
        """
        if cupy.cuda.get_allocator() != self._allocate:
            yield
            return
        self._follow()
        here = get_ident()

        def malloc(size: int) -> Any:
            try:
                taken = self._allocate(size)
            except MemoryError:
                if get_ident() != here:  # a thread of the user's
                    raise
                found: list[Any] = []
                current = cupy.cuda.get_current_stream()

                def has_room() -> bool:
                    current.use()  # from whose part of the pool it comes
                    try:
                        found.append(self._allocate(size))
                    except MemoryError:
                        return False
                    return True

                try:
                    if not make_room(has_room):
                        raise
                finally:
                    current.use()
                taken = found[0]
            peak = self._peak
            if peak is not None:
                peak.took(size)
            return taken

        self._climber = malloc
        cupy.cuda.set_allocator(malloc)
        try:
            yield
        finally:
            self._climber = None
            if cupy.cuda.get_allocator() is malloc:
                cupy.cuda.set_allocator(self._allocate)

    def _follow(self) -> None:
        """Take memory from PyTorch's pool from now on if PyTorch computes here by now; quick."""
        if self._torch is not None or (torch := sys.modules.get("torch")) is None:
            return
        cuda = getattr(torch, "cuda", None)  # it may still be being imported
        if cuda is not None and cuda.is_initialized():
            self._torch = torch
            self._allocate = PythonFunctionAllocator(self._take, self._give_back).malloc
            cupy.cuda.set_allocator(self._allocate)
            self._own.free_all_blocks()

    def _take(self, size: int, _: int) -> int:
        if not size:
            return 0
        stream = cupy.cuda.get_current_stream().ptr
        try:
            taken: int = self._torch.cuda.caching_allocator_alloc(size, self._index, stream)
        except self._torch.cuda.OutOfMemoryError as error:
            raise MemoryError(str(error)) from error
        return taken

    def _give_back(self, address: int, _: int) -> None:
        if address:
            self._torch.cuda.caching_allocator_delete(address)
