"""The tracer over a made-up clock: whatever finishes first, each trace is told once."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from accel_lab.compute.events.samples import KINDS, Slice
from accel_lab.compute.execution.stream import Storage, Stream
from accel_lab.compute.execution.tracer import CALM, FEW, KEPT, WATCHED_S, Margins, Trace, Tracer


@dataclass(eq=False)
class Mark:
    """A mark on a stream; `reached` is when, None before that."""

    stream: "Native"
    reached: float | None = None


@dataclass(eq=False)
class Native:
    """A stream that comes as far as it is told to."""

    marks: list[Mark] = field(default_factory=list)
    enqueuing: Callable[[], Callable[[], None] | None] | None = None

    def before_work(self, call: Callable[[], Callable[[], None] | None]) -> None:
        self.enqueuing = call

    def done(self) -> bool:
        return all(mark.reached is not None for mark in self.marks)

    def record(self) -> object:
        return object()

    def wait(self, event: object) -> None:
        """Wait for what another stream has recorded; `advance` says when that is over."""

    def advance(self, by: int, now: float) -> None:
        for mark in [mark for mark in self.marks if mark.reached is None][:by]:
            mark.reached = now


class Clock:
    """Marks in the order of each stream; they add nothing unless they are said to."""

    def __init__(self, before: float = 0.0, after: float = 0.0) -> None:
        self._margins = Margins(before, after)

    def margins(self) -> Margins:
        return self._margins

    def mark(self, stream: Native) -> Mark:
        stream.marks.append(Mark(stream))
        return stream.marks[-1]

    def read(self, mark: Mark) -> float | None:
        return mark.reached


class Message:
    """A message of a library."""

    title = "Message"

    def __init__(self, library: str = "blas") -> None:
        self.library = library


class Tracing(RuleBasedStateMachine):
    """Streams that begin, end and advance in any order, looked at now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.open: list[Trace] = []
        self.ended: set[int] = set()
        self.failed: set[int] = set()
        self.seq = 0
        self.told: list[Slice] = []
        self.dropped = 0

    @initialize(streams=st.integers(1, 4))
    def start(self, streams: int) -> None:
        self.tracer = Tracer(Clock())
        self.tracer.watch()
        self.natives = [Native() for _ in range(streams)]
        self.streams = [Stream(f"s{i}", native) for i, native in enumerate(self.natives)]  # type: ignore[arg-type]

    @rule(which=st.integers(0, 3))
    def begin(self, which: int) -> None:
        self.seq += 1
        stream = self.streams[which % len(self.streams)]
        self.open.append(self.tracer.begin(self.seq, Message(), stream))

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, 9))
    def end(self, which: int) -> None:
        trace = self.open.pop(which % len(self.open))
        self.tracer.end(trace)
        self.ended.add(trace.seq)

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, 9))
    def fail(self, which: int) -> None:
        trace = self.open.pop(which % len(self.open))
        trace.end = trace.start  # as the service does
        self.ended.add(trace.seq)
        self.failed.add(trace.seq)

    @rule(which=st.integers(0, 3), by=st.integers(1, 4))
    def advance(self, which: int, by: int) -> None:
        self.now += 1.0
        self.natives[which % len(self.natives)].advance(by, self.now)

    @rule()
    def look(self) -> None:
        done, running, dropped = self.tracer.take()
        self.told += done
        self.dropped += dropped
        assert all(one.end is None for one in running)
        assert all(one.end is not None and one.start <= one.end for one in done)
        assert not {one.seq for one in running} & {one.seq for one in self.told}

    @invariant()
    def nothing_is_told_twice_or_unended(self) -> None:
        seqs = [one.seq for one in self.told]
        assert len(seqs) == len(set(seqs))
        assert set(seqs) <= self.ended

    def teardown(self) -> None:
        """At last every stream finishes, and everything that ended was told."""
        if self.seq == 0:
            return
        for native in self.natives:
            native.advance(len(native.marks), self.now + 1)
        self.look()
        assert {one.seq for one in self.told} == self.ended
        assert all(one.start == one.end for one in self.told if one.seq in self.failed)
        assert self.dropped == 0
        done, running, dropped = self.tracer.take()
        assert (done, {one.seq for one in running}) == ([], {trace.seq for trace in self.open})
        assert dropped == 0


