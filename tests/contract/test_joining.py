"""Buffers joined, split, padded, turned and repeated, against NumPy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from accel_lab import array
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from tests.contract.numpys import DTYPES, near, numpys, shapes
from tests.contract.samples import (
    Layout,
    assert_same,
    layouts,
    place,
    refused,
    seeds,
    small,
    unanswered,
    value,
)

some_axes = npst.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)


@settings(max_examples=150)
@given(data=st.data(), shape=some_axes, seed=seeds, count=st.integers(1, 3))
def test_joining_is_numpys_for_any_dtypes_and_strides(
    device: Device, data: st.DataObject, shape: tuple[int, ...], seed: int, count: int
) -> None:
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    xs = []
    for at in range(count):
        mine = list(shape)
        if axis is not None:
            mine[axis] = data.draw(st.integers(0, 3))
        xs.append(small(seed + at, tuple(mine), data.draw(DTYPES)))
    on = [place(device, x, data.draw(layouts)) for x in xs]
    expected = numpys(np.concatenate, xs, axis=axis)
    if isinstance(expected, type):
        with refused(device, "no dtype in common", "array.cast"):
            array.concatenate(on, axis)
        return
    near(device, value(device, array.concatenate(on, axis)), expected)


@settings(max_examples=60)
@given(data=st.data(), shape=shapes, seed=seeds, dtype=DTYPES, count=st.integers(1, 3))
def test_stacking_is_numpys(
    device: Device, data: st.DataObject, shape: tuple[int, ...], seed: int, dtype: str, count: int
) -> None:
    axis = data.draw(st.integers(-len(shape) - 1, len(shape)))
    xs = [small(seed + at, shape, dtype) for at in range(count)]
    on = [place(device, x, data.draw(layouts)) for x in xs]
    near(device, value(device, array.stack(on, axis)), np.stack(xs, axis))


def test_a_dtype_may_be_asked_for_and_arrays_are_uploaded(device: Device) -> None:
    x, y = np.arange(3, dtype=np.int8), np.array([0.5, 2.5])
    joined = array.concatenate([device.put(x), y], dtype="float32")
    near(device, value(device, joined), np.concatenate([x, y], dtype=np.float32))
    on = device.put(y)
    with refused(device, "float64 is not of the same kind as int8"):
        array.concatenate([on], dtype="int8")


def test_what_does_not_join_is_refused(device: Device) -> None:
    x, y = array.zeros(device, (2, 3)), array.zeros(device, (3, 3))
    row, number = x[0], x[0, 0]
    with refused(device, "float32[2, 3] and float32[3, 3] differ elsewhere than along axis 1"):
        array.concatenate([x, y], 1)
    with refused(device, "float32[2, 3] and float32[3]"):
        array.concatenate([x, row])
    with refused(device, "axis 2 is none of x float32[2, 3]"):
        array.concatenate([x], 2)
    with refused(device, "axis 0 is none of x float32[]"):
        array.concatenate([number])
    with refused(device, "nothing to join"):
        device.ask(array.Concatenate(()))
    with refused(device, "one operand must be an AccelRef"):
        array.concatenate([])
    with refused(device, "not of one shape"):
        array.stack([x, row])


def test_what_has_an_unknown_shape_joins(device: Device) -> None:
    x = device.put(np.arange(4.0))
    with unanswered(device):
        kept = device.run(lambda x: x[x > 1], x, pure=True)
        joined = device.ask(array.Concatenate((x, kept)))
        wrong = device.ask(array.Concatenate((x[None], kept)))
    assert joined.get().tolist() == [0, 1, 2, 3, 2, 3]
    with pytest.raises(InvalidArgument, match="differ elsewhere"):
        wrong.result(timeout_s=30)


@settings(max_examples=80)
@given(data=st.data(), shape=some_axes, seed=seeds, layout=layouts)
def test_splitting_is_numpys_and_joining_undoes_it(
    device: Device, data: st.DataObject, shape: tuple[int, ...], seed: int, layout: Layout
) -> None:
    x = small(seed, shape, "int16")
    on = place(device, x, layout)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    ends = st.lists(st.integers(-6, 6), max_size=4)
    sections: Any = data.draw(st.integers(1, 5) | ends)
    parts = array.array_split(on, sections, axis)
    expected = np.array_split(x, sections, axis)
    assert len(parts) == len(expected)
    for part, one in zip(parts, expected, strict=True):
        near(device, value(device, part), one)
    if isinstance(sections, int):
        near(device, value(device, array.concatenate(parts, axis)), x)
        if shape[axis] % sections:
            with refused(device, f"not {sections} parts of equal length"):
                array.split(on, sections, axis)
            return
    for part, one in zip(array.split(on, sections, axis), np.split(x, sections, axis), strict=True):
        near(device, value(device, part), one)


def test_parts_are_views(device: Device) -> None:
    x = array.zeros(device, 4)
    first, _ = array.split(x, 2)
    array.copy(array.full(device, 2, 5.0), out=first)
    array.copy(array.full(device, 1, 7.0), out=array.flip(x)[:1])
    assert x.get().tolist() == [5, 5, 0, 7]
    with refused(device, "less than 1"):
        array.array_split(x, 0)


@settings(max_examples=80)
@given(data=st.data(), shape=shapes, seed=seeds, dtype=DTYPES, layout=layouts)
def test_rolling_and_flipping_are_numpys(
    device: Device,
    data: st.DataObject,
    shape: tuple[int, ...],
    seed: int,
    dtype: str,
    layout: Layout,
) -> None:
    x, ndim = small(seed, shape, dtype), len(shape)
    on = place(device, x, layout)
    several = npst.valid_tuple_axes(ndim) if ndim else st.none()
    axis: Any = data.draw((st.integers(-ndim, ndim - 1) if ndim else st.none()) | several)
    near(device, value(device, array.flip(on, axis)), np.flip(x, axis))
    shift: Any = data.draw(st.integers(-7, 7))
    if isinstance(axis, tuple) and axis:
        shift = data.draw(st.just(shift) | st.tuples(*[st.integers(-7, 7)] * len(axis)))
    rolled = array.roll(on, shift, axis)
    near(device, value(device, rolled), np.roll(x, shift, axis))
    if not isinstance(shift, tuple):
        near(device, value(device, array.roll(rolled, -shift, axis)), x)
    near(device, value(device, array.roll(on, 2)), np.roll(x, 2))


@settings(max_examples=80)
@given(data=st.data(), shape=shapes, seed=seeds, dtype=DTYPES, layout=layouts)
def test_tiling_and_repeating_are_numpys(
    device: Device,
    data: st.DataObject,
    shape: tuple[int, ...],
    seed: int,
    dtype: str,
    layout: Layout,
) -> None:
    x, ndim = small(seed, shape, dtype), len(shape)
    on = place(device, x, layout)
    reps: Any = data.draw(st.integers(0, 3) | st.lists(st.integers(0, 3), max_size=4))
    near(device, value(device, array.tile(on, reps)), np.tile(x, reps))
    axis = data.draw(st.integers(-ndim, ndim - 1) | st.none() if ndim else st.none())
    extent = x.size if axis is None else shape[axis]
    each = st.lists(st.integers(0, 3), min_size=extent, max_size=extent)
    repeats: Any = data.draw(st.integers(0, 3) | each)
    near(device, value(device, array.repeat(on, repeats, axis)), np.repeat(x, repeats, axis))


@settings(max_examples=150)
@given(
    data=st.data(),
    shape=npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    seed=seeds,
    dtype=DTYPES,
    layout=layouts,
    mode=st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap"]),
)
def test_padding_is_numpys_in_every_mode(
    device: Device,
    data: st.DataObject,
    shape: tuple[int, ...],
    seed: int,
    dtype: str,
    layout: Layout,
    mode: Any,
) -> None:
    x, ndim = small(seed, shape, dtype), len(shape)
    on = place(device, x, layout)
    pair = st.tuples(st.integers(0, 6), st.integers(0, 6))
    width: Any = data.draw(st.integers(0, 3) | pair | st.tuples(*[pair] * ndim))
    if not ndim:
        width = data.draw(st.integers(0, 3))
    with np.errstate(all="ignore"):
        try:
            expected = np.pad(x, width, mode)
        except ValueError:
            with refused(device, "nothing to make of", f"mode '{mode}'"):
                array.pad(on, width, mode)
            return
    assert_same(value(device, array.pad(on, width, mode)), expected)


def test_a_constant_may_differ_by_side_and_nothing_added_is_a_copy(device: Device) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    on = device.put(x)
    for values in (2.5, (1, 2), ((1, 2), (3, np.nan))):
        padded = array.pad(on, ((1, 0), (2, 1)), constant_values=values)
        assert_same(
            value(device, padded), np.pad(x, ((1, 0), (2, 1)), constant_values=np.array(values))
        )
    same = array.pad(on, 0)
    array.copy(array.zeros(device, (2, 3)), out=same)
    assert_same(value(device, on), x)
    with refused(device, "pad_width must be integers from 0, not -1"):
        array.pad(on, -1)
    with refused(device, "a pair for each of 2 axes"):
        array.pad(on, (1, 2, 3))
    with refused(device, "no mode 'mean'", "wrap"):
        array.pad(on, 1, "mean")  # type: ignore[arg-type]


def test_what_cannot_be_repeated_is_refused(device: Device) -> None:
    x = array.zeros(device, (2, 3))
    with refused(device, "2 numbers for the 3 elements of axis 1", "float32[2, 3]"):
        array.repeat(x, [1, 2], 1)
    with refused(device, "less than 0"):
        array.repeat(x, -1)
    with refused(device, "less than 0"):
        array.tile(x, (1, -1))
    with refused(device, "not equally many"):
        array.roll(x, (1, 2, 3), (0, 1))
    with refused(device, "an axis is twice"):
        array.flip(x, (0, -2))


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2", "complex128"])
def test_every_bit_of_what_is_joined_stays(device: Device, dtype: str) -> None:
    x = np.array([np.nan, -0.0, np.inf, -1.5]).astype(numpy_dtype(dtype))
    on = device.put(x)
    assert_same(value(device, array.concatenate([on, on[::-1]])), np.concatenate([x, x[::-1]]))
