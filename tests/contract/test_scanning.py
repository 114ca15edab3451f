"""Sums and products up to each element, and differences, against NumPy."""

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array
from accel_lab.compute.arrays.dtypes import NAMES, is_complex
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument, UnsupportedDtype
from accel_lab.libraries.array.message import NUMPYS
from accel_lab.libraries.array.scanning import ScanOp
from tests.contract.numpys import near, numpys, shapes
from tests.contract.samples import (
    Layout,
    assert_equal,
    layouts,
    place,
    refused,
    seeds,
    small,
    value,
)

dtypes = st.sampled_from(sorted(NUMPYS))


@settings(max_examples=200)
@given(
    data=st.data(),
    shape=shapes,
    seed=seeds,
    dtype=dtypes,
    layout=layouts,
    op=st.sampled_from(get_args(ScanOp)),
)
def test_a_scan_is_numpys_along_any_axis_of_any_view(
    device: Device,
    data: st.DataObject,
    shape: tuple[int, ...],
    seed: int,
    dtype: str,
    layout: Layout,
    op: ScanOp,
) -> None:
    x, ndim = small(seed, shape, dtype), len(shape)
    if op == "cumprod" and x.dtype.kind in "fc":  # so that none of a part of them is infinite
        x = np.where(x == 0, x, np.where(x.real > 0, 1, 1j if is_complex(dtype) else -1))
        x = np.asarray(x, dtype)
    axis = data.draw(st.integers(-ndim, ndim - 1) | st.none() if ndim else st.none())
    on = place(device, x, layout)
    expected = numpys(getattr(np, op), x, axis=axis)
    # Of small integers every sum and product is exact, whatever its order.
    near(device, value(device, getattr(array, op)(on, axis)), expected)
    out = array.zeros(device, expected.shape, str(expected.dtype))
    near(device, value(device, getattr(array, op)(on, axis, out=out)), expected)


@settings(max_examples=60)
@given(seed=seeds, dtype=dtypes, asked=dtypes)
def test_a_dtype_that_is_asked_for_is_that_of_the_sum(
    device: Device, seed: int, dtype: str, asked: str
) -> None:
    x = small(seed, (3, 4), dtype)
    on = device.put(x)
    if is_complex(dtype) and not is_complex(asked):
        with refused(device, f"cumsum of {dtype} is not {asked}"):
            array.cumsum(on, 0, asked)
        return
    if asked == "bool" or (asked.startswith("uint") and (x < 0).any()):
        return  # what a negative number is without a sign, the device decides
    near(device, value(device, array.cumsum(on, 0, asked)), np.cumsum(x, 0, asked))


def test_nan_and_infinity_go_on_from_where_they_are(device: Device) -> None:
    x = np.array([[1, np.inf, 2, -np.inf, 3], [1, 2, np.nan, 4, 5]], np.float32)
    with np.errstate(all="ignore"):
        near(device, value(device, array.cumsum(device.put(x), 1)), np.cumsum(x, 1))
        near(device, value(device, array.cumprod(device.put(x), 1)), np.cumprod(x, 1))


def test_long_sums_are_near_the_exact_ones(device: Device) -> None:
    x = np.random.default_rng(0).random((3, 20_000), np.float32)
    got = value(device, array.cumsum(device.put(x), 1))
    exact = np.cumsum(x, 1, dtype=np.float64)
    # Higham, Accuracy and Stability, (4.4): n units in the last place of the sum, in any order.
    np.testing.assert_allclose(got, exact, rtol=20_000 * 2.0**-24)


@settings(max_examples=100)
@given(
    data=st.data(),
    shape=shapes.filter(bool),
    seed=seeds,
    dtype=dtypes,
    layout=layouts,
    n=st.integers(0, 3),
)
def test_differences_are_numpys(
    device: Device,
    data: st.DataObject,
    shape: tuple[int, ...],
    seed: int,
    dtype: str,
    layout: Layout,
    n: int,
) -> None:
    x = small(seed, shape, dtype)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    on = place(device, x, layout)
    near(device, value(device, array.diff(on, n, axis)), np.diff(x, n, axis))
    before: Any = small(seed, (), dtype)
    got = array.diff(on, 1, axis, prepend=before, append=on)
    near(device, value(device, got), np.diff(x, 1, axis, prepend=before, append=x))


@given(seed=seeds, n=st.integers(0, 2000))
def test_differences_undo_sums(device: Device, seed: int, n: int) -> None:
    x = small(seed, (n,), "int32").astype("int64")
    on = device.put(x)
    assert_equal(value(device, array.diff(array.cumsum(on), prepend=np.int64(0))), x)


def test_what_is_no_scan_is_refused(device: Device) -> None:
    x = array.zeros(device, (2, 3))
    number = x[0, 0]
    with refused(device, "Scan: axis 2 is none of x float32[2, 3]"):
        array.cumsum(x, 2)
    with refused(device, "Scan: axis 0 is none of x float32[]"):
        array.cumsum(number, 0)
    with refused(device, "Scan has no 'cummax'", "cumprod"):
        array.scan("cummax", x)  # type: ignore[arg-type]
    with refused(device, "cumsum is not computed in bfloat16"):
        array.cumsum(x, dtype="bfloat16")
    with refused(device, "results in float32[6], but out is float32[2, 3]"):
        array.cumsum(x, out=x)
    with refused(device, "diff: axis 2"):
        array.diff(x, 1, 2)
    with refused(device, "n must be an integer from 0, not -1"):
        array.diff(x, -1)
    with pytest.raises(InvalidArgument, match="overlapping"):
        array.cumsum(x[0], 0, out=x.reshape(-1)[1:4]).result(timeout_s=30)
    for dtype in set(NAMES) - NUMPYS:
        narrow = array.zeros(device, 2, dtype)
        with refused(device, f"array.Scan of {dtype}", error=UnsupportedDtype):
            array.cumsum(narrow)


def test_a_replay_would_have_the_same_bits(device: Device) -> None:
    """Also of sums whose terms a card could add in any order."""
    rng = np.random.default_rng(35)
    x, at = rng.random(1_000_003, "float32"), rng.integers(0, 7, 1_000_003)
    on, places = device.put(x), device.put(at)
    calls: list[tuple[Callable[[], AccelRef], Any]] = [
        (lambda: array.cumsum(on), np.cumsum(x, dtype="float64")),
        (lambda: array.bincount(places, 7, on), np.bincount(at, x, 7)),
        (lambda: array.histogram(on, 5, weights=on)[0], np.histogram(x, 5, weights=x)[0]),
    ]
    for call, exact in calls:
        found = [value(device, call()) for _ in range(6)]
        assert len({one.tobytes() for one in found}) == 1
        np.testing.assert_allclose(found[0], exact, rtol=1e-4)
