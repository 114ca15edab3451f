"""What is enqueued again without its handler waits for the same, and fails as it would."""

import ctypes
import itertools
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab.backends.host.device import HostBackend
from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.execution.prepared_launch import Prepared
from accel_lab.compute.execution.stream import Storage, Stream
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.builtin import Release
from accel_lab.compute.message.operation import NO_RESULT, Operation
from accel_lab.compute.wire.codec import Done, Failure, LibraryRestarted, batch, encode_entry
from accel_lab.errors import LibraryError
from accel_lab.libraries.jit.library import JitActor
from accel_lab.libraries.jit.messages import Compile, LaunchKernel
from tests.compute.wires import Wire, service_of
from tests.conftest import require

BUFFERS = 3
STREAMS = 3

ids = st.integers(0, BUFFERS - 1)
works = st.tuples(
    st.integers(0, STREAMS - 1), st.lists(ids, max_size=3), st.lists(ids, min_size=1, max_size=2)
)


class Native:
    """A stream that notes on what its work waits."""

    def __init__(self, name: int, log: list[tuple[int, int]]) -> None:
        self.name, self.log = name, log

    def record(self) -> int:
        return self.name

    def wait(self, event: int) -> None:
        self.log.append((self.name, event))

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


class World:
    """Some streams, and buffers on the first."""

    def __init__(self) -> None:
        self.log: list[tuple[int, int]] = []
        self.streams = [Stream(str(n), Native(n, self.log)) for n in range(STREAMS)]
        self.buffers: list[Any] = []
        for id_ in range(BUFFERS):
            made = Buffer(id_)
            made.fill(object(), (), "float32", Storage(self.streams[0], 4, "test"))
            self.buffers.append(made)

    def handle(self, seq: int, stream: Stream, reads: list[int], writes: list[int]) -> None:
        """Order a stream as `Launch` does."""
        stream.operations += 1
        stream.seq, stream.kind = seq, "test"
        for n in reads + writes:
            self.buffers[n].storage.used = seq
        for n in reads:
            self.buffers[n].storage.read_on(stream)
        for n in writes:
            self.buffers[n].storage.write_on(stream)

    def state(self) -> list[Any]:
        """Return what the next message would be ordered by."""
        of = self.streams.index
        aliasing = [one.storage for one in self.buffers]
        return [
            [(one.operations, one.waits) for one in self.streams],
            [{of(s): n for s, n in one.seen.items()} for one in self.streams],
            [(of(one.writer), one.write_operation, one.used) for one in aliasing],
            [(one.write_seq, one.write_kind) for one in aliasing],
            [{of(s): n for s, n in one.readers.items() if s is not one.writer} for one in aliasing],
        ]


@settings(max_examples=300, deadline=None)
@given(works, st.lists(st.one_of(st.none(), works), min_size=1, max_size=12))
def test_it_waits_for_what_its_handler_would(again: Any, others: list[Any]) -> None:
    """Whatever other work there is in between, on this stream and on others."""
    plain, prepared = World(), World()
    number, reads, writes = again
    chosen = [prepared.buffers[n] for n in reads], [prepared.buffers[n] for n in writes]
    called: list[int] = []
    ready = Prepared(
        lambda: called.append(len(prepared.log)),
        prepared.streams[number],
        tuple(chosen[0]),
        tuple(chosen[1]),
        restarts={"test": 0},
        library="test",
        changes=0,
        kind="test",
    )
    for seq, other in enumerate(others, 1):
        stream, read, written = again if other is None else other
        plain.handle(seq, plain.streams[stream], read, written)
        if other is None:
            ready.enqueue(seq)
            assert called[-1] == len(prepared.log)  # after all that it waits for
        else:
            prepared.handle(seq, prepared.streams[stream], read, written)
        assert prepared.log == plain.log
        assert prepared.state() == plain.state()


def test_it_holds_until_its_actor_or_a_buffer_of_its_own_is_another() -> None:
    world = World()
    x, y, z = world.buffers
    restarts = {"test": 0}
    ready = Prepared(list, world.streams[0], (x,), (y,), restarts, "test", 0)
    z.storage = None
    assert ready.holds(1)
    assert ready.changes == 1
    restarts["test"] = 1
    assert not ready.holds(2)
    restarts["test"] = 0
    x.storage, x.array = Storage(world.streams[0], 4, "came back"), object()
    assert not ready.holds(2)


# In a context.


class Bump(Operation[None], frozen=True, array_like=True, eq=False, tag=96):
    """Add to a number."""

    library: ClassVar[str] = "test"
    written: ClassVar[str] = "x"
    x: AccelRef
    by: float = 1.0


class Bumper(LibraryActor):
    """Fails when it comes to a multiple of 13."""

    library = "test"
    handled = 0

    @handles(Bump)
    def bump(self, m: Bump, launch: Launch) -> None:
        Bumper.handled += 1
        x = launch.write(m.x)
        call = partial(_bump, x.ctypes.data, m.by)
        call()
        if launch.comes_again:
            launch.prepare(call, reads=(), writes=(m.x,))


def _bump(address: int, by: float) -> None:
    number = ctypes.c_float.from_address(address)
    number.value += by
    if number.value % 13 == 0:
        raise LibraryError("thirteen", library="test", name="THIRTEEN")


