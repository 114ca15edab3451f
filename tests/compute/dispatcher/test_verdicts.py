"""Verdicts that come late: what depends on a checked launch fails with it, and nothing else."""

import select
import threading
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab.backends.host.device import HostBackend, HostStream
from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.builtin import Free, Release, Run
from accel_lab.compute.message.operation import NO_RESULT, Operation, Spec, inferred
from accel_lab.compute.wire.codec import Done, Failure, LibraryRestarted, batch, encode_entry
from accel_lab.errors import LibraryError
from tests.compute.wires import Wire, service_of

WAIT_S = 20.0


class Late(HostStream):
    """A stream that does its work at once, and gets to a mark when it is told."""

    def __init__(self) -> None:
        self.marks: list[threading.Event] = []
        self.idle = False

    def record(self) -> Any:
        mark = threading.Event()
        self.marks.append(mark)
        if self.idle:
            mark.set()
        return mark

    def done(self) -> bool:
        return self.idle

    def reached(self, event: Any) -> bool:
        return bool(event.is_set())

    def synchronize(self, event: Any) -> None:
        event.wait(WAIT_S)


class New(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=94):
    """Make a buffer of this value."""

    library: ClassVar[str] = "test"
    value: int = 1

    def infer(self) -> Spec:
        return Spec((2,), "int64")


class View(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=95):
    """Make a view of a buffer."""

    library: ClassVar[str] = "test"
    aliased: ClassVar[str] = "x"
    x: AccelRef

    def infer(self) -> Spec:
        return Spec((2,), "int64")


class Sum(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=96):
    """Add two buffers, into `out` if there is one; `info` is what its work reports, if any."""

    library: ClassVar[str] = "test"
    x: AccelRef
    y: AccelRef
    out: AccelRef | None = None
    way: str = "now"
    info: int | None = None
    strict: bool = False

    def infer(self) -> Spec:
        return Spec((2,), "int64")


class Pair(NamedTuple):
    """Two results."""

    first: AccelRef
    second: AccelRef


class Split(Operation[Pair], frozen=True, array_like=True, eq=False, tag=97):
    """Make two buffers at once."""

    library: ClassVar[str] = "test"
    x: AccelRef
    info: int = 0

    def infer(self) -> tuple[Spec, Spec]:
        return Spec((2,), "int64"), Spec((2,), "int64")


class Look(Operation[None], frozen=True, array_like=True, eq=False, tag=98):
    """Take a buffer's value out of the device."""

    library: ClassVar[str] = "out"
    x: AccelRef


class Code(Operation[None], frozen=True, array_like=True, eq=False, tag=99):
    """Give a buffer to user code, which changes it."""

    library: ClassVar[str] = "test"
    runs_user_code: ClassVar[bool] = True
    written: ClassVar[str] = "x"
    x: AccelRef


KINDS: list[Any] = [New, View, Sum, Split, Look, Code, Free, Release]


class Singular(LibraryError, fields=("pivot",)):
    """The work has met a zero."""

    pivot: int = 0


def judge(info: Any) -> Singular | None:
    return Singular(f"pivot {info[0]} is 0", pivot=int(info[0])) if info[0] else None


class Worked(LibraryActor):
    """Adds; what went wrong is garbage."""

    library = "test"
    gate: ClassVar[threading.Event] = threading.Event()
    judged: ClassVar[list[int]] = []
    had: ClassVar[list[int]] = []

    @handles(New)
    def new(self, m: New, launch: Launch) -> None:
        launch.write()[:] = m.value

    @handles(View)
    def view(self, m: View, launch: Launch) -> None:
        launch.view(m.x, launch.read(m.x)[:], (2,), "int64")

    @handles(Sum)
    def sum(self, m: Sum, launch: Launch) -> None:
        x, y = launch.read(m.x), launch.read(m.y)
        if m.strict and (x < 0).any():
            raise LibraryError("a negative number")
        if m.way == "defer":
            launch.defer(self.gate.wait, lambda _: self._sum(m, launch, x, y))
        elif m.way == "blocking":
            out = launch.write()

            def work(_: Any) -> None:
                self.gate.wait()
                out[:] = x + y

            launch.blocking(work, lambda _: self._check(m, launch))
        else:
            self._sum(m, launch, x, y)

    @handles(Split)
    def split(self, m: Split, launch: Launch) -> None:
        x = launch.read(m.x)
        first, second = launch.empties()
        first[:], second[:] = (-1, -1) if m.info else (x, 2 * x)
        launch.check(np.array([m.info]), judge)

    @handles(Code)
    def code(self, m: Code, launch: Launch) -> None:
        x = launch.write(m.x)
        self.had.append(int(x[0]))
        x += 1

    def _sum(self, m: Sum, launch: Launch, x: Any, y: Any) -> None:
        launch.write()[:] = -1 if m.info else x + y
        self._check(m, launch)

    def _check(self, m: Sum, launch: Launch) -> None:
        if m.info is not None:
            launch.check(np.array([m.info], "int32"), judge)


