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
from tests.contract.numpys import near, shapes
from tests.contract.samples import Layout, layouts, place, refused, seeds, small, value


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


def test_a_mask_and_mixed_indices_are_refused_with_what_to_do(device: Device) -> None:
    x = device.put(np.arange(6.0).reshape(2, 3))
    mask = x > 2
    with refused(device, "array.where(mask, x, 0)", "gpu.run"):
        _ = x[mask]
    with refused(device, "array.where(mask, x, 0)"):
        _ = x[[True, False]]
    with refused(device, "array.take(x, indices, axis)"):
        _ = x[:, np.array([0, 1])]
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
