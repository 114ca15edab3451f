"""Workspaces: one pool for each stream, counted, given back before an allocation fails."""

import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from accel_lab.backends.host.device import HostBackend
from accel_lab.compute.dispatcher.sampling import show
from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.execution.scratch import ALIGNMENT, LEAST_BYTES, ScratchPools
from accel_lab.compute.execution.tracer import Tracer
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.compute.residency import resident
from accel_lab.compute.residency.holdings import ContextMemory
from accel_lab.compute.wire.codec import Failure, batch, encode_entry
from accel_lab.compute.wire.side_channel import Blocks, Look, receive_upward
from accel_lab.errors import OutOfMemory
from tests.compute.wires import Wire, service_of

MIB = 1 << 20
WAIT_S = 20.0


class Counting(HostBackend):
    """Counts what is allocated, by the thread."""

    def __init__(self) -> None:
        super().__init__(0)
        self.sizes: list[int] = []
        self.threads: set[int] = set()

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        array = super().empty(shape, dtype)
        self.sizes.append(array.nbytes)
        self.threads.add(threading.get_ident())
        return array


class Work(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=91):
    """Take workspaces of these sizes, here or where it blocks."""

    library: ClassVar[str] = "test"
    sizes: tuple[int, ...]
    way: str = "now"

    def infer(self) -> Spec:
        return Spec((1,), "int64")


class Working(LibraryActor):
    """Keeps where its workspaces lie: address and bytes, by launch."""

    library = "test"
    taken: ClassVar[list[list[tuple[int, int]]]] = []

    @handles(Work)
    def work(self, m: Work, launch: Launch) -> None:
        if m.way == "now":
            self._take(launch.workspace, m.sizes)
        elif m.way == "blocking":
            launch.blocking(lambda worker: self._take(worker.workspace, m.sizes))
        else:
            launch.blocking(lambda _: self._take(launch.workspace, m.sizes))
        launch.write()

    def _take(self, workspace: Any, sizes: tuple[int, ...]) -> None:
        arrays = [workspace(size) for size in sizes]
        assert [array.nbytes for array in arrays] == list(sizes)
        for n, array in enumerate(arrays):
            array[...] = n
        assert all((array == n).all() for n, array in enumerate(arrays))
        self.taken.append([(array.ctypes.data, array.nbytes) for array in arrays])


class World:
    """A context with room for so much, and what serves it."""

    def __init__(self, limit_bytes: int = 64 * MIB) -> None:
        arena: Any = None
        self.backend = Counting()
        self.context = Context(self.backend, [Working], arena, 1, {}, limit_bytes)
        self.wire = Wire([])
        self.service = service_of(self.wire, self.context)
        self.seq = 0

    def send(self, *sizes: int, way: str = "now") -> None:
        self.seq += 1
        message = Work(sizes, way)
        entry = encode_entry(self.seq, self.seq, 600.0, message, message.infer())
        self.wire.frames = [batch([entry])]
        self.service._turn()
        for deferred in list(self.service._deferral.begun.values()):
            assert deferred.future is not None
            deferred.future.exception(WAIT_S)
        if self.service._deferral.ready:
            self.service._resume()

    @property
    def failures(self) -> list[Failure]:
        return [one for one in self.wire.sent if isinstance(one, Failure)]


@pytest.fixture(autouse=True)
def _kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel_lab.compute.dispatcher.decoding.travelling", lambda: [Work])
    monkeypatch.setattr(Working, "taken", [])


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.context.close()


def large(world: World) -> list[int]:
    """Return what was allocated beside the results, which are small."""
    return [size for size in world.backend.sizes if size > 8]


@pytest.mark.parametrize("way", ["now", "blocking"])
def test_nothing_is_allocated_in_a_loop(world: World, way: str) -> None:
    for _ in range(50):
        world.send(MIB, way=way)
    assert not world.failures
    made = len(large(world))
    assert made == len({at for ((at, _),) in Working.taken})
    assert made == 1 if way == "now" else made <= 4  # each thread that blocks has its own
    assert (world.backend.threads == {threading.get_ident()}) == (way == "now")


def test_it_grows_so_that_few_allocations_are_enough(world: World) -> None:
    for kib in range(4, 1024, 4):
        world.send(kib * 1024)
    assert len(large(world)) <= 9
    assert world.context.scratch.nbytes <= 2 * MIB


def test_what_one_launch_takes_does_not_overlap(world: World) -> None:
    """The handler sees to that; also where the third does not fit behind the others."""
    for _ in range(5):
        world.send(100, 1, 3 * LEAST_BYTES, 0, 5)
    assert not world.failures
    *_, before, last = Working.taken
    assert before == last
    assert all((at - last[0][0]) % ALIGNMENT == 0 for at, size in last if size)
    assert len(large(world)) <= 3


def test_it_is_counted_and_given_back_by_the_actors_trim(world: World) -> None:
    world.send(MIB)
    scratch, actor = world.context.scratch, world.context.actors["test"]
    assert scratch.nbytes == MIB
    assert world.context.used_bytes == MIB + world.context.table.used_bytes
    actor.trim()
    assert scratch.nbytes == 0
    assert world.context.used_bytes == world.context.table.used_bytes
    world.send(MIB)
    assert scratch.nbytes == MIB


