"""The contract of `libraries.primitives` on sorts, merges, selections and histograms: NumPy."""

from itertools import groupby
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import primitives
from accel_lab.compute.device import Device
from accel_lab.errors import DependencyFailed, InvalidArgument
from accel_lab.libraries.primitives.operators import NUMBERS
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

FLOATS = ("float16", "float32", "float64")

few = settings(max_examples=10)


def with_nans(seed: int, n: int, dtype: str) -> Any:
    """Draw numbers of which some are NaN, of either sign, and some are infinite."""
    rng = np.random.default_rng(seed)
    x = reals(seed, (n,), dtype)
    x[rng.random(n) < 0.1] = np.nan
    x[rng.random(n) < 0.1] = -np.float64("nan")
    x[rng.random(n) < 0.1] = np.inf
    x[rng.random(n) < 0.1] = -0.0
    return x


@pytest.mark.parametrize("dtype", sorted(NUMBERS))
def test_every_dtype_is_sorted_both_ways(device: Device, dtype: str) -> None:
    if dtype.startswith(("int", "uint")):
        limits = np.iinfo(dtype)
        rng = np.random.default_rng(0)
        x = rng.integers(limits.min, limits.max, 3000, dtype=dtype, endpoint=True)
    else:
        x = with_nans(0, 3000, dtype)
    assert_equal(value(device, primitives.sort(device.put(x))), np.sort(x))
    assert_equal(value(device, primitives.sort(device.put(x), descending=True)), np.sort(x)[::-1])


@few
@given(
    seed=seeds, n=st.integers(0, 4000), dtype=st.sampled_from(["int8", "float32"]), layout=layouts
)
def test_values_of_equal_keys_stay_in_order(
    device: Device, seed: int, n: int, dtype: str, layout: Layout
) -> None:
    keys, values = small(seed, (n,), dtype), np.arange(n, dtype="int32")
    on, beside = place(device, keys, layout), place(device, values, layout)
    at = np.argsort(keys, kind="stable")
    up = primitives.sort_pairs(on, beside)
    assert_equal(value(device, up.keys), keys[at])
    assert_equal(value(device, up.values), values[at])
    down = primitives.sort_pairs(on, beside, descending=True)
    assert_equal(value(device, down.values), np.lexsort((values, -keys)).astype("int32"))


@few
@given(
    seed=seeds,
    lengths=st.lists(st.integers(0, 50), max_size=40),
    descending=st.booleans(),
)
def test_a_segment_is_sorted_by_itself(
    device: Device, seed: int, lengths: list[int], *, descending: bool
) -> None:
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype("int64")
    n = int(offsets[-1])
    keys, values = small(seed, (n,), "float32"), np.arange(n)
    on, at = device.put(keys), device.put(offsets)
    alone = primitives.sort(on, offsets=at, descending=descending)
    pairs = primitives.sort_pairs(on, device.put(values), offsets=at, descending=descending)
    segment = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((values, -keys if descending else keys, segment))
    assert_equal(value(device, alone), keys[order])
    assert_equal(value(device, pairs.keys), keys[order])
    assert_equal(value(device, pairs.values), values[order])


def test_the_two_zeros_stay_in_order_both_ways(device: Device) -> None:
    x = np.array([-0.0, 0.0, 1.0], "float32")
    for descending, expected in ((False, [1, 0, 0]), (True, [0, 1, 0])):
        on = device.put(x)
        alone = value(device, primitives.sort(on, descending=descending))
        assert np.signbit(alone).tolist() == expected
        pairs = primitives.sort_pairs(on, on, descending=descending)
        assert np.signbit(value(device, pairs.values)).tolist() == expected


def test_nan_is_last_in_every_segment_whatever_its_sign(device: Device) -> None:
    x = np.array([np.nan, 1, -np.float64("nan"), -np.inf, np.nan, 0], "float32")
    at = device.put(np.array([0, 4, 6]))
    expected = np.array([-np.inf, 1, np.nan, np.nan, 0, np.nan], "float32")
    assert_equal(value(device, primitives.sort(device.put(x), offsets=at)), expected)
    pairs = primitives.sort_pairs(device.put(x), device.put(np.arange(6)), offsets=at)
    assert value(device, pairs.values).tolist() == [3, 1, 0, 2, 5, 4]