class Looked(LibraryActor):
    """Has what leaves the device."""

    library = "out"
    leads_out = True
    had: ClassVar[list[int]] = []

    @handles(Look)
    def look(self, m: Look, launch: Launch) -> None:
        self.had.append(int(launch.read(m.x)[0]))


class World:
    """A context whose stream is late, and what serves it; each message is a frame."""

    def __init__(self, stream: type[HostStream] = Late) -> None:
        arena: Any = None
        backend = HostBackend(0)
        backend.native_stream = stream  # type: ignore[method-assign]
        self.context = Context(backend, [Worked, Looked], arena, 1, {}, None)
        self.wire = Wire([])
        self.service = service_of(self.wire, self.context)
        self.seq = 0
        self.looked = 0

    @property
    def marks(self) -> list[threading.Event]:
        streams = [stream.native for stream in self.context.streams.values()]
        return [mark for native in streams if isinstance(native, Late) for mark in native.marks]

    def send(self, message: Any, result: int = 0) -> int:
        """Have it executed, or begun; return its number."""
        numbered = not isinstance(message, Free)
        self.seq += numbered
        spec: Any = inferred(message) if result else NO_RESULT
        data = encode_entry(self.seq if numbered else 0, result, 600.0, message, spec)
        self.wire.frames = [batch([data])]
        self.service._turn()
        return self.seq

    def reach(self) -> None:
        """Have the stream get to the next of its marks, and the dispatcher hear of it."""
        self.service._completion.hand_over()
        next(mark for mark in self.marks if not mark.is_set()).set()
        deferral = self.service._deferral
        assert select.select([deferral.wakeup], [], [], WAIT_S)[0], "nothing can be judged"
        self.service._resume()

    def settle(self) -> None:
        """Do all that is to be done."""
        for stream in self.context.streams.values():
            if isinstance(stream.native, Late):
                stream.native.idle = True
        for mark in self.marks:
            mark.set()
        service = self.service
        deferral, completion = service._deferral, service._completion
        while True:
            for deferred in list(deferral.begun.values()):
                assert deferred.future is not None
                deferred.future.exception(WAIT_S)
            completion.drain(float("inf"))
            if not deferral.begun and not deferral.ready:
                break
            service._resume()
        assert not service._tainted
        assert not list(deferral.released())
        for stream in self.context.streams.values():
            if isinstance(stream.native, Late):
                stream.native.idle = False

    def value(self, id_: int) -> int:
        return int(self.context.table.mention(id_).array[0])

    @property
    def failures(self) -> dict[int, Failure]:
        return {one.seq: one for one in self.wire.sent if isinstance(one, Failure)}

    @property
    def kinds(self) -> dict[int, str]:
        return {seq: one.kind for seq, one in self.failures.items()}

    @property
    def done(self) -> set[int]:
        return {seq for one in self.wire.sent if isinstance(one, Done) for seq in one.seqs}


@pytest.fixture(autouse=True)
def _kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    # Other tests have messages that do not go together.
    monkeypatch.setattr("accel_lab.compute.dispatcher.decoding.travelling", lambda: KINDS)
    monkeypatch.setattr(Worked, "had", [])
    monkeypatch.setattr(Looked, "had", [])
    Worked.gate.set()


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    world.send(New(3), 1)
    world.settle()
    yield world
    world.context.close()


def buffer(id_: int) -> Any:
    """Return what travels as this buffer's id."""
    ref = AccelRef.__new__(AccelRef)
    ref.id = id_
    return ref