TestTracing = Tracing.TestCase
TestTracing.settings = settings(max_examples=60, stateful_step_count=30)


@settings(max_examples=12)
@given(
    extra=st.integers(0, 50),
    order=st.permutations(range(3)),
    looked=st.booleans(),
)
def test_what_is_told_and_what_is_dropped_is_all_there_was(
    extra: int,
    order: list[int],
    looked: bool,  # noqa: FBT001 - hypothesis chooses
) -> None:
    """When nobody takes them, the oldest go and are counted; the newest come, each once."""
    tracer = Tracer(Clock())
    natives = [Native() for _ in range(3)]
    streams = [Stream(f"s{i}", native) for i, native in enumerate(natives)]  # type: ignore[arg-type]
    for seq in range(KEPT + extra):
        tracer.end(tracer.begin(seq, Message(), streams[seq % 3]))
    seqs: list[int] = []
    lost = 0
    for stream in order:
        natives[stream].advance(2 * KEPT, 1.0)
        if looked:
            done, _, dropped = tracer.take()
            seqs += [one.seq for one in done]
            lost += dropped
    done, running, dropped = tracer.take()
    seqs += [one.seq for one in done]
    assert lost + dropped == extra
    assert sorted(seqs) == list(range(extra, KEPT + extra))
    assert running == []


@pytest.mark.parametrize(
    ("first", "last", "begin", "end"), [(5.0, 9.0, 5.5, 8.75), (5.0, 5.4, 5.15, 5.15), (5, 5, 5, 5)]
)
def test_what_marks_add_is_no_work(first: float, last: float, begin: float, end: float) -> None:
    """On a busy stream; a slice keeps its begin before its end, between its marks."""
    tracer, native = Tracer(Clock(before=0.5, after=0.25)), Native()
    trace = tracer.begin(7, Message(), Stream("blas", native))  # type: ignore[arg-type]
    native.advance(1, first)
    tracer.end(trace)
    native.advance(1, last)
    ((one,), _, _) = tracer.take()
    assert (one.start, one.end) == pytest.approx((begin, end))


@pytest.mark.parametrize("idle", [True, False])
def test_work_on_a_stream_with_nothing_to_do_begins_when_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
    idle: bool,  # noqa: FBT001
) -> None:
    """The mark before it is reached at once; what the launch takes after that is no work."""
    now = [50.0]
    monkeypatch.setattr("accel_lab.compute.execution.tracer.time.perf_counter", lambda: now[0])
    tracer, native = Tracer(Clock(before=0.125)), Native()
    stream = Stream("jit", native)  # type: ignore[arg-type]
    trace = tracer.begin(7, Message(), stream)
    native.advance(int(idle), 4.5)
    assert native.enqueuing is not None
    enqueued = native.enqueuing()
    now[0] += 0.25
    assert enqueued is not None
    enqueued()
    now[0] += 9.0
    tracer.end(trace)
    native.advance(1 if idle else 2, 5.0)
    native.advance(1, 6.0)
    begin = 5.25 if idle else 5.125
    assert tracer.take()[0] == [Slice(7, "Message", "jit", "kernel", begin, 6.0, queued=begin)]


def test_what_has_not_begun_is_not_running() -> None:
    tracer, native = Tracer(Clock()), Native()
    trace = tracer.begin(7, Message(), Stream("blas", native))  # type: ignore[arg-type]
    assert tracer.take() == ([], [], 0)
    native.advance(1, 5.0)
    assert tracer.take() == ([], [Slice(7, "Message", "blas", "kernel", 5.0, None, queued=5.0)], 0)
    tracer.end(trace)
    native.advance(1, 6.0)
    assert tracer.take() == ([Slice(7, "Message", "blas", "kernel", 5.0, 6.0, queued=5.0)], [], 0)