@few
@given(seed=seeds, n=st.integers(0, 500), m=st.integers(0, 500))
def test_two_in_order_are_one_in_order(device: Device, seed: int, n: int, m: int) -> None:
    a, b = np.sort(with_nans(seed, n, "float64")), np.sort(with_nans(seed + 1, m, "float64"))
    got = value(device, primitives.merge(device.put(a), device.put(b)))
    assert_equal(got, np.sort(np.concatenate((a, b))))


@few
@given(seed=seeds, n=st.integers(0, 3000), share=st.floats(0, 1), largest=st.booleans())
def test_the_top_are_the_first_in_order(
    device: Device, seed: int, n: int, share: float, *, largest: bool
) -> None:
    x, k = small(seed, (n,), "int32"), int(share * n)
    top = primitives.top_k(device.put(x), k, largest=largest)
    order = np.lexsort((np.arange(n), -x if largest else x))[:k]
    assert_equal(value(device, top.values), x[order])
    assert_equal(value(device, top.indices), order.astype("int64"))


def test_nan_is_the_largest_of_all(device: Device) -> None:
    x = device.put(np.array([1, np.nan, np.inf, -1]))
    assert value(device, primitives.top_k(x, 2).indices).tolist() == [1, 2]
    assert value(device, primitives.top_k(x, 2, largest=False).indices).tolist() == [3, 0]


@few
@given(seed=seeds, n=st.integers(0, 3000), layout=layouts)
def test_flags_choose(device: Device, seed: int, n: int, layout: Layout) -> None:
    x, flags = reals(seed, (n,), "float32"), small(seed, (n,), "bool")
    on, chosen = place(device, x, layout), place(device, flags, layout)
    assert_equal(value(device, primitives.select(on, chosen)), x[flags])
    parts = primitives.partition(on, chosen)
    assert parts.second is None
    assert_equal(value(device, parts.first), x[flags])
    assert_equal(value(device, parts.rest), x[~flags])
    assert parts.first.shape[0] + parts.rest.shape[0] == n


@few
@given(seed=seeds, n=st.integers(0, 3000), dtype=st.sampled_from(["int16", "float16"]))
def test_runs_are_those_of_groupby(device: Device, seed: int, n: int, dtype: str) -> None:
    x = small(seed, (n,), dtype)
    runs = primitives.run_length_encode(device.put(x))
    groups = [(key, len(list(group))) for key, group in groupby(x.tolist())]
    counts = np.array([count for _, count in groups], "int64")
    assert_equal(value(device, runs.values), np.array([key for key, _ in groups], dtype))
    assert_equal(value(device, runs.counts), counts)
    assert_equal(value(device, runs.starts), np.cumsum(counts) - counts)
    assert_equal(np.repeat(value(device, runs.values), value(device, runs.counts)), x)
    assert_equal(value(device, primitives.unique(device.put(x))), value(device, runs.values))


@few
@given(seed=seeds, n=st.integers(0, 2000))
def test_the_first_value_of_each_key_is_kept(device: Device, seed: int, n: int) -> None:
    keys, values = np.sort(small(seed, (n,), "int32")), reals(seed, (n,), "float32")
    found = primitives.unique_by_key(device.put(keys), device.put(values))
    once, first = np.unique(keys, return_index=True)
    assert_equal(value(device, found.keys), once)
    assert_equal(value(device, found.values), values[first])


def test_each_nan_is_a_run_of_its_own(device: Device) -> None:
    x = device.put(np.array([np.nan, np.nan, 1, 1]))
    assert value(device, primitives.run_length_encode(x).counts).tolist() == [1, 1, 2]


