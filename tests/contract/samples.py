"""Arrays for the contract: values that every dtype holds, and views of every kind of stride."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args

import numpy as np
import pytest
from hypothesis import strategies as st

from accel_lab import array
from accel_lab.compute.arrays.dtypes import is_complex, numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import AccelError, InvalidArgument

Layout = Literal["contiguous", "transposed", "stepped", "reversed", "inside"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
layouts = st.sampled_from(LAYOUTS)
seeds = st.integers(0, 2**32 - 1)
extents = st.integers(0, 6)


def small(seed: int, shape: tuple[int, ...], dtype: str) -> Any:
    """Draw integers from -2 to 2 (0 to 2 without a sign): short sums of products stay exact."""
    rng = np.random.default_rng(seed)
    native = numpy_dtype(dtype)
    if native.kind in "bu":
        return rng.integers(0, 2 if dtype == "bool" else 3, shape).astype(native)
    drawn = rng.integers(-2, 3, shape)
    if is_complex(dtype):
        return (drawn + 1j * rng.integers(-2, 3, shape)).astype(native)
    return drawn.astype(native)


def reals(seed: int, shape: tuple[int, ...], dtype: str) -> Any:
    """Draw from the standard normal distribution, rounded to the dtype."""
    rng = np.random.default_rng(seed)
    drawn = rng.standard_normal(shape)
    if is_complex(dtype):
        drawn = drawn + 1j * rng.standard_normal(shape)
    return np.asarray(drawn).astype(numpy_dtype(dtype))


def place(device: Device, x: Any, layout: Layout) -> AccelRef:
    """Put an array so that its buffer is a view with strides of this kind."""
    every = (slice(None, None, 2),) * x.ndim
    if layout == "transposed":
        return array.transpose(device.put(x.T.copy()))
    if layout == "stepped":
        around = np.ones([2 * n for n in x.shape], x.dtype)
        around[every] = x
        return array.slice(device.put(around), every)
    if layout == "reversed":
        back = (slice(None, None, -1),) * x.ndim
        return array.slice(device.put(x[back]), back)
    if layout == "inside":
        middle = (slice(1, -1),) * x.ndim
        around = np.ones([n + 2 for n in x.shape], x.dtype)
        around[middle] = x
        return array.slice(device.put(around), middle)
    return device.put(x)


def value(device: Device, ref: AccelRef) -> Any:
    """Wait for a buffer's contents."""
    return device.get(ref).result(timeout_s=30)


def assert_same(got: Any, expected: Any) -> None:
    """Compare shape, dtype and every bit."""
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    assert got.tobytes() == expected.tobytes()


def assert_equal(got: Any, expected: Any) -> None:
    """Compare shape, dtype and every value; zeros may differ in sign."""
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


@contextlib.contextmanager
def refused(
    device: Device, *words: str, error: type[AccelError] = InvalidArgument
) -> Iterator[None]:
    """Expect a refusal whose text has all of these words, at the call, with nothing sent."""
    sent, in_flight = device._requests.last_number, device.in_flight
    with pytest.raises(error) as caught:
        yield
    assert device._requests.last_number == sent
    assert device.in_flight <= in_flight
    for word in words:
        assert word in str(caught.value)


@contextlib.contextmanager
def unanswered(device: Device) -> Iterator[None]:
    """Hold back the answers to all that is sent in a `with` block, until its end."""
    with TemporaryDirectory() as folder:
        gate = Path(folder, "gate")
        os.mkfifo(gate)
        waits = device.run(Path.read_bytes, gate)
        try:
            yield
        finally:
            gate.write_bytes(b"go on")
        assert waits.result(timeout_s=30) == b"go on"
