"""What a communicator on cuda asks of NCCL, done by a stand-in on NumPy arrays; no CUDA needed."""

import ctypes
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from queue import Queue
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from accel_lab.backends.cuda.collective import bindings
from accel_lab.backends.cuda.collective.bindings import DTYPES, IN_PROGRESS, REDUCTIONS, written
from accel_lab.backends.cuda.collective.communicator import Enter, NcclCommunicator, until_freed
from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.compute.groups.group import Group
from accel_lab.compute.groups.place import Place
from accel_lab.errors import AccelError, BackendUnavailable
from accel_lab.libraries.collective.errors import CommunicatorLost
from accel_lab.libraries.collective.messages import REDUCIBLE
from tests.world.worlds import FOLDS, Array, folded, rank_arrays

RANKS = 3
STREAM = 77
WAIT = 20
_OF_NUMBER = {number: name for name, number in DTYPES.items()}
_OPS = {number: op for op, number in REDUCTIONS.items()}


class Scalar(IntEnum):
    HostImmediate = 1


class Comm:
    """A stand-in for `ncclComm_t`, by rank."""

    def __init__(self, shared: "StandIn", rank: int) -> None:
        self.shared, self.rank = shared, rank
        self.looks = 0
        self.factors: dict[int, Any] = {}
        self.group: list[Callable[[], object]] | None = None


class StandIn:
    """NCCL's functions, as `nccl.bindings.nccl` has them; each rank is a thread."""

    ScalarResidence = Scalar
    Result = IntEnum("Result", {"Success": 0, "SystemError": 2, "InvalidUsage": 5})

    def __init__(self) -> None:
        self.barrier = threading.Barrier(RANKS, timeout=WAIT)
        self.given: list[Any] = [None] * RANKS
        self.boxes: dict[tuple[int, int], Queue[Array]] = defaultdict(Queue)
        self.state = 0
        self.begun, self.aborted = threading.Event(), threading.Event()
        self.may_free = threading.Event()
        self.may_free.set()
        self._here = threading.local()

    def _swap(self, rank: int, array: Array) -> list[Array]:
        self.given[rank] = array.copy()
        self.barrier.wait()
        found = list(self.given)
        self.barrier.wait()
        return found

    def _fold(self, comm: Comm, address: int, count: int, dtype: int, op: int) -> Array:
        array = memory(address, count, _OF_NUMBER[dtype])
        if op in comm.factors:
            factor = comm.factors[op]
            assert factor.dtype == array.dtype
            array, op = array * factor, 0
        every = np.stack([np.asarray(x, np.float64) for x in self._swap(comm.rank, array)])
        exact = FOLDS[_OPS[op]](every, axis=0)
        kind = array.dtype
        made: Array = np.trunc(exact) if np.issubdtype(kind, np.integer) else exact
        return made.astype(kind)

    def all_reduce(
        self, source: int, into: int, count: int, dtype: int, op: int, comm: Comm, stream: int
    ) -> None:
        assert stream == STREAM
        memory(into, count, _OF_NUMBER[dtype])[...] = self._fold(comm, source, count, dtype, op)

    def reduce(
        self,
        source: int,
        into: int,
        count: int,
        dtype: int,
        op: int,
        root: int,
        comm: Comm,
        stream: int,
    ) -> None:
        assert stream == STREAM
        made = self._fold(comm, source, count, dtype, op)
        assert (into != 0) == (comm.rank == root)
        if into:
            memory(into, count, _OF_NUMBER[dtype])[...] = made

    def reduce_scatter(
        self, source: int, into: int, count: int, dtype: int, op: int, comm: Comm, stream: int
    ) -> None:
        assert stream == STREAM
        nbytes = count * numpy_dtype(_OF_NUMBER[dtype]).itemsize
        assert into + nbytes <= source or source + RANKS * nbytes <= into, "NCCL would mix them"
        made = self._fold(comm, source, count * RANKS, dtype, op)
        mine = made[comm.rank * count : (comm.rank + 1) * count]
        memory(into, count, _OF_NUMBER[dtype])[...] = mine

    def all_gather(
        self, source: int, into: int, count: int, dtype: int, comm: Comm, stream: int
    ) -> None:
        assert (_OF_NUMBER[dtype], stream) == ("uint8", STREAM)
        every = self._swap(comm.rank, memory(source, count, "uint8"))
        memory(into, RANKS * count, "uint8")[...] = np.concatenate(every)

    def broadcast(
        self, source: int, into: int, count: int, dtype: int, root: int, comm: Comm, stream: int
    ) -> None:
        assert (_OF_NUMBER[dtype], stream) == ("uint8", STREAM)
        every = self._swap(comm.rank, memory(source, count, "uint8"))
        memory(into, count, "uint8")[...] = every[root]

    def send(self, source: int, count: int, dtype: int, peer: int, comm: Comm, stream: int) -> None:
        assert (_OF_NUMBER[dtype], stream) == ("uint8", STREAM)
        box = self.boxes[comm.rank, peer]
        self._here.calls.insert(0, lambda: box.put(memory(source, count, "uint8").copy()))

    def recv(self, into: int, count: int, dtype: int, peer: int, comm: Comm, stream: int) -> None:
        assert (_OF_NUMBER[dtype], stream) == ("uint8", STREAM)
        box, target = self.boxes[peer, comm.rank], memory(into, count, "uint8")

        def take() -> None:
            target[...] = box.get(timeout=WAIT)

        self._here.calls.append(take)

    def group_start(self) -> None:
        self._here.calls = []

    def group_end(self) -> None:
        for call in self._here.calls:
            call()

    def red_op_create_pre_mul_sum(self, scalar: int, dtype: int, residence: int, comm: Comm) -> int:
        assert residence == Scalar.HostImmediate
        made = 5 + len(comm.factors)
        comm.factors[made] = memory(scalar, 1, _OF_NUMBER[dtype])[0].copy()
        return made

    def red_op_destroy(self, op: int, comm: Comm) -> None:
        del comm.factors[op]

    def comm_get_async_error(self, comm: Comm) -> int:
        self.begun.set()
        comm.looks += 1
        return self.state if comm.looks % 3 == 0 else IN_PROGRESS

    def check_status(self, status: int) -> None:
        if status:
            raise RuntimeError(self.Result(status).name)

    def comm_abort(self, comm: Comm) -> None:
        del comm
        assert not self.aborted.is_set(), "it is freed by now"
        self.aborted.set()
        assert self.may_free.wait(WAIT)


