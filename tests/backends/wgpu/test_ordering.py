"""Orders, running sums and choices of wgpu against NumPy's, over rows of several lengths."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from accel_lab.backends.wgpu.array.library import WgpuArray

LENGTHS = (1, 2, 5, 128, 129, 1000)


def rows(dtype: str, length: int) -> Any:
    """Return three rows with equal elements in them, and a NaN where there can be one."""
    x = (np.random.default_rng(length).standard_normal((3, length)) * 5).astype(dtype)
    if x.dtype.kind == "f":
        x[0, length // 2] = np.nan
    return x


@pytest.mark.parametrize("dtype", ["int32", "float32", "bool"])
def test_rows_are_sorted_stably_with_nan_last(adapter: Any, dtype: str) -> None:
    lib = WgpuArray(adapter)
    message: Any = SimpleNamespace(axis=-1)
    for length in LENGTHS:
        x = rows(dtype, length)
        on, places = adapter.adopt(x)[0], adapter.empty(x.shape, "int64")
        out = adapter.empty(x.shape, dtype)
        lib.sort(message, on, out)
        lib.argsort(message, on, places)
        np.testing.assert_array_equal(adapter.read(out), np.sort(x, -1))
        np.testing.assert_array_equal(adapter.read(places), np.argsort(x, -1, kind="stable"))


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_running_sums_go_along_any_axis(adapter: Any, dtype: str) -> None:
    lib = WgpuArray(adapter)
    for length in (*LENGTHS, 20_000):
        x = np.nan_to_num(rows(dtype, length)).T.copy()
        out = adapter.empty(x.shape, dtype)
        message: Any = SimpleNamespace(axis=0, op="cumsum")
        lib.scan(message, adapter.adopt(x)[0], out)
        expected = np.cumsum(x, 0, dtype=dtype)
        np.testing.assert_allclose(adapter.read(out), expected, rtol=1e-9, atol=1e-9)


def test_what_is_kept_and_where_it_is(adapter: Any) -> None:
    lib = WgpuArray(adapter)
    for length in LENGTHS:
        x, kept = rows("float32", length), rows("int32", length) > 0
        on = adapter.adopt(x)[0]
        np.testing.assert_array_equal(adapter.read(lib.mask(on, adapter.adopt(kept)[0])), x[kept])
        found = adapter.read(lib.nonzero(on, "float32"))
        np.testing.assert_array_equal(found, np.stack(np.nonzero(x)))


@pytest.mark.parametrize("side", ["left", "right"])
def test_places_in_an_order_are_found(adapter: Any, side: Any) -> None:
    lib = WgpuArray(adapter)
    message: Any = SimpleNamespace(side=side, common=lambda: "float32")
    for length in LENGTHS:
        x = rows("float32", length)
        order, sought = np.sort(x[1]), x[0]
        out = adapter.empty(sought.shape, "int64")
        lib.searchsorted(message, adapter.adopt(order)[0], adapter.adopt(sought)[0], out)
        np.testing.assert_array_equal(adapter.read(out), np.searchsorted(order, sought, side))
