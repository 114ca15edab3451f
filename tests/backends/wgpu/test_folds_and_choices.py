"""Folds, choices and assignments on wgpu against NumPy's."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System, array
from accel_lab.compute.device import Device
from tests.conftest import require


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    require("wgpu")
    with System("wgpu", devices=1) as lab:
        yield lab.devices[0]
        lab.check()


@pytest.mark.parametrize("dtype", ["int32", "float32", "bool"])
@pytest.mark.parametrize(
    "op", ["sum", "prod", "max", "min", "mean", "any", "all", "argmax", "argmin", "std"]
)
def test_folds_are_numpys_along_axes_of_a_view(device: Device, op: Any, dtype: str) -> None:
    whole = (np.random.default_rng(0).standard_normal((300, 2, 3)) * 1.5).astype(dtype)
    if dtype == "float32":
        whole[7, 1, 1] = np.nan
    x, on = whole.transpose(2, 0, 1)[:, ::-1], device.put(whole).transpose((2, 0, 1))[:, ::-1]
    for axis in (None, 1) if op.startswith("arg") else (None, 1, (0, 2)):
        with np.errstate(all="ignore"):
            expected = np.asarray(getattr(np, op)(x, axis=axis))
        got = array.reduce(op, on, axis if axis is None or isinstance(axis, tuple) else (axis,))
        assert got.shape == expected.shape
        assert got.dtype == expected.dtype
        exact = expected.dtype.kind in "biu"
        np.testing.assert_allclose(got.get(), expected, rtol=0 if exact else 2e-5, atol=1e-6)


def test_a_float_narrower_than_a_word_is_summed_wider_and_rounded_once(device: Device) -> None:
    x = np.full(3000, 0.1, np.float16)
    assert array.reduce("sum", device.put(x)).get() == x.astype(np.float64).sum().astype(np.float16)


def test_nothing_folds_to_what_numpy_says(device: Device) -> None:
    empty = device.put(np.ones((0, 3), np.float32))
    assert array.reduce("sum", empty, (0,)).get().tolist() == [0, 0, 0]
    assert np.isnan(array.reduce("mean", empty, (0,)).get()).all()


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64", "int8"])
def test_what_is_at_integers_is_taken_and_written(device: Device, dtype: str) -> None:
    x = np.arange(60).reshape(3, 4, 5).astype(dtype)
    on = device.put(x)
    rows, columns = np.array([[2, -1], [0, 1]]), np.array([1, 3])
    np.testing.assert_array_equal(array.take(on, rows, 1).get(), np.take(x, rows, 1, mode="wrap"))
    np.testing.assert_array_equal(on[:, rows, columns].get(), x[:, rows, columns])
    order = np.argsort(np.random.default_rng(1).random((3, 4, 5)), 2)
    taken = array.take_along(on, device.put(order), 2).get()
    np.testing.assert_array_equal(taken, np.take_along_axis(x, order, 2))
    new = (100 + np.arange(4)).reshape(2, 2).astype(dtype)
    on[:, rows, columns] = device.put(new)
    x[:, rows, columns] = new
    on[1:, ::-2] = device.put(new[0, :1])
    x[1:, ::-2] = new[0, :1]
    on[0, 0] = 7
    x[0, 0] = 7
    array.put_along_axis(on, device.put(order[..., :1]), 9, 2)
    np.put_along_axis(x, order[..., :1], np.asarray(9, x.dtype), 2)
    np.testing.assert_array_equal(on.get(), x)


def test_triangles_diagonals_and_joins_are_numpys(device: Device) -> None:
    x = np.arange(24, dtype=np.float64).reshape(2, 3, 4)
    on = device.put(x)
    np.testing.assert_array_equal(array.tril(on, -1).get(), np.tril(x, -1))
    np.testing.assert_array_equal(array.triu(on, 1).get(), np.triu(x, 1))
    np.testing.assert_array_equal(array.diagonal(on, 1, 1, 2).get(), np.diagonal(x, 1, 1, 2))
    small = device.put(x[:1].astype(np.float32))
    joined = array.concatenate([on, small], 0).get()
    np.testing.assert_array_equal(joined, np.concatenate([x, x[:1].astype(np.float32)]))
    np.testing.assert_array_equal(array.eye(device, 3, 5, 1).get(), np.eye(3, 5, 1))
    np.testing.assert_array_equal(array.arange(device, 2, 9, 3).get(), np.arange(2, 9, 3))
