"""Collective operations and graphs: one in a block is refused, and between two it is in order."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System, array
from accel_lab.errors import InvalidArgument
from accel_lab.world.world import World

WAIT_S = 60
CALLS: dict[str, Callable[[World, Any], Any]] = {
    "all_reduce": lambda world, x: world.all_reduce(x),
    "all_gather": lambda world, x: world.all_gather(x),
    "reduce_scatter": lambda world, x: world.reduce_scatter(x),
    "all_to_all": lambda world, x: world.all_to_all(x),
    "reduce": lambda world, x: world.reduce(x),
    "gather": lambda world, x: world.gather(x),
    "broadcast": lambda world, x: world.broadcast(x[0]),
    "scatter": lambda world, x: world.scatter(x[0]),
    "send": lambda world, x: world.send(x[0], 1),
    "barrier": lambda world, _: world.barrier(),
}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with System("host", 2) as lab:
        yield lab.world().ready(WAIT_S)
        lab.check()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("at", [0, 1])
def test_one_in_a_block_is_refused_at_its_call_with_the_way_out(
    world: World, name: str, at: int
) -> None:
    """Whichever rank records; the block goes on, and so does the world."""
    x = [device.put(np.arange(4.0)) for device in world.devices]
    epoch = world.epoch
    with world.devices[at].graph() as recorded:
        before = x[at] + 1.0
        with pytest.raises(InvalidArgument, match=r"cannot be in a graph .* as two graphs"):
            CALLS[name](world, x)
        after = before * 2.0
    recorded.launch()
    np.testing.assert_array_equal(after.get(timeout_s=WAIT_S), 2 * (np.arange(4.0) + 1))
    np.testing.assert_array_equal(world.all_reduce(x).get(), 2 * np.arange(4.0))
    assert world.epoch == epoch
    recorded.close()


def test_between_two_graphs_it_has_what_the_first_has_written(world: World) -> None:
    x = [device.put(np.zeros(3)) for device in world.devices]
    firsts, seconds, sums, ends = [], [], [], []
    for one in x:
        with one.device.graph(x=one) as first:
            sums.append(one * 2.0)
        with one.device.graph() as second:
            ends.append(array.sqrt(sums[-1]))
        firsts.append(first)
        seconds.append(second)
    for turn in range(1, 4):
        given = [
            device.put(np.full(3, turn * (rank + 1.0))) for rank, device in enumerate(world.devices)
        ]
        for graph, one in zip(firsts, given, strict=True):
            graph.launch(x=one)
        world.all_reduce(sums, out=world.own(sums))
        for graph in seconds:
            graph.launch()
        for end in ends:
            np.testing.assert_allclose(end.get(timeout_s=WAIT_S), np.sqrt(np.full(3, 6.0 * turn)))