def test_a_context_that_trims_gives_back_what_its_workers_have(world: World) -> None:
    world.send(MIB, way="blocking")
    assert world.context.scratch.nbytes == MIB
    world.context.trim()
    assert world.context.scratch.nbytes == 0


def test_memory_views_show_it_under_its_library(world: World) -> None:
    world.send(MIB)
    notebook, mine = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    tracer = Tracer(world.context.backend.clock(), world.context.launched)
    show(mine, Look(memory=True, work=False), world.context, tracer, [])
    packet = receive_upward(notebook)
    assert isinstance(packet, Blocks)
    (block,) = [one for one in packet.blocks if one.owner == "scratch of test"]
    assert (block.nbytes, block.dtype, block.shape) == (MIB, "uint8", (MIB,))
    assert block.ids[0] < 0
    assert packet.used_bytes == sum(one.nbytes for one in packet.blocks)
    held = world.context.service(ContextMemory).holdings()
    assert [one.nbytes for one in held.blocks if one.owner == "scratch of test"] == [MIB]
    assert held.used_bytes == packet.used_bytes
    notebook.close()
    mine.close()


def test_the_list_of_what_is_resident_says_that_a_library_keeps_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.send(MIB)
    held = world.context.service(ContextMemory).holdings()
    monkeypatch.setattr(resident, "_ask", lambda *_: (held, ""))
    device: Any = SimpleNamespace(name="cpu0", in_flight=0, generation=1)
    asked: Any = SimpleNamespace(health=SimpleNamespace(statistics={}, total_bytes=64 * MIB))
    (row,) = [one for one in resident.look(device, asked) if "scratch of test" in repr(one)]
    assert repr(row) == (
        "<workspace: 1 MiB, uint8[1048576], made by scratch of test, kept by its library, for its "
        "next call>"
    )


def test_it_gives_way_before_an_allocation_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also right after memory was short for the last time."""
    world = World(4 * MIB)
    monkeypatch.setattr(world.service, "_have_garbage_freed", lambda: None)
    world.context.spill.collect_there = lambda: None
    for _ in range(3):
        world.send(3 * MIB)
        assert world.context.scratch.nbytes == 3 * MIB
        array, nbytes = world.context.allocate((2 * MIB,), "uint8")
        assert nbytes == 2 * MIB
        assert world.context.scratch.nbytes == 0
        del array
    world.context.close()


def test_a_workspace_that_does_not_fit_fails_its_request() -> None:
    world = World(4 * MIB)
    world.context.spill.collect_there = lambda: None
    world.send(3 * MIB)
    world.send(5 * MIB)
    world.send(5 * MIB, way="blocking")
    assert [one.kind for one in world.failures] == ["OutOfMemory"] * 2
    world.send(3 * MIB)
    assert len(world.failures) == 2
    with pytest.raises(OutOfMemory) as caught:
        world.context.allocate((5 * MIB,), "uint8")
    assert ("scratch of test", 3 * MIB) in caught.value.owners
    world.context.close()


def test_it_does_not_double_where_that_does_not_fit() -> None:
    world = World(4 * MIB)
    world.context.spill.collect_there = lambda: None
    for mib in (2, 3):
        world.send(mib * MIB)
    assert not world.failures
    assert world.context.scratch.nbytes == 3 * MIB
    world.context.close()


def test_the_launchs_own_workspace_is_refused_where_work_blocks(world: World) -> None:
    """Others use the launch's stream meanwhile."""
    world.send(MIB, way="wrong")
    (failure,) = world.failures
    assert failure.kind == "LibraryError"
    assert "take worker.workspace()" in failure.text
    assert large(world) == []


@pytest.mark.parametrize("what", ["nothing", "workspace", "hold"])
def test_a_launch_that_uses_what_will_be_gone_is_not_prepared(world: World, what: str) -> None:
    """What is prepared knows addresses; a workspace is elsewhere then, and what is held is free."""
    message = Work((MIB,))
    launch = Launch(world.context, world.context.stream("test"), 1, 0, message, None)
    if what == "workspace":
        launch.workspace(16)
    elif what == "hold":
        launch.hold(object())
    launch.prepare(lambda: None, reads=(), writes=())
    assert (launch.prepared is not None) == (what == "nothing")


def test_pools_of_several_streams_are_apart(world: World) -> None:
    pools = ScratchPools(world.context)
    one, two = world.context.stream("one"), world.context.stream("two")
    first, second = pools.take(8, 1, one, "one"), pools.take(8, 2, two, "two")
    assert not np.shares_memory(first, second)
    numbers = [block.number for block in pools.blocks()]
    assert len(set(numbers)) == 2
    assert pools.nbytes == 2 * LEAST_BYTES
    pools.trim(one)
    assert [block.label for block in pools.blocks()] == ["scratch of two"]