def sum_of(x: int, y: int, out: int | None = None, **options: Any) -> Sum:
    return Sum(buffer(x), buffer(y), None if out is None else buffer(out), **options)


@pytest.mark.parametrize("info", [0, 7])
def test_what_depends_on_a_verdict_is_answered_after_it(world: World, info: int) -> None:
    """It is launched at once all the same."""
    root = world.send(sum_of(1, 1, info=info), 2)
    behind = [world.send(sum_of(n, 1), n + 1) for n in range(2, 20)]
    other = world.send(sum_of(1, 1), 50)
    assert world.value(20) == (-1 + 18 * 3 if info else 60)
    world.reach()
    assert (root in world.done) == (not info)
    world.settle()
    if not info:
        assert world.done == set(range(1, world.seq + 1))
        return
    failed = world.failures
    assert world.kinds == {root: "Singular"} | dict.fromkeys(behind, "DependencyFailed")
    assert [*failed] == [root, *behind], "in their order"
    assert {one.root for one in failed.values()} == {2}
    assert world.done == {1, other}
    assert world.value(50) == 6
    table = world.context.table
    assert not any(table.mention(n).storage for n in range(2, 21)), "all of it is freed"
    assert not world.context.restarts["test"], "the library itself is well"
    assert not any(isinstance(one, LibraryRestarted) for one in world.wire.sent)


def test_where_work_is_done_at_once_the_verdict_is_there(world: World) -> None:
    on_host = World(HostStream)
    on_host.send(New(3), 1)
    root = on_host.send(sum_of(1, 1, info=4), 2)
    assert on_host.kinds == {root: "Singular"}
    well = on_host.send(sum_of(1, 1, info=0), 3)
    behind = on_host.send(sum_of(3, 2), 4)
    on_host.settle()
    assert on_host.kinds[behind] == "DependencyFailed"
    assert well in on_host.done
    on_host.context.close()


@pytest.mark.parametrize("info", [0, 7])
def test_what_leaves_the_device_waits_for_the_verdict(world: World, info: int) -> None:
    """So does user code, and what would write what these read."""
    world.send(sum_of(1, 1, info=info), 2)
    world.send(sum_of(2, 1), 3)
    world.send(New(8), 4)
    look, code = world.send(Look(buffer(3))), world.send(Code(buffer(3)))
    writes = world.send(sum_of(1, 1, out=3))
    free = world.send(Look(buffer(4)))
    assert Looked.had == [8]
    assert not Worked.had
    world.send(Free([3]))
    world.reach()
    world.settle()
    assert free in world.done
    assert Looked.had == ([8] if info else [8, 9])
    assert Worked.had == ([] if info else [9])
    held = (look, code, writes)
    if info:
        assert [world.kinds[seq] for seq in held] == ["DependencyFailed"] * 3
    else:
        assert set(held) < world.done
    assert world.context.table.known(3) is None, "it is freed behind what names it"


def test_user_code_that_looks_around_waits_where_it_may_see_the_memory(world: World) -> None:
    """Held back as behind deferred work, by what it may see without naming it."""
    storage = world.context.table.mention(1).storage
    assert storage is not None
    world.send(sum_of(1, 1, out=1, info=3))
    fields = {"message": Run((), b"", pure=False), "result": 0, "seq": 9, "place": None}
    entry = type("Entry", (), fields)()
    routes: Any = world.context.routes
    routes[Run] = routes[New]._replace(operands=lambda m: m.refs)
    verdicts = world.service._verdicts
    assert not verdicts.hold_back(entry)
    storage.seen = True
    assert verdicts.hold_back(entry)
    world.settle()


def test_what_was_written_in_place_is_refused_until_that_is_known(world: World) -> None:
    """So is a view of it, and it alone."""
    world.send(View(buffer(1)), 2)
    world.send(New(5), 3)
    world.settle()
    root = world.send(sum_of(3, 3, out=1, info=1))
    reads = world.send(sum_of(2, 3), 4)
    into = world.send(sum_of(1, 1, out=3))
    world.reach()
    late = world.send(sum_of(2, 2), 5)
    world.settle()
    assert world.kinds == {root: "Singular"} | dict.fromkeys(
        (reads, into, late), "DependencyFailed"
    )
    assert world.failures[root].withheld == (1,)
    assert world.failures[into].withheld == (3,)
    assert {one.root for one in world.failures.values()} == {-root}
    released = (buffer(1), buffer(3))
    world.send(Release(released, (root, into)))
    well = world.send(sum_of(2, 3), 6)
    world.settle()
    assert well in world.done


