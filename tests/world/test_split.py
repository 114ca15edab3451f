"""A world cut into others."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from accel_lab import System
from accel_lab.errors import ContextLost, InvalidArgument
from accel_lab.libraries import array
from accel_lab.world.split import lines
from tests.world.worlds import own, ranks_of


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", 4) as system:
        yield system


def test_lines_of_a_grid_partition_the_ranks() -> None:
    shape = {"pipe": 2, "data": 3, "model": 2}
    for dimension, extent in shape.items():
        found = lines(shape, 12, dimension)
        assert sorted(itertools.chain(*found)) == list(range(12))
        assert {len(line) for line in found} == {extent}
    assert lines(shape, 12, "model")[0] == [0, 1]
    assert lines(shape, 12, "pipe")[0] == [0, 6]


def test_each_line_works_by_itself(lab: System) -> None:
    world = lab.world(shape={"data": 2, "model": 2})
    x = own(world, [np.full(3, 10.0**rank) for rank in range(4)])
    assert [one[0] for one in ranks_of(world["model"].all_reduce(x))] == [11, 11, 1100, 1100]
    assert [one[0] for one in ranks_of(world["data"].all_reduce(x))] == [101, 1010, 101, 1010]
    assert world["data"] is world["data"]
    both = world["data"].all_reduce(world["model"].all_reduce(x))
    assert {one[0] for one in ranks_of(both)} == {1111}


def test_two_layers_cut_by_columns_and_rows_are_the_whole(lab: System) -> None:
    """Shoeybi et al., Megatron-LM, 2019, figure 3a."""
    world = lab.world(shape={"data": 2, "model": 2})
    random = np.random.default_rng(0)
    a, b, x = random.random((6, 8)), random.random((8, 6)), random.random((5, 6))
    columns = np.split(a, 2, axis=1)
    rows = np.split(b, 2, axis=0)
    first = own(world, [columns[rank % 2] for rank in range(4)])
    second = own(world, [rows[rank % 2] for rank in range(4)])
    hidden = world.replicate(x) @ first
    parts = hidden.map(lambda ref: array.maximum(ref, 0)) @ second
    found = world["model"].all_reduce(parts)
    assert np.allclose(ranks_of(found), np.maximum(x @ a, 0) @ b)


def test_a_split_by_colour_heals_where_it_is_hurt(lab: System) -> None:
    world = lab.world()
    split = world.split(["left", "right", "left", "right"])
    assert [[one.name for one in part.devices] for part in split] == [
        ["cpu0", "cpu2"],
        ["cpu1", "cpu3"],
    ]
    for part in split:
        part.ready()
    with pytest.raises(ContextLost):
        lab.inject("kill", 3).result(60)
    split.worlds[1].ready()
    x = own(world, [np.ones(2)] * 4)
    assert {one[0] for one in ranks_of(split.all_reduce(x))} == {2}
    assert [part.epoch for part in split] == [1, 2]


def test_what_does_not_fit_is_refused(lab: System) -> None:
    with pytest.raises(InvalidArgument, match="not one place for each of 4 ranks"):
        lab.world(shape={"data": 3})
    world = lab.world(shape={"data": 4})
    with pytest.raises(InvalidArgument, match=r"dimensions \['data'\], and no 'model'"):
        world["model"]
    with pytest.raises(InvalidArgument, match="2 colours for 4 ranks"):
        world.split([0, 1])
    with pytest.raises(InvalidArgument, match="cpu3 has none"):
        world["data"].all_reduce([device.put(np.ones(1)) for device in lab.devices[:3]])
