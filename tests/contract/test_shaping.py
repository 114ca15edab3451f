"""Axes, diagonals and triangles of buffers, against NumPy."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from accel_lab import array
from accel_lab.compute.device import Device
from tests.contract.numpys import DTYPES, near, shapes
from tests.contract.samples import (
    Layout,
    assert_same,
    layouts,
    place,
    refused,
    seeds,
    small,
    value,
)


@settings(max_examples=80)
@given(data=st.data(), shape=shapes, seed=seeds, dtype=DTYPES, layout=layouts)
def test_axes_are_moved_as_numpy_moves_them(
    device: Device,
    data: st.DataObject,
    shape: tuple[int, ...],
    seed: int,
    dtype: str,
    layout: Layout,
) -> None:
    x, ndim = small(seed, shape, dtype), len(shape)
    on = place(device, x, layout)
    new: Any = data.draw(npst.valid_tuple_axes(ndim + 1, max_size=1) | st.integers(0, ndim))
    near(device, value(device, array.expand_dims(on, new)), np.expand_dims(x, new))
    near(device, value(device, array.squeeze(on)), np.squeeze(x))
    ones = tuple(at for at, extent in enumerate(shape) if extent == 1)
    near(device, value(device, array.squeeze(on, ones)), np.squeeze(x, ones))
    if not ndim:
        return
    axes = st.integers(-ndim, ndim - 1)
    one, other = data.draw(axes), data.draw(axes)
    near(device, value(device, array.swapaxes(on, one, other)), np.swapaxes(x, one, other))
    near(device, value(device, array.moveaxis(on, one, other)), np.moveaxis(x, one, other))
    source = data.draw(npst.valid_tuple_axes(ndim))
    places = data.draw(npst.valid_tuple_axes(ndim, min_size=len(source), max_size=len(source)))
    near(device, value(device, array.moveaxis(on, source, places)), np.moveaxis(x, source, places))


@settings(max_examples=60)
@given(
    shapes=npst.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4, min_side=0),
    seed=seeds,
    dtype=DTYPES,
    layout=layouts,
)
def test_broadcasting_is_numpys_and_a_copy(
    device: Device, shapes: Any, seed: int, dtype: str, layout: Layout
) -> None:
    x, shape = small(seed, shapes.input_shapes[0], dtype), shapes.result_shape
    on = place(device, x, layout)
    spread = array.broadcast_to(on, shape)
    assert_same(value(device, spread), np.broadcast_to(x, shape))
    array.copy(array.zeros(device, shape, dtype), out=spread)
    assert_same(value(device, on), x)


@settings(max_examples=80)
@given(
    shape=npst.array_shapes(min_dims=2, max_dims=4, min_side=0, max_side=5),
    data=st.data(),
    seed=seeds,
    k=st.integers(-6, 6),
    dtype=DTYPES,
    layout=layouts,
)
def test_triangles_and_diagonals_are_numpys(
    device: Device,
    data: st.DataObject,
    shape: tuple[int, ...],
    seed: int,
    k: int,
    dtype: str,
    layout: Layout,
) -> None:
    x = small(seed, shape, dtype)
    on = place(device, x, layout)
    near(device, value(device, array.tril(on, k)), np.tril(x, k))
    near(device, value(device, array.triu(on, k)), np.triu(x, k))
    axes = st.integers(-len(shape), len(shape) - 1)
    one, other = data.draw(axes), data.draw(axes)
    if one % len(shape) == other % len(shape):
        with refused(device, "axis1 and axis2", f"are both {one % len(shape)}"):
            array.diagonal(on, k, one, other)
        return
    got = array.diagonal(on, k, one, other)
    near(device, value(device, got), x.diagonal(k, one, other))
    if dtype in ("int8", "float64", "complex64"):
        summed = value(device, array.trace(on, k, one, other))
        near(device, summed, np.trace(x, k, one, other))


def test_a_diagonal_may_be_written(device: Device) -> None:
    x = np.arange(6.0).reshape(2, 3)
    on = device.put(x)
    array.copy(array.full(device, 2, 9.0, "float64"), out=array.diagonal(on, 1))
    assert value(device, on).tolist() == [[0, 9, 2], [3, 4, 9]]
    assert (value(device, array.tril(on, 10)) + 0 == value(device, on)).all()
    kept = value(device, array.tril(array.full(device, (2, 2), float("nan"))))
    assert kept[0, 1] == 0


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(0, 3), max_size=4),
    seed=seeds,
    sparse=st.booleans(),
    indexing=st.sampled_from(["xy", "ij"]),
)
def test_a_grid_is_numpys(
    device: Device,
    lengths: list[int],
    seed: int,
    sparse: bool,  # noqa: FBT001 - hypothesis gives it
    indexing: Any,
) -> None:
    xs = [small(seed + at, (n,), "float32") for at, n in enumerate(lengths)]
    got = array.meshgrid(*map(device.put, xs), sparse=sparse, indexing=indexing)
    for one, expected in zip(got, np.meshgrid(*xs, sparse=sparse, indexing=indexing), strict=True):
        near(device, value(device, one), expected)


def test_an_axis_that_is_none_is_refused(device: Device) -> None:
    x = array.zeros(device, (2, 1, 3))
    row = x[0, 0]
    with refused(device, "expand_dims: axis 5 is none of 4 axes"):
        array.expand_dims(x, 5)
    with refused(device, "is there twice"):
        array.expand_dims(x, (0, 0))
    with refused(device, "33 axes are more than 32"):
        array.expand_dims(x, range(30))
    with refused(device, "axis 0 of x float32[2, 1, 3] is not of length 1"):
        array.squeeze(x, 0)
    with refused(device, "not equally many"):
        array.moveaxis(x, (0, 1), 0)
    with refused(device, "an axis is twice"):
        array.moveaxis(x, (0, -3), (0, 1))
    with refused(device, "swapaxes: axis 3 is none of x float32[2, 1, 3]"):
        array.swapaxes(x, 3, 0)
    with refused(device, "Diagonal: axis 3"):
        array.diagonal(x, axis1=3)
    with refused(device, "float32[3]", "(...,m,n)"):
        array.diagonal(row)
    with refused(device, "x float32[2, 1, 3] does not broadcast to [2, 2]"):
        array.broadcast_to(x, (2, 2))
    with refused(device, "x float32[2, 1, 3] does not broadcast to [3, 1, 3]"):
        array.broadcast_to(x, (3, 1, 3))
    with refused(device, "indexing is 'xy' or 'ij'"):
        array.meshgrid(x, indexing="yx")  # type: ignore[arg-type]
    with refused(device, "more than one axis"):
        array.meshgrid(x)
