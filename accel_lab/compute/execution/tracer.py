"""When a context's work began and ended, by the device's clock, while somebody watches.

The dispatcher puts a mark on the stream before and after what a handler enqueues, the first behind
what the operands make the stream wait for, and as late as the backend can tell: neither waiting nor
Python is work of the device. The control thread reads the marks that the stream has reached.

Without a watcher there is no mark; what still runs when one comes is told by what the control
thread has seen of it. Of messages that come thick and fast a few are marked and the others counted,
so that looking does not slow what is looked at.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

import msgspec

from accel_lab.compute.events.samples import Slice, Work, work_of
from accel_lab.compute.execution.stream import Stream

WATCHED_S = 2.0
"""How long a look keeps the tracing on."""
KEPT = 2_000
"""How many traces wait to be read; older ones are dropped and counted."""
CALM = 500
NOT_TRACED = "not traced"
"""The name of a slice that stands for several messages; its number is how many they are."""
FEW = 20
"""Where more than `CALM` messages came between two looks, only `FEW` are traced until the next:
the marks, and reading them, cost more than what a small message does."""


class Margins(NamedTuple):
    """What lies between two marks beside the work, in seconds, on a stream that is busy.

    Attributes:
        before: from the first mark to the begin of the work.
        after: from its end to the second.
    """

    before: float
    after: float


class Clock(Protocol):
    """The clock of a device."""

    def mark(self, stream: Any) -> Any:
        """Put a mark on a native stream, after what is enqueued; the dispatcher's thread."""

    def read(self, mark: Any) -> float | None:
        """Return when the stream reached a mark, in wall seconds; None until it has.

        The control thread. Raises what the device raised.
        """

    def margins(self) -> Margins:
        """Return what marks add to the work between them, nothing while that is not known.

        The control thread; does not block. Raises what the device raised.
        """


class Trace:
    """One message's marks."""

    __slots__ = (
        "began",
        "end",
        "idle",
        "kind",
        "lag",
        "marked",
        "name",
        "operation",
        "place",
        "queued",
        "seq",
        "start",
        "stream",
    )

    def __init__(self, seq: int, name: str, kind: Work, stream: Stream, start: Any) -> None:
        self.seq = seq
        self.name = name
        self.kind = kind
        self.stream = stream
        self.start = start
        self.operation = stream.operations
        self.end: Any = None
        self.began: float | None = None
        self.idle = False
        self.marked = self.lag = 0.0
        self.place: tuple[int, int, int] | None = None
        self.queued = time.time()