class Native:
    """A stand-in for a stream."""

    ptr = STREAM
    fired = False

    def record(self) -> "Native":
        return self

    def reached(self, event: "Native") -> bool:
        return event.fired


class Ranks:
    """A communicator for each rank, and a thread."""

    def __init__(self) -> None:
        self.nccl = StandIn()
        device: Any = SimpleNamespace(arrays=np, address=lambda array: array.ctypes.data)
        self.comms = [
            NcclCommunicator(
                self.nccl, device, Enter(lambda: None, times), Comm(self.nccl, rank), rank, RANKS
            )
            for rank in range(RANKS)
        ]
        self.groups = [Group(Place(1, rank, RANKS)) for rank in range(RANKS)]
        self.stream = Native()

    def each(self, dtype: str, work: Callable[[NcclCommunicator, int], object]) -> None:
        """Enqueue a method of each rank's, and wait."""
        with ThreadPoolExecutor(RANKS) as pool:
            list(pool.map(lambda rank: self.one(rank, dtype, work), range(RANKS)))

    def one(self, rank: int, dtype: str, work: Callable[[NcclCommunicator, int], object]) -> None:
        launch: Any = SimpleNamespace(
            group=self.groups[rank],
            stream=SimpleNamespace(native=self.stream),
            message=SimpleNamespace(x=SimpleNamespace(dtype=dtype)),
        )
        self.comms[rank].enqueue(launch, lambda: work(self.comms[rank], rank))


def memory(address: int, count: int, dtype: str) -> Array:
    kind = numpy_dtype(dtype)
    nbytes = count * kind.itemsize
    raw: Any = (ctypes.c_byte * nbytes).from_address(address)
    array: Array = np.frombuffer(raw, np.uint8).view(kind)
    return array


def times(array: Array, dtype: str, factor: float) -> Array:
    kind = numpy_dtype(dtype)
    return np.asarray(array.view(kind) * kind.type(factor)).view(array.dtype)


def held(array: Array) -> Array:
    """Return an array as the card has it: narrow floats are their bits."""
    kind = {"bfloat16": "u2"}.get(str(array.dtype), "u1" if "float8" in str(array.dtype) else "")
    return array.view(kind) if kind else array


@pytest.fixture
def ranks() -> Ranks:
    return Ranks()


def near(found: Array, dtype: str, exact: Array, bound: Array) -> bool:
    return bool(np.all(np.abs(np.asarray(found.view(numpy_dtype(dtype)), "f8") - exact) <= bound))


