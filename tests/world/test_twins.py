"""What a lost rank had of collective operations comes back from the others, where it can."""

import gc
import time
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.compute.actors.fault import Inject
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.world import twins
from accel_lab.errors import AccelError, ContextLost
from accel_lab.libraries import array
from accel_lab.world.world import World
from tests.world.worlds import own, rank_arrays

WAIT = 60
LARGE = 20_000  # elements of float64: by the ring, not the tree


@pytest.fixture(scope="module")
def opened() -> Iterator[System]:
    with System("host", 3, max_restarts=1000, within_s=0.2) as system:
        yield system


@pytest.fixture
def world(opened: System) -> World:
    return opened.ready().world().ready()


def kill(world: World, rank: int) -> None:
    """End a rank's process, and wait until its device is back."""
    device = world.devices[rank]
    generation = device.generation
    with pytest.raises(ContextLost):
        device.ask(Inject("kill")).result(WAIT)
    until = time.monotonic() + WAIT
    while device.generation == generation or device.state != "running":
        assert time.monotonic() < until
        time.sleep(0.002)


def bits(ref: AccelRef) -> Any:
    return np.asarray(ref.device.get(ref).result(WAIT))


def status(ref: AccelRef) -> str:
    return str(ref.durability)


@pytest.mark.parametrize("elements", [3, LARGE])
def test_a_sum_comes_back_bit_by_bit(world: World, elements: int) -> None:
    total = world.all_reduce(own(world, rank_arrays("float64", (elements,), 3))).result(WAIT)
    before = [bits(ref) for ref in total.refs]
    assert status(total.refs[1]) == "replayable"
    assert "other ranks" in total.refs[1].durability.why
    kill(world, 1)
    for ref, had in zip(total.refs, before, strict=True):
        assert bits(ref).tobytes() == had.tobytes()


def test_what_was_computed_from_one_comes_back_and_the_next_loss_finds_it_too(world: World) -> None:
    total = world.all_reduce(own(world, rank_arrays("float32", (4, 5), 3))).result(WAIT)
    doubled = [2 * ref for ref in total.refs]
    expected = [bits(ref) for ref in doubled]
    for _ in range(2):
        assert status(doubled[2]) == "replayable"
        kill(world, 2)
        assert np.array_equal(bits(doubled[2]), expected[2])


def test_only_the_operand_that_others_do_not_have_is_computed_again(world: World) -> None:
    """What a sum was made of may be gone, and the sum is not."""
    parts = [
        device.run(np.full, 3, 1.0 + rank)  # not pure: lost with the context
        for rank, device in enumerate(world.devices)
    ]
    total = world.all_reduce(parts).result(WAIT)
    assert status(parts[0]) == "lost on fault"
    assert status(total.refs[0]) == "replayable"
    kill(world, 0)
    assert bits(total.refs[0]).tolist() == [6, 6, 6]
    with pytest.raises(AccelError):
        bits(parts[0])


def test_what_was_reduced_in_place_comes_back_with_its_views(world: World) -> None:
    x = own(world, [np.arange(6.0) * 10**rank for rank in range(3)])
    view = [array.reshape(ref, (2, 3)) for ref in x.refs]
    world.all_reduce(x, out=x).result(WAIT)
    assert status(x.refs[1]) == status(view[1]) == "replayable"
    kill(world, 1)
    assert np.array_equal(bits(x.refs[1]), np.arange(6.0) * 111)
    assert np.array_equal(bits(view[1]), np.arange(6.0).reshape(2, 3) * 111)


def test_what_all_others_have_overwritten_is_lost_and_says_so_before(world: World) -> None:
    total = world.all_reduce(own(world, rank_arrays("float64", (8,), 3))).result(WAIT)
    for rank in (0, 2):
        assert status(total.refs[1]) == "replayable"
        array.add(total.refs[rank], total.refs[rank], out=total.refs[rank])
    assert status(total.refs[1]) == "lost on fault"
    kill(world, 1)
    with pytest.raises(AccelError):
        bits(total.refs[1])


