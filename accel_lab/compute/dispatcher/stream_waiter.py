"""Waiting for streams without holding up the dispatcher."""

import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from accel_lab.compute.execution.stream import Stream
from accel_lab.compute.groups.group import Group


class Enqueued(Protocol):
    """A launch, or an entry that was enqueued again without one.

    Attributes:
        seq, message: the request.
        finish: works out its answer once the work is done; None where there is nothing to.
        shaped: what the notebook could not infer of the result.
        trace: the marks around it, if it was marked.
        soon_s: for how long its end is worth being looked for without sleeping.
        group: what it is a part of, with other devices.
    """

    seq: int
    message: Any
    finish: Callable[[], Any] | None
    shaped: tuple[tuple[int, ...], str] | tuple[tuple[int, ...], str, int] | None
    trace: Any
    soon_s: float
    group: Group | None


class Batch:
    """Launches that are enqueued, and the events after which all of them are done."""

    __slots__ = ("events", "launches", "since", "timeout_s")

    def __init__(self, launches: list[Enqueued], streams: list[Stream], timeout_s: float) -> None:
        self.launches = launches
        self.timeout_s = timeout_s
        self.events = [(stream, stream.native.record()) for stream in streams]
        self.since = time.perf_counter()

    def reached(self) -> bool:
        """Whether all of them are done; never blocks."""
        return all([stream.native.reached(event) for stream, event in self.events])  # noqa: C419


class Completer:
    """A thread that waits for batches in order and then calls `completed` or `failed`."""

    def __init__(
        self, completed: Callable[[list[Enqueued]], None], failed: Callable[[BaseException], None]
    ) -> None:
        self._completed = completed
        self._failed = failed
        self._queue: queue.SimpleQueue[Batch] = queue.SimpleQueue()
        self.head: Batch | None = None
        self._submitted = self._finished = 0
        threading.Thread(target=self._run, name="completer", daemon=True).start()

    @property
    def idle(self) -> bool:
        """Whether every batch has been completed; any thread."""
        return self._submitted == self._finished

    def submit(self, batch: Batch) -> None:
        """Wait for this batch after those before it; one thread at a time."""
        self._submitted += 1
        self._queue.put(batch)

    def _run(self) -> None:
        try:
            while True:
                batch: Any = self._queue.get()
                self.head = batch
                for stream, event in batch.events:
                    stream.native.synchronize(event)
                self._completed(batch.launches)
                self.head = None
                self._finished += 1
                del batch
        except BaseException as error:  # noqa: BLE001 - whatever it is ends the context, with its reason
            self._failed(error)