class Tracer:
    """The marks of a context's work.

    Attributes:
        watched: whether work is to be marked.

    Parameters:
        launched: tells how many messages there were up to now; any thread.
        by_stream: tells the same of each stream by its name; any thread.
    """

    def __init__(
        self,
        clock: Clock,
        launched: Callable[[], int] = lambda: 0,
        by_stream: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        self._clock = clock
        self._launched = launched
        self._by_stream = by_stream
        self._looked = 0  # how many there were at the last look
        self._left = KEPT  # how many more are marked before the next look
        self._rested: int | None = None  # how many there were when that was used up
        self._rested_at = 0.0  # wall seconds
        self._rested_by: Mapping[str, int] = {}
        self._untraced: list[Slice] = []  # what was not marked since, of each stream as one
        self._traces: deque[Trace] = deque()
        self._until = 0.0
        self.watched = False
        self._dropped = 0
        self._glimpsed: dict[int, Slice] = {}  # the control thread's own, as all below
        self._skipped = 0
        self._told = 0

    # The dispatcher's thread.

    def begin(self, seq: int, message: Any, stream: Stream) -> Trace:
        """Mark where a message's work begins."""
        self._left -= 1
        if self._left <= 0:
            self._rested_at, self._rested_by = time.time(), self._by_stream()
            self._rested = self._launched()
            self.watched = False
        elif time.monotonic() > self._until:
            self.watched = False
        if len(self._traces) >= KEPT:
            self._drop()
        start = self._clock.mark(stream.native)
        trace = Trace(seq, message.title, work_of(message), stream, start)
        stream.waited = again = partial(self._begin_again, trace)
        stream.native.before_work(again)
        self._traces.append(trace)
        return trace

    def _begin_again(self, trace: Trace) -> Callable[[], None] | None:
        """Mark the begin anew: the stream waits for another, or is given the work only now.

        Returns what is to be called when the work has been enqueued.
        """
        stream = trace.stream
        if trace.end is not None or trace.operation != stream.operations:
            return None
        trace.idle = stream.native.done()
        trace.start, trace.began = self._clock.mark(stream.native), None
        trace.marked = time.perf_counter()
        return partial(self._launched_late, trace)

    @staticmethod
    def _launched_late(trace: Trace) -> None:
        """Note how long a stream with nothing to do has waited for what stands behind the mark."""
        if trace.idle:
            trace.lag = time.perf_counter() - trace.marked

    def end(self, trace: Trace) -> None:
        """Mark where it ends."""
        trace.end = self._clock.mark(trace.stream.native)

    def fail(self, trace: Trace) -> None:
        """Mark where it failed; where it began, if the device takes no mark any more."""
        try:
            self.end(trace)
        except Exception:  # noqa: BLE001 - a device in error says so where it is used
            trace.end = trace.start

    def _drop(self) -> None:
        try:
            self._traces.popleft()
        except IndexError:  # the control thread was quicker
            return
        self._dropped += 1

    # The control thread.

    def watch(self, *, every: bool = False) -> None:
        """Trace what is executed from now on, for a while.

        Parameters:
            every: however many they are, as long as there is room for them.
        """
        launched, now = self._launched(), time.monotonic()
        goes_on = now <= self._until
        if goes_on and self._rested is not None:
            self._skipped += launched - self._rested
            self._untraced += self._passed_over(time.time())
        self._rested = None
        many = goes_on and launched - self._looked > CALM
        self._left = FEW if many and not every else KEPT
        self._looked = launched
        self._until = now + WATCHED_S
        self.watched = True

    def _passed_over(self, now: float) -> Iterable[Slice]:
        """Yield one slice for each stream that has worked at messages without a mark.

        Where so many come that few are marked, a stream would else look idle. One alone is no
        flood, and may be what runs now.
        """
        for name, count in self._by_stream().items():
            missed = count - self._rested_by.get(name, 0)
            if missed > 1:
                yield Slice(missed, NOT_TRACED, name, "untraced", self._rested_at, now)

    def take(self, glimpsed: Iterable[Slice] = ()) -> tuple[list[Slice], list[Slice], int]:
        """Return what is done, what runs, and how many traces were dropped since the last time.

        Streams overtake each other, so what is done may lie behind what is not.

        Parameters:
            glimpsed: what is known to run from elsewhere, marked or not: what began before anybody
                watched. It is done when it is not glimpsed any more.
        """
        done: list[Slice] = []
        running: list[Slice] = []
        waiting: list[Trace] = []
        before, after = self._margins() if self._traces else (0.0, 0.0)
        for _ in range(len(self._traces)):
            try:
                trace = self._traces.popleft()
            except IndexError:  # the dispatcher dropped it meanwhile
                break
            end = None if trace.end is None else self._read(trace.end)
            if trace.began is None:
                trace.began = self._read(trace.start)
            if end is None:
                waiting.append(trace)
            if trace.began is not None:
                began = trace.began + (trace.lag if trace.idle else before)
                if end is not None:
                    end = max(end - after, trace.began)
                    began = min(began, end)
                one = Slice(
                    trace.seq,
                    trace.name,
                    trace.stream.name,
                    trace.kind,
                    began,
                    end,
                    place=trace.place,
                    queued=min(trace.queued, began),
                )
                (running if end is None else done).append(one)
        self._traces.extendleft(reversed(waiting))
        marked = {trace.seq for trace in waiting} | {one.seq for one in done}
        others = {one.seq: one for one in glimpsed if one.seq not in marked}
        now = time.time()
        gone = [one for seq, one in self._glimpsed.items() if seq not in others]
        done += [msgspec.structs.replace(one, end=now) for one in gone]
        running += others.values()
        self._glimpsed = others
        # As it is now, it goes on so until the next look.
        running += [msgspec.structs.replace(one, start=now, end=None) for one in self._untraced]
        done += self._untraced
        self._untraced = []
        dropped = self._dropped + self._skipped
        since, self._told = dropped - self._told, dropped
        return done, running, since

    def _margins(self) -> tuple[float, float]:
        try:
            return self._clock.margins()
        except Exception:  # noqa: BLE001 - a device in error says so where it is used
            return 0.0, 0.0

    def _read(self, mark: Any) -> float | None:
        try:
            return self._clock.read(mark)
        except Exception:  # noqa: BLE001 - a device in error says so where it is used
            return None
