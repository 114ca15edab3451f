"""Collective operations of two and four cards, against NumPy; and what becomes of lost ranks."""

import itertools
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.backends import cuda
from accel_lab.compute.actors.fault import Fault
from accel_lab.compute.arrays.dtypes import NAMES
from accel_lab.errors import AccelError, ContextLost
from accel_lab.libraries import array
from accel_lab.libraries.collective import CollectiveAborted
from accel_lab.libraries.collective.messages import REDUCIBLE, Reduction
from accel_lab.world.sharded import Sharded
from accel_lab.world.world import World
from tests.world.worlds import folded, own, rank_arrays, ranks_of

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

WAIT = 120
SHAPES = ((0,), (1,), (7, 3), (20_011,), (1024, 1024))
SEEDS = (1, 2)
FAULTS_A_SEED = 10


@pytest.fixture(scope="module", params=[2, 4])
def lab(request: pytest.FixtureRequest) -> Iterator[System]:
    ranks: int = request.param
    if (found := cuda.device_count()) < ranks:
        pytest.skip(f"this machine shows {found} cards, and not {ranks}")
    # A short memory of losses: a device that is lost again and again starts at once.
    with System("cuda", ranks, max_restarts=1000, within_s=0.2) as system:
        yield system


@pytest.fixture
def world(lab: System) -> Iterator[World]:
    lab.ready()
    made = lab.world().ready(WAIT)
    yield made
    made.close()


def ones(world: World, elements: int = 3) -> list[Any]:
    return [device.put(np.ones(elements, "f4")) for device in world.devices]


def works(world: World) -> None:
    assert world.ready(WAIT).all_reduce(ones(world)).get()[0] == world.size


def reducible(world: World) -> list[str]:
    fp8 = world.capabilities["float8 reductions"]
    return [name for name in sorted(REDUCIBLE) if fp8 or not name.startswith("float8")]


def test_nccl_does_it_and_multicast_is_off(world: World) -> None:
    found = world.capabilities
    assert found["library"] == "nccl"
    assert not found["multicast"]


@pytest.mark.parametrize("op", ["sum", "prod", "min", "max", "avg"])
def test_a_reduction_is_numpys_on_every_rank(world: World, op: Reduction) -> None:
    size = world.size
    for dtype, shape in itertools.product(reducible(world), SHAPES):
        arrays = rank_arrays(dtype, shape, size)
        exact, bound = folded(op, arrays)
        found = ranks_of(world.all_reduce(own(world, arrays), op))
        assert all(one.dtype == arrays[0].dtype for one in found), dtype
        assert np.all(np.abs(np.asarray(found[0], "f8") - exact) <= bound), (dtype, shape)
        assert all(one.tobytes() == found[0].tobytes() for one in found), (dtype, shape)


@pytest.mark.parametrize("op", ["sum", "prod", "min", "max", "avg"])
def test_to_one_rank_and_in_parts(world: World, op: Reduction) -> None:
    size = world.size
    for dtype, shape in itertools.product(reducible(world), ((8, 5), (4, 30_000), (0, 3))):
        arrays = rank_arrays(dtype, shape, size)
        exact, bound = folded(op, arrays)
        x = own(world, arrays)
        root = world.reduce(x, size - 1, op)
        assert root.device is world.devices[size - 1]
        for found in (root.device.get(root).result(WAIT), world.reduce_scatter(x, op).get()):
            assert np.all(np.abs(np.asarray(found, "f8") - exact) <= bound), (dtype, shape)


def test_a_factor_multiplies_before(world: World) -> None:
    ops: tuple[Reduction, ...] = ("sum", "avg", "prod", "min")
    for dtype, op in itertools.product(reducible(world), ops):
        whole = dtype.startswith(("int", "uint"))
        if whole and op == "prod":
            continue  # eight bits do not hold it
        scale = 2.0 if whole else 0.5
        arrays = rank_arrays(dtype, (50,), world.size)
        if whole and op == "avg":
            arrays = [one * 0 + 6 for one in arrays]
        exact, bound = folded(op, arrays, scale)
        found = world.all_reduce(own(world, arrays), op, scale=scale).get()
        assert np.all(np.abs(np.asarray(found, "f8") - exact) <= bound), (dtype, op)


@pytest.mark.parametrize("dtype", NAMES)
def test_moves_are_exact(world: World, dtype: str) -> None:
    size = world.size
    for at, shape in enumerate(((4, 3), (8 * 4096,), (0, 2), (4, 20_000))):
        arrays = rank_arrays(dtype, shape, size)
        x, root = own(world, arrays), at % size
        whole = np.concatenate(arrays).tobytes()
        assert [one.tobytes() for one in ranks_of(world.all_gather(x))] == [whole] * size
        gathered = world.gather(x, root)
        assert np.asarray(gathered.device.get(gathered).result(WAIT)).tobytes() == whole
        spread = ranks_of(world.broadcast(x.refs[root]))
        assert [one.tobytes() for one in spread] == [arrays[root].tobytes()] * size
        pieces = ranks_of(world.scatter(x.refs[root]))
        assert np.concatenate(pieces).tobytes() == arrays[root].tobytes()
        turned = ranks_of(world.all_to_all(x))
        parts = [np.split(one, size) for one in arrays]
        for rank, found in enumerate(turned):
            assert found.tobytes() == np.concatenate([row[rank] for row in parts]).tobytes()
        there = world.send(x.refs[0], to=size - 1)
        assert np.asarray(there.device.get(there).result(WAIT)).tobytes() == arrays[0].tobytes()


