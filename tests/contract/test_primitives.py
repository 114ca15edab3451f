"""The contract of `libraries.primitives` on reductions and scans: NumPy, definitions, laws."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import primitives
from accel_lab.compute.device import Device
from accel_lab.errors import DependencyFailed, InvalidArgument, OutOfBounds
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
from tests.contract.tolerances import assert_near, wide

UFUNCS = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
}

few = settings(max_examples=10)


@pytest.mark.parametrize("dtype", sorted(NUMBERS))
def test_a_sum_has_the_dtype_of_its_elements(device: Device, dtype: str) -> None:
    x = small(1, (1000,), dtype)
    got = value(device, primitives.reduce(device.put(x), init=5))
    assert_equal(got, np.asarray(x.sum(dtype=x.dtype) + x.dtype.type(5)))


@pytest.mark.parametrize("op", sorted(UFUNCS))
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_each_operator_is_numpys(device: Device, op: str, dtype: str) -> None:
    if op.startswith("bit") and dtype == "float32":
        ones = device.put(np.ones(2, dtype))
        with refused(device, "Reduce", op, "integers", "float32"):
            primitives.reduce(ones, op)
        return
    x = small(2, (300,), dtype)
    x[x == 0] = 1
    ref = device.put(x)
    ufunc = UFUNCS[op]
    assert_equal(
        value(device, primitives.reduce(ref, op)), np.asarray(ufunc.reduce(x, dtype=dtype))
    )
    begun = ufunc(x.dtype.type(3), ufunc.reduce(x, dtype=dtype))
    assert_equal(value(device, primitives.reduce(ref, op, init=3)), np.asarray(begun))
    assert_equal(value(device, primitives.scan(ref, op)), ufunc.accumulate(x, dtype=dtype))


@few
@given(seed=seeds, n=st.integers(0, 5000), layout=layouts)
def test_a_sum_of_reals_is_near(device: Device, seed: int, n: int, layout: Layout) -> None:
    x = reals(seed, (n,), "float32")
    got = value(device, primitives.reduce(place(device, x, layout)))
    exact, magnitude = wide(x).sum(), np.abs(wide(x)).sum()
    assert_near(got, np.asarray(exact), "float32", magnitude=np.asarray(magnitude), operations=n)


def test_float16_is_summed_in_float32(device: Device) -> None:
    x = np.full(4096, 0.5, "float16")  # in float16 the sum would stop at 1024
    assert value(device, primitives.reduce(device.put(x))) == np.float16(2048)
    got = value(device, primitives.scan(device.put(x)))
    assert_equal(got, np.cumsum(x.astype("float32")).astype("float16"))


def test_integers_wrap(device: Device) -> None:
    x = np.array([127, 1], "int8")
    assert value(device, primitives.reduce(device.put(x))) == -128
    assert_equal(value(device, primitives.scan(device.put(x))), np.array([127, -128], "int8"))


@pytest.mark.parametrize(("op", "of_none"), [("sum", 0), ("prod", 1)])
def test_of_nothing_there_is_the_identity(device: Device, op: str, of_none: int) -> None:
    nothing = device.put(np.empty(0, "int64"))
    assert value(device, primitives.reduce(nothing, op)) == of_none
    assert value(device, primitives.reduce(nothing, op, init=9)) == 9
    assert value(device, primitives.scan(nothing, op)).size == 0
    assert value(device, primitives.reduce(nothing, "max", init=-7)) == -7
    with refused(device, "Reduce", "min of nothing", "init"):
        primitives.reduce(nothing, "min")


@pytest.mark.parametrize("at", [0, 7, 99])
def test_nan_is_least_and_greatest(device: Device, at: int) -> None:
    x = reals(3, (100,), "float32")
    x[at] = np.nan
    ref = device.put(x)
    for op in ("min", "max"):
        assert np.isnan(value(device, primitives.reduce(ref, op)))
        found = value(device, primitives.scan(ref, op))
        assert np.isnan(found[at:]).all()
        assert not np.isnan(found[:at]).any()
    for extreme in (primitives.argmin(ref), primitives.argmax(ref)):
        assert value(device, extreme.place) == at
        assert np.isnan(value(device, extreme.value))


@few
@given(seed=seeds, n=st.integers(1, 3000), dtype=st.sampled_from(["int32", "float16"]))
def test_an_extreme_is_the_first_of_its_kind(device: Device, seed: int, n: int, dtype: str) -> None:
    x = small(seed, (n,), dtype)
    for found, index in (
        (primitives.argmin(device.put(x)), np.argmin(x)),
        (primitives.argmax(device.put(x)), np.argmax(x)),
    ):
        assert_equal(value(device, found.place), np.asarray(index, "int64"))
        assert_equal(value(device, found.value), np.asarray(x[index]))


@few
@given(seed=seeds, n=st.integers(0, 4000), dtype=st.sampled_from(["int32", "int64"]))
def test_an_exclusive_scan_is_the_inclusive_one_before(
    device: Device, seed: int, n: int, dtype: str
) -> None:
    x = small(seed, (n,), dtype)
    ref = device.put(x)
    inclusive = value(device, primitives.scan(ref, init=4))
    exclusive = value(device, primitives.scan(ref, exclusive=True, init=4))
    assert_equal(inclusive, (np.cumsum(x) + 4).astype(dtype))
    assert_equal(exclusive, np.concatenate(([4], inclusive))[:n].astype(dtype))
    if n:
        assert exclusive[0] == 4


@few
@given(seed=seeds, n=st.integers(0, 2000), exclusive=st.booleans())
def test_each_run_of_keys_is_scanned_by_itself(
    device: Device, seed: int, n: int, *, exclusive: bool
) -> None:
    keys, x = np.sort(small(seed, (n,), "int8")), small(seed + 1, (n,), "int32")
    options: dict[str, Any] = {"exclusive": True, "init": 3} if exclusive else {}
    got = value(device, primitives.scan_by_key(device.put(keys), device.put(x), **options))
    expected = np.empty_like(x)
    for key in np.unique(keys):
        run = keys == key
        sums = np.cumsum(x[run])
        expected[run] = sums - x[run] + 3 if exclusive else sums
    assert_equal(got, expected)


@pytest.mark.parametrize("op", ["max", "prod"])
def test_other_operators_scan_by_key_too(device: Device, op: str) -> None:
    keys, x = np.array([2.0, 2.0, 1.0, 1.0, 2.0]), np.array([1, 3, np.nan, 5, 4], "float32")
    got = value(device, primitives.scan_by_key(device.put(keys), device.put(x), op))
    expected = [1, 3, np.nan, np.nan, 4]
    assert_equal(got, np.array(expected, "float32"))


@few
@given(seed=seeds, lengths=st.lists(st.integers(0, 40), max_size=60))
def test_a_segment_is_reduced_by_itself(device: Device, seed: int, lengths: list[int]) -> None:
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype("int64")
    x = small(seed, (int(offsets[-1]),), "int32")
    on, at = device.put(x), device.put(offsets)
    parts = np.split(x, offsets[1:-1]) if lengths else []
    got = value(device, primitives.segmented_reduce(on, at))
    assert_equal(got, np.array([part.sum() for part in parts], "int32"))
    got = value(device, primitives.segmented_reduce(on, at, "max", init=1))
    assert_equal(got, np.array([part.max(initial=1) for part in parts], "int32"))


def test_an_empty_segment_has_the_identity(device: Device) -> None:
    x, offsets = np.array([1.0, np.nan, 2.0]), np.array([0, 0, 1, 3, 3], "int32")
    got = value(device, primitives.segmented_reduce(device.put(x), device.put(offsets), "min"))
    assert_equal(got, np.array([np.inf, 1, np.nan, np.inf]))


@pytest.mark.parametrize("wrong", [[1, 3], [0, 4], [0, 2], [0, 3, 2, 3], [0, -1, 3], [0, 9, 3]])
def test_offsets_that_are_none_are_refused_by_the_device(device: Device, wrong: list[int]) -> None:
    x, offsets = device.put(np.arange(3)), device.put(np.array(wrong))
    for made in (
        primitives.segmented_reduce(x, offsets),
        primitives.sort(x, offsets=offsets),
        primitives.sort_pairs(x, x, offsets=offsets).values,
    ):
        with pytest.raises(DependencyFailed, match="from 0 to 3") as failed:
            value(device, made)
        assert isinstance(failed.value.__cause__, OutOfBounds)
    assert value(device, primitives.reduce(x)) == 3  # the actor is well


@few
@given(seed=seeds, n=st.integers(0, 1000))
def test_differences_undo_a_scan(device: Device, seed: int, n: int) -> None:
    x = small(seed, (n,), "int16")
    sums = primitives.scan(device.put(x))
    assert_equal(value(device, primitives.adjacent_difference(sums)), x)


def test_one_element_is_all(device: Device) -> None:
    x = device.put(np.array([7.5]))
    assert value(device, primitives.reduce(x, "min")) == 7.5
    assert value(device, primitives.scan(x)).tolist() == [7.5]
    assert value(device, primitives.scan(x, exclusive=True)).tolist() == [0]
    assert value(device, primitives.adjacent_difference(x)).tolist() == [7.5]
    assert value(device, primitives.argmax(x).place) == 0


def test_what_does_not_fit_is_refused_at_the_call(device: Device) -> None:
    x, keys = device.put(np.ones(3, "float32")), device.put(np.ones(2, "int32"))
    nothing = device.put(np.empty(0, "int64"))
    matrix = device.put(np.ones((2, 2)))
    with refused(device, "Reduce", "op is 'mean'", "'sum'", "source"):
        primitives.reduce(x, "mean")
    with refused(device, "Reduce", "float64[2, 2]", "(n)->()"):
        primitives.reduce(matrix)
    with refused(device, "ScanByKey", "x is float32[3]", "keys int32[2]"):
        primitives.scan_by_key(keys, x)
    with refused(device, "ScanByKey", "init", "exclusive=True"):
        primitives.scan_by_key(x, x, init=2)
    with refused(device, "SegmentedReduce", "offsets is float32[3]", "int64"):
        primitives.segmented_reduce(x, x)
    with refused(device, "SegmentedReduce", "at least one"):
        primitives.segmented_reduce(x, nothing)
    with refused(device, "ArgReduce", "'argmin' or 'argmax'"):
        primitives.arg_reduce(x, "argmean")  # type: ignore[arg-type]
    with refused(device, "init is 1.5", "int32"):
        primitives.reduce(keys, init=1.5)
    with pytest.raises(InvalidArgument, match="bool"):
        primitives.reduce(device.put(np.ones(3, "bool")))
