"""What is in a buffer, and how often, against NumPy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array
from accel_lab.compute.arrays.dtypes import is_complex
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array.message import NUMPYS
from tests.contract.numpys import DTYPES, shapes
from tests.contract.samples import (
    Layout,
    assert_equal,
    layouts,
    place,
    reals,
    refused,
    seeds,
    small,
    unanswered,
    value,
)
from tests.contract.test_ordering import with_ends

dtypes = st.sampled_from(sorted(NUMPYS))
ASKED = ("first", "inverse", "counts")


@settings(max_examples=200)
@given(
    shape=shapes,
    seed=seeds,
    dtype=dtypes,
    layout=layouts,
    asked=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    equal_nan=st.booleans(),
)
def test_unique_elements_are_numpys_with_all_that_is_asked_for(
    device: Device,
    shape: tuple[int, ...],
    seed: int,
    dtype: str,
    layout: Layout,
    asked: tuple[bool, bool, bool],
    equal_nan: bool,  # noqa: FBT001 - hypothesis gives it
) -> None:
    x = with_ends(small(seed, shape, dtype))
    if is_complex(dtype):
        x = np.where(np.isnan(x), 1, x).astype(dtype)  # whose NaN are equal, libraries disagree
    on = place(device, x, layout)
    numpys: Any = np.unique
    got = array.unique(on, *asked, equal_nan=equal_nan)
    expected = numpys(x, *asked, equal_nan=equal_nan)
    if not any(asked):
        got, expected = (got,), (expected,)
    names = ["values", *(name for name, is_asked in zip(ASKED, asked, strict=True) if is_asked)]
    for name, one, other in zip(names, got, expected, strict=True):
        found = value(device, one)
        if name == "inverse" and not equal_nan:  # which NaN is which depends on how one sorts
            assert found.shape == other.shape
            found, other = expected[0][found], x  # noqa: PLW2901 - what they lead to
        assert_equal(found, other)


@given(seed=seeds, n=st.integers(0, 300))
def test_a_buffer_is_made_again_of_its_unique_elements(device: Device, seed: int, n: int) -> None:
    x = small(seed, (n,), "int32")
    on = device.put(x)
    values, first, inverse, counts = array.unique(on, True, True, True)  # noqa: FBT003 - NumPy's
    if n:
        assert_equal(value(device, array.take(values, inverse)), x)
        assert_equal(value(device, array.take(on, first)), value(device, values))
    assert value(device, counts).sum() == n


def test_unique_elements_may_be_asked_for_before_their_number_is_known(device: Device) -> None:
    x = device.put(np.array([3, 1, 3, 2]))
    with unanswered(device):
        kept = device.run(lambda x: x[x > 1], x, pure=True)
        doubled = 2 * array.unique(kept)
        of_mask = array.mask(kept, kept > 2)
    assert doubled.get().tolist() == [4, 6]
    assert doubled.shape == (2,)
    assert of_mask.get().tolist() == [3, 3]


@settings(max_examples=150)
@given(shape=shapes.filter(bool), seed=seeds, dtype=DTYPES, layout=layouts)
def test_what_is_not_zero_is_where_numpy_finds_it(
    device: Device, shape: tuple[int, ...], seed: int, dtype: str, layout: Layout
) -> None:
    x = small(seed, shape, dtype)
    x = -x if dtype not in ("bool", "float8_e4m3fn") and x.dtype.kind != "u" else x
    found = array.nonzero(place(device, x, layout))
    expected = np.nonzero(x != 0)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert_equal(value(device, one), other)


@settings(max_examples=100)
@given(
    seed=seeds,
    n=st.integers(0, 50),
    length=st.integers(0, 12),
    dtype=st.sampled_from(["int8", "int64", "uint8", "uint32"]),
    weight=st.none() | st.sampled_from(["bool", "int16", "float32", "float64"]),
    layout=layouts,
)
def test_counts_are_numpys_of_what_is_within(
    device: Device, seed: int, n: int, length: int, dtype: str, weight: Any, layout: Layout
) -> None:
    x = np.random.default_rng(seed).integers(-3 if dtype[0] == "i" else 0, 10, n).astype(dtype)
    weights = None if weight is None else small(seed, (n,), weight)
    kept = (x >= 0) & (x < length)
    expected = np.bincount(x[kept], None if weights is None else weights[kept], length)
    by = None if weights is None else place(device, weights, layout)
    got = value(device, array.bincount(place(device, x, layout), length, by))
    assert_equal(got, expected.astype("int64" if weights is None else "float64"))


@settings(max_examples=150)
@given(
    data=st.data(),
    seed=seeds,
    shape=shapes,
    dtype=st.sampled_from(["bool", "uint8", "int32", "float16", "float32", "float64"]),
    bins=st.integers(1, 9),
    density=st.booleans(),
)
def test_a_histogram_is_numpys(
    device: Device,
    data: st.DataObject,
    seed: int,
    shape: tuple[int, ...],
    dtype: str,
    bins: int,
    density: bool,  # noqa: FBT001 - hypothesis gives it
) -> None:
    x = small(seed, shape, dtype)
    given_: Any = bins
    within = None
    if dtype != "bool":
        within = data.draw(st.none() | st.sampled_from([(-1, 2), (0.5, 1.5), (1, 1)]))
    if data.draw(st.booleans()):
        given_ = np.sort(reals(seed, (bins + 1,), "float64"))
    weights = None if density else data.draw(st.none() | st.just(small(seed, shape, "int16")))
    with np.errstate(all="ignore"):
        counts, edges = np.histogram(
            x.astype("uint8") if dtype == "bool" else x, given_, within, density, weights
        )
    by = None if weights is None else device.put(weights)
    got = array.histogram(device.put(x), given_, within, density, by)
    one, other = (value(device, ref) for ref in got)
    if dtype == "float16":
        assert one.sum() == counts.sum() or density  # whose edges round otherwise
        return
    np.testing.assert_allclose(other, edges, rtol=1e-6, atol=1e-6)
    assert one.dtype == counts.dtype
    np.testing.assert_allclose(one, counts, rtol=1e-6)


def test_the_edges_of_a_histogram_belong_to_the_right_bin_and_the_last_to_both(
    device: Device,
) -> None:
    x = np.array([0, 1, 1, 2, 3, 3, 3.5, np.nan])
    counts, _ = array.histogram(device.put(x), [0, 1, 2, 3])
    assert value(device, counts).tolist() == [1, 2, 3]
    long = reals(0, (20_000,), "float64")
    counts, edges = array.histogram(device.put(long), 100)
    expected = np.histogram(long, 100)
    np.testing.assert_allclose(value(device, edges), expected[1], rtol=1e-12, atol=1e-12)
    assert abs(value(device, counts) - expected[0]).sum() <= 4


def test_what_cannot_be_counted_is_refused(device: Device) -> None:
    x = array.zeros(device, (2, 3), "int32")
    number, row = x[0, 0], x[0]
    z, weights = row.astype("complex64"), array.zeros(device, 2)
    with refused(device, "Nonzero: x is int32[], which has no axes"):
        array.nonzero(number)
    with refused(device, "x is int32[2, 3]", "vector"):
        array.bincount(x, 4)
    with refused(device, "a shape is a tuple of integers from 0"):
        array.bincount(row, -1)
    with refused(device, "weights are float32[2]", "int32[3]"):
        array.bincount(row, 4, weights)
    with refused(device, "weights are complex64[3]"):
        array.bincount(row, 4, z)
    with refused(device, "bins must be an integer from 1"):
        array.histogram(x, 0)
    with refused(device, "edges are a vector of at least two"):
        array.histogram(x, [1])
    with refused(device, "in order"):
        array.histogram(x, [2, 1])
    with refused(device, "range is to be two numbers in order"):
        array.histogram(x, 3, (2, 1))
    with refused(device, "none of x complex64[3]"):
        array.histogram(z)
    with refused(device, "weights are float32[2], not of the shape"):
        array.histogram(x, weights=weights)


def test_a_number_of_unknown_shape_is_refused_where_it_is_known(device: Device) -> None:
    x = device.put(np.arange(3.0))
    with unanswered(device):
        total = device.run(lambda x: x.sum(keepdims=True)[0:1].reshape(()), x, pure=True)
        found = device.ask(array.Nonzero(total))
    with pytest.raises(InvalidArgument, match="no axes"):
        found.result(timeout_s=30)