def test_rows_go_to_each_rank_in_any_number(world: World) -> None:
    dice = np.random.default_rng(3)
    rows = dice.integers(0, 5, (world.size, world.size)).tolist()
    arrays = [dice.random((sum(row), 2)) for row in rows]
    cut = [np.split(one, np.cumsum(row)[:-1]) for one, row in zip(arrays, rows, strict=True)]
    found = ranks_of(world.all_to_all_v(own(world, arrays), rows))
    for rank, one in enumerate(found):
        assert np.array_equal(one, np.concatenate([pieces[rank] for pieces in cut]))


def test_in_place_into_another_and_of_a_view(world: World) -> None:
    arrays = rank_arrays("float64", (300, 200), world.size)
    total: Any = sum(arrays)
    x = own(world, arrays)
    assert np.allclose(world.all_reduce(x.map(array.transpose)).get(), total.T)
    out = world.replicate(np.zeros((200, 300)))
    world.all_reduce(x, out=out.map(array.transpose)).result(WAIT)
    assert np.allclose(ranks_of(out)[1], total.T)
    world.all_reduce(x, out=x).result(WAIT)
    assert np.allclose(ranks_of(x)[1], total)


def test_the_stream_orders_it_with_other_work(world: World) -> None:
    """Nobody waits between them on the host."""
    x = world.replicate(np.ones(1 << 20, "f4"))
    for _ in range(20):
        x = world.all_reduce(x + x, "avg")
    assert x.get()[0] == 2.0**20


def stay(seconds: float) -> None:
    time.sleep(seconds)


def test_a_late_rank_costs_no_context(world: World) -> None:
    """The kernels of the others end with the communicator, and their streams are free again."""
    before = [device.generation for device in world.devices]
    late = world.devices[1].run(stay, 4.0)
    flying = [world.all_reduce(ones(world, n), timeout_s=1.0) for n in (3, 100_000, 3)]
    for made in flying:  # also those behind the first one: NCCL leaves them half done
        with pytest.raises(CollectiveAborted):
            made.result(WAIT)
    late.result(WAIT)
    works(world)
    assert [device.generation for device in world.devices] == before
    assert world.epoch == 2


def test_what_is_done_stays_when_the_world_is_closed(lab: System) -> None:
    world = lab.world().ready(WAIT)
    made = world.all_reduce(ones(world, 1 << 20))
    made.result(WAIT)
    world.close()
    assert made.get()[-1] == world.size


@pytest.mark.parametrize("seed", SEEDS)
def test_a_world_heals_after_random_faults(
    lab: System, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    world = lab.world(name=f"campaign {seed}").ready(WAIT)
    drawn = random.Random(seed)
    kinds: list[Fault] = ["kill", "hang", "poison"]
    calls = itertools.cycle(
        [world.all_reduce, world.all_gather, world.reduce_scatter, world.all_to_all]
    )
    healed: dict[str, list[float]] = {kind: [] for kind in kinds}
    for number in range(FAULTS_A_SEED):
        kind, victim = kinds[number % 3], drawn.choice(world.devices)
        elements = world.size * drawn.choice([1, 10_000, 1_000_000])
        flying: list[Sharded] = []
        began = time.monotonic()
        try:
            operands = ones(world, elements)
            flying += [next(calls)(operands) for _ in range(drawn.randrange(4))]
            lost = lab.inject(kind, victim, timeout_s=0.5 if kind == "hang" else None)
            flying += [next(calls)(operands) for _ in range(2)]
            with pytest.raises(ContextLost):
                lost.result(WAIT)
        except AccelError:
            pass  # of a fault before: that the world heals is what counts
        for made in flying:
            try:
                made.result(WAIT)
            except AccelError:
                continue
        while True:
            try:
                works(world)
                break
            except AccelError:
                assert time.monotonic() - began < WAIT, f"seed {seed}, fault {number}"
        healed[kind].append(time.monotonic() - began)
    assert not world.in_flight
    assert world.epoch > FAULTS_A_SEED // 2
    lines = [
        f"{world.size} cards, seed {seed}: {name} until it works again, in s: "
        + ", ".join(f"{one:.2f}" for one in sorted(seconds))
        for name, seconds in healed.items()
    ]
    with capsys.disabled():
        sys.stdout.write("\n".join(["", *lines, ""]))
    world.close()
