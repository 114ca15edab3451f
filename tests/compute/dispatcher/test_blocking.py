"""Work beside the dispatcher: it overlaps where it only reads, keeps the order, and fails alone."""

import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab.backends.host.device import HostBackend, HostStream
from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.builtin import Free
from accel_lab.compute.message.operation import NO_RESULT, Operation, Spec
from accel_lab.compute.wire.codec import Done, Failure, batch, encode_entry
from accel_lab.errors import InvalidArgument
from tests.compute.wires import Wire, service_of

SIDE_BY_SIDE = 4
WAIT_S = 20.0


class New(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=94):
    """Make a buffer of this value."""

    library: ClassVar[str] = "test"
    value: int = 1

    def infer(self) -> Spec:
        return Spec((2,), "int64")


class View(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=95):
    """Make a view of a buffer, of which it waits for another."""

    library: ClassVar[str] = "test"
    aliased: ClassVar[str] = "x"
    x: AccelRef
    after: AccelRef

    def infer(self) -> Spec:
        return Spec((2,), "int64")


class Sum(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=96):
    """Add two buffers, into `out` if there is one, in one of several ways."""

    library: ClassVar[str] = "test"
    x: AccelRef
    y: AccelRef
    out: AccelRef | None = None
    way: str = "now"

    def infer(self) -> Spec:
        return Spec((2,), "int64")


class Worked(LibraryActor):
    """Adds at once, beside the dispatcher, or where it blocks, when `meet` lets it."""

    library = "test"
    meet: ClassVar[Callable[[], Any]] = staticmethod(lambda: None)
    come: ClassVar[threading.Event] = threading.Event()
    handles_made: ClassVar[list[Any]] = []

    @handles(New)
    def new(self, m: New, launch: Launch) -> None:
        launch.write()[:] = m.value

    @handles(View)
    def view(self, m: View, launch: Launch) -> None:
        launch.read(m.after)
        launch.view(m.x, launch.read(m.x)[:], (2,), "int64")

    @handles(Sum)
    def sum(self, m: Sum, launch: Launch) -> None:
        x, y, meet = launch.read(m.x), launch.read(m.y), type(self).meet
        if m.way == "defer":
            launch.defer(lambda: (meet(), x + y)[1], lambda z: self._keep(launch, z))
        elif m.way == "poll":
            launch.poll(type(self).come.is_set, lambda: self._keep(launch, x + y))
        elif m.way == "blocking":
            out = launch.write()

            def work(worker: Any) -> None:
                worker.handle(handle_of)
                meet()
                out[:] = x + y

            launch.blocking(work)
        elif m.way == "taken":
            launch.blocking(lambda _: x + y, launch.take)
        elif m.way == "finish":
            self._keep(launch, x + y)
            launch.finish = fail
        else:
            self._keep(launch, x + y)

    @staticmethod
    def _keep(launch: Launch, z: Any) -> None:
        launch.write()[:] = z


def handle_of(stream: Any) -> object:
    made = (stream, threading.get_ident())
    Worked.handles_made.append(made)
    return made


def fail() -> Any:
    raise ZeroDivisionError("no answer")


class World:
    """A context, and what serves it; each message is a frame."""

    def __init__(self, backend: HostBackend | None = None) -> None:
        arena: Any = None
        self.context = Context(backend or HostBackend(0), [Worked], arena, 1, {}, None)
        self.wire = Wire([])
        self.service = service_of(self.wire, self.context)
        self.seq = 0

    def send(self, message: Any, result: int = 0) -> int:
        """Have it executed, or begun; return its number."""
        numbered = not isinstance(message, Free)
        self.seq += numbered
        spec = message.infer() if result else NO_RESULT
        data = encode_entry(self.seq if numbered else 0, result, 600.0, message, spec)
        self.wire.frames = [batch([data])]
        self.service._turn()
        return self.seq

    def settle(self) -> None:
        """Wait until all is done."""
        deferral = self.service._deferral
        while deferral.begun or deferral.ready:
            for deferred in list(deferral.begun.values()):
                assert deferred.future is not None
                deferred.future.exception(WAIT_S)
            if deferral.ready:
                self.service._resume()
        self.service._completion.drain(float("inf"))
        if deferral.ready:
            self.service._resume()

    def value(self, id_: int) -> int:
        return int(self.context.table.mention(id_).array[0])

    @property
    def failures(self) -> dict[int, Failure]:
        return {one.seq: one for one in self.wire.sent if isinstance(one, Failure)}

    @property
    def done(self) -> set[int]:
        return {seq for one in self.wire.sent if isinstance(one, Done) for seq in one.seqs}