def test_a_message_begins_when_what_it_waits_for_is_done() -> None:
    tracer, native, other = Tracer(Clock()), Native(), Native()
    fft, blas = Stream("fft", native), Stream("blas", other)  # type: ignore[arg-type]
    storage = Storage(blas, 4, "Gemm #1")
    blas.operations += 1
    storage.write_on(blas)
    fft.operations += 1
    trace = tracer.begin(2, Message("fft"), fft)
    native.advance(1, 5.0)  # the stream is idle, but for the wait
    tracer.take()
    storage.read_on(fft)
    tracer.end(trace)
    assert tracer.take() == ([], [], 0), "it has not begun"
    native.advance(1, 7.0)
    native.advance(1, 8.0)
    assert tracer.take()[0] == [Slice(2, "Message", "fft", "kernel", 7.0, 8.0, queued=7.0)]


def test_what_waits_later_begins_nothing_anew() -> None:
    tracer, native, other = Tracer(Clock()), Native(), Native()
    fft, blas = Stream("fft", native), Stream("blas", other)  # type: ignore[arg-type]
    fft.operations += 1
    trace = tracer.begin(2, Message("fft"), fft)
    native.advance(1, 5.0)
    fft.operations += 1  # another message, which is not traced, while this one is deferred
    blas.operations += 1
    fft.after(blas, 1)
    assert fft.waits == 1
    tracer.end(trace)
    native.advance(1, 6.0)
    assert tracer.take()[0] == [Slice(2, "Message", "fft", "kernel", 5.0, 6.0, queued=5.0)]


def test_what_began_before_anybody_watched_is_told_until_it_is_gone() -> None:
    tracer, native = Tracer(Clock()), Native()
    old = Slice(3, "Message and 2 more", "blas", "kernel", 4.0, None)
    assert tracer.take([old]) == ([], [old], 0)
    trace = tracer.begin(7, Message(), Stream("blas", native))  # type: ignore[arg-type]
    again = Slice(7, "Message", "blas", "kernel", 4.5, None)
    native.advance(1, 5.0)
    marked = Slice(7, "Message", "blas", "kernel", 5.0, None, queued=5.0)
    assert tracer.take([old, again]) == ([], [marked, old], 0), "the marks know better"
    tracer.end(trace)
    native.advance(1, 6.0)
    before = time.time()
    (one, other), running, _ = tracer.take([again])
    assert one == Slice(7, "Message", "blas", "kernel", 5.0, 6.0, queued=5.0)
    assert msgspec.structs.replace(other, end=None) == old
    assert other.end is not None
    assert before <= other.end <= time.time()
    assert running == []
    assert tracer.take() == ([], [], 0)


@pytest.mark.parametrize(("library", "kind"), [*KINDS.items(), ("fft", "kernel")])
def test_the_library_says_the_kind(library: str, kind: str) -> None:
    tracer, native = Tracer(Clock()), Native()
    tracer.end(tracer.begin(1, Message(library), Stream(library, native)))  # type: ignore[arg-type]
    native.advance(2, 1.0)
    ((one,), _, _) = tracer.take()
    assert one.kind == kind


def test_without_a_look_the_tracing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("accel_lab.compute.execution.tracer.time.monotonic", lambda: now[0])
    tracer = Tracer(Clock())
    assert not tracer.watched
    tracer.watch()
    now[0] += WATCHED_S / 2
    native: Any = Native()
    tracer.begin(1, Message(), Stream("blas", native))
    assert tracer.watched
    now[0] += WATCHED_S
    tracer.begin(2, Message(), Stream("blas", native))
    assert not tracer.watched


