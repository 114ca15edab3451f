"""Waiting for streams without holding up the dispatcher."""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
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
    """Launches that are enqueued, and the events after which all of them are done.

    Attributes:
        ends: how many operations each of its streams had by then.
        behind: up to which operation of others its streams wait for those.
    """

    __slots__ = ("behind", "ends", "events", "launches", "since", "timeout_s")

    def __init__(self, launches: list[Enqueued], streams: list[Stream], timeout_s: float) -> None:
        self.launches = launches
        self.timeout_s = timeout_s
        self.events = [(stream, stream.native.record()) for stream in streams]
        self.ends = {stream: stream.operations for stream in streams}
        self.behind: dict[Stream, int] = {}
        for stream in streams:
            for other, operation in stream.seen.items():
                if other not in self.ends:
                    self.behind[other] = max(operation, self.behind.get(other, 0))
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
        self._waiting: deque[Batch] = deque()
        self._ended: dict[Stream, int] = {}
        self._submitted = self._finished = 0
        threading.Thread(target=self._run, name="completer", daemon=True).start()

    @property
    def idle(self) -> bool:
        """Whether every batch has been completed; any thread."""
        return self._submitted == self._finished

    def submit(self, batch: Batch) -> None:
        """Wait for this batch after those before it; one thread at a time."""
        self._submitted += 1
        self._waiting.append(batch)
        self._queue.put(batch)

    def running(self) -> Iterator[Batch]:
        """Yield the first batch, and others whose streams wait for none before them; any thread.

        One that waits behind another's stream does not run yet, however long that takes.
        """
        busy: set[Stream] = set()
        ended = self._ended
        for batch in self._waiting.copy():
            waits = any(
                stream in busy and operation > ended.get(stream, 0)
                for stream, operation in batch.behind.items()
            )
            if not waits and busy.isdisjoint(batch.ends):
                yield batch
            busy.update(batch.ends)

    def _run(self) -> None:
        try:
            while True:
                batch: Any = self._queue.get()
                for stream, event in batch.events:
                    stream.native.synchronize(event)
                self._completed(batch.launches)
                self._ended.update(batch.ends)
                self._waiting.popleft()
                self._finished += 1
                del batch
        except BaseException as error:  # noqa: BLE001 - whatever it is ends the context, with its reason
            self._failed(error)
