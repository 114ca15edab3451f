"""Primitives on a GPU: sizes beyond 32 bits, and more bins than a block holds."""

from typing import Any

import numpy as np
import pytest

from accel_lab import array, primitives
from accel_lab.compute.device import Device
from accel_lab.errors import OutOfMemory

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

WAIT_S = 300.0
MILLIONS = 10_000_001
BILLIONS = 2**31 + 7


def value(device: Device, ref: Any) -> Any:
    return device.get(ref, timeout_s=WAIT_S).result(timeout_s=WAIT_S)


def drawn(n: int, dtype: str) -> Any:
    rng = np.random.default_rng(7)
    if dtype.startswith("float"):
        return rng.standard_normal(n).astype(dtype)
    return rng.integers(-100, 100, n).astype(dtype)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_millions_are_numpys(gpu: Device, dtype: str) -> None:
    x = drawn(MILLIONS, dtype)
    ref = gpu.put(x)
    assert (value(gpu, primitives.sort(ref)) == np.sort(x)).all()
    order = np.argsort(-x, kind="stable")[:1000]
    top = primitives.top_k(ref, 1000)
    assert (value(gpu, top.indices) == order).all()
    assert (value(gpu, primitives.select(ref, array.greater(ref, 0))) == x[x > 0]).all()
    counts = value(gpu, primitives.histogram_even(ref, 256, -100, 100))
    assert (counts == np.histogram(x.astype("float64"), 256, (-100.0, 100.0))[0]).all()
    least = primitives.argmin(ref)
    assert value(gpu, least.place) == x.argmin()
    runs = primitives.run_length_encode(primitives.sort(ref))
    values, times = np.unique(x, return_counts=True)
    assert (value(gpu, runs.values) == values).all()
    assert (value(gpu, runs.counts) == times).all()
    if dtype == "int32":
        assert value(gpu, primitives.reduce(ref)) == x.sum(dtype="int32")
        assert (value(gpu, primitives.scan(ref)) == np.cumsum(x, dtype="int32")).all()


@pytest.mark.parametrize("bins", [1, 4096, 4097, 100_000])
def test_histograms_of_any_number_of_bins_are_numpys(gpu: Device, bins: int) -> None:
    x = drawn(MILLIONS, "float32")
    got = value(gpu, primitives.histogram_even(gpu.put(x), bins, -3, 3))
    assert (got == np.histogram(x.astype("float64"), bins, (-3.0, 3.0))[0]).all()


def test_more_than_two_billion_elements(gpu: Device) -> None:
    """Ones and a two at the end: sums, places and counts pass 2^31."""
    try:
        x = array.full(gpu, BILLIONS, 1, "int8")
        x[-1] = 2
        highest = primitives.argmax(x)
        assert value(gpu, highest.place) == BILLIONS - 1
        assert value(gpu, highest.value) == 2
        assert value(gpu, primitives.reduce(x, "max")) == 2
        assert value(gpu, primitives.histogram_even(x, 2, 0, 4)).tolist() == [BILLIONS - 1, 1]
        runs = primitives.run_length_encode(x)
        assert value(gpu, runs.counts).tolist() == [BILLIONS - 1, 1]
        last = primitives.scan(x)[-3:]
        expected = (np.array([BILLIONS - 2, BILLIONS - 1, BILLIONS + 1]) % 256).astype("uint8")
        assert (value(gpu, last).view("uint8") == expected).all()
        source = "__device__ bool above_one(signed char a) { return a > 1; }"
        assert value(gpu, primitives.select(x, op="above_one", source=source)).tolist() == [2]
        ordered = primitives.sort(x, descending=True)
        assert value(gpu, ordered[:3]).tolist() == [2, 1, 1]
    except OutOfMemory as error:
        pytest.skip(f"the card is too small: {error}")
