"""Collective operations on the host, against NumPy and by their definitions."""

import time
from collections.abc import Iterator

import numpy as np
import pytest

from accel_lab import System
from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.compute.events.collectives import CollectiveEnded
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import array
from accel_lab.libraries.collective.messages import REDUCIBLE, Reduction
from accel_lab.world.world import World
from tests.world.worlds import folded, own, rank_arrays, ranks_of

SHAPES = ((0,), (1,), (7, 3), (20_011,), (512, 512))
"""Nothing, less than a rank each, uneven, around the ring in one piece, and in several."""


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", 4) as system:
        yield system


@pytest.fixture(scope="module")
def worlds(lab: System) -> dict[int, World]:
    return {size: lab.world(lab.devices[:size]) for size in (1, 2, 4)}


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("op", ["sum", "prod", "min", "max", "avg"])
def test_a_reduction_is_numpys_on_every_rank(
    worlds: dict[int, World], op: Reduction, size: int
) -> None:
    world = worlds[size]
    for at, dtype in enumerate(sorted(REDUCIBLE)):
        arrays = rank_arrays(dtype, SHAPES[(at + size) % len(SHAPES)], size)
        exact, bound = folded(op, arrays)
        found = ranks_of(world.all_reduce(own(world, arrays), op))
        assert all(one.dtype == arrays[0].dtype for one in found), dtype
        assert np.all(np.abs(np.asarray(found[0], np.float64) - exact) <= bound), dtype
        assert all(one.tobytes() == found[0].tobytes() for one in found), dtype


@pytest.mark.parametrize("size", [1, 2, 4])
def test_moves_are_exact_in_every_dtype(worlds: dict[int, World], size: int) -> None:
    world = worlds[size]
    for at, dtype in enumerate(NAMES):
        shape = ((4, 3), (8 * 4096,), (0, 2), (4, 20_000))[at % 4]
        arrays = rank_arrays(dtype, shape, size)
        x = own(world, arrays)
        root = at % size
        whole = np.concatenate(arrays).tobytes()
        assert [one.tobytes() for one in ranks_of(world.all_gather(x))] == [whole] * size
        gathered = world.gather(x, root)
        assert gathered.device is world.devices[root]
        assert np.asarray(gathered.device.get(gathered).result()).tobytes() == whole
        spread = ranks_of(world.broadcast(x.refs[root]))
        assert [one.tobytes() for one in spread] == [arrays[root].tobytes()] * size
        pieces = ranks_of(world.scatter(x.refs[root]))
        assert np.concatenate(pieces).tobytes() == arrays[root].tobytes()
        turned = ranks_of(world.all_to_all(x))
        parts = [np.split(one, size) for one in arrays]
        for rank, found in enumerate(turned):
            assert found.tobytes() == np.concatenate([row[rank] for row in parts]).tobytes()


def test_what_is_reduced_to_one_rank_or_in_parts_is_the_same(worlds: dict[int, World]) -> None:
    world = worlds[4]
    for dtype, shape in (("float32", (8, 5)), ("bfloat16", (4, 30_000)), ("int64", (400, 300))):
        arrays = rank_arrays(dtype, shape, 4)
        x = own(world, arrays)
        exact, bound = folded("sum", arrays)
        root = world.reduce(x, 2)
        assert root.device is world.devices[2]
        for found in (
            np.asarray(root.device.get(root).result()),
            world.reduce_scatter(x).get(),
        ):
            assert np.all(np.abs(np.asarray(found, np.float64) - exact) <= bound)


def test_a_factor_multiplies_before(worlds: dict[int, World]) -> None:
    world = worlds[2]
    arrays = rank_arrays("float32", (50,), 2)
    for op in ("sum", "avg", "prod"):
        exact, bound = folded(op, arrays, 0.3)
        found = world.all_reduce(own(world, arrays), op, scale=0.3).get()
        assert np.all(np.abs(found - exact) <= bound + 1e-7 * np.abs(exact)), op


def test_rows_go_to_each_rank_in_any_number(worlds: dict[int, World]) -> None:
    world = worlds[4]
    random = np.random.default_rng(3)
    rows = random.integers(0, 5, (4, 4)).tolist()
    arrays = [random.random((sum(row), 2)) for row in rows]
    cut = [np.split(one, np.cumsum(row)[:-1]) for one, row in zip(arrays, rows, strict=True)]
    found = ranks_of(world.all_to_all_v(own(world, arrays), rows))
    for rank, one in enumerate(found):
        assert np.array_equal(one, np.concatenate([pieces[rank] for pieces in cut]))


def test_one_rank_sends_to_another_while_the_others_do_not_wait(worlds: dict[int, World]) -> None:
    world = worlds[4]
    there = world.send(world.devices[1].put(np.arange(300_000)), to=3)
    assert there.device is world.devices[3]
    assert np.array_equal(there.device.get(there).result(), np.arange(300_000))