class Sender:
    """Sends messages as the service does: only while they are watched are they marked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("accel_lab.compute.execution.tracer.time.monotonic", lambda: self.now)
        self.sent = 0
        self.native = Native()
        self.stream: Any = Stream("blas", self.native)  # type: ignore[arg-type]
        self.tracer = Tracer(Clock(), lambda: self.sent)

    def send(self, count: int) -> None:
        for _ in range(count):
            self.sent += 1
            if self.tracer.watched:
                self.tracer.end(self.tracer.begin(self.sent, Message(), self.stream))

    def look(self, *, every: bool = False) -> tuple[int, int]:
        """Return how many were seen and how many were not; the stream is done with all."""
        self.tracer.watch(every=every)
        for mark in self.native.marks:
            mark.reached = self.now
        self.native.marks.clear()
        done, running, dropped = self.tracer.take()
        assert running == []
        return len(done), dropped


def test_of_many_messages_a_few_are_marked_and_the_others_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sender = Sender(monkeypatch)
    sender.send(10_000)
    assert sender.look() == (0, 0), "nobody watched"
    sender.send(CALM)
    assert sender.look() == (CALM, 0)
    sender.send(KEPT + 100)
    assert sender.look() == (KEPT, 100), "as many at once as there is room for"
    sender.send(10_000)
    assert sender.look() == (FEW, 10_000 - FEW)
    sender.send(FEW - 1)
    assert sender.look() == (FEW - 1, 0)
    sender.send(KEPT)
    assert sender.look() == (KEPT, 0), "it had been calm"


def test_who_needs_every_message_has_as_many_as_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sender = Sender(monkeypatch)
    for _ in range(3):
        sender.look(every=True)
        sender.send(KEPT)
    assert sender.look(every=True) == (KEPT, 0)


def test_what_was_sent_while_nobody_looked_was_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    sender = Sender(monkeypatch)
    sender.look()
    sender.send(KEPT + 7)
    sender.now += 2 * WATCHED_S
    assert sender.look() == (KEPT, 0)
    sender.send(CALM)
    assert sender.look() == (CALM, 0)


def test_a_slice_begins_where_the_library_enqueues() -> None:
    """What it did before that, in Python, was no work of the device."""
    tracer, native = Tracer(Clock()), Native()
    tracer.watch()
    stream = Stream("blas", native)  # type: ignore[arg-type]
    stream.operations += 1
    trace = tracer.begin(1, Message(), stream)
    native.advance(1, 10.0)
    assert native.enqueuing is not None
    native.enqueuing()
    tracer.end(trace)
    native.advance(2, 11.0)
    ((slice_,), running, _) = tracer.take()
    assert (slice_.start, slice_.end, running) == (11.0, 11.0, [])
    native.enqueuing()  # too late: it is over
    assert len(native.marks) == 3


def test_a_stream_with_more_than_is_traced_does_not_look_idle() -> None:
    """What was not marked is one slice of each stream, and as it is now it goes on."""
    counts = {"blas": 0, "fft": 0, "run": 0}
    tracer = Tracer(Clock(), lambda: sum(counts.values()), lambda: dict(counts))
    native = Native()
    streams = {name: Stream(name, native) for name in counts}  # type: ignore[arg-type]

    def send(name: str, count: int) -> None:
        for _ in range(count):
            counts[name] += 1
            if tracer.watched:
                tracer.end(tracer.begin(counts[name], Message(), streams[name]))

    tracer.watch()
    send("blas", KEPT + 300)
    send("fft", 7)
    send("run", 1)
    tracer.watch()
    done, running, _ = tracer.take()
    found = {one.stream: one for one in done if one.kind == "untraced"}
    assert {name: one.seq for name, one in found.items()} == {"blas": 300, "fft": 7}
    for one in found.values():
        assert one.end is not None
        assert one.start <= one.end
    assert {(one.stream, one.end) for one in running if one.kind == "untraced"} == {
        ("blas", None),
        ("fft", None),
    }
    send("blas", 3)
    tracer.watch()
    done, running, _ = tracer.take()
    assert not [one for one in (*done, *running) if one.kind == "untraced"], "it is calm again"