@pytest.mark.parametrize("dtype", sorted(REDUCIBLE))
def test_reductions_are_numpys(ranks: Ranks, dtype: str) -> None:
    for op, scale in (("sum", None), ("max", None), ("avg", None), ("avg", 2.0), ("min", 2.0)):
        arrays = rank_arrays(dtype, (2 * RANKS, 3), RANKS)
        exact, bound = folded(op, arrays, scale or 1.0)
        x = [held(one) for one in arrays]
        outs = [np.empty_like(one) for one in x]
        ranks.each(dtype, lambda c, r: c.all_reduce(x[r], op, scale, outs[r]))  # noqa: B023
        assert all(near(out, dtype, exact, bound) for out in outs), (op, scale)
        parts = [np.empty((2, 3), one.dtype) for one in x]
        ranks.each(dtype, lambda c, r: c.reduce_scatter(x[r], op, scale, parts[r]))  # noqa: B023
        assert near(np.concatenate(parts), dtype, exact, bound)
        root = np.empty_like(x[1])
        ranks.each(
            dtype,
            lambda c, r: c.reduce(x[r], 1, op, scale, root if r == 1 else None),  # noqa: B023
        )
        assert near(root, dtype, exact, bound)
    assert ranks.comms[0]._comm.factors == {}, "operations with a factor are given back"


@pytest.mark.parametrize("dtype", NAMES)
def test_moves_are_exact(ranks: Ranks, dtype: str) -> None:
    arrays = [held(one) for one in rank_arrays(dtype, (RANKS, 2), RANKS)]
    kind = arrays[0].dtype
    whole, root = np.concatenate(arrays), 2
    outs = [np.empty_like(whole) for _ in arrays]
    ranks.each(dtype, lambda c, r: c.all_gather(arrays[r], outs[r]))
    assert all(out.tobytes() == whole.tobytes() for out in outs)
    outs = [np.empty_like(whole) for _ in arrays]
    ranks.each(dtype, lambda c, r: c.gather(arrays[r], root, outs[r] if r == root else None))
    assert outs[root].tobytes() == whole.tobytes()
    parts = [np.empty((1, 2), kind) for _ in arrays]
    ranks.each(dtype, lambda c, r: c.scatter(arrays[r] if r == root else None, root, parts[r]))
    assert np.concatenate(parts).tobytes() == arrays[root].tobytes()
    copies = [np.empty_like(one) for one in arrays]
    ranks.each(
        dtype,
        lambda c, r: c.broadcast(*(arrays[r], r, None) if r == root else (None, root, copies[r])),
    )
    assert copies[0].tobytes() == copies[1].tobytes() == arrays[root].tobytes()
    rows = [[0, 2, 1], [3, 0, 0], [1, 1, 1]]
    turned = [np.empty((sum(row[r] for row in rows), 2), kind) for r in range(RANKS)]
    ranks.each(
        dtype,
        lambda c, r: c.all_to_all(arrays[r], rows[r], [row[r] for row in rows], turned[r]),
    )
    cut = [np.split(one, np.cumsum(row)[:-1]) for one, row in zip(arrays, rows, strict=True)]
    for rank, found in enumerate(turned):
        assert found.tobytes() == np.concatenate([one[rank] for one in cut]).tobytes()
    there = np.empty_like(arrays[0])
    ranks.one(0, dtype, lambda c, _: c.send(arrays[0], 1))
    ranks.one(1, dtype, lambda c, _: c.receive(0, there))
    assert there.tobytes() == arrays[0].tobytes()
    ranks.each("", lambda c, _: c.barrier())


def test_views_and_what_overlaps_are_copied(ranks: Ranks) -> None:
    """NCCL reads in C order, and writes where it reads only in one place."""
    arrays = rank_arrays("float64", (RANKS, 4), RANKS)
    exact, _ = folded("sum", arrays)
    outs = [np.zeros((8, 3))[::2] for _ in arrays]
    ranks.each("float64", lambda c, r: c.all_reduce(arrays[r].T, "sum", None, outs[r]))
    assert all(np.allclose(out, exact.T) for out in outs)
    shared = [np.concatenate([one.ravel(), [0.0]]) for one in arrays]
    ranks.each("float64", lambda c, r: c.all_reduce(shared[r][:-1], "sum", None, shared[r][1:]))
    assert np.allclose(shared[0][1:], exact.ravel())
    same = [one.copy() for one in arrays]
    rows = [1] * RANKS
    ranks.each("float64", lambda c, r: c.all_to_all(same[r], rows, rows, same[r]))
    assert np.array_equal(same[1], np.stack([one[1] for one in arrays]))
    same = [one.copy() for one in arrays]
    ranks.each("float64", lambda c, r: c.reduce_scatter(same[r], "sum", None, same[r][:1]))
    assert np.allclose([one[0] for one in same], exact)
    nothing = [np.zeros((0, 3)) for _ in arrays]
    ranks.each("float64", lambda c, r: c.all_reduce(nothing[r], "avg", 0.5, nothing[r]))


