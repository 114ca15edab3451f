"""Events: points in a device's work, to wait for and to measure between.

A library enqueues on a stream of its own. An event is recorded behind what a stream, or the whole
device, was sent before. On `cuda` it is a CUDA event, on `host` the moment at which that was done.
"""

import weakref
from collections.abc import Iterator
from typing import Any, ClassVar, Protocol, TypeVar

from accel_lab.actor.reply import Reply
from accel_lab.compute.device import Device, device_first, device_of
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.execution.stream import Stream
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.compute.shared.shared_flag import FlagPlace, SharedFlag, State
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.answer import answer
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import array_of
from accel_lab.library_modules import LIBRARIES

R = TypeVar("R")

STREAMS = frozenset((*LIBRARIES, "download", "run", "upload"))
"""What has a stream of its own: the libraries, `gpu.run` with its cells, and the copies."""


class Event:
    """A point in the work of a device."""


class OfEvents(Operation[R], frozen=True, array_like=True, eq=False):
    """Records an event or uses some; each is of its moment, and of its device's generation."""

    library: ClassVar[str] = "event"
    dtypes: ClassVar = frozenset({""})
    opaque: ClassVar[str] = "an event is of its moment; record another"
    uncaptured: ClassVar[str] = "an event is of its moment, and a graph is launched at others"


class Record(OfEvents[Handle[Event]], frozen=True, array_like=True, eq=False, tag=580):
    """Record an event behind what a stream, or the whole device if none is named, was sent."""

    fence: ClassVar[bool] = True
    stream: str = ""

    def infer(self) -> None:
        """Refuse a stream that there is not."""
        _require_stream(self)


class Wait(OfEvents[None], frozen=True, array_like=True, eq=False, tag=581):
    """Have a stream, or all of them if none is named, go on behind an event."""

    fence: ClassVar[bool] = True
    event: Handle[Event]
    stream: str = ""

    def infer(self) -> None:
        """Refuse a stream that there is not."""
        _require_stream(self)


class Query(OfEvents[bool], frozen=True, array_like=True, eq=False, tag=582):
    """Return whether the device has reached an event by now; what it does is not waited for."""

    event: Handle[Event]


class Synchronize(OfEvents[None], frozen=True, array_like=True, eq=False, tag=583):
    """Answer once the device has reached an event; whatever is sent behind it passes."""

    timeout_s: ClassVar[float | None] = None
    event: Handle[Event]


class Elapsed(OfEvents[float], frozen=True, array_like=True, eq=False, tag=584):
    """Return the milliseconds between two events of one device, once it has reached both."""

    timeout_s: ClassVar[float | None] = None
    start: Handle[Event]
    end: Handle[Event]


class Moment(OfEvents[float], frozen=True, array_like=True, eq=False, tag=585):
    """Return when the device reached an event, in seconds since 1970, once it has."""

    timeout_s: ClassVar[float | None] = None
    event: Handle[Event]


class Token(OfEvents[AccelRef], frozen=True, array_like=True, eq=False, tag=586):
    """Make a buffer of one byte that is there when an event is reached, to be copied elsewhere."""

    event: Handle[Event]

    def infer(self) -> Spec:
        """Return one byte."""
        return Spec((1,), "uint8")


class Meet(OfEvents[None], frozen=True, array_like=True, eq=False, tag=587):
    """Have all streams go on behind what made a buffer, as the copy of another device's `Token`."""

    fence: ClassVar[bool] = True
    token: AccelRef

    @property
    def dtype_key(self) -> str:
        """Nothing: it is not computed with."""
        return ""


def record(device: Device, stream: str = "") -> Handle[Event]:
    """Record an event as `Record` says; it is answered when it is recorded, not when it is reached.

    Parameters:
        stream: the library behind whose work, as "blas"; "run" for functions and cells, "upload"
            and "download" for copies; none for all that the device was sent before.

    Raises:
        InvalidArgument: there is no such stream.
    """
    return device_first(device).ask(Record(stream))


def wait(event: Handle[Event], device: Device | None = None, stream: str = "") -> Reply[None]:
    """Have what is sent from here on go on behind an event; nothing blocks in the notebook.

    On the event's own device its streams wait, and on another one all of them, for a byte that is
    copied there.

    Parameters:
        device: which one waits; the event's own if not given.
        stream: what waits there, as in `record`; everything if not given.

    Raises:
        InvalidArgument: there is no such stream, or another device is to have one of them wait.
        StaleRef: the event's device has lost it.
    """
    own = device_of(event)
    if device is None or device_first(device) is own:
        return own.ask(Wait(event, stream))
    if stream:
        text = f"wait: {stream!r} of {device.name} cannot wait alone for an event of {own.name}"
        raise InvalidArgument(f"{text}; leave stream out, and all of {device.name} waits")
    copied = device.copy_of(own.ask(Token(event)), kept_bytes=0).ref
    return device.ask(Meet(copied))


def elapsed(start: Handle[Event], end: Handle[Event]) -> float:
    """Return the milliseconds from one event to another; blocks until both are reached.

    Those of one device are told by its own clock. Between two devices the times of day are
    compared, which is good to some tens of microseconds.

    Raises:
        StaleRef: its device has lost one of them.
    """
    first, last = device_of(start), device_of(end)
    if first is last:
        return first.ask(Elapsed(start, end)).result()
    began, ended = first.ask(Moment(start)), last.ask(Moment(end))
    return (ended.result() - began.result()) * 1e3


