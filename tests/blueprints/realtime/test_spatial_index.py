"""Radius queries are those of SciPy's tree, exactly."""

from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from accel_lab import Device
from accel_lab.blueprints.realtime import Index, SpatialIndexActor, Within
from accel_lab.blueprints.realtime.kernels import Kernels
from accel_lab.errors import InvalidArgument

BOX = {2: ((0.0, 0.0), (1.0, 0.7)), 3: ((0.0, 0.0, 0.0), (1.0, 0.7, 0.4))}


def index_of(spawn: Any, device: Device, axes: int, dtype: str) -> Any:
    return spawn(lambda: SpatialIndexActor(device, *BOX[axes], cell=0.11, dtype=dtype))


@pytest.fixture(scope="module")
def indices(spawn: Any, device: Device) -> Any:
    """Make an index of each kind once."""
    return cache(partial(index_of, spawn, device))


def found(index: Any, device: Device, queries: Any, radius: float) -> list[list[int]]:
    offsets, indices = index.ask(Within(device.put(queries), radius)).result()
    ends, all_of_them = offsets.get(), indices.get()
    return [sorted(all_of_them[a:b].tolist()) for a, b in pairwise(ends)]


def wanted(points: Any, queries: Any, radius: float) -> list[list[int]]:
    """Compute distances in float64, by definition."""
    apart = queries.astype(float)[:, None] - points.astype(float)[None]
    return [np.flatnonzero(row <= radius * radius).tolist() for row in (apart**2).sum(axis=-1)]


@settings(max_examples=6)
@given(
    seed=st.integers(0, 99),
    n=st.integers(0, 400),
    m=st.integers(0, 40),
    radius=st.sampled_from((0.0, 0.01, 0.11, 0.4, 3.0)),
    spread=st.sampled_from((0.02, 1.0, 4.0)),
)
@pytest.mark.parametrize(("axes", "dtype"), [(2, "float32"), (3, "float32"), (3, "float64")])
def test_neighbours_are_those_of_the_definition(
    indices: Any,
    device: Device,
    axes: int,
    dtype: str,
    seed: int,
    n: int,
    m: int,
    radius: float,
    spread: float,
) -> None:
    rng = np.random.default_rng(seed)
    points = (rng.random((n, axes)) * spread - spread / 4).astype(dtype)
    queries = (rng.random((m, axes)) * 1.5 - 0.25).astype(dtype)
    index = indices(axes, dtype)
    index.ask(Index(device.put(points))).result()
    assert found(index, device, queries, radius) == wanted(points, queries, radius)


def test_many_points_are_found_as_by_scipys_tree(spawn: Any, device: Device) -> None:
    rng = np.random.default_rng(0)
    points, queries = rng.random((20_000, 3)), rng.random((300, 3))
    index = index_of(spawn, device, 3, "float64")
    index.ask(Index(device.put(points))).result()
    tree: Any = cKDTree(points).query_ball_point(queries, 0.05)
    assert found(index, device, queries, 0.05) == [sorted(one) for one in tree]


def test_points_at_the_edge_of_the_radius_and_of_cells_are_inside(
    spawn: Any, device: Device
) -> None:
    grid = np.stack(np.meshgrid(*[np.arange(9) / 8] * 2), axis=-1).reshape(-1, 2)
    index = spawn(lambda: SpatialIndexActor(device, (0, 0), (1, 1), cell=0.125))
    points = grid.astype("float32")
    index.ask(Index(device.put(points))).result()
    got = found(index, device, points, 0.125)
    assert sum(map(len, got)) == 81 + 2 * 2 * 8 * 9
    assert got == wanted(points, points, 0.125)


@settings(max_examples=10)
@given(
    seed=st.integers(0, 99), n=st.sampled_from((0, 1, 30, 500)), cells=st.sampled_from((1, 7, 3000))
)
@pytest.mark.parametrize(("grid", "block"), [(1, 1), (3, 5), (40, 64)])
def test_cells_begin_where_they_do_in_the_sorted_keys_for_any_number_of_threads(
    device: Device, grid: int, block: int, seed: int, n: int, cells: int
) -> None:
    keys = np.sort(np.random.default_rng(seed).integers(0, cells, n) ** 2 // cells).astype("int32")
    kernel = Kernels(device, "cells", defines={"Real": "float"})._compile("cell_starts")
    starts = device.put(np.full(cells + 1, -1, "int32"))
    kernel(grid, block, (device.put(keys), n, cells, starts))
    np.testing.assert_array_equal(starts.get(), np.searchsorted(keys, np.arange(cells + 1)))


def test_what_is_indexed_is_a_copy_and_a_new_index_replaces_it(spawn: Any, device: Device) -> None:
    index = index_of(spawn, device, 2, "float32")
    points = device.put(np.full((3, 2), 0.5, "float32"))
    index.ask(Index(points)).result()
    points[:] = 0.1
    here = np.full((1, 2), 0.5, "float32")
    assert found(index, device, here, 0.01) == [[0, 1, 2]]
    index.ask(Index(points)).result()
    assert found(index, device, here, 0.01) == [[]]


def test_mistakes_are_refused_with_what_was_expected(spawn: Any, device: Device) -> None:
    index = index_of(spawn, device, 3, "float32")
    points = device.put(np.zeros((4, 3), "float32"))
    for message, text in (
        (Within(points, 1.0), r"send Index\(points\) first"),
        (
            Index(device.put(np.zeros((4, 2), "float32"))),
            r"float32\[n, 3\] of .*, not float32\[4, 2\]",
        ),
        (Index(device.put(np.zeros((4, 3)))), r"not float64\[4, 3\]"),
        (Index(None), "not NoneType"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidArgument, match=text):
            index.ask(message).result()
    index.ask(Index(points)).result()
    with pytest.raises(InvalidArgument, match="radius must be a number from 0, not -1"):
        index.ask(Within(points, -1.0)).result()
    with pytest.raises(InvalidArgument, match="more than 134217728"):
        SpatialIndexActor(device, (0, 0, 0), (1, 1, 1), cell=1e-3)
    with pytest.raises(InvalidArgument, match="size must be larger than"):
        SpatialIndexActor(device, (0, 0), (1, 1), cell=1e-320)
    with pytest.raises(InvalidArgument, match="two or three axes"):
        SpatialIndexActor(device, (0,), (1,), cell=0.1)
    with pytest.raises(InvalidArgument, match="float16"):
        SpatialIndexActor(device, (0, 0), (1, 1), cell=0.1, dtype="float16")