class Bench:
    """A context with one number, and what it was sent."""

    def __init__(self, actor: type[LibraryActor]) -> None:
        Bumper.handled = 0
        arena: Any = None
        self.context = Context(HostBackend(0), [actor], arena, 1, {}, None)
        self.number = self.put(1)
        self.wire = Wire([])
        self.sent = self.wire.sent
        self.service = service_of(self.wire, self.context)
        self.seqs = itertools.count(1)

    def bump(
        self, times: int = 1, *, timeout_s: float | None = 600.0, cancelled: Iterable[int] = ()
    ) -> int:
        """Have it bumped, each time in a frame; return how often that took the handler."""
        before = Bumper.handled
        self.service.cancelled.update(cancelled)
        self.serve(*[Bump(handle(1))] * times, timeout_s=timeout_s)
        return Bumper.handled - before

    def serve(self, *messages: Operation[None], timeout_s: float | None = 600.0) -> None:
        """Serve these, each in a frame of its own."""
        for message in messages:
            entry = encode_entry(next(self.seqs), 0, timeout_s, message, NO_RESULT)
            self.wire.frames.append(batch([entry]))
        self.service.run()
        self.service._completion.complete()

    def put(self, id_: int) -> Buffer:
        """Make a number that another stream has written."""
        array, nbytes = self.context.allocate((), "float32")
        array[...] = 0
        storage = Storage(self.context.stream("other"), nbytes, "test")
        return self.context.table.fill(id_, array, (), "float32", storage)

    @property
    def failures(self) -> dict[int, str]:
        return {one.seq: one.kind for one in self.sent if isinstance(one, Failure)}

    @property
    def done(self) -> list[int]:
        return [seq for one in self.sent if isinstance(one, Done) for seq in one.seqs]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr("accel_lab.compute.dispatcher.decoding.travelling", lambda: [Bump, Release])
    made = Bench(Bumper)
    yield made
    made.context.close()


def handle(id_: int) -> AccelRef:
    """Return a handle as it travels: by its number."""
    ref = AccelRef.__new__(AccelRef)
    ref.id = id_
    return ref


def test_what_comes_again_takes_no_handler_and_is_answered_in_order(bench: Bench) -> None:
    assert bench.bump(9) == 3  # the first, one that is not looked up, one that is prepared
    assert bench.number.array == 9
    assert bench.done == list(range(1, 10))


def test_a_failure_is_the_requests_own_and_has_the_handler_look_again(bench: Bench) -> None:
    """What was prepared goes with the actor that has failed."""
    assert bench.bump(13) == 3
    assert bench.failures == {13: "LibraryError"}
    assert [one.library for one in bench.sent if isinstance(one, LibraryRestarted)] == ["test"]
    bench.context.table.release([13])  # the notebook knows
    assert bench.bump(4) == 1
    assert bench.number.array == 17
    assert sorted([*bench.done, 13]) == list(range(1, 18))


def test_what_came_in_the_same_frame_as_the_failure_has_the_handler_look_again(
    bench: Bench,
) -> None:
    """It was decoded when the old actor was there."""
    entries = [encode_entry(n, 0, 600.0, Bump(handle(1)), NO_RESULT) for n in range(1, 21)]
    entries.insert(13, encode_entry(0, 0, None, Release((handle(1),), (13,))))
    bench.wire.frames.append(batch(entries))
    assert bench.bump(0) == 3
    assert bench.failures == {13: "LibraryError"}
    assert bench.number.array == 20


def test_what_was_taken_back_is_not_enqueued(bench: Bench) -> None:
    bench.bump(3)
    bench.bump(3, cancelled=[5])
    assert bench.failures == {5: "Cancelled"}
    assert bench.number.array == 5
    assert bench.bump(2, cancelled=[1000]) == 0  # what was taken back too late is nobody's


@pytest.mark.parametrize("timeout_s", [None, 5.0])
def test_what_may_take_for_ever_or_must_not_take_long_is_looked_at(
    bench: Bench, timeout_s: float | None
) -> None:
    """Its time is watched before it is enqueued."""
    assert bench.bump(5, timeout_s=timeout_s) == 5
    assert bench.number.array == 5


def test_what_is_watched_is_marked(bench: Bench) -> None:
    bench.bump(4)
    bench.service.tracer.watch()
    assert bench.bump(3) == 3
    assert [one.name for one in bench.service.tracer.take()[0]] == ["Bump"] * 3


def test_a_buffer_that_is_gone_fails_the_request(bench: Bench) -> None:
    bench.bump(4)
    bench.context.table.free(1)
    bench.bump(2)
    assert bench.failures == {5: "StaleRef", 6: "StaleRef"}


def test_a_kernel_says_what_it_reads_and_what_it_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is launched again, as when its arguments were looked at."""
    require("compiler")
    monkeypatch.setattr("accel_lab.compute.dispatcher.decoding.travelling", lambda: [LaunchKernel])
    bench = Bench(JitActor)
    source = "__global__ void next(const float* x, float* y) { *y = *x + 1; }"
    lib = bench.context.actors["jit"].lib
    kernel = lib.load(lib.build(Compile(source, "next")))
    jit = bench.context.stream("jit")
    held = bench.context.table.fill(
        9, kernel, (), "CompiledKernel", Storage(jit, kernel.nbytes, "kernel")
    )
    x, y, prepared = bench.number, bench.put(2), 0
    one = (1, 1, 1)
    kernel_9: Any = handle(9)
    launch = LaunchKernel(kernel_9, one, one, (handle(1), handle(2)), (None, None), 0)
    for seq in range(1, 9):
        bench.serve(launch)
        assert x.storage is not None
        assert y.storage is not None
        assert (x.storage.readers, x.storage.used) == ({jit: seq}, seq)
        assert (y.storage.writer, y.storage.write_operation, y.storage.used) == (jit, seq, seq)
        assert jit.operations == seq
        prepared += sum(
            one.prepared is not None for one in bench.service._inbox._entries._known.values()
        )
    assert prepared == 6
    assert y.array == 1
    assert held.array is kernel
    bench.context.table.free(9)
    bench.serve(launch)
    assert bench.failures == {9: "StaleRef"}
    bench.context.close()