def export(event: Handle[Event]) -> FlagPlace:
    """Return what another process needs to wait for an event; it pickles.

    That one needs no driver, and no device. It holds as long as you hold the event, and until it is
    reached. What waits elsewhere learns it if the event's device loses it, or this process ends.

    Raises:
        StaleRef: the event's device has lost it.
        MemoryError: the system gives no descriptor, or no memory.
    """
    flag = SharedFlag()
    reached = device_of(event).ask(Synchronize(event))
    weakref.finalize(event, _forget, flag).atexit = False

    def say() -> None:
        flag.say(State.LOST if reached.error is not None else State.REACHED)

    reached.add_waiter(say)
    return FlagPlace(flag.place)


def _forget(flag: SharedFlag) -> None:
    """Do nothing: to be called has kept it."""
    del flag


query = function(Query)
synchronize = function(Synchronize)
moment = function(Moment)
token = function(Token)
meet = function(Meet)


class EventLibrary(Protocol):
    """What a backend provides; a mark is what it makes of an event."""

    def record(self, stream: Any) -> Any:
        """Put a mark on a native stream, behind what is enqueued there."""

    def wait(self, stream: Any, mark: Any) -> None:
        """Hold later work of a native stream until a mark is reached."""

    def clear(self, out: Any) -> None:
        """Write zeros."""

    def reached(self, mark: Any) -> bool:
        """Whether a mark is reached; any thread. Raises what the device raised."""

    def elapsed_ms(self, start: Any, end: Any) -> float:
        """Return the milliseconds between two marks that are reached."""

    def moment(self, mark: Any) -> float:
        """Return when a mark was reached that is, in wall seconds."""


class Recorded:
    """An event as the table of buffers keeps it.

    Attributes:
        stream: on which it was recorded.
        operation: how many operations that had by then.
    """

    nbytes = 0

    def __init__(self, mark: Any, stream: Stream) -> None:
        self.mark = mark
        self.stream = stream
        self.operation = stream.operations


class EventActor(LibraryActor):
    """Records the events of one context; its answers wait for no stream."""

    library: ClassVar = "event"
    lib: EventLibrary

    @handles(Record)
    def record(self, m: Record, launch: Launch) -> None:
        """Put a mark on a stream, or on the actor's own behind all others."""
        stream = self.stream
        if m.stream:
            stream = self._named(m.stream)
        else:
            for other in self._others():
                stream.after(other, other.operations)
        launch.keep(Recorded(self.lib.record(stream.native), stream))
        launch.at_once = True

    @handles(Wait)
    def wait(self, m: Wait, launch: Launch) -> None:
        """Have streams wait on the device."""
        event: Recorded = array_of(m.event)
        waiting = [self._named(m.stream)] if m.stream else [self.stream, *self._others()]
        for stream in waiting:
            self._go_behind(stream, event)
        launch.at_once = True

    @handles(Query)
    def query(self, m: Query, launch: Launch) -> None:
        """Look at once."""
        answer(launch, self.lib.reached(array_of(m.event).mark))

    @handles(Synchronize)
    def synchronize(self, m: Synchronize, launch: Launch) -> None:
        """Look again and again beside the dispatcher."""
        self._when_reached(launch, lambda _: None, m.event)

    @handles(Elapsed)
    def elapsed(self, m: Elapsed, launch: Launch) -> None:
        """Measure when both are reached."""
        self._when_reached(launch, self.lib.elapsed_ms, m.start, m.end)

    @handles(Moment)
    def moment(self, m: Moment, launch: Launch) -> None:
        """Tell when it is reached."""
        self._when_reached(launch, self.lib.moment, m.event)

    def _when_reached(self, launch: Launch, tell: Any, *events: Handle[Event]) -> None:
        """Answer with what `tell` makes of the marks, when all of them are reached."""
        marks = [array_of(event).mark for event in events]
        launch.poll(
            lambda: all(self.lib.reached(mark) for mark in marks),
            lambda: answer(launch, tell(*marks)),
        )

    @handles(Token)
    def token(self, m: Token, launch: Launch) -> None:
        """Write the byte behind the event, on the actor's own stream."""
        self._go_behind(self.stream, array_of(m.event))
        self.lib.clear(launch.empty())

    @handles(Meet)
    def meet(self, m: Meet, launch: Launch) -> None:
        """Have all streams wait for what made a buffer."""
        launch.read(m.token)
        for other in self._others():
            other.after(self.stream, self.stream.operations)

    def _go_behind(self, stream: Stream, event: Recorded) -> None:
        """Have a stream wait for an event on the device."""
        if stream is not event.stream:
            self.lib.wait(stream.native, event.mark)
            stream.has_waited(event.stream, event.operation)

    def _named(self, name: str) -> Stream:
        """Return a stream of this context by its library."""
        return self.context.stream(name)

    def _others(self) -> Iterator[Stream]:
        """Yield all streams of this context but the actor's own."""
        return (one for one in list(self.context.streams.values()) if one is not self.stream)


def _require_stream(m: Record | Wait) -> None:
    if m.stream and m.stream not in STREAMS:
        known = ", ".join(sorted(STREAMS))
        text = f"{type(m).__name__}: stream is {m.stream!r}, and a device has {known}"
        raise InvalidArgument(text)
