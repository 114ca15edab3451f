"""What a launch holds: kept until its stream is behind it, dropped on the dispatcher's thread."""

import queue
import select
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest

from accel_lab.backends.host.device import HostBackend, HostStream
from accel_lab.compute.dispatcher.stream_bell import StreamBell
from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.execution.stream import Stream
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.compute.wire.codec import Failure, batch, encode_entry
from accel_lab.errors import InvalidArgument
from tests.compute.wires import Wire, service_of

WAIT_S = 20.0


class Hold(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=93):
    """Hold an object, in one of several ways."""

    library: ClassVar[str] = "test"
    way: str = "now"

    def infer(self) -> Spec:
        return Spec((2,), "int64")


class Other(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=92):
    """Hold nothing."""

    library: ClassVar[str] = "test"

    def infer(self) -> Spec:
        return Spec((2,), "int64")


class Slow(HostStream):
    """A stream that gets to what was enqueued when a test says so."""

    def __init__(self) -> None:
        self.marks = self.at = 0
        self.lost = False
        self.asked = threading.Event()
        self._moved = threading.Condition()

    def record(self) -> Any:
        self.marks += 1
        return self.marks

    def reached(self, event: Any) -> bool:
        if self.lost:
            raise RuntimeError("the device is in error")
        return bool(event <= self.at)

    def synchronize(self, event: Any) -> None:
        self.asked.set()
        with self._moved:
            assert self._moved.wait_for(lambda: self.lost or self.at >= event, WAIT_S)
        self.reached(event)

    def move(self) -> None:
        """Get to all that is enqueued."""
        with self._moved:
            self.at = self.marks
            self._moved.notify_all()


class SlowBackend(HostBackend):
    """A device whose library has a slow stream."""

    def __init__(self) -> None:
        super().__init__(0)
        self.slow: list[Slow] = []

    def native_stream(self, priority: int = 0) -> Slow:
        del priority
        self.slow.append(Slow())
        return self.slow[-1]


class Thing:
    """Something that a launch holds."""


class Holding(LibraryActor):
    """Holds an object for each launch that says so."""

    library = "test"
    things: ClassVar[list[weakref.ref[Thing]]] = []
    dropped_in: ClassVar[list[int]] = []
    meet: ClassVar[Callable[[], Any]] = staticmethod(lambda: None)

    @handles(Hold)
    def hold(self, m: Hold, launch: Launch) -> None:
        if m.way == "now":
            launch.write()
            self._hold(launch)
        elif m.way == "fails":
            self._hold(launch)
            raise InvalidArgument("it was half enqueued")
        elif m.way == "defer":
            self._hold(launch)
            launch.defer(lambda: type(self).meet(), lambda _: launch.write())
        else:
            launch.write()

            def work(_: Any) -> None:
                self._hold(launch)
                type(self).meet()

            launch.blocking(work)

    @handles(Other)
    def other(self, m: Other, launch: Launch) -> None:
        del m
        launch.write()

    def _hold(self, launch: Launch) -> None:
        thing = Thing()
        weakref.finalize(thing, lambda: self.dropped_in.append(threading.get_ident()))
        self.things.append(weakref.ref(thing))
        launch.hold(thing)


class World:
    """A context of a slow device, and what serves it."""

    def __init__(self) -> None:
        arena: Any = None
        self.backend = SlowBackend()
        self.context = Context(self.backend, [Holding], arena, 1, {}, None)
        self.wire = Wire([])
        self.service = service_of(self.wire, self.context)
        self.seq = 0

    @property
    def stream(self) -> Slow:
        return self.backend.slow[0]

    def entry(self, message: Operation[AccelRef]) -> bytes:
        self.seq += 1
        return encode_entry(self.seq, self.seq, 600.0, message, Spec((2,), "int64"))

    def send(self, message: Operation[AccelRef]) -> None:
        self.wire.frames = [batch([self.entry(message)])]
        self.service._turn()

    def finish(self) -> None:
        """Have what was deferred finished."""
        deferral = self.service._deferral
        for deferred in list(deferral.begun.values()):
            assert deferred.future is not None
            deferred.future.exception(WAIT_S)
        self.send(Other())


@pytest.fixture(autouse=True)
def _kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [Hold, Other]  # other tests have messages that do not go together
    monkeypatch.setattr("accel_lab.compute.dispatcher.decoding.travelling", lambda: kinds)
    monkeypatch.setattr(Holding, "things", [])
    monkeypatch.setattr(Holding, "dropped_in", [])


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.stream.move()
    world.context.held.close()


