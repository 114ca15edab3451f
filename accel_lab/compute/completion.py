"""Waiting for streams without holding up the dispatcher."""

import queue
import threading
from collections.abc import Callable
from typing import Any

from accel_lab.compute.launch import Launch
from accel_lab.compute.stream import Stream


class Batch:
    """Launches that are enqueued, and the events after which all of them are done."""

    __slots__ = ("events", "launches", "timeout_s")

    def __init__(self, launches: list[Launch], streams: list[Stream], timeout_s: float) -> None:
        self.launches = launches
        self.timeout_s = timeout_s
        self.events = [(stream, stream.native.record()) for stream in streams]


class Completer:
    """A thread that waits for batches in order and then calls `completed` or `failed`."""

    def __init__(
        self, completed: Callable[[list[Launch]], None], failed: Callable[[BaseException], None]
    ) -> None:
        self._completed = completed
        self._failed = failed
        self._queue: queue.SimpleQueue[Batch] = queue.SimpleQueue()
        self.head: Batch | None = None
        threading.Thread(target=self._run, name="completer", daemon=True).start()

    def submit(self, batch: Batch) -> None:
        """Wait for this batch after those before it."""
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
                del batch
        except BaseException as error:  # noqa: BLE001 - whatever it is ends the context, with its reason
            self._failed(error)