@pytest.fixture(autouse=True)
def _kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [New, View, Sum, Free]  # other tests have messages that do not go together
    monkeypatch.setattr("accel_lab.compute.dispatcher.decoding.travelling", lambda: kinds)


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.context.close()


def buffer(id_: int) -> Any:
    """Return what travels as this buffer's id."""
    ref = AccelRef.__new__(AccelRef)
    ref.id = id_
    return ref


@pytest.mark.parametrize("way", ["defer", "blocking"])
def test_readers_of_one_operand_run_side_by_side(
    world: World, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The barrier passes only while all of them run; each thread has its own handle."""
    monkeypatch.setattr(Worked, "handles_made", [])
    barrier = threading.Barrier(SIDE_BY_SIDE)
    monkeypatch.setattr(Worked, "meet", staticmethod(lambda: barrier.wait(WAIT_S)))
    world.send(New(3), 1)
    for n in range(2 * SIDE_BY_SIDE):
        world.send(Sum(buffer(1), buffer(1), None, way), 2 + n)
    world.settle()
    assert not world.failures
    assert [world.value(2 + n) for n in range(2 * SIDE_BY_SIDE)] == [6] * 2 * SIDE_BY_SIDE
    made = Worked.handles_made
    assert len(made) == len(set(made)) == (SIDE_BY_SIDE if way == "blocking" else 0)


def test_many_that_only_wait_hold_up_no_work(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    come = threading.Event()
    monkeypatch.setattr(Worked, "come", come)
    world.send(New(1), 1)
    for n in range(50):
        world.send(Sum(buffer(1), buffer(1), None, "poll"), 10 + n)
    try:
        for n, way in enumerate(("defer", "blocking"), 2):
            world.send(Sum(buffer(1), buffer(1), None, way), n)
            future = next(reversed(world.service._deferral.begun.values())).future
            assert future is not None
            future.result(WAIT_S)
    finally:
        come.set()
    world.settle()
    assert world.done == set(range(1, 54))


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(("sum", "sum", "into", "into", "view", "free")),
            *[st.integers(0, 10)] * 3,
            st.sampled_from(("now", "defer", "blocking")),
            st.booleans(),
        ),
        max_size=25,
    )
)
def test_any_program_gives_what_it_gives_in_order(steps: list[Any]) -> None:
    """What is held up is let go at random moments; views share memory."""
    gate = threading.Event()
    meet, Worked.meet = Worked.meet, staticmethod(lambda: gate.wait(WAIT_S))
    world = World()
    memory: dict[int, list[int]] = {}
    try:
        for id_ in range(1, 4):
            world.send(New(id_), id_)
            memory[id_] = [id_]
        for n, (what, i, j, k, way, lets_go) in enumerate(steps, 4):
            ids = sorted(memory)
            x, y, z = ids[i % len(ids)], ids[j % len(ids)], ids[k % len(ids)]
            if what == "free" and len(ids) > 3:
                world.send(Free([x]))
                del memory[x]
            elif what == "view":
                world.send(View(buffer(x), buffer(y)), n)
                memory[n] = memory[x]
            else:
                total = (memory[x][0] + memory[y][0]) % (1 << 62)
                if memory[x][0] + memory[y][0] != total:
                    continue
                out = buffer(z) if what == "into" else None
                world.send(Sum(buffer(x), buffer(y), out, way), 0 if out is not None else n)
                if out is not None:
                    memory[z][0] = total
                else:
                    memory[n] = [total]
            if lets_go:
                gate.set()
                world.settle()
                gate.clear()
        gate.set()
        world.settle()
        assert not world.failures
        assert {id_: world.value(id_) for id_ in memory} == {i: v[0] for i, v in memory.items()}
        assert len(world.context.table) == len(memory)
    finally:
        gate.set()
        Worked.meet = meet
        world.context.close()


@pytest.mark.parametrize(
    ("error", "kind"), [(np.linalg.LinAlgError, "LibraryError"), (InvalidArgument, None)]
)
def test_work_that_fails_where_it_blocks_fails_its_request_alone(
    world: World, monkeypatch: pytest.MonkeyPatch, error: type[Exception], kind: str | None
) -> None:
    """However many fail at once, their actor is replaced once."""
    barrier = threading.Barrier(SIDE_BY_SIDE)

    def meet() -> None:
        barrier.wait(WAIT_S)
        raise error("it is singular")

    monkeypatch.setattr(Worked, "meet", staticmethod(meet))
    world.send(New(3), 1)
    for n in range(SIDE_BY_SIDE):
        world.send(Sum(buffer(1), buffer(1), None, "blocking"), 2 + n)
    world.settle()
    assert {one.kind for one in world.failures.values()} == {kind or error.__name__}
    assert len(world.failures) == SIDE_BY_SIDE
    assert world.context.restarts["test"] == (1 if kind else 0)
    world.send(Sum(buffer(1), buffer(1)), 50)
    assert world.value(50) == 6


class Busy(HostStream):
    """A stream that is never done when it is asked, so that another thread waits for it."""

    def done(self) -> bool:
        return False

    def reached(self, event: Any) -> bool:
        del event
        return False


@pytest.mark.parametrize("elsewhere", [False, True], ids=["dispatcher", "side thread"])
def test_an_answer_that_cannot_be_worked_out_fails_its_request_alone(
    monkeypatch: pytest.MonkeyPatch, *, elsewhere: bool
) -> None:
    backend = HostBackend(0)
    if elsewhere:
        monkeypatch.setattr(backend, "native_stream", Busy)
    world = World(backend)
    world.send(New(3), 1)
    failed = world.send(Sum(buffer(1), buffer(1), None, "finish"), 2)
    world.settle()
    world.send(Sum(buffer(2), buffer(1)), 3)
    last = world.send(Sum(buffer(1), buffer(1)), 4)
    world.settle()
    kinds = {seq: one.kind for seq, one in world.failures.items()}
    assert kinds == {failed: "LibraryError", failed + 1: "DependencyFailed"}
    assert last in world.done
    world.context.close()


def test_another_stream_waits_for_what_was_enqueued_after_it_had_last_waited(world: World) -> None:
    """Other messages have used the library's stream meanwhile, and were waited for."""
    gate = threading.Event()
    Worked.meet = staticmethod(lambda: gate.wait(WAIT_S))
    try:
        world.send(New(3), 1)
        world.send(Sum(buffer(1), buffer(1), None, "defer"), 2)
        world.send(New(4), 3)
        other = world.context.stream("other")
        world.context.table.mention(3).storage.read_on(other)  # type: ignore[union-attr]
        waits = other.waits
    finally:
        gate.set()
        Worked.meet = staticmethod(lambda: None)
    world.settle()
    world.context.table.mention(2).storage.read_on(other)  # type: ignore[union-attr]
    assert other.waits == waits + 1


class Waiting(HostStream):
    """A stream that counts for how many events it was told to wait."""

    waits = 0

    def wait(self, event: Any) -> None:
        type(self).waits += 1
        super().wait(event)


def test_memory_goes_back_to_the_worker_behind_what_others_did_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is the worker's stream that gets it next, perhaps while it works for another message."""
    backend = HostBackend(0)
    monkeypatch.setattr(backend, "worker_stream", Waiting)
    world = World(backend)
    world.send(New(3), 1)
    world.send(Sum(buffer(1), buffer(1), None, "taken"), 2)
    world.settle()
    assert world.value(2) == 6
    before = Waiting.waits
    world.send(Sum(buffer(2), buffer(2)), 3)
    world.send(Free([2]))
    world.settle()
    assert Waiting.waits == before + 1
    world.context.close()