@few
@given(
    seed=seeds,
    n=st.integers(0, 500),
    bins=st.sampled_from([1, 3, 10, 256]),
    lower=st.floats(-3, 0),
    dtype=st.sampled_from(FLOATS),
)
def test_bins_of_one_width_are_numpys(
    device: Device, seed: int, n: int, bins: int, lower: float, dtype: str
) -> None:
    x, upper = with_nans(seed, n, dtype), lower + 2.7
    edges = np.linspace(lower, upper, bins + 1)
    x[: n // 3] = np.random.default_rng(seed).choice(edges, n // 3)  # on the edges or beside
    got = value(device, primitives.histogram_even(device.put(x), bins, lower, upper))
    assert_equal(got, counted(x, edges))
    got = value(device, primitives.histogram_range(device.put(x), device.put(edges)))
    assert_equal(got, counted(x, edges))


def test_more_bins_than_a_block_holds_are_numpys(device: Device) -> None:
    x = reals(5, (20_000,), "float32")
    got = value(device, primitives.histogram_even(device.put(x), 5000, -3, 3))
    assert_equal(got, np.histogram(x.astype("float64"), 5000, (-3.0, 3.0))[0].astype("int64"))


def counted(x: Any, edges: Any) -> Any:
    """Count by the definition: the lower edge belongs to a bin, the upper one to the last."""
    y = x.astype("float64")
    within = (y[:, None] >= edges[:-1]) & (y[:, None] < edges[1:])
    return np.asarray(
        within.sum(axis=0) + np.eye(edges.size - 1)[-1] * (y == edges[-1]).sum()
    ).astype("int64")


@pytest.mark.parametrize("dtype", sorted(NUMBERS - set(FLOATS)))
def test_integers_are_counted_as_numpy_does(device: Device, dtype: str) -> None:
    x = np.random.default_rng(4).integers(0, 100, 5000).astype(dtype)
    got = value(device, primitives.histogram_even(device.put(x), 7, 3, 91))
    assert_equal(got, np.histogram(x.astype("float64"), 7, (3, 91))[0].astype("int64"))
    edges = np.array([0, 1, 1, 50, 99], dtype)
    got = value(device, primitives.histogram_range(device.put(x), device.put(edges)))
    assert_equal(got, np.histogram(x.astype("float64"), edges.astype("float64"))[0].astype("int64"))


def test_edges_that_do_not_ascend_are_refused_by_the_device(device: Device) -> None:
    for wrong in ([1.0, 0.0], [0.0, np.nan, 1.0]):
        made = primitives.histogram_range(device.put(np.ones(3)), device.put(np.array(wrong)))
        with pytest.raises(DependencyFailed, match="edges are to ascend") as failed:
            value(device, made)
        assert isinstance(failed.value.__cause__, InvalidArgument)


def test_nothing_and_one_element_are_in_order(device: Device) -> None:
    for x in (np.empty(0), np.array([2.5])):
        on, n = device.put(x), x.size
        chosen = device.put(np.ones(n, "uint8"))
        assert_equal(value(device, primitives.sort(on)), x)
        assert_equal(value(device, primitives.sort_pairs(on, on).values), x)
        assert_equal(value(device, primitives.merge(on, on)), np.concatenate((x, x)))
        assert_equal(value(device, primitives.top_k(on, n).values), x)
        assert_equal(value(device, primitives.select(on, chosen)), x)
        assert_equal(value(device, primitives.partition(on, chosen).rest), x[:0])
        assert_equal(value(device, primitives.unique(on)), x)
        assert_equal(value(device, primitives.run_length_encode(on).counts), np.ones(n, "int64"))
        assert value(device, primitives.histogram_even(on, 2, 0, 4)).tolist() == [0, n]
        offsets = device.put(np.array([0, n, n]))
        assert_equal(value(device, primitives.sort(on, offsets=offsets)), x)


def test_what_does_not_fit_is_refused_at_the_call(device: Device) -> None:
    x, other = device.put(np.ones(3)), device.put(np.ones(4, "float32"))
    flags = device.put(np.ones(3, "bool"))
    with refused(device, "SortPairs", "values is float32[4]", "keys float64[3]"):
        primitives.sort_pairs(x, other)
    with refused(device, "Sort", "'fewer'", "'less'"):
        primitives.sort(x, "fewer")
    with refused(device, "Merge", "float64", "float32"):
        primitives.merge(x, other)
    for k in (-1, 4):
        with refused(device, "TopK", f"k is {k}", "from 0 to 3"):
            primitives.top_k(x, k)
    with refused(device, "Select", "flags is float64[3]", "int32"):
        primitives.select(x, x)
    with refused(device, "Select", "flags, or by op and source"):
        primitives.select(x)
    with refused(device, "Partition", "second", "source"):
        primitives.partition(x, flags, second="f")
    wrong: Any = ((0, 0, 1), (4, 1, 1), (4, 0, float("inf")), (4, 0, 1j))
    for bins, lower, upper in (*wrong, (4, -1e308, 1e308), (4, 0, 10**400)):
        with refused(device, "HistogramEven"):
            primitives.histogram_even(x, bins, lower, upper)
    one = device.put(np.ones(1))
    with refused(device, "HistogramRange", "at least two"):
        primitives.histogram_range(x, one)
    with refused(device, "Unique", "'equal'"):
        primitives.unique(x, "alike")
