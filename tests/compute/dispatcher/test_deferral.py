"""What waits behind a deferred launch, and what passes."""

import select
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import pytest

from accel_lab.compute.dispatcher.deferral import Deferral
from accel_lab.compute.execution.buffer_table import Buffer, BufferTable
from accel_lab.compute.execution.launch import Launch
from accel_lab.compute.execution.stream import Storage, Stream
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.builtin import Free, Run
from accel_lab.compute.message.operation import Operation, Spec


class Touch(Operation[AccelRef], frozen=True, array_like=True, eq=False):
    """A message that names one buffer."""

    x: AccelRef | None = None


class Write(Operation[AccelRef], frozen=True, array_like=True, eq=False):
    """A message that overwrites one buffer."""

    out: AccelRef


class Fence(Operation[None], frozen=True, array_like=True, eq=False):
    """A message behind all that was sent before."""

    fence: ClassVar[bool] = True


class View(Operation[AccelRef], frozen=True, array_like=True, eq=False):
    """A message that makes a view, once another buffer is there."""

    aliased: ClassVar[str] = "x"
    x: AccelRef
    after: AccelRef


class Entry(NamedTuple):
    """An entry as the service decodes it."""

    seq: int
    result: int
    timeout_s: float | None
    message: Any
    spec: Spec | None = None
    place: Any = None


class World:
    """A table of buffers with storage, and a deferral."""

    def __init__(self, *, parts_last: bool = False) -> None:
        self.table = BufferTable()
        self.deferral = Deferral(parts_last=parts_last)
        unused: Any = None
        self.stream = Stream("test", unused)

    def make(self, id_: int, storage: Storage | None = None) -> Buffer:
        return self.table.fill(
            id_, object(), (), "float32", storage or Storage(self.stream, 4, "test")
        )

    def defer(
        self, seq: int, result: int, work: Callable[[], Any], then: Callable[[Any], None]
    ) -> None:
        entry = Entry(seq, result, None, Touch())
        unused: Any = None
        launch = Launch(unused, self.stream, seq, result, entry.message, None)
        launch.defer(work, then)
        self.deferral.begin(entry, launch)

    def finish(self) -> None:
        assert select.select([self.deferral.wakeup], [], [], 5.0)[0], "nothing finished"
        self.deferral.acknowledge()
        for deferred in self.deferral.finished():
            deferred.resume()


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    assert not world.deferral.begun


def test_what_names_the_result_waits_and_the_rest_passes(world: World) -> None:
    gate = threading.Event()
    got: list[Any] = []
    other = world.make(2)
    world.defer(1, 10, gate.wait, got.append)
    waiting = Entry(2, 11, None, Touch(world.table.mention(10)))
    assert world.deferral.hold_back(waiting)
    assert not world.deferral.hold_back(Entry(3, 12, None, Touch(other)))
    assert world.deferral.hold_back(Entry(4, 13, None, Touch(world.table.mention(11)))), (
        "what needs the result of a waiting message waits too"
    )
    gate.set()
    world.finish()
    assert got == [True]
    assert [entry.seq for entry in world.deferral.released()] == [2, 4]


def test_functions_stay_in_order_behind_one_that_waits(world: World) -> None:
    """They share memory that they do not name; a pure one has only what it names."""
    gate = threading.Event()
    world.defer(1, 10, gate.wait, lambda _: None)
    first, pure = Run((), b"", pure=False), Run((), b"", pure=True)
    naming = Run((world.table.mention(10),), b"", pure=False)
    sent = enumerate((first, naming, first, pure, Touch(world.table.mention(13))), 2)
    held = [world.deferral.hold_back(Entry(seq, 9 + seq, None, one)) for seq, one in sent]
    gate.set()
    world.finish()
    assert held == [False, True, True, False, True], "at first none waits"
    assert [entry.seq for entry in world.deferral.released()] == [3, 4, 6]


def test_what_names_memory_that_functions_have_had_waits_behind_one(world: World) -> None:
    """It may see that through a global."""
    gate = threading.Event()
    had, unknown = world.make(1), world.make(2)
    assert had.storage is not None
    had.storage.seen = True
    view = world.make(3, had.storage)
    world.defer(1, 10, gate.wait, lambda _: None)
    naming = Run((world.table.mention(10),), b"", pure=False)
    pure = Run((had,), b"", pure=True)
    sent = enumerate((Touch(had), naming, Touch(view), pure, Touch(unknown)), 2)
    held = [world.deferral.hold_back(Entry(seq, 18 + seq, None, one)) for seq, one in sent]
    gate.set()
    world.finish()
    assert held == [False, True, True, True, False], "at first no function waits"
    assert [entry.seq for entry in world.deferral.released()] == [3, 4, 5]


