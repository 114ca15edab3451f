"""Square brackets behind a buffer, against NumPy."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from accel_lab import array
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from tests.contract.numpys import DTYPES, near, shapes
from tests.contract.samples import Layout, assert_same, layouts, place, refused, seeds, small, value


@settings(max_examples=60)
@given(data=st.data(), seed=seeds, shape=shapes, layout=layouts)
@pytest.mark.parametrize("take", [array.slice, operator.getitem])
def test_a_slice_is_what_numpy_slices(
    device: Device,
    take: Callable[[AccelRef, Any], AccelRef],
    data: st.DataObject,
    seed: int,
    shape: tuple[int, ...],
    layout: Layout,
) -> None:
    x = small(seed, shape, "int16")
    index = data.draw(npst.basic_indices(shape, allow_newaxis=True, max_dims=6))
    ref = take(place(device, x, layout), index)
    assert ref.shape == np.shape(x[index])
    near(device, value(device, ref), x[index])


@settings(max_examples=60)
@given(data=st.data(), seed=seeds, shape=npst.array_shapes(max_dims=3), layout=layouts)
def test_integers_in_square_brackets_take_rows(
    device: Device, data: st.DataObject, seed: int, shape: tuple[int, ...], layout: Layout
) -> None:
    x = small(seed, shape, "float32")
    indices = data.draw(
        npst.arrays(
            st.sampled_from(["int8", "int32", "int64"]),
            npst.array_shapes(min_dims=0, min_side=0, max_dims=2),
            elements=st.integers(-shape[0], shape[0] - 1),
        )
    )
    on = place(device, x, layout)
    near(device, value(device, on[device.put(indices)]), x[indices])
    if indices.ndim == 1:
        near(device, value(device, on[indices.tolist()]), x[indices.tolist() or slice(0)])
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    wrapped = np.take(x, indices, axis, mode="wrap")
    near(device, value(device, array.take(on, indices, np.int64(axis))), wrapped)
    near(device, value(device, array.take(on, indices)), np.take(x, indices, mode="wrap"))


def test_indices_outside_wrap_around(device: Device) -> None:
    x = device.put(np.arange(3.0))
    assert value(device, x[np.array([3, -4, 7])]).tolist() == [0, 2, 1]


@settings(max_examples=120)
@given(data=st.data(), seed=seeds, shape=shapes, dtype=DTYPES, layout=layouts)
def test_a_mask_in_square_brackets_keeps_what_numpy_keeps(
    device: Device,
    data: st.DataObject,
    seed: int,
    shape: tuple[int, ...],
    dtype: str,
    layout: Layout,
) -> None:
    x = small(seed, shape, dtype)
    mask = small(seed + 1, shape[: data.draw(st.integers(0, len(shape)))], "bool")
    on = place(device, x, layout)
    kept = on[place(device, np.asarray(mask), data.draw(layouts))]
    assert_same(value(device, kept), x[mask])
    if mask.ndim:
        assert_same(value(device, on[mask]), x[mask])
    if mask.ndim == 1 and mask.size:
        assert_same(value(device, on[mask.tolist()]), x[mask])


@settings(max_examples=150)
@given(data=st.data(), seed=seeds, shape=npst.array_shapes(max_dims=4, max_side=4), layout=layouts)
def test_arrays_among_slices_and_integers_take_what_numpy_takes(
    device: Device, data: st.DataObject, seed: int, shape: tuple[int, ...], layout: Layout
) -> None:
    x = small(seed, shape, "int16")
    together = data.draw(
        npst.mutually_broadcastable_shapes(num_shapes=len(shape), max_dims=2, max_side=3)
    )
    entries: list[Any] = []
    for extent, wide in zip(shape, together.input_shapes, strict=True):
        within = st.integers(-extent, extent - 1)
        entries.append(
            data.draw(
                st.sampled_from([slice(None), slice(1, None), slice(None, None, -1)])
                | within
                | npst.arrays("int64", wide, elements=within)
                | npst.arrays("int32", wide, elements=within)
            )
        )
    entries = entries[: data.draw(st.integers(1, len(entries)))]
    if data.draw(st.booleans()):
        entries.insert(data.draw(st.integers(0, len(entries))), None)
    if data.draw(st.booleans()):
        entries.append(...)
    on = place(device, x, layout)
    sent = tuple(
        device.put(one) if isinstance(one, np.ndarray) and data.draw(st.booleans()) else one
        for one in entries
    )
    assert_same(value(device, on[sent]), np.asarray(x[tuple(entries)]))


def with_a_mask(data: st.DataObject, seed: int, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Draw an index with a mask among slices and integers."""
    ndim = len(shape)
    first = data.draw(st.integers(0, ndim - 1))
    last = data.draw(st.integers(first + 1, ndim))
    beside = [
        data.draw(st.sampled_from([slice(None), slice(1, None), slice(None, None, -1), n - 1]))
        for n in (*shape[:first], *shape[last:])
    ]
    mask = np.asarray(small(seed, shape[first:last], "bool"))
    index = [*beside[:first], mask, *beside[first : data.draw(st.integers(first, len(beside)))]]
    if data.draw(st.booleans()):
        index.insert(data.draw(st.integers(0, len(index))), None)
    return (*index, ...) if data.draw(st.booleans()) else tuple(index)