def alive() -> list[bool]:
    return [thing() is not None for thing in Holding.things]


@pytest.mark.parametrize("way", ["now", "fails"])
def test_an_object_is_kept_until_the_stream_is_behind_its_launch(world: World, way: str) -> None:
    """Also where the handler has failed: it may have enqueued what reads the object."""
    world.send(Hold(way))
    assert alive() == [True]
    for _ in range(3):
        world.send(Other())
    assert alive() == [True]
    world.stream.move()
    world.send(Other())
    assert alive() == [False]
    assert Holding.dropped_in == [threading.get_ident()]
    failures = [one for one in world.wire.sent if isinstance(one, Failure)]
    assert len(failures) == (way == "fails")


def test_each_object_goes_with_its_own_launch(world: World) -> None:
    world.send(Hold())
    world.send(Other())
    world.stream.move()
    world.send(Hold())
    world.send(Other())
    assert alive() == [False, True]


@pytest.mark.parametrize("way", ["defer", "blocking"])
def test_an_object_is_kept_until_work_beside_the_dispatcher_is_done(
    world: World, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """What its stream does meanwhile is for others."""
    gate, entered = threading.Event(), threading.Event()

    def meet() -> None:
        entered.set()
        assert gate.wait(WAIT_S)

    monkeypatch.setattr(Holding, "meet", staticmethod(meet))
    try:
        world.send(Hold(way))
        assert entered.wait(WAIT_S)
        for _ in range(3):
            world.send(Other())
            world.stream.move()
        assert alive() == [True]
    finally:
        gate.set()
    world.finish()
    world.send(Other())
    assert alive() == [True]
    world.stream.move()
    world.send(Other())
    assert alive() == [False]
    assert Holding.dropped_in == [threading.get_ident()]


def test_a_launch_that_holds_nothing_has_no_event_recorded(world: World) -> None:
    for _ in range(5):
        world.send(Other())
    assert world.stream.marks == 0
    world.send(Hold())
    world.send(Other())
    assert world.stream.marks == 1


def test_a_context_that_closes_waits_for_the_stream_and_drops_all(world: World) -> None:
    world.send(Hold())
    world.send(Hold())
    closing = threading.Thread(target=world.context.close)
    closing.start()
    assert world.stream.asked.wait(WAIT_S)
    assert alive() == [True, True]
    world.stream.move()
    closing.join(WAIT_S)
    assert alive() == [False, False]


def test_a_context_that_closes_drops_all_where_its_device_is_lost(world: World) -> None:
    world.send(Hold())
    world.stream.lost = True
    with pytest.raises(RuntimeError, match="in error"):
        world.context.close()
    assert alive() == [False]
    world.stream.lost = False


class Sleepy(Wire):
    """A wire on which nothing comes; who waits for it sleeps until something else wakes it."""

    def __init__(self, frames: list[bytes]) -> None:
        super().__init__(frames)
        self.slept = threading.Semaphore(0)
        self.over = False

    def receive(self) -> memoryview | None:
        if self.over:
            raise EOFError
        return memoryview(self.frames.pop(0)) if self.frames else None

    def sleep(self) -> bool:
        return True

    def wait(self, timeout_s: float | None = None, also: int = -1) -> None:
        del timeout_s
        self.slept.release()
        if also < 0:
            self.over = True
            return
        poll = select.poll()
        poll.register(also, select.POLLIN)
        if not poll.poll(WAIT_S * 1000):
            self.over = True


def test_a_dispatcher_that_sleeps_is_woken_to_drop_an_object() -> None:
    """Nothing comes any more: it sleeps for ever once it holds nothing."""
    world = World()
    wire = Sleepy([batch([world.entry(Hold())])])
    world.wire = wire
    world.service = service_of(wire, world.context)
    serving = threading.Thread(target=world.service.run)
    serving.start()
    assert wire.slept.acquire(timeout=WAIT_S)
    assert alive() == [True]
    world.stream.move()
    serving.join(WAIT_S)
    assert not serving.is_alive()
    assert alive() == [False]
    assert Holding.dropped_in == [serving.ident]
    assert not world.context.held


def test_who_is_woken_for_a_stream_sees_for_what() -> None:
    """Whoever is woken and finds nothing takes the ring away, and sleeps again."""
    stream, seen = Slow(), queue.SimpleQueue[object]()
    bell = StreamBell(lambda: seen.put(bell.rang), seen.put)
    bell.watch([(Stream("test", stream), stream.record())])
    stream.move()
    assert seen.get(timeout=WAIT_S) is True
