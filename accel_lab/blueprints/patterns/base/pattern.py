"""The actor that every pattern is, and the object by which its user has it.

An actor takes requests in, holds them until they are answered, and answers each once. What is in
flight is the pattern's own business: it says when a request begins, and with what it ends.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar, get_args

from accel_lab.actor.actor import Actor, ActorRef, Sight, handles
from accel_lab.actor.letter import Promise
from accel_lab.actor.message import Message
from accel_lab.actor.reply import Reply
from accel_lab.blueprints.patterns.base.calls import Calls
from accel_lab.blueprints.patterns.base.errors import RequestExpired
from accel_lab.blueprints.patterns.base.record import PatternDecided, Record, Statistics
from accel_lab.blueprints.patterns.base.request import Entry, Infer, Stream
from accel_lab.blueprints.patterns.base.stage import Stage
from accel_lab.compute.events.patterns import Part, offer
from accel_lab.compute.message.validation import require_timeout, require_word
from accel_lab.errors import AccelError, Cancelled, InvalidArgument, NameTaken, QueueFull
from accel_lab.pipeline.stage import require_count
from accel_lab.uncopied import Uncopied

A = TypeVar("A", bound=Actor)
Overflow = Literal["reject", "drop_oldest", "wait"]
MAILBOX = 8192
"""So many messages may wait for the actor itself; who sends more is kept waiting."""
LINE = 16
"""So many times its capacity may wait for room in a pattern."""


class Place(Protocol):
    """Where a pattern lives: a `System`, or a `Bench` of `accel_lab.testing`."""

    def spawn(
        self, factory: Callable[[], A], *, name: str | None = ..., capacity: int = ...
    ) -> ActorRef[A]:
        """Start an actor."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much a pattern holds, and for how long.

    Parameters:
        capacity: how many requests may wait in it to be begun.
        overflow: what becomes of one more. `reject` fails it with QueueFull. `drop_oldest` fails
            the oldest of those with the lowest priority in its place. `wait` has it wait for room.
        wait_s: how long `wait` waits for room; sixteen times `capacity` may do so.
        timeout_s: how long a request may take that says nothing itself; None for ever.
    """

    capacity: int = 1024
    overflow: Overflow = "reject"
    wait_s: float = 10.0
    timeout_s: float | None = None

    def __post_init__(self) -> None:
        require_count(self.capacity, "capacity", 1)
        require_word(self.overflow, "overflow", get_args(Overflow))
        require_timeout(self.wait_s, "wait_s")
        require_timeout(self.timeout_s)


class PatternActor(Actor):
    """Holds requests; a subclass says in what order they begin (`enqueue`, `advance`).

    Attributes:
        noun: what its parts are, if it has some.
    """

    noun: ClassVar[str] = ""

    def __init__(self, record: Record, limits: Limits) -> None:
        self.record, self.limits = record, limits
        self.held: dict[int, Entry] = {}
        self.queued: dict[int, Entry] = {}
        self._line: dict[int, Entry] = {}
        self._calls: list[Calls] = []

    # --- what a subclass has ---

    def enqueue(self, entry: Entry) -> None:
        """Put a request among those that wait to be begun, if they stand elsewhere than `queued`.

        Raises:
            InvalidArgument: its value does not fit; it alone fails.
        """

    def dequeue(self, entry: Entry) -> None:
        """Take out one that is over before it has begun."""

    def advance(self) -> None:
        """Begin what may begin now."""
        raise NotImplementedError

    def left(self, entry: Entry) -> None:
        """Nobody waits any more for one that runs."""

    def parts(self) -> tuple[Part, ...]:
        """Return its tenants, replicas, stages and the like; any thread."""
        return ()

    # --- what a subclass calls ---

    def calls_of(self, stage: Stage) -> Calls:
        """Return what calls a stage, until this instance ends."""
        calls = Calls(self, stage, self.record)
        self._calls.append(calls)
        return calls

    def drop_calls(self, calls: Calls) -> None:
        """End the threads of a stage that is called no more."""
        self._calls.remove(calls)
        calls.end()

    @property
    def now(self) -> float:
        """The event loop's time."""
        return self.context.clock.now()

    def later(self, delay_s: float, function: Callable[..., object], *args: Any) -> Any:
        """Call a function of this instance's after some time; returns the timer."""
        call = self.context.run, self, function, *args
        return self.context.event_loop.call_later(max(0.0, delay_s), *call)

    @property
    def first(self) -> Entry:
        """Which of those that wait has the highest priority, and came first."""
        return min(self.queued.values(), key=lambda one: (-one.ask.priority, one.number))

    def push(self, entry: Entry, part: Any) -> None:
        """Stream a part of an answer, if somebody wants parts."""
        if entry.ask.stream is not None and not entry.is_over:
            entry.ask.stream.push(part)

    def begin(self, *entries: Entry) -> None:
        """Note that requests run now."""
        for entry in entries:
            del self.queued[entry.number]
            entry.state = "running"

    def again(self, entry: Entry) -> None:
        """Have a request that ran wait once more."""
        entry.state = "queued"
        self.queued[entry.number] = entry
        self.enqueue(entry)

    def answer(self, entry: Entry, value: Any) -> None:
        """Answer a request, unless that is done."""
        if not entry.is_over:
            self.record.taken_s.append(self.now - entry.at)
            self._close(entry, "answered")
            entry.promise.resolve(value)

    def fail(self, entry: Entry, error: AccelError, how: str = "failed") -> None:
        """Answer a request with a failure, unless it is answered."""
        if not entry.is_over:
            self._close(entry, how)
            entry.promise.reject(error)

    def turn(self) -> None:
        """Begin what may begin, and let in who waits for room, as long as there is some."""
        self.advance()
        while self._line and len(self.queued) < self.limits.capacity:
            self._enter(self._line.pop(next(iter(self._line))))
            self.advance()

    # --- requests ---

    @handles(Infer)
    def infer(self, ask: Infer) -> Promise[Any]:
        """Take a request in; its answer comes later."""
        return self.take_in(ask)

    def take_in(self, ask: Infer, note: Any = None) -> Promise[Any]:
        """Hold a request, and begin what may begin."""
        record, loop = self.record, self.context.event_loop
        promise: Promise[Any] = Promise(loop, partial(self.context.run, self, self._withdraw))
        record.asked += 1
        entry = Entry(record.asked, ask, self.now, promise)
        entry.note = note
        promise.origin = entry
        self.held[entry.number] = entry
        timeout_s = self.timeout_of(ask)
        if timeout_s is not None:
            entry.timer = self.later(timeout_s, self._expire, entry)
        if len(self.queued) < self.limits.capacity:
            self._enter(entry)
        else:
            self._overflow(entry)
        self.turn()
        return promise

    def timeout_of(self, ask: Infer) -> float | None:
        """Return how long a request may take."""
        return self.limits.timeout_s if ask.timeout_s is None else ask.timeout_s

    def _enter(self, entry: Entry) -> None:
        if entry.room is not None:
            entry.room.cancel()
        entry.state = "queued"
        self.queued[entry.number] = entry
        try:
            self.enqueue(entry)
        except Exception as raised:  # noqa: BLE001 - the value's, or a function of the user's
            entry.state = "new"  # it stands in no queue
            del self.queued[entry.number]
            error = raised if isinstance(raised, AccelError) else _unfit(raised)
            self.fail(entry, error, "refused" if isinstance(error, QueueFull) else "failed")

    def _overflow(self, entry: Entry) -> None:
        limits, room = self.limits, f"{len(self.queued)} of {self.limits.capacity} requests wait"
        if limits.overflow == "drop_oldest":
            victim = min(self.queued.values(), key=lambda one: one.ask.priority)
            if victim.ask.priority <= entry.ask.priority:
                text = f"{self.record.name} dropped it for request {entry.number}: {room}"
                self.record.decide("dropped", (victim.number,), room)
                self.fail(victim, QueueFull(text), "refused")
                self._enter(entry)
                return
        elif limits.overflow == "wait" and len(self._line) < LINE * limits.capacity:
            entry.state = "line"
            self._line[entry.number] = entry
            entry.room = self.later(limits.wait_s, self._no_room, entry)
            return
        self.record.decide("refused", (entry.number,), room)
        self.fail(entry, QueueFull(f"{self.record.name} has no room: {room}"), "refused")

    def _no_room(self, entry: Entry) -> None:
        if entry.state == "line":
            room = f"no room within {self.limits.wait_s:g} s"
            self.record.decide("refused", (entry.number,), room)
            self.fail(entry, QueueFull(f"{self.record.name} has {room}"), "refused")

    def _expire(self, entry: Entry) -> None:
        if entry.is_over:
            return
        waited_s, began = self.now - entry.at, entry.state == "running"
        what = "it runs still" if began else "it was not begun"
        text = f"{self.record.name} had no answer within {waited_s:.3g} s: {what}"
        error = RequestExpired(text, waited_s=waited_s, began=began)
        self.record.decide("expired", (entry.number,), what)
        self.fail(entry, error, "expired")
        self.turn()

    def _withdraw(self, promise: Promise[Any]) -> None:
        entry: Entry = promise.origin
        self.fail(entry, Cancelled(f"a request to {self.record.name} was cancelled"), "cancelled")
        self.turn()

    def _close(self, entry: Entry, how: str) -> None:
        state, entry.state = entry.state, "over"
        del self.held[entry.number]
        for timer in (entry.timer, entry.room):
            if timer is not None:
                timer.cancel()
        setattr(self.record, how, getattr(self.record, how) + 1)
        if state == "line":
            del self._line[entry.number]
        elif state == "queued":
            del self.queued[entry.number]
            self.dequeue(entry)
        elif state == "running" and how in ("cancelled", "expired"):
            self.left(entry)

    # --- its life ---

    def started(self) -> None:
        """Show what it holds from now on."""
        self.record.events = self.context.events
        self.record.held, self.record.queued = self.held, self.queued
        self.record.line = self._line
        self.record.noun, self.record.parts = self.noun, self.parts
        offer(self.context.events, self.record.name, self.record)

    def restarting(self, cause: AccelError) -> None:
        """Let go: whoever asked is told the cause."""
        del cause
        self.stopped()

    def stopped(self) -> None:
        """End the threads, and count what is left as failed; whoever asked is told."""
        self.record.failed += len(self.held)
        for one in (self.held, self.queued, self._line):
            one.clear()
        for calls in self._calls:
            calls.end()

    def sight(self) -> Sight:
        """Return its statistics for the tree."""
        found = self.record.statistics()
        return Sight(found.line(), found.waiting, found.running)


