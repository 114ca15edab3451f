"""Assignment to square brackets behind a buffer, against NumPy's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from accel_lab import array
from accel_lab.compute.arrays.dtypes import is_complex
from accel_lab.compute.device import Device
from accel_lab.errors import AccelError, InvalidArgument
from tests.contract.numpys import DTYPES, shapes
from tests.contract.samples import (
    Layout,
    assert_same,
    layouts,
    place,
    seeds,
    small,
    unanswered,
    value,
)

SLICES = [slice(None), slice(1, None), slice(None, None, -1)]


def broadcastable(data: st.DataObject, part: tuple[int, ...]) -> tuple[int, ...]:
    """Draw a shape that broadcasts to that of a part; NumPy drops ones ahead of it, too."""
    kept = [n if data.draw(st.booleans()) else 1 for n in part]
    ahead = data.draw(st.integers(-len(kept), 1))
    return (1, *kept) if ahead > 0 else tuple(kept[-ahead:])


def given_as(device: Device, data: st.DataObject, x: Any) -> Any:
    """Draw how a value is given: as a buffer of any strides, as an array, as a number."""
    if not x.ndim and data.draw(st.booleans()):
        return x.item()
    return x if data.draw(st.booleans()) else place(device, x, data.draw(layouts))


def as_array(index: Any) -> Any:
    """Return an index to a single element as one to an array of it, which takes any value."""
    entries = index if isinstance(index, tuple) else (index,)
    return entries if any(one is ... for one in entries) else (*entries, ...)


@settings(max_examples=80)
@given(data=st.data(), seed=seeds, shape=shapes, dtype=DTYPES, layout=layouts)
def test_a_part_is_written_as_numpy_writes_it(
    device: Device,
    data: st.DataObject,
    seed: int,
    shape: tuple[int, ...],
    dtype: str,
    layout: Layout,
) -> None:
    x = np.array(small(seed, shape, dtype))
    index = data.draw(npst.basic_indices(shape, allow_newaxis=True, max_dims=6))
    source = data.draw(DTYPES.filter(lambda one: is_complex(dtype) or not is_complex(one)))
    extents = broadcastable(data, np.shape(x[index]))
    # From 0, so that every dtype has what it is converted to.
    written = np.array(abs(small(seed + 1, extents, source))).astype(
        x.dtype if extents == () else source
    )
    on = place(device, x, layout)
    on[index] = given_as(device, data, written)
    with np.errstate(all="ignore"):
        x[as_array(index)] = written
    assert_same(value(device, on), x)


@settings(max_examples=60)
@given(data=st.data(), seed=seeds, shape=npst.array_shapes(max_dims=4, max_side=4), layout=layouts)
def test_what_is_at_integers_is_written_as_numpy_writes_it(
    device: Device, data: st.DataObject, seed: int, shape: tuple[int, ...], layout: Layout
) -> None:
    x = small(seed, shape, "int16")
    together = data.draw(
        npst.mutually_broadcastable_shapes(num_shapes=len(shape), max_dims=2, max_side=3)
    )
    entries: list[Any] = []
    for extent, wide in zip(shape, together.input_shapes, strict=True):
        within = st.integers(-extent, extent - 1)
        arrays = npst.arrays(st.sampled_from(["int8", "int64"]), wide, elements=within)
        entries.append(data.draw(st.sampled_from(SLICES) | within | arrays))
    entries = entries[: data.draw(st.integers(1, len(entries)))]
    if data.draw(st.booleans()):
        entries.append(...)
    index = tuple(entries)
    written = np.array(small(seed + 1, broadcastable(data, np.shape(x[index])), "int16"))
    # Which of several values an element gets is told on the host alone: they are equal then.
    places = np.arange(x.size).reshape(shape)[index]
    if np.unique(places).size < places.size and not device.name.startswith("cpu"):
        written = np.full_like(written, 5)
    on = place(device, x, layout)
    on[
        tuple(
            device.put(one) if isinstance(one, np.ndarray) and data.draw(st.booleans()) else one
            for one in entries
        )
    ] = given_as(device, data, written)
    x[as_array(index)] = written
    assert_same(value(device, on), x)


@settings(max_examples=60)
@given(data=st.data(), seed=seeds, shape=shapes, dtype=DTYPES, layout=layouts)
def test_what_a_mask_says_is_written_as_numpy_writes_it(
    device: Device,
    data: st.DataObject,
    seed: int,
    shape: tuple[int, ...],
    dtype: str,
    layout: Layout,
) -> None:
    x = np.array(small(seed, shape, dtype))
    mask = np.array(small(seed + 1, shape[: data.draw(st.integers(0, len(shape)))], "bool"))
    written = np.array(small(seed + 2, broadcastable(data, x[mask].shape), dtype))
    on = place(device, x, layout)
    on[place(device, mask, data.draw(layouts))] = given_as(device, data, written)
    again = place(device, x, layout)
    array.assign(again, mask if mask.ndim else device.put(mask), written)
    x[mask] = written[0] if written.ndim > x[mask].ndim else written
    assert_same(value(device, on), x)
    assert_same(value(device, again), x)


@settings(max_examples=50)
@given(
    data=st.data(), seed=seeds, shape=npst.array_shapes(max_dims=3), dtype=DTYPES, layout=layouts
)
def test_putting_along_an_axis_is_numpys_and_undoes_taking(
    device: Device,
    data: st.DataObject,
    seed: int,
    shape: tuple[int, ...],
    dtype: str,
    layout: Layout,
) -> None:
    x, axis = small(seed, shape, dtype), data.draw(st.integers(-len(shape), len(shape) - 1))
    order = np.argsort(np.random.default_rng(seed).random(shape), axis)
    on, at = place(device, x, layout), place(device, order, data.draw(layouts))
    made = array.put_along_axis(
        array.zeros(device, shape, dtype), at, array.take_along(on, at, axis), axis
    )
    assert_same(value(device, made), x)
    # One index for each line, which broadcasts, and counts from the end.
    few = order[tuple(slice(0, 1) if at == axis % x.ndim else slice(None) for at in range(x.ndim))]
    array.put_along_axis(on, few - shape[axis], 1, axis)
    np.put_along_axis(x, few, 1, axis)
    assert_same(value(device, on), x)
    array.put_along_axis(on, np.array([-1, 0])[:1], np.zeros(1, x.dtype), None)
    x[(-1,) * x.ndim] = 0
    assert_same(value(device, on), x)


def test_indices_outside_wrap_around(device: Device) -> None:
    x = device.put(np.arange(3.0))
    x[np.array([3, -5])] = device.put(np.array([7.0, 8.0]))
    array.put_along_axis(x, np.array([5]), 9.0)
    assert value(device, x).tolist() == [7, 8, 9]


def test_views_and_the_whole_see_what_is_written(device: Device) -> None:
    x = device.put(np.arange(12.0).reshape(3, 4))
    turned, row, before = x.T, x[1], x.copy()
    x[1] = -1.0
    assert value(device, turned[:, 1]).tolist() == [-1, -1, -1, -1]
    row[row < 0] = device.put(np.arange(4.0))
    turned[[0, 3], [0, 2]] = 50.0
    answer = array.assign(row, slice(1, None), 9.0)
    assert answer.id == row.id
    expected = [[50, 1, 2, 3], [0, 9, 9, 9], [8, 9, 10, 50]]
    assert value(device, x).tolist() == expected
    assert value(device, before).tolist() == np.arange(12).reshape(3, 4).tolist()


def test_a_value_is_read_as_it_was_before(device: Device) -> None:
    x, whole = np.arange(6), np.arange(6)
    on = device.put(x)
    on[1:] = on[:-1]
    whole[1:] = x[:-1]
    on[::-1] = on
    whole[:] = whole[::-1].copy()
    on[on[:5]] = on[:0:-1]  # no place is named twice
    whole[whole[:5].copy()] = whole[:0:-1].copy()
    array.put_along_axis(on, on[:3], on[3:])
    np.put_along_axis(whole, whole[:3].copy(), whole[3:].copy(), 0)
    on[on > 2] += 10
    whole[whole > 2] += 10
    assert value(device, on).tolist() == whole.tolist()


def test_what_is_sent_before_and_behind_keeps_its_place(device: Device) -> None:
    x = device.put(np.zeros(4, np.int64))
    sums, computed = [], []
    for at in range(4):
        x[at] = at + 1
        sums.append(x.sum())
        computed.append(x * 2 + 1)  # which may wait for more to be computed with it
        x[x == 1] = 5
    assert [int(one) for one in sums] == [1, 7, 10, 14]
    assert [int(one[0]) for one in computed] == [3, 11, 11, 11]


@pytest.mark.parametrize("rows", [1, 3])
def test_rows_that_are_not_as_many_as_the_mask_says_write_nothing(
    device: Device, rows: int
) -> None:
    x = device.put(np.arange(4.0))
    before, wrong = x.copy(), np.zeros((rows + 1,))
    words = rf"value is float64\[{rows + 1}\], and mask is True {rows} times"
    mask = np.arange(4) < rows
    with pytest.raises(InvalidArgument, match=words):
        array.assign(x, mask, wrong)
    failed = array.assign(x, device.put(mask), wrong)
    with pytest.raises(InvalidArgument, match=words):
        failed.result(timeout_s=30)
    assert value(device, before).tolist() == [0, 1, 2, 3]


def test_an_unknown_shape_is_written_to_and_refused_where_it_is_known(device: Device) -> None:
    x = device.put(np.arange(4.0))
    with unanswered(device):
        kept = device.run(lambda x: x[x > 1].copy(), x, pure=True)
        kept[1:] = 7.0
        wrong = array.assign(kept, 9, 1.0)
    with pytest.raises(AccelError, match="index 9 is outside axis 0"):
        wrong.result(timeout_s=30)


def test_what_does_not_fit_is_refused(device: Device) -> None:
    x = device.put(np.arange(6.0).reshape(2, 3))
    whole, row, flags = x.astype("int8"), x[0] > 1, x > 1
    text, at = "which does not broadcast to", device.put(np.array([0]))
    calls: list[tuple[Callable[[], object], tuple[str, ...]]] = [
        (lambda: array.assign(x, 0, np.zeros(2)), ("value is float64[2]", text, "[3], the part")),
        (lambda: array.assign(x, 5, 0), ("index 5 is outside axis 0",)),
        (lambda: array.assign(x, (0, 0, 0), 0), ("names 3 axes, but x is float64[2, 3]",)),
        (lambda: array.assign(x, 0, 1j), ("float64 has no complex values",)),
        (lambda: array.assign(x, 0, np.zeros(3, complex)), ("float64 has no imaginary part",)),
        (lambda: array.assign(whole, 0, 300), ("int8 has the integers from -128 to 127",)),
        (lambda: array.assign(x, 0, "one"), ("dtype <U3 is not one of",)),
        (lambda: array.assign(x, 0, [[1], [1, 2]]), ("rows of several lengths",)),
        (lambda: array.assign(x, row, 0), ("mask is bool[3]", "first axes of out float64[2, 3]")),
        (lambda: array.assign(x, flags, np.zeros((2, 2))), (text,)),
        (lambda: array.assign(x, ([0], row), 0), ("here bool[3], is the only array",)),
        (lambda: array.assign(x, ([0, 1], [0, 1, 2]), 0), ("do not broadcast to one",)),
        (lambda: array.assign(x, [0.5], 0), ("an index is of integers, not float64",)),
        (lambda: array.assign(x[:0], [0], 0), ("axis 0 of x float64[0, 3] has no elements",)),
        (lambda: array.assign_at(x[:0], None, 1, (at,), 0), ("nothing at indices of out",)),
        (lambda: array.put_along_axis(x, at, 0, 1), ("as many axes",)),
        (lambda: array.put_along_axis(x, at[None], 0, 2), ("axis 2 is none",)),
        (lambda: array.assign_at(x, None, 1, (), 0), ("one for each of 0 indices",)),
        (lambda: array.assign_mask(x, flags, 1, flags), ("not both",)),
    ]
    for call, words in calls:
        with pytest.raises(InvalidArgument) as caught:
            call()
        for word in words:
            assert word in str(caught.value)
    assert value(device, x).tolist() == [[0, 1, 2], [3, 4, 5]]