@settings(max_examples=100)
@given(data=st.data(), seed=seeds, shape=npst.array_shapes(max_dims=4, max_side=4), layout=layouts)
def test_a_mask_among_slices_and_integers_keeps_and_writes_what_numpy_does(
    device: Device, data: st.DataObject, seed: int, shape: tuple[int, ...], layout: Layout
) -> None:
    x, index = small(seed, shape, "int16"), with_a_mask(data, seed, shape)
    on = place(device, x, layout)
    far = tuple(device.put(one) if isinstance(one, np.ndarray) else one for one in index)
    expected = np.asarray(x[index])
    assert_same(value(device, on[index]), expected)
    assert_same(value(device, on[far]), expected)
    written = small(seed + 1, (*expected.shape[1:],) if data.draw(st.booleans()) else (), "int16")
    if expected.ndim and data.draw(st.booleans()):
        written = small(seed + 1, expected.shape, "int16")
    x[index] = written
    for sent in (index, far):
        again = on.copy()
        again[sent] = written
        assert_same(value(device, again), x)


@settings(max_examples=100)
@given(
    data=st.data(), seed=seeds, shape=npst.array_shapes(max_dims=3), dtype=DTYPES, layout=layouts
)
def test_taking_along_an_axis_is_numpys(
    device: Device,
    data: st.DataObject,
    seed: int,
    shape: tuple[int, ...],
    dtype: str,
    layout: Layout,
) -> None:
    x, axis = small(seed, shape, dtype), data.draw(st.integers(-len(shape), len(shape) - 1))
    wide = [data.draw(st.sampled_from([1, n])) for n in shape]
    wide[axis] = data.draw(st.integers(0, 4))
    whole: Any = npst.arrays  # whose overloads know no dtypes that are drawn
    extent = shape[axis]
    indices = data.draw(
        whole(
            st.sampled_from(["int8", "int64"]),
            tuple(wide),
            elements=st.integers(-extent, extent - 1),
        )
    )
    on, at = place(device, x, layout), place(device, indices, data.draw(layouts))
    expected = np.take_along_axis(x, indices, axis)
    assert_same(value(device, array.take_along_axis(on, at, axis)), expected)
    flat = indices.reshape(-1)
    got = array.take_along_axis(on, device.put(flat), None)
    assert_same(value(device, got), np.take_along_axis(x, flat.astype(np.int64) % x.size, None))


def test_a_mask_that_does_not_fit_and_no_index_is_refused(device: Device) -> None:
    x = device.put(np.arange(6.0).reshape(2, 3))
    row, wide = x[0] > 1, device.put(np.zeros((3, 1), np.int64))
    with refused(device, "mask is bool[3]", "first axes of x float64[2, 3]"):
        _ = x[row]
    with refused(device, "mask is float64[2, 3]", "bool"):
        array.mask(x, x)
    with refused(device, "a mask on the device, here bool[3], is the only array", "array.nonzero"):
        _ = x[[0], row]
    with refused(device, "a mask is bool[2], and is to have the axes of x float64[2, 3] from 1"):
        _ = x[..., np.array([True, False])]
    with refused(device, "a mask is bool[3, 1]", "from 0"):
        _ = x[None, np.ones((3, 1), bool)]
    with refused(device, "more than one Ellipsis"):
        _ = x[..., np.array([0]), ...]
    with refused(device, "3 axes, but x is float64[2, 3]"):
        _ = x[0, np.array([0]), 0]
    with refused(device, "index 2 is outside axis 0"):
        _ = x[2, np.array([0])]
    with refused(device, "an index is of integers, not float64[1]"):
        _ = x[:, np.array([0.5])]
    with refused(device, "do not broadcast"):
        _ = x[np.array([0, 1]), np.array([0, 1, 2])]
    none = x[:, :0]
    with refused(device, "axis 1 of x float64[2, 0] has no elements"):
        _ = none[:, np.array([0])]
    with refused(device, "TakeAlong: indices are int64[3, 1]", "does not broadcast beside axis 1"):
        array.take_along_axis(x, wide, 1)
    with refused(device, "is to have as many axes"):
        array.take_along_axis(x, wide, None)
    with refused(device, "float64[2, 3]", "integers"):
        _ = x[x]
    with refused(device, "[[0], [0, 1]] has rows of several lengths"):
        _ = x[[[0], [0, 1]]]
    empty, none = x[:0], array.zeros(device, 1, "int8")
    with refused(device, "nothing to take"):
        array.take(empty, none, 0)
    many, first = array.zeros(device, (1,) * 32), array.zeros(device, (1,) * 32, "int8")
    with refused(device, "Take: 63 axes are more than 32"):
        array.take(many, first, 0)