class Service(Uncopied):
    """A pattern that runs, as its user has it.

    Attributes:
        kind, place: what it is, and where it lives.
        policy: what becomes of faults, in words.
        name: what it is called in the tree and in errors.
        ref: its actor, which takes its typed messages.
    """

    _instead = "it is one actor; send it requests from here"
    kind: ClassVar[str] = ""
    policy: ClassVar[str] = (
        "A call that meets a fault (its context was lost) is run again, as often as its stage's "
        "retries say. An error of the function fails the requests of that call alone. An error of "
        "the pattern itself fails what it holds and restarts it, as often as the system's devices."
    )

    def __init__(self, place: Place, name: str, make: Callable[[Record], PatternActor]) -> None:
        self.place = place
        for number in itertools.count(1):
            self.name = name if number == 1 else f"{name} {number}"
            self._record = record = Record(self.name, self.kind)
            try:
                self.ref: ActorRef[PatternActor] = place.spawn(
                    partial(make, record), name=self.name, capacity=MAILBOX
                )
            except NameTaken:
                continue
            return

    def ask(self, value: Any, *, priority: int = 0, timeout_s: float | None = None) -> Reply[Any]:
        """Send a value and return the reply of its answer; cancelling that takes it back.

        Parameters:
            priority: what has more of it begins first.
            timeout_s: how long it may take; when not given, the pattern's own limit.

        Raises:
            QueueFull: 8192 messages wait for the actor itself, for ten seconds.
        """
        return self._send(Infer(value, priority, require_timeout(timeout_s)))

    def stream(self, value: Any, *, priority: int = 0, timeout_s: float | None = None) -> Stream:
        """Send a value and return the parts of its answer as they come."""
        stream = Stream()
        stream.follow(self._send(Infer(value, priority, require_timeout(timeout_s), stream)))
        return stream

    def _send(self, message: Message[Any]) -> Reply[Any]:
        return self.ref.ask(message)

    @property
    def statistics(self) -> Statistics:
        """What it has done, and holds; any thread."""
        return self._record.statistics()

    @property
    def decisions(self) -> list[PatternDecided]:
        """The newest thousand of its decisions; `lab.events` has them, too."""
        return list(self._record.decisions)

    def close(self) -> None:
        """Stop it; what it holds fails with ActorStopped. Safe to repeat."""
        self.ref.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self.statistics)

    def _repr_html_(self) -> str:
        return self.statistics._repr_html_()


def _unfit(raised: Exception) -> InvalidArgument:
    error = InvalidArgument(f"the value does not fit: {type(raised).__name__}: {raised}")
    error.__cause__ = raised
    return error


def require_share(value: object, name: str) -> float:
    """Return a number from 0 to 1.

    Raises:
        InvalidArgument: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidArgument(f"{name} is a number from 0 to 1, not {value!r}")
    return float(value)