def test_views_of_one_storage_wait_together(world: World) -> None:
    gate = threading.Event()
    base = world.make(1)
    view = world.make(2, base.storage)
    world.defer(1, 10, gate.wait, lambda _: None)
    kernel = world.table.mention(10)
    assert world.deferral.hold_back(Entry(2, 0, None, Touch(kernel)))
    entry = Entry(3, 10, None, Write(base))
    assert world.deferral.hold_back(entry)
    assert world.deferral.hold_back(Entry(4, 20, None, Touch(view))), "it shares the storage"
    gate.set()
    world.finish()
    assert len(list(world.deferral.released())) == 3


def test_what_reads_waits_behind_what_writes_by_a_view_that_waits(world: World) -> None:
    """Nobody can tell yet that the view has that memory."""
    gate = threading.Event()
    base = world.make(1)
    world.defer(1, 10, gate.wait, lambda _: None)
    view = View(base, world.table.mention(10))
    sent = [(11, view), (0, Write(world.table.mention(11))), (12, Touch(base))]
    held = [world.deferral.hold_back(Entry(n, r, None, m)) for n, (r, m) in enumerate(sent, 2)]
    gate.set()
    world.finish()
    assert held == [True, True, True]


def test_a_buffer_that_waits_is_freed_after_what_names_it(world: World) -> None:
    gate = threading.Event()
    world.make(1)
    world.defer(1, 10, gate.wait, lambda _: None)
    world.deferral.hold_back(Entry(2, 11, None, Touch(world.table.mention(10))))
    free = Entry(0, 0, None, Free([1, 10]))
    assert not world.deferral.hold_back(free), "buffer 1 is nobody's: it is freed now"
    assert free.message.ids == [1]
    gate.set()
    world.finish()
    kinds = [(type(e.message), getattr(e.message, "ids", None)) for e in world.deferral.released()]
    assert kinds == [(Touch, None), (Free, [10])]


def test_a_failure_of_the_work_is_raised_where_it_is_resumed(world: World) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    world.defer(1, 10, fail, lambda _: pytest.fail("there is no value"))
    with pytest.raises(ZeroDivisionError):
        world.finish()


def test_a_fence_waits_for_all_and_all_for_it(world: World) -> None:
    gate = threading.Event()
    world.defer(1, 10, gate.wait, lambda _: None)
    assert world.deferral.hold_back(Entry(2, 0, None, Fence()))
    assert world.deferral.hold_back(Entry(3, 11, None, Touch())), "it names nothing of the others"
    gate.set()
    world.finish()
    assert [entry.seq for entry in world.deferral.released()] == [2, 3]
    assert not world.deferral.hold_back(Entry(2, 0, None, Fence()))
    assert not world.deferral.hold_back(Entry(3, 11, None, Touch()))


def test_a_fence_passes_what_only_waits_itself(world: World) -> None:
    gate = threading.Event()
    unused: Any = None
    looking = Touch(world.make(5))
    launch = Launch(unused, world.stream, 1, 0, looking, None)
    launch.poll(gate.is_set, lambda: None)
    world.deferral.begin(Entry(1, 0, None, looking), launch)
    assert not world.deferral.hold_back(Entry(2, 0, None, Fence()))
    gate.set()
    world.finish()


def test_what_a_deferred_launch_writes_is_written_by_that(world: World) -> None:
    """Others use its stream meanwhile."""
    made = world.make(2)
    storage: Any = made.storage
    world.defer(1, 10, lambda: None, lambda _: storage.write_on(world.stream))
    unused: Any = None
    other = Launch(unused, world.stream, 5, 0, Fence(), None)
    other.write(made)
    assert (storage.write_seq, storage.write_kind) == (5, Fence)
    world.finish()
    assert (storage.write_seq, storage.write_kind) == (1, Touch)


@pytest.mark.parametrize("parts_last", [False, True])
def test_a_part_gets_before_nothing_where_streams_are_shared(parts_last: bool) -> None:  # noqa: FBT001
    """It has its stream wait for other devices, which may wait for what was sent before it."""
    world, gate = World(parts_last=parts_last), threading.Event()
    part = Entry(2, 11, None, Touch(world.make(2)), place=object())
    assert not world.deferral.hold_back(part), "nothing was sent before it"
    world.defer(1, 10, gate.wait, lambda _: None)
    assert world.deferral.hold_back(part) is parts_last
    assert not world.deferral.hold_back(Entry(3, 12, None, Touch(world.make(3))))
    gate.set()
    world.finish()
    assert [entry.seq for entry in world.deferral.released()] == ([2] if parts_last else [])