def test_what_nobody_else_holds_is_lost_and_says_so_before(world: World) -> None:
    total = world.all_reduce(own(world, rank_arrays("float64", (8,), 3))).result(WAIT)
    mine = total.refs[0]
    assert status(mine) == "replayable"
    other = weakref.ref(total.refs[1])
    del total
    until = time.monotonic() + WAIT
    while other() is not None:  # the system thread may be at the end of it
        assert time.monotonic() < until
        time.sleep(0.001)
    world.devices[1].ping().result(WAIT)  # which takes along what was freed
    world.devices[2].ping().result(WAIT)
    assert status(mine) == "lost on fault"


def test_a_handle_keeps_no_memory_of_another_rank(world: World) -> None:
    """By counting alone: the garbage collector may not come for long, and cards have no room."""
    gc.collect()
    gc.disable()
    try:
        total = world.all_reduce(own(world, rank_arrays("float64", (8,), 3))).result(WAIT)
        mine, other = total.refs[0], weakref.ref(total.refs[1])
        del total
        until = time.monotonic() + WAIT
        while other() is not None:  # the system thread may be at the end of it
            assert time.monotonic() < until
            time.sleep(0.001)
    finally:
        gc.enable()
    assert bits(mine).shape == (8,)


def test_what_was_gathered_sent_scattered_and_broadcast_comes_back(world: World) -> None:
    pieces = rank_arrays("int32", (2, 2), 3)
    joined = world.all_gather(own(world, pieces)).result(WAIT)
    whole = world.devices[0].put(np.arange(12.0).reshape(6, 2))
    everywhere = world.broadcast(whole).result(WAIT)
    cut = world.scatter(whole).result(WAIT)
    sent = world.send(whole, 2).result(WAIT)
    kill(world, 2)
    assert np.array_equal(bits(joined.refs[2]), np.concatenate(pieces))
    assert np.array_equal(bits(everywhere.refs[2]), np.arange(12.0).reshape(6, 2))
    assert np.array_equal(bits(cut.refs[2]), np.arange(12.0).reshape(6, 2)[4:])
    assert np.array_equal(bits(sent), np.arange(12.0).reshape(6, 2))


def test_the_part_that_only_one_rank_had_is_lost_and_says_so_before(world: World) -> None:
    mine = world.reduce_scatter(own(world, rank_arrays("float64", (6,), 3))).result(WAIT)
    assert status(mine.refs[1]) == "lost on fault"
    assert "checkpoint" in mine.refs[1].durability.why
    kill(world, 1)
    with pytest.raises(AccelError):
        bits(mine.refs[1])
    assert bits(mine.refs[0]).shape == (2,)


def test_what_is_under_way_is_no_help(world: World) -> None:
    busy = world.devices[2].run(time.sleep, 0.5)
    total = world.all_reduce(own(world, rank_arrays("float64", (3,), 3)))
    assert status(total.refs[0]) == "lost on fault"
    busy.result(WAIT)
    total.result(WAIT)
    assert status(total.refs[0]) == "replayable"


def test_what_is_lost_together_is_no_help() -> None:
    with System("host", 2, strategy="all_for_one") as lab:
        world = lab.world()
        total = world.all_reduce(own(world, rank_arrays("float64", (3,), 2))).result(WAIT)
        assert status(total.refs[0]) == "lost on fault"


def test_ranks_may_be_lost_one_after_the_other(world: World) -> None:
    total = world.all_reduce(own(world, rank_arrays("float64", (5,), 3))).result(WAIT)
    before = bits(total.refs[0])
    for rank in (0, 1, 2, 0):
        kill(world, rank)
    for ref in total.refs:
        assert bits(ref).tobytes() == before.tobytes()


def test_what_has_no_twin_any_more_is_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(twins, "FEWEST", 16)
    noted = world._services.twins
    monkeypatch.setattr(noted, "_most", 16)
    kept = world.all_reduce(own(world, rank_arrays("float64", (3,), 3))).result(WAIT)
    until = time.monotonic() + WAIT
    x = own(world, rank_arrays("float64", (3,), 3))
    for _ in range(32):
        world.all_reduce(x).result(WAIT)
    while sum(map(len, noted._entries.values())) > 48:
        world.all_reduce(x).result(WAIT)
        assert time.monotonic() < until
    assert all(status(ref) == "replayable" for ref in kept.refs)
