"""Buffers in order, and what stands where in the order, against NumPy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from accel_lab import array
from accel_lab.compute.arrays.dtypes import NAMES, is_complex, is_float
from accel_lab.compute.device import Device
from accel_lab.errors import UnsupportedDtype
from accel_lab.libraries.array.message import NUMPYS
from tests.contract.numpys import near, numpys, shapes
from tests.contract.samples import (
    Layout,
    assert_equal,
    layouts,
    place,
    reals,
    refused,
    seeds,
    small,
    value,
)
from tests.contract.tolerances import EPS

dtypes = st.sampled_from(sorted(NUMPYS))
floats = st.sampled_from(["float16", "float32", "float64"])


def with_ends(x: Any) -> Any:
    """Return an array some of whose elements are NaN or infinite."""
    if x.dtype.kind not in "fc":
        return x
    made = np.array(x)
    for at, end in enumerate((np.nan, np.inf, -np.inf)):
        made.reshape(-1)[at::7] = end
    if made.dtype.kind == "c":
        made.reshape(-1)[3::7] = complex(1, np.nan)
    return made


@settings(max_examples=200)
@given(data=st.data(), shape=shapes, seed=seeds, dtype=dtypes, layout=layouts)
def test_sorting_is_numpys_along_any_axis_of_any_view(
    device: Device,
    data: st.DataObject,
    shape: tuple[int, ...],
    seed: int,
    dtype: str,
    layout: Layout,
) -> None:
    x, ndim = with_ends(small(seed, shape, dtype)), len(shape)
    axis = data.draw(st.integers(-ndim, ndim - 1) | st.none() if ndim else st.none())
    on = place(device, x, layout)
    assert_equal(value(device, array.sort(on, axis)), np.sort(x, axis))
    places = array.argsort(on, axis)
    assert_equal(value(device, places), np.argsort(x, axis, kind="stable"))
    along = array.take_along_axis(on, places, axis)
    assert_equal(value(device, along), np.sort(x, axis))


def test_a_long_vector_is_sorted_and_equal_ones_stay_in_order(device: Device) -> None:
    x = np.random.default_rng(0).integers(0, 50, 100_000).astype(np.int16)
    on = device.put(x)
    assert_equal(value(device, array.argsort(on)), np.argsort(x, kind="stable"))
    assert_equal(value(device, array.sort(on)), np.sort(x))


@settings(max_examples=100)
@given(
    seed=seeds,
    n=st.integers(0, 12),
    shape=shapes,
    pair=st.tuples(dtypes, dtypes),
    layout=layouts,
    side=st.sampled_from(["left", "right"]),
)
def test_searching_is_numpys_for_any_dtypes(
    device: Device,
    seed: int,
    n: int,
    shape: tuple[int, ...],
    pair: tuple[str, str],
    layout: Layout,
    side: Any,
) -> None:
    unsorted, v = small(seed, (n,), pair[0]), with_ends(small(seed + 1, shape, pair[1]))
    a, on = np.sort(unsorted), place(device, v, layout)
    expected = np.searchsorted(a, v, side)
    got = array.searchsorted(place(device, a, layout), on, side)
    assert_equal(value(device, got), np.asarray(expected))
    ref = device.put(unsorted)
    sorter = array.argsort(ref)
    assert_equal(value(device, array.searchsorted(ref, on, side, sorter)), np.asarray(expected))


def test_a_number_and_an_array_are_searched_for(device: Device) -> None:
    a = device.put(np.array([1, 2, 2, 5], np.int32))
    assert value(device, array.searchsorted(a, 2)) == 1
    assert value(device, array.searchsorted(a, 2.5, "right")) == 3
    assert value(device, array.searchsorted(a, np.array([[0, 9]]))).tolist() == [[0, 4]]


@settings(max_examples=50)
@given(
    data=st.data(),
    shape=npst.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=5),
    seed=seeds,
    dtype=st.sampled_from(sorted(n for n in NUMPYS if not is_complex(n) and n != "bool")),
    layout=layouts,
    keepdims=st.booleans(),
)
def test_medians_and_quantiles_are_numpys(
    device: Device,
    data: st.DataObject,
    shape: tuple[int, ...],
    seed: int,
    dtype: str,
    layout: Layout,
    keepdims: bool,  # noqa: FBT001 - hypothesis gives it
) -> None:
    x, ndim = small(seed, shape, dtype), len(shape)
    if is_float(dtype) and data.draw(st.booleans()):
        x = reals(seed, shape, dtype)
        x.reshape(-1)[:: data.draw(st.integers(1, 9))] = data.draw(st.sampled_from([np.nan, 1.0]))
    several = npst.valid_tuple_axes(ndim, min_size=1) if ndim else st.none()
    axis: Any = data.draw((st.integers(-ndim, ndim - 1) if ndim else st.none()) | several)
    parts = st.floats(0, 1)
    q: Any = data.draw(parts | st.lists(parts, max_size=3) | st.just(1) | st.just([[0, 0.5]]))
    hundred: Any = np.multiply(q, 100).tolist()  # beside a NumPy scalar its dtype depends on NaN
    on = place(device, x, layout)
    options = {"axis": axis, "keepdims": keepdims}
    for got, expected in (
        (array.median(on, **options), np.median(x, **options)),
        (array.quantile(on, q, **options), np.quantile(x, q, **options)),
        (array.percentile(on, hundred, **options), np.percentile(x, hundred, **options)),
    ):
        one, wanted = value(device, got), np.asarray(expected)
        assert (one.shape, one.dtype) == (wanted.shape, wanted.dtype)
        # NumPy forms the position in the dtype of `q`, and the step in that of `x`.
        eps = max(EPS.get(str(of.dtype), 0.0) for of in (wanted, x))
        np.testing.assert_allclose(one, wanted, rtol=8 * eps, atol=64 * eps)


@settings(max_examples=60)
@given(
    data=st.data(),
    shape=shapes.filter(lambda shape: 0 not in shape),
    seed=seeds,
    dtype=st.sampled_from(["float16", "float32", "float64", "int32"]),
    layout=layouts,
    keepdims=st.booleans(),
)
@pytest.mark.filterwarnings("ignore:All-NaN")
def test_without_nan_they_are_numpys_of_what_is_left(
    device: Device,
    data: st.DataObject,
    shape: tuple[int, ...],
    seed: int,
    dtype: str,
    layout: Layout,
    keepdims: bool,  # noqa: FBT001 - hypothesis gives it
) -> None:
    x, ndim = small(seed, shape, dtype), len(shape)
    if is_float(dtype):
        gaps = np.random.default_rng(seed).random(shape) < data.draw(st.sampled_from([0, 0.4, 1]))
        x = np.where(gaps, np.nan, reals(seed, shape, dtype)).astype(dtype)
    axis: Any = data.draw(st.integers(-ndim, ndim - 1) if ndim else st.none())
    parts = st.floats(0, 1)
    q: Any = data.draw(parts | st.lists(parts, min_size=1, max_size=3) | st.just([[0, 0.5, 1]]))
    hundred: Any = np.multiply(q, 100).tolist()
    on, options = place(device, x, layout), {"axis": axis, "keepdims": keepdims}
    full = np.nan_to_num(x)  # where nothing is left NumPy's answer has another dtype
    for got, expected, like in (
        (array.nanmedian(on, **options), np.nanmedian(x, **options), np.median(full)),
        (
            array.nanquantile(on, q, **options),
            np.nanquantile(x, q, **options),
            np.quantile(full, q),
        ),
        (
            array.nanpercentile(on, hundred, **options),
            np.nanpercentile(x, hundred, **options),
            np.percentile(full, hundred),
        ),
    ):
        one, wanted = value(device, got), np.asarray(expected, like.dtype)
        assert (one.shape, one.dtype) == (wanted.shape, wanted.dtype)
        eps = max(EPS.get(str(of.dtype), 0.0) for of in (wanted, x))
        np.testing.assert_allclose(one, wanted, rtol=8 * eps, atol=64 * eps)


def test_quantiles_without_nan_refuse_what_is_none(device: Device) -> None:
    x, empty = device.put(np.ones(3)), device.put(np.ones((0, 2)))
    with refused(device, "nanquantile: q is to be numbers from 0 to 1"):
        array.nanquantile(x, 1.5)
    with refused(device, "nanpercentile: there is none of nothing"):
        array.nanpercentile(empty, 50, 0)
    with refused(device, "nanmedian", "axis"):
        array.nanmedian(x, 1)
    with pytest.warns(RuntimeWarning):
        wanted = np.nanmedian(np.ones((0, 2)), 0)
    assert_equal(value(device, array.nanmedian(empty, 0)), wanted)


def test_the_ends_of_a_quantile_are_exact(device: Device) -> None:
    x = reals(3, (1001,), "float32")
    on = device.put(x)
    assert_equal(value(device, array.quantile(on, [0, 0.5, 1])), np.quantile(x, [0, 0.5, 1]))
    assert value(device, array.median(on)) == np.median(x)
    with pytest.warns(RuntimeWarning):
        empty = np.median(x[:0])
    assert_equal(value(device, array.median(on[:0])), np.asarray(empty))
    z = device.put(np.array([1 + 2j, 3, 1 - 1j]))
    assert value(device, array.median(z)) == np.median([1 + 2j, 3, 1 - 1j])


@settings(max_examples=80)
@given(
    seed=seeds,
    n=st.integers(1, 8),
    shape=shapes,
    dtype=st.sampled_from(["float64", "float32", "int32", "complex128"]),
    ends=st.tuples(st.none() | st.just(-9.0), st.none() | st.just(9.0)),
)
def test_interpolation_is_numpys(
    device: Device, seed: int, n: int, shape: tuple[int, ...], dtype: str, ends: tuple[Any, Any]
) -> None:
    xp = np.sort(reals(seed, (n,), "float64"))
    fp = small(seed + 1, (n,), dtype)
    x = np.asarray(2 * reals(seed + 2, shape, "float64"))
    x.reshape(-1)[::5] = np.nan
    x.reshape(-1)[1::4] = xp[0]
    x.reshape(-1)[2::4] = xp[-1]
    expected = np.interp(x, xp, fp, *ends)
    got = value(device, array.interp(device.put(x), device.put(xp), device.put(fp), *ends))
    assert (got.shape, got.dtype) == (np.shape(expected), np.asarray(expected).dtype)
    np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-13)


def test_what_has_no_order_is_refused(device: Device) -> None:
    x = array.zeros(device, (2, 3))
    number, none, row = x[0, 0], x[:0], x[0]
    z = x.astype("complex64")
    for function in (array.sort, array.argsort):
        with refused(device, "axis 2 is none of x float32[2, 3]"):
            function(x, 2)
        with refused(device, "axis -1 is none of x float32[]"):
            function(number)
    with refused(device, "a is float32[2, 3]", "vector"):
        array.searchsorted(x, row)
    with refused(device, "Searchsorted has no 'middle'", "left, right"):
        array.searchsorted(row, x, "middle")  # type: ignore[arg-type]
    with refused(device, "numbers from 0 to 1, not 2"):
        array.quantile(x, 2)
    with refused(device, "numbers from 0 to 100, not -1"):
        array.percentile(x, -1)
    with refused(device, "q is to be numbers", "not a buffer"):
        array.quantile(x, number)
    with refused(device, "none of nothing", "float32[0, 3]"):
        array.quantile(none, 0.5)
    with refused(device, "none of complex64"):
        array.quantile(z, 0.5)
    with refused(device, "median: axis 2"):
        array.median(x, 2)
    with refused(device, "vectors of one length", "at least one"):
        array.interp(row, row, x)
    for dtype in set(NAMES) - NUMPYS:
        narrow = array.zeros(device, 2, dtype)
        with refused(device, f"array.Sort of {dtype}", error=UnsupportedDtype):
            array.sort(narrow)
        with refused(device, f"v is {dtype}[2]", "array.cast"):
            array.searchsorted(row, narrow)


@pytest.mark.parametrize("dtype", ["uint64", "int64"])
def test_large_integers_are_searched_exactly(device: Device, dtype: str) -> None:
    a = np.array([2**53, 2**53 + 1, 2**53 + 2]).astype(dtype)
    got = array.searchsorted(device.put(a), a[1:])
    assert_equal(value(device, got), np.array([1, 2]))
    assert numpys(np.searchsorted, a, a[1:]).tolist() == [1, 2]
    near(device, value(device, array.sort(device.put(a[::-1].copy()))), a)