def test_an_abort_ends_who_waits_and_fails_what_is_not_done(ranks: Ranks) -> None:
    comm, done, undone = ranks.comms[0], *ranks.groups[:2]
    for group, fired in ((done, True), (undone, False)):
        ranks.groups[0], ranks.stream = group, Native()
        ranks.stream.fired = fired
        ranks.one(0, "float32", lambda c, _: c.send(np.ones(3, "f4"), 1))
    ranks.nccl.state = IN_PROGRESS
    ranks.nccl.begun.clear()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(comm.settle)
        assert ranks.nccl.begun.wait(WAIT)
        comm.abort()
        comm.abort()
        with pytest.raises(CommunicatorLost):
            waiting.result(WAIT)
    assert ranks.nccl.aborted.wait(WAIT)
    done.require()
    with pytest.raises(AccelError, match="communicator was aborted"):
        undone.require()
    looks = comm._comm.looks
    with pytest.raises(CommunicatorLost):
        ranks.one(0, "float32", lambda c, _: c.send(np.ones(3, "f4"), 1))
    assert comm._comm.looks == looks, "nothing is asked of what NCCL has freed"
    comm.close()


def test_what_comes_next_waits_until_an_aborted_one_is_freed(ranks: Ranks) -> None:
    old, live, _ = ranks.comms
    comms, group = [old, live], Group(Place(2, 0, RANKS))
    ranks.nccl.may_free.clear()
    old.abort()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(until_freed, comms, group)
        assert ranks.nccl.aborted.wait(WAIT)
        assert not waiting.done()
        assert old in comms
        ranks.nccl.may_free.set()
        waiting.result(WAIT)
    assert comms == [live]


def test_an_abort_ends_that_wait_too(ranks: Ranks) -> None:
    group = Group(Place(2, 0, RANKS))
    ranks.nccl.may_free.clear()
    ranks.comms[0].abort()
    group.hear("a rank is lost", cancelled=False)
    with pytest.raises(AccelError, match="a rank is lost"):
        until_freed(ranks.comms, group)
    ranks.nccl.may_free.set()


@pytest.mark.parametrize(("state", "error"), [(2, CommunicatorLost), (5, RuntimeError)])
def test_what_nccl_reports_fails_the_call_and_ends_the_communicator(
    ranks: Ranks, state: int, error: type[Exception]
) -> None:
    ranks.nccl.state = state
    with pytest.raises(error, match=r"SystemError|InvalidUsage"):
        ranks.one(0, "int32", lambda c, _: c.send(np.ones(3, "i4"), 1))
    assert ranks.nccl.aborted.wait(WAIT)


def test_versions_are_written_as_people_do() -> None:
    assert [written(22809), written(23207)] == ["2.28.9", "2.32.7"]


def test_without_nccl_who_asks_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nccl.bindings", None)
    bindings._loaded.cache_clear()
    bindings.preload()
    with pytest.raises(BackendUnavailable, match=r"nccl4py and NCCL.*install.*cuda1[23]"):
        bindings.bindings()
    assert not bindings.multicasts()


@pytest.mark.parametrize(("version", "served"), [(22_809, True), (22_105, False)])
def test_nccl_that_is_too_old_is_refused(
    monkeypatch: pytest.MonkeyPatch, version: int, *, served: bool
) -> None:
    found: Any = ModuleType("nccl.bindings")
    found.nccl = SimpleNamespace(get_version=lambda: version)
    monkeypatch.setitem(sys.modules, "nccl", ModuleType("nccl"))
    monkeypatch.setitem(sys.modules, "nccl.bindings", found)
    bindings._loaded.cache_clear()
    if served:
        assert bindings.bindings() is found.nccl
    else:
        with pytest.raises(BackendUnavailable, match=r"2\.21\.5.*2\.23\.0"):
            bindings.bindings()
    bindings._loaded.cache_clear()