def test_in_place_into_another_and_of_a_view(worlds: dict[int, World]) -> None:
    world = worlds[2]
    arrays = rank_arrays("float64", (300, 200), 2)
    x = own(world, arrays)
    turned = x.map(array.transpose)
    assert np.allclose(world.all_reduce(turned).get(), np.add(*arrays).T)
    out = world.replicate(np.zeros((200, 300)))
    strided = out.map(array.transpose)
    world.all_reduce(x, out=strided).result()
    assert np.allclose(ranks_of(out)[1], np.add(*arrays).T)
    world.all_reduce(x, out=x).result()
    assert np.allclose(ranks_of(x)[1], np.add(*arrays))


def test_a_ring_sends_what_it_has_to_and_no_more() -> None:
    """2 (n - 1) / n of the array from each rank, and so no process takes in all operands."""
    with System("host", 4) as lab:
        world = lab.world()
        n, elements = 4, 1 << 18
        x = own(world, rank_arrays("float32", (elements,), n))
        world.all_reduce(x).result()
        expected = f"bytes sent {2 * (n - 1) * 4 * elements // n}"
        until = time.monotonic() + 20
        while not all(expected in _told(lab, device.name) for device in world.devices):
            assert time.monotonic() < until, [_told(lab, one.name) for one in world.devices]
            time.sleep(0.05)  # counters come once a second


def _told(lab: System, name: str) -> str:
    """Return what the tree says of a device's collective library."""
    device = next(node for node in lab.tree().children if node.name == name)
    (context,) = device.children
    return next(node.detail or "" for node in context.children if node.name == "collective")


def test_the_same_program_gives_the_same_bits(worlds: dict[int, World]) -> None:
    world = worlds[4]
    x = own(world, rank_arrays("float32", (100_003,), 4))
    found = {world.all_reduce(x).get().tobytes() for _ in range(5)}
    assert len(found) == 1


def test_eight_ranks() -> None:
    with System("host", 8) as lab:
        world = lab.world()
        for shape in ((3,), (70_001,)):
            arrays = rank_arrays("float64", shape, 8)
            exact, bound = folded("sum", arrays)
            x = own(world, arrays)
            assert np.all(np.abs(world.all_reduce(x).get() - exact) <= bound)
            assert np.array_equal(world.all_gather(x).get(), np.concatenate(arrays))
        world.barrier().result(30)


def test_unlike_arrays_are_refused_with_both_sides_named(
    lab: System, worlds: dict[int, World]
) -> None:
    world = worlds[2]
    one, other = (device.put(np.zeros(3, "f4")) for device in world.devices)
    longer = world.devices[1].put(np.zeros(4, "f4"))
    with pytest.raises(InvalidArgument, match=r"cpu0 has float32\[3\], and rank 1 on cpu1 has.*4"):
        world.all_reduce([one, longer])
    with pytest.raises(InvalidArgument, match="a handle on each of cpu0, cpu1, in this order"):
        world.all_reduce([other, one])
    with pytest.raises(InvalidArgument, match="cannot share equally"):
        world.reduce_scatter([one, other])
    with pytest.raises(InvalidArgument, match="op is one of"):
        world.all_reduce([one, other], "mean")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="bool"):
        world.all_reduce(world.replicate(np.zeros(3, bool)))
    with pytest.raises(InvalidArgument, match="ranks 0 to 1"):
        world.send(one, to=2)
    with pytest.raises(InvalidArgument, match="no device of"):
        world.broadcast(lab.devices[3].put(np.zeros(3)))
    assert world.epoch == 1, "nothing was sent, and nothing is to be healed"
    assert world.all_reduce([one, other]).get().tolist() == [0, 0, 0]


def test_what_has_ended_is_told_with_its_bandwidth(lab: System, worlds: dict[int, World]) -> None:
    world = worlds[4]
    world.all_reduce(world.replicate(np.ones(1 << 18, "f4"))).result()
    told = lab.events.history(CollectiveEnded)[-1]
    assert (told.call, told.algorithm, told.dtype) == ("all_reduce", "ring", "float32")
    assert told.nbytes == 1 << 20
    assert min(told.waited_s) == 0
    assert told.bus_gb_s == pytest.approx(1.5 * (1 << 20) / told.seconds / 1e9)
    assert not world.in_flight


def test_operators_work_rank_by_rank(worlds: dict[int, World]) -> None:
    world = worlds[4]
    whole = np.arange(24.0).reshape(8, 3)
    weights = np.arange(6.0).reshape(3, 2)
    x, w = world.shard(whole), world.replicate(weights)
    assert np.array_equal((2 - x * 3).get(), 2 - whole * 3)
    assert np.array_equal((x @ w).get(), whole @ weights)
    assert np.array_equal((-x > 1).get(), -whole > 1)
    columns, rows = world.shard(whole.T, axis=1), world.shard(whole, axis=0)
    sums = columns @ rows
    assert sums.layout == "own"
    assert np.array_equal(world.all_reduce(sums).get(), whole.T @ whole)
    with pytest.raises(InvalidArgument, match="pieces along axis"):
        x + world.shard(whole, axis=1)
    with pytest.raises(InvalidArgument, match="other devices"):
        x + worlds[2].replicate(whole)
    assert "in pieces along axis 0, on cpu0, cpu1, cpu2, cpu3" in repr(x)


def test_dtypes_that_nothing_reduces_are_known() -> None:
    assert {numpy_dtype(name).kind for name in NAMES if name not in REDUCIBLE} <= set("bciu")
