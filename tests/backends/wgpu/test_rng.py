"""Random numbers of wgpu beside the host's: words, integers and uniforms bit for bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accel_lab.backends.host.rng.library import HostRng
from accel_lab.backends.wgpu.rng.library import WgpuRng
from accel_lab.compute.arrays.dtypes import numpy_dtype

PLACE = 123_456_789_012_345, 7, 5
FAR = 2**64 - 1, 2**48 - 1, 2**63 + 3
Draw = Callable[[Any, Any, tuple[int, int, int]], None]
COUNT = 1003


def integers(low: int, span: int) -> Draw:
    return lambda lib, out, place: lib.integers(out, place, low=low, span=span)


def uniform(dtype: str, low: float, high: float) -> Draw:
    real = np.float64 if dtype == "float64" else np.float32
    numbers = float(real(low)), float(real(real(high) - real(low))), float(real(high))

    def draw(lib: Any, out: Any, place: tuple[int, int, int]) -> None:
        lib.uniform(out, place, dtype=dtype, low=numbers[0], span=numbers[1], high=numbers[2])

    return draw


def both(adapter: Any, dtype: str, draw: Draw, place: tuple[int, int, int]) -> tuple[Any, Any]:
    """Return what wgpu and the host draw."""
    out, expected = adapter.empty((COUNT,), dtype), np.empty(COUNT, numpy_dtype(dtype))
    draw(WgpuRng(adapter), out, place)
    draw(HostRng(), expected, place)
    return adapter.read(out), expected


@pytest.mark.parametrize(
    ("dtype", "draw"),
    [
        ("uint32", integers(0, 2**32)),
        ("uint64", integers(0, 2**64)),
        ("int32", integers(-5, 11)),
        ("int64", integers(-5, 2**40 + 3)),
        ("int8", integers(-100, 128)),
        ("bool", integers(0, 2)),
        ("float32", uniform("float32", 0, 1)),
        ("float32", uniform("float32", -0.3, 2.4)),
        ("float64", uniform("float64", -0.3, 2.4)),
        ("float16", uniform("float16", 0, 1)),
    ],
)
@pytest.mark.parametrize("place", [PLACE, FAR], ids=["near", "far"])
def test_draws_are_the_hosts_bit_for_bit(
    adapter: Any, dtype: str, draw: Draw, place: tuple[int, int, int], *, is_literal: bool
) -> None:
    """Those that are shifted and scaled in float64 are within a unit on a card."""
    got, expected = both(adapter, dtype, draw, place)
    if is_literal or dtype != "float64":
        assert got.tobytes() == expected.tobytes()
    else:
        assert np.all(np.abs(got - expected) <= np.spacing(np.maximum(np.abs(expected), 0.3)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_numbers_are_within_four_units(adapter: Any, dtype: str) -> None:
    def draw(lib: Any, out: Any, place: tuple[int, int, int]) -> None:
        lib.normal(out, place, dtype=dtype, mean=0.0, std=1.0)

    got, expected = both(adapter, dtype, draw, PLACE)
    assert np.all(np.abs(got - expected) <= 4 * np.spacing(np.abs(expected)))
