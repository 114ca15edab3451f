"""Page-locked memory through which kept bytes pass, between files and a device.

All of it is for the dispatcher's thread, except the reading, which other threads do.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from accel_lab.compute.execution.backend import Copies
from accel_lab.compute.execution.stream import Stream
from accel_lab.compute.machine.anonymous_files import Stripes

SLOTS = 24
IN_FLIGHT = 3
"""How many pieces the device copies at a time."""


class Slots:
    """Page-locked memory for pieces of these sizes; locking takes long, so only when needed."""

    def __init__(self, copies: Copies, sizes: list[int]) -> None:
        self._lock = copies.host_memory
        self._nbytes = max(sizes, default=0)
        self._left = min(SLOTS, len(sizes))
        self._idle: list[Any] = []

    def take(self) -> Any:
        """Return memory for a piece; None when all of it is in use."""
        if self._idle:
            return self._idle.pop()
        if not self._left:
            return None
        self._left -= 1
        return self._lock(self._nbytes)

    def give_back(self, slot: Any) -> None:
        """Take memory back."""
        self._idle.append(slot)


class ReadAhead:
    """Reads pieces before they are needed."""

    def __init__(
        self,
        files: Stripes,
        pool: ThreadPoolExecutor,
        stream: Stream,
        jobs: list[tuple[int, int]],
        slots: Slots,
    ) -> None:
        self._files = files
        self._pool = pool
        self._native = stream.native
        self._jobs = deque(jobs)
        self._slots = slots
        self._reading: deque[tuple[Future[None], Any, Any]] = deque()
        self._copying: deque[tuple[Any, Any]] = deque()

    @contextmanager
    def next(self) -> Iterator[Any]:
        """Yield the bytes of the next piece, of which a copy is enqueued meanwhile."""
        while self._jobs:
            slot = self._slots.take()
            if slot is None and self._reading:
                break
            slot = self._reclaimed() if slot is None else slot
            piece, nbytes = self._jobs.popleft()
            done = self._pool.submit(self._files.read, piece, slot[:nbytes])
            self._reading.append((done, slot, slot[:nbytes]))
        done, slot, view = self._reading.popleft()
        done.result()
        yield view
        self._copying.append((self._native.record(), slot))
        if len(self._copying) > IN_FLIGHT:
            self._slots.give_back(self._reclaimed())

    def _reclaimed(self) -> Any:
        event, slot = self._copying.popleft()
        self._native.synchronize(event)
        return slot