def test_two_verdicts_fail_what_depends_on_either(world: World) -> None:
    one, two = world.send(sum_of(1, 1, info=0), 2), world.send(sum_of(1, 1, info=5), 3)
    left, right = world.send(sum_of(2, 1), 4), world.send(sum_of(3, 1), 5)
    both, more = world.send(sum_of(2, 3), 6), world.send(sum_of(6, 4), 7)
    chained = world.send(sum_of(6, 1, info=9), 8)
    behind = world.send(sum_of(8, 8), 9)
    world.reach()
    assert one in world.done
    assert not world.failures
    world.settle()
    fail = (right, both, more, chained, behind)
    assert world.kinds == {two: "Singular"} | dict.fromkeys(fail, "DependencyFailed")
    assert {one.root for one in world.failures.values()} == {3}
    assert left in world.done


def test_each_of_several_results_fails(world: World) -> None:
    root = world.send(Split(buffer(1), 6), 10)
    behind = [world.send(sum_of(10, 1), 20), world.send(sum_of(11, 1), 21)]
    world.send(Free([10]))
    world.reach()
    late = world.send(sum_of(11, 1), 22)
    world.settle()
    assert world.kinds == {root: "Singular"} | dict.fromkeys((*behind, late), "DependencyFailed")
    assert {one.root for one in world.failures.values()} == {10}
    assert world.context.table.known(10) is None


def test_an_error_that_may_come_of_garbage_waits_for_the_verdict(world: World) -> None:
    for info, kinds in ((2, ["DependencyFailed"] * 2), (0, [])):
        root = world.send(sum_of(1, 1, info=info), 10 + info)
        strict = world.send(sum_of(10 + info, 1, strict=True), 20 + info)
        behind = world.send(sum_of(20 + info, 1), 30 + info)
        assert strict not in world.failures
        world.reach()
        world.settle()
        found = [world.kinds[seq] for seq in (strict, behind) if seq in world.kinds]
        assert found == kinds
        assert (root in world.kinds) == bool(info)
    assert not world.context.restarts["test"]
    world.send(New(-4), 40)
    world.settle()
    world.send(sum_of(40, 1, info=0), 41)
    own = world.send(sum_of(41, 1, strict=True), 42)
    behind = world.send(sum_of(42, 1), 43)
    assert own not in world.failures
    world.reach()
    world.settle()
    assert (world.kinds[own], world.kinds[behind]) == ("LibraryError", "DependencyFailed")


def test_a_judge_that_raises_fails_its_request(world: World, monkeypatch: Any) -> None:
    def broken(_: Any) -> None:
        raise ZeroDivisionError("no verdict")

    monkeypatch.setattr(f"{__name__}.judge", broken)
    root = world.send(sum_of(1, 1, info=0), 2)
    behind = world.send(sum_of(2, 1), 3)
    world.reach()
    world.settle()
    assert world.kinds == {root: "LibraryError", behind: "DependencyFailed"}


@pytest.mark.parametrize("way", ["defer", "blocking"])
@pytest.mark.parametrize("first", ["verdict", "work"])
def test_deferred_work_that_depends_on_a_verdict_fails_with_it(
    world: World, way: str, first: str
) -> None:
    Worked.gate.clear()
    root = world.send(sum_of(1, 1, info=4), 2)
    deferred = world.send(sum_of(2, 1, way=way), 3)
    behind = world.send(sum_of(3, 1), 4)
    if first == "work":
        Worked.gate.set()
        future = next(iter(world.service._deferral.begun.values())).future
        assert future is not None
        future.exception(WAIT_S)
        world.service._resume()
        assert not world.failures
    world.reach()
    Worked.gate.set()
    world.settle()
    assert world.kinds == {root: "Singular"} | dict.fromkeys((deferred, behind), "DependencyFailed")
    assert {one.root for one in world.failures.values()} == {2}


steps = st.lists(
    st.tuples(
        st.sampled_from(("sum", "sum", "into", "into", "view", "free", "split", "look", "code")),
        *[st.integers(0, 10)] * 3,
        st.sampled_from(("now", "now", "defer", "blocking")),
        st.sampled_from((None, None, 0, 1)),
        st.sampled_from(("", "", "reach", "gate", "settle")),
    ),
    max_size=25,
)


