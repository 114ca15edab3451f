"""The way back into the arena: what finalizers may call, and who waits for it.

A finalizer runs in any thread between any two bytecodes, even inside `Arena.allocate` of the
same thread, so that it may take no lock. It appends here; the arena drains later.
"""

import threading
from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple


class Return(NamedTuple):
    """A block that its owner gave up.

    Attributes:
        serial: which block.
        after: the context process that may still write into it, or None.
    """

    serial: int
    after: Hashable | None


class ReleaseQueue:
    """A queue that any thread and any finalizer may put into without blocking.

    It knows blocks by serial only, so that nothing in it keeps memory mapped.
    """

    def __init__(self) -> None:
        self._queue: deque[Return] = deque()
        self._waiters: tuple[threading.Lock, ...] = ()
        # Re-entrant: a finalizer in the middle of it comes and goes before its thread goes on.
        self._registry = threading.RLock()

    def put(self, serial: int, after: Hashable | None = None) -> None:
        """Give a block up and wake whoever waits; takes no lock."""
        self._queue.append(Return(serial, after))
        self.wake()

    def drain(self) -> Iterator[Return]:
        """Yield what was put, oldest first, until the queue is empty."""
        while True:
            try:
                yield self._queue.popleft()
            except IndexError:
                return

    def wake(self) -> None:
        """Let every waiter look again; takes no lock."""
        for waiter in self._waiters:
            # A plain lock is the one primitive whose release a finalizer may call; releasing
            # it twice only means that the waiter is awake already.
            with suppress(RuntimeError):
                waiter.release()

    @contextmanager
    def waiter(self) -> Iterator[threading.Lock]:
        """Register the calling thread: it sleeps by acquiring the lock that this yields.

        Whoever looks for room after entering and before each acquire misses no wake-up.
        """
        waiter = threading.Lock()
        waiter.acquire()
        with self._registry:
            self._waiters = (*self._waiters, waiter)
        try:
            yield waiter
        finally:
            with self._registry:
                self._waiters = tuple(other for other in self._waiters if other is not waiter)
