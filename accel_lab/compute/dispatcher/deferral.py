"""Run blocking work of a library, such as a compilation, beside the dispatcher.

While it runs, messages that name one of its buffers, or a buffer of a message that waits already,
wait behind it in their order. So does a function that is not pure, once another one waits: they
may share what they do not name. And so does what names memory that functions have had: the one that
waits may see it through a global. All others pass.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from accel_lab.compute.dispatcher.task import Task
from accel_lab.compute.execution.launch import Launch
from accel_lab.compute.execution.stream import Storage
from accel_lab.compute.message.builtin import Free, Run
from accel_lab.compute.message.operation import operands_of
from accel_lab.compute.message.results import ids_of

WORKERS = 4
_FUNCTION = "a function"
"""Stands among what is touched for all that functions may share."""


class Deferred:
    """A launch whose work runs on another thread, and the entry that asked for it."""

    __slots__ = ("entry", "future", "launch", "then")

    def __init__(self, entry: Any, launch: Launch) -> None:
        assert launch.deferred is not None
        _, self.then = launch.deferred
        self.entry = entry
        self.launch = launch
        self.future: Future[Any] | None = None

    def resume(self) -> None:
        """Finish the launch; raises what the work raised."""
        assert self.future is not None
        self.then(self.future.result())


class Deferral:
    """What has been deferred and what waits behind it; used by the dispatcher thread.

    Attributes:
        begun: the deferred launches whose work is not finished, by number.
        wakeup: a descriptor that is readable when some of it has finished.
    """

    def __init__(self) -> None:
        self.begun: dict[int, Deferred] = {}
        self.wakeup = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._finished: deque[Deferred] = deque()
        self._behind: list[Any] = []
        self._touched: set[Any] = set()
        self._workers: ThreadPoolExecutor | None = None

    def begin(self, entry: Any, launch: Launch) -> None:
        """Start the work that a handler has asked for with `launch.defer`."""
        if self._workers is None:
            self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="deferred")
        deferred = self.begun[launch.seq] = Deferred(entry, launch)
        self._touched.update(_buffers(entry))
        assert launch.deferred is not None
        deferred.future = self._workers.submit(launch.deferred[0])
        deferred.future.add_done_callback(lambda _: self._finish(deferred))

    def hold_back(self, entry: Any) -> bool:
        """Whether an entry has to wait; it is kept then."""
        message = entry.message
        if type(message) is Free:
            held = [id_ for id_ in message.ids if id_ in self._touched]
            if not held:
                return False
            passing = [id_ for id_ in message.ids if id_ not in self._touched]
            message.ids[:] = passing
            self._behind.append(type(entry)(0, 0, None, Free(held), None))
            return False
        buffers = _buffers(entry)
        looks_around = type(message) is Run and not message.pure
        shared = _FUNCTION in self._touched and (looks_around or any(map(_is_seen, buffers)))
        if not shared and self._touched.isdisjoint(buffers):
            return False
        self._touched.update(buffers)
        if looks_around:
            self._touched.add(_FUNCTION)
        self._behind.append(entry)
        return True

    def finished(self) -> Iterator[Deferred]:
        """Yield what has finished, each once."""
        while self._finished:
            deferred = self._finished.popleft()
            del self.begun[deferred.launch.seq]
            yield deferred

    def released(self) -> Iterable[Any]:
        """Return what has waited, in order, to be tried again."""
        released, self._behind = self._behind, []
        self._touched = set()
        for deferred in self.begun.values():
            self._touched.update(_buffers(deferred.entry))
        return released

    def tasks(self) -> list[Task]:
        """Return what is worked at; any thread."""
        return [
            Task(
                deferred,
                deferred.entry.seq,
                deferred.entry.message,
                deferred.launch.stream,
                deferred.entry.timeout_s,
                traced=deferred.launch.trace is not None,
            )
            for deferred in list(self.begun.values())
        ]

    def touches(self, storage: Storage) -> bool:
        """Whether work that is not finished, or what waits behind it, has this memory."""
        return storage in self._touched

    @property
    def ready(self) -> bool:
        """Whether something has finished."""
        return bool(self._finished)

    def acknowledge(self) -> None:
        """Make `wakeup` unreadable until the next one finishes; before `finished`."""
        try:
            os.eventfd_read(self.wakeup)
        except BlockingIOError:
            return

    def _finish(self, deferred: Deferred) -> None:
        self._finished.append(deferred)
        os.eventfd_write(self.wakeup, 1)


def _is_seen(one: Any) -> bool:
    """Whether functions have had this memory, and may have it still."""
    return type(one) is Storage and one.seen


def _buffers(entry: Any) -> set[Any]:
    """Return what two messages share that name one buffer: its id, or its storage."""
    found: set[Any] = set(ids_of(entry.message, entry.result))
    for buffer in operands_of(type(entry.message))(entry.message):
        found.add(buffer.id)
        storage = getattr(buffer, "storage", None)
        if storage is not None:
            found.add(storage)
    return found
