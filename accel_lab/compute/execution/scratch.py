"""Device memory that libraries need while they work, as workspaces: one pool for each stream.

A stream is in order, so each launch may have the memory that the launch before it had. Nothing is
allocated in a loop.
"""

import itertools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from accel_lab.compute.execution.stream import Stream
from accel_lab.errors import LibraryError

if TYPE_CHECKING:
    from accel_lab.compute.execution.context import Context

ALIGNMENT = 256
LEAST_BYTES = 4 << 10
_numbers = itertools.count(1)


class ScratchBlock(NamedTuple):
    """The memory of a pool: `number` is below 0, as no buffer's id is."""

    number: int
    label: str
    array: Any

    @property
    def nbytes(self) -> int:
        """How much it is."""
        return int(self.array.nbytes)


class Scratch:
    """The pool of one stream; for the thread that enqueues there, but `block` and `trim`.

    What is taken for one launch does not overlap. The launch after it gets the same memory, and so
    does a later part of the launch, if others came between.

    Parameters:
        allocate: returns at least the second number of bytes, the first if that is possible.
        changed: called when it holds more or less than before.
    """

    def __init__(self, allocate: Callable[[int, int], Any], changed: Callable[[], object]) -> None:
        self._allocate = allocate
        self._changed = changed
        self._number = -next(_numbers)
        self._user: object = None
        self._taken = 0
        self._block: ScratchBlock | None = None

    @property
    def block(self) -> ScratchBlock | None:
        """The memory that it has, if it has some; any thread."""
        return self._block

    def take(self, nbytes: int, user: object, library: str) -> Any:
        """Return this many bytes, as an array.

        Parameters:
            user: for what; what was taken for another is over, as far as the stream goes.

        Raises:
            OutOfMemory, MemoryError: they cannot be had.
        """
        if user != self._user:
            self._user, self._taken = user, 0
        start = self._taken
        end = start + nbytes
        block = self._block  # another thread may trim it meanwhile
        if block is None or end > block.nbytes:
            array = self._grow(end, nbytes, library, 0 if block is None else block.nbytes)
            start, end = 0, nbytes
        else:
            array = block.array
        self._taken = -(-end // ALIGNMENT) * ALIGNMENT
        return array[start:end]

    def trim(self) -> None:
        """Give the memory back to the stream's pool; any thread.

        What a launch has taken stays as long as the launch has the array.
        """
        if self._block is not None:
            self._block = None
            self._changed()

    def _grow(self, total: int, least: int, library: str, before: int) -> Any:
        """Have more memory than before.

        Parameters:
            total, least: what this launch has taken altogether, and takes now.
        """
        self.trim()  # both need not fit, unless this launch has some of the first
        array = self._allocate(max(total, 2 * before, LEAST_BYTES), least)
        self._block = ScratchBlock(self._number, f"scratch of {library}", array)
        self._changed()
        return array


class ScratchPools:
    """The pools of one context, which is made on the dispatcher thread.

    Attributes:
        nbytes: what the pools hold; any thread.
    """

    def __init__(self, context: "Context") -> None:
        self.nbytes = 0
        self._context = context
        self._of_streams: dict[Stream, Scratch] = {}
        self._of_workers: list[Scratch] = []
        self._now = 0
        self._thread = threading.get_ident()
        self._counting = threading.Lock()

    def take(self, nbytes: int, seq: int, stream: Stream, library: str) -> Any:
        """Return bytes for a launch on a stream, which is active; dispatcher thread.

        Raises:
            LibraryError: this is another thread.
            OutOfMemory: they cannot be had.
        """
        if threading.get_ident() != self._thread:
            text = (
                f"{library}: launch.workspace() is of the launch's stream, on which other work "
                "goes on meanwhile; where work blocks, take worker.workspace()"
            )
            raise LibraryError(text, library=library, name="WRONG_THREAD")
        pool = self._of_streams.get(stream)
        if pool is None:
            pool = self._of_streams[stream] = Scratch(self._allocate, self._count)
        self._now = seq
        return pool.take(nbytes, seq, library)

    def for_worker(self) -> Scratch:
        """Make the pool of the calling thread, which enqueues on a stream of its own."""
        pool = Scratch(self._allocate_beside, self._count)
        self._of_workers.append(pool)
        return pool

    def blocks(self) -> list[ScratchBlock]:
        """Return the memory of all pools; any thread."""
        pools = [*self._of_streams.copy().values(), *self._of_workers.copy()]
        return [block for pool in pools if (block := pool.block) is not None]

    def trim(self, stream: Stream | None = None) -> None:
        """Give back what all pools hold, or that of one stream; dispatcher thread."""
        if stream is None:
            for pool in [*self._of_streams.values(), *self._of_workers.copy()]:
                pool.trim()
        elif stream in self._of_streams:
            self._of_streams[stream].trim()

    def _count(self) -> None:
        with self._counting:
            self.nbytes = sum(block.nbytes for block in self.blocks())

    def _allocate(self, wanted: int, least: int) -> Any:
        context = self._context
        if wanted > least:
            array, _ = context.take((wanted,), "uint8")
            if array is not None:
                return array
        return context.allocate((least,), "uint8", self._now)[0]

    def _allocate_beside(self, wanted: int, least: int) -> Any:
        """Allocate on a thread that cannot make room: buffers are the dispatcher's to move.

        Raises:
            MemoryError: there is none.
        """
        context = self._context
        for nbytes in (wanted, least):
            if nbytes <= context.free_bytes():
                try:
                    return context.backend.empty((nbytes,), "uint8")
                except MemoryError:
                    if nbytes == least:
                        raise
        raise MemoryError(f"a workspace of {least} bytes does not fit")
