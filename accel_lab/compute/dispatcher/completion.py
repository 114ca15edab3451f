"""Work that the dispatcher has enqueued, until the streams get there and it is answered.

It looks at the streams itself for a moment, which spares the threads' turns. A side thread waits
for those that take longer, so that the dispatcher can go on enqueueing. Answers keep the order of
the requests.
"""

import math
import time
from collections.abc import Callable

from accel_lab.compute.dispatcher.reporter import Reporter, answers
from accel_lab.compute.dispatcher.stream_waiter import Batch, Completer, Enqueued
from accel_lab.compute.dispatcher.task import Task
from accel_lab.compute.execution.stream import Stream
from accel_lab.compute.streams.strategies import LOOK_S

FLUSH_AFTER_S = 0.001
BATCH_LIMIT = 256
RETRY_S = 0.0002


class Completion:
    """What is enqueued and not answered; for the dispatcher thread, but for `tasks`.

    Parameters:
        failed: called when a wait fails: the device is in error, and so is all that is enqueued.
        spins: whether there are cores to look at a stream for as long as a launch says.
        look_s: for how long the dispatcher looks at the streams itself; 0 for not at all.

    Attributes:
        watched: whether the time of what was enqueued last must be watched before anything else
            is begun, which may block in the driver until that is done: it is to be handed over.
    """

    def __init__(
        self,
        reporter: Reporter,
        failed: Callable[[BaseException], None],
        *,
        spins: bool,
        look_s: float = LOOK_S,
    ) -> None:
        self.watched = False
        self._report = reporter.answer
        self._send = reporter.send_frame
        self._spins = spins and look_s > 0
        self._least_look_s = look_s
        self._launched: list[Enqueued] = []
        self._streams: dict[Stream, None] = {}
        self._first_launch = 0.0
        self._look_s = look_s
        self._timeout_s = 0.0
        self._marked: Batch | None = None
        self._completer = Completer(reporter.answer, failed)

    def add(
        self, launch: Enqueued, stream: Stream, timeout_s: float | None, *, alone: bool = False
    ) -> None:
        """Have a launch, or a repeated entry, answered when its stream has done it."""
        now = time.perf_counter()
        launched = self._launched
        if not launched:
            self._first_launch = now
        launched.append(launch)
        self._streams[stream] = None
        if launch.soon_s and self._spins:
            self._look_s = max(self._look_s, self._least_look_s + launch.soon_s)
        self._timeout_s += -math.inf if timeout_s is None else timeout_s
        if alone or len(launched) >= BATCH_LIMIT or now - self._first_launch > FLUSH_AFTER_S:
            self.complete()
        self.watched = alone

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to `complete`."""
        return not self._launched and self._marked is None

    @property
    def is_busy(self) -> bool:
        """Whether the side thread has something to wait for, or to answer."""
        return not self._completer.idle

    def complete(self) -> None:
        """Report what is done; mark what is not, and have a side thread wait for what takes long.

        A mark that the streams reach soon is noticed here, which spares the threads' turns.
        """
        marked = self._marked
        if marked is not None:
            if self._completer.idle and marked.reached():
                self._marked = None
                self._report(marked.launches)
            elif time.perf_counter() - marked.since > self._least_look_s:
                self._completer.submit(marked)
                self._marked = None
        if not self._launched or self._marked is not None:
            return
        if self._completer.idle and self._all_done():
            self._report(self._take())
        elif (
            time.perf_counter() - self._first_launch > self._look_s
            or len(self._launched) >= BATCH_LIMIT
        ):
            self._marked = self._batch()

    def look(self, receive: Callable[[], memoryview | None]) -> memoryview | None:
        """Poll the streams with the answer at hand, until they are done or a frame comes."""
        if self._marked is not None or not self._completer.idle:
            return None
        answer = None
        simple = all([launch.finish is None for launch in self._launched])  # noqa: C419 - faster
        until = self._first_launch + self._look_s
        while time.perf_counter() < until:
            if self._all_done():
                if answer is None:
                    self._report(self._take())
                else:
                    self._send(answer)
                    self._take()
                return None
            if simple and answer is None:
                answer = answers(self._launched)
            frame = receive()
            if frame is not None:
                return frame
        return None

    def hand_over(self) -> None:
        """Report what is done, and have the side thread report the rest."""
        self.complete()
        if self._marked is not None:
            self._completer.submit(self._marked)
            self._marked = None
        if self._launched:
            self._completer.submit(self._batch())

    def drain(self, until: float) -> None:
        """Block until all is answered, at most until then, in monotonic seconds."""
        self.hand_over()
        while not self._completer.idle and time.monotonic() < until:
            time.sleep(RETRY_S)

    def tasks(self) -> list[Task]:
        """Return what of the side thread's work may run by now; any thread."""
        return [_task(batch) for batch in self._completer.running()]

    def _all_done(self) -> bool:
        return all([stream.native.done() for stream in self._streams])  # noqa: C419 - it is faster

    def _batch(self) -> Batch:
        """Mark the streams behind what is launched, and begin anew."""
        streams, timeout_s = list(self._streams), self._timeout_s
        return Batch(self._take(), streams, timeout_s)

    def _take(self) -> list[Enqueued]:
        """Return what is launched, and begin anew."""
        launched, self._launched = self._launched, []
        self._streams.clear()
        self._timeout_s = 0.0
        self._look_s = self._least_look_s
        return launched


def _task(batch: Batch) -> Task:
    first, (stream, _) = batch.launches[0], batch.events[0]
    limit = batch.timeout_s if batch.timeout_s > 0 else None
    more, traced = len(batch.launches) - 1, first.trace is not None
    groups = [one.group for one in batch.launches if one.group is not None]
    group = next((one for one in groups if one.aborted), groups[0] if groups else None)
    return Task(batch, first.seq, first.message, stream, limit, more, traced, group)