class Cell:
    """Memory in the model: its value, or that it is not what it should be."""

    def __init__(self, value: int) -> None:
        self.value = value
        self.wrong = False


class Model:
    """What each message does when every verdict is there at once."""

    def __init__(self) -> None:
        self.memory: dict[int, Cell | None] = {}  # by id; None for what was never made
        self.failed: list[bool] = []
        self.looked: list[int] = []
        self.had: list[int] = []

    def made(self, first: int, *values: int, ill: bool = False) -> None:
        for id_, value in enumerate(values, first):
            self.memory[id_] = None if ill else Cell(value)

    def read(self, *ids: int) -> tuple[bool, list[int]]:
        """Return whether any cannot be had, and the values."""
        cells = [self.memory[id_] for id_ in ids]
        ill = any(cell is None or cell.wrong for cell in cells)
        return ill, [0 if cell is None else cell.value for cell in cells]

    def write(self, id_: int, value: int, *, ill: bool) -> None:
        cell = self.memory[id_]
        if cell is not None:
            cell.value, cell.wrong = value, cell.wrong or ill

    def message(self, step: Any, x: int, y: int, z: int, new: int) -> tuple[Any, int]:
        """Do a step; return the message for it, and its result."""
        what, *_, way, info, _ = step
        named = {"sum": (x, y), "into": (x, y, z)}.get(what, (x,))
        ill, values = self.read(*named)
        if what in ("sum", "into", "split"):
            ill = ill or bool(info)
        self.failed.append(ill)
        if what == "view":
            self.memory[new] = None if ill else self.memory[x]
            return View(buffer(x)), new
        if what == "split":
            self.made(new, values[0], 2 * values[0], ill=ill)
            return Split(buffer(x), info or 0), new
        if what == "look":
            self.looked += [] if ill else values
            return Look(buffer(x)), 0
        if what == "code":
            self.had += [] if ill else values
            self.write(x, values[0] + 1, ill=ill)
            return Code(buffer(x)), 0
        total = (values[0] + values[1] + (1 << 63)) % (1 << 64) - (1 << 63)
        if what == "into":
            self.write(z, total, ill=ill)
            return sum_of(x, y, z, way=way, info=info), 0
        self.made(new, total, ill=ill)
        return sum_of(x, y, way=way, info=info), new

    def compare(self, world: World) -> None:
        failed = {seq for seq, ill in enumerate(self.failed, 1) if ill}
        assert set(world.failures) == failed
        assert world.done == set(range(1, world.seq + 1)) - failed
        # What is held back may be behind what came later and has nothing to do with it.
        assert sorted(Looked.had) == sorted(self.looked)
        assert sorted(Worked.had) == sorted(self.had)
        table = world.context.table
        for id_, cell in self.memory.items():
            if cell is None:
                assert table.mention(id_).storage is None
            elif not cell.wrong:
                assert world.value(id_) == cell.value
        assert {one.id for one in table.buffers()} == set(self.memory)


@given(steps=steps)
def test_any_program_answers_as_if_each_verdict_were_there_at_once(steps: list[Any]) -> None:
    world, model = World(), Model()
    Worked.gate.clear()
    Looked.had, Worked.had = [], []
    try:
        for id_ in range(1, 4):
            world.send(New(id_), id_)
            model.made(id_, id_)
            model.failed.append(False)
        for n, step in enumerate(steps, 2):
            ids = sorted(model.memory)
            x, y, z = (ids[at % len(ids)] for at in step[1:4])
            if step[0] != "free":
                world.send(*model.message(step, x, y, z, 10 * n))
            elif len(ids) > 3:
                world.send(Free([x]))
                del model.memory[x]
            if step[-1] == "reach":
                world.service._completion.hand_over()
                for mark in world.marks[: len(world.marks) // 2]:
                    mark.set()
            elif step[-1]:
                Worked.gate.set()
                if step[-1] == "settle":
                    world.settle()
                Worked.gate.clear()
        Worked.gate.set()
        world.settle()
        model.compare(world)
    finally:
        Worked.gate.set()
        world.settle()
        world.context.close()
