"""The contract of `libraries.blas` on exchanges, absolute sums, extremes and plane rotations."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from accel_lab import array, blas
from accel_lab.compute.arrays.dtypes import NAMES, is_complex, real_of
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument, StaleRef
from tests.contract.halves import wide_dtypes
from tests.contract.products import Support
from tests.contract.samples import (
    LAYOUTS,
    Layout,
    assert_same,
    layouts,
    place,
    reals,
    refused,
    seeds,
    small,
    unanswered,
    value,
)
from tests.contract.tolerances import EPS, WIDE, assert_near, wide

WAIT_S = 30.0
shapes = npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)
some = npst.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=5)


def magnitudes(x: Any) -> Any:
    """Return what BLAS takes for the size of each element."""
    return np.abs(x.real) + np.abs(x.imag)


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4)], ids=str)
def test_swap_exchanges_every_bit(
    device: Device, support: Support, dtype: str, layout: Layout, shape: tuple[int, ...]
) -> None:
    if dtype not in support["blas.Swap"]:
        pytest.skip(f"there is no Swap of {dtype}")
    x, y = small(0, shape, dtype), small(1, shape, dtype)
    on_x, on_y = place(device, x, layout), device.put(y)
    assert blas.swap(on_x, on_y).result(WAIT_S) is None
    assert_same(value(device, on_x), y)
    assert_same(value(device, on_y), x)
    blas.swap(on_x, on_y)
    assert_same(value(device, on_x), x)


def test_swap_keeps_what_lies_between(device: Device) -> None:
    around = np.arange(12.0)
    base, other = device.put(around), device.put(-np.ones(4))
    blas.swap(base[1::3], other)
    around[1::3] = -1
    assert_same(value(device, base), around)
    assert value(device, other).tolist() == [1, 4, 7, 10]


def test_halves_of_one_buffer_change_places(device: Device) -> None:
    base = device.put(np.arange(6.0))
    blas.swap(base[:3], base[3:])
    assert value(device, base).tolist() == [3, 4, 5, 0, 1, 2]
    blas.swap(base[::2], base[1::2])
    assert value(device, base).tolist() == [4, 3, 0, 5, 2, 1]


def test_what_cannot_be_exchanged_is_refused(device: Device) -> None:
    x, y = array.zeros(device, (2, 3)), array.zeros(device, (3, 2))
    with refused(device, "x is float32[2, 3]", "y float32[3, 2]", "one shape and dtype"):
        blas.swap(x, y)
    double = array.zeros(device, (2, 3), "float64")
    with refused(device, "x is float32[2, 3]", "y float64[2, 3]", "one shape and dtype"):
        blas.swap(x, double)
    with refused(device, "Swap", "the same buffer", "two"):
        blas.swap(x, x)
    with refused(device, "pair has 1 buffers", "two"):
        device.ask(blas.Swap((x,)))  # type: ignore[arg-type]
    base = device.put(np.arange(5.0))
    with pytest.raises(InvalidArgument, match=r"x float64\[4\] and y .* overlapping views of one"):
        blas.swap(base[:4], base[1:]).result(WAIT_S)
    assert value(device, base).tolist() == [0, 1, 2, 3, 4]


def test_what_only_the_context_can_see_is_refused_there(device: Device) -> None:
    x = device.put(np.ones(3))
    with unanswered(device):
        y: Any = device.run(lambda one: one[None], x)
        swapped = blas.swap(x, y)
    with pytest.raises(InvalidArgument, match="one shape and dtype"):
        swapped.result(WAIT_S)
    gone = device.put(np.ones(3))
    gone.free()
    with pytest.raises(StaleRef):
        blas.swap(x, gone)
    assert value(device, x).tolist() == [1, 1, 1]


@settings(max_examples=40)
@given(seed=seeds, shape=shapes, layout=layouts, dtype=wide_dtypes)
def test_asum_is_the_sum_of_magnitudes(
    device: Device, seed: int, shape: tuple[int, ...], layout: Layout, dtype: str
) -> None:
    x = reals(seed, shape, dtype)
    got = blas.asum(place(device, x, layout))
    exact = magnitudes(wide(x)).sum()
    real = real_of(dtype)
    assert (got.shape, got.dtype) == ((), real)
    assert_near(value(device, got), exact, real, magnitude=exact, operations=2 * x.size + 1)


@pytest.mark.parametrize("dtype", WIDE)
def test_asum_of_what_is_not_finite(device: Device, dtype: str) -> None:
    x = reals(0, (5,), dtype)
    x[3] = np.inf
    assert value(device, blas.asum(device.put(x))) == np.inf
    x[1] = np.nan
    assert np.isnan(value(device, blas.asum(device.put(x))))


@settings(max_examples=40)
@given(seed=seeds, shape=some, layout=layouts, dtype=wide_dtypes)
def test_extremes_are_the_first_of_their_size(
    device: Device, seed: int, shape: tuple[int, ...], layout: Layout, dtype: str
) -> None:
    """Of small integers, which are exact and among which there are equal ones."""
    x = small(seed, shape, dtype)
    on = place(device, x, layout)
    sizes = magnitudes(x).ravel().tolist()
    for find, extreme in ((blas.iamax, max(sizes)), (blas.iamin, min(sizes))):
        got = find(on)
        assert (got.shape, got.dtype) == ((), "int64")
        assert value(device, got) == sizes.index(extreme)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_the_size_of_a_complex_number_is_that_of_both_parts(device: Device, dtype: str) -> None:
    """Its modulus would say otherwise: |2 + 2i| < 3."""
    x = device.put(np.array([3, 2 + 2j]).astype(dtype))
    assert value(device, blas.iamax(x)) == 1
    assert value(device, blas.iamin(x)) == 0
    assert value(device, blas.asum(x)) == 7


@pytest.mark.parametrize("dtype", WIDE)
def test_an_infinity_is_the_largest_and_a_nan_gives_some_index(device: Device, dtype: str) -> None:
    x = reals(0, (6,), dtype)
    x[4] = -np.inf
    assert value(device, blas.iamax(device.put(x))) == 4
    x[2] = np.nan
    assert value(device, blas.iamax(device.put(x))) in range(6)
    assert value(device, blas.iamin(device.put(x))) in range(6)


def test_nothing_has_no_extreme(device: Device) -> None:
    nothing = array.zeros(device, (0, 2))
    for find, name in ((blas.iamax, "Iamax"), (blas.iamin, "Iamin")):
        with refused(device, name, "x is float32[0, 2]", "at least one element"):
            find(nothing)


def rotation(seed: int, dtype: str) -> tuple[float, Any]:
    """Draw a real cosine and a sine of the dtype, rounded to it."""
    drawn = reals(seed, (2,), dtype).astype("complex128")
    norm = np.linalg.norm([drawn[0].real, abs(drawn[1])])
    c, s = drawn[0].real / norm, drawn[1] / norm
    rounded = reals(0, (0,), dtype).dtype.type(s if is_complex(dtype) else s.real)
    return float(np.dtype(real_of(dtype)).type(c)), rounded.item()


@settings(max_examples=40)
@given(seed=seeds, shape=shapes, layout=layouts, dtype=wide_dtypes)
def test_rot_is_its_definition_and_keeps_its_operands(
    device: Device, seed: int, shape: tuple[int, ...], layout: Layout, dtype: str
) -> None:
    x, y = reals(seed, shape, dtype), reals(seed + 1, shape, dtype)
    c, s = rotation(seed + 2, dtype)
    on_x, on_y = place(device, x, layout), place(device, y, layout)
    got = blas.rot(on_x, on_y, c, s)
    size = abs(c) * np.abs(wide(x)) + abs(s) * np.abs(wide(y))
    exact = c * wide(x) + s * wide(y)
    assert_near(value(device, got.x), exact, dtype, magnitude=size, operations=3)
    size = abs(c) * np.abs(wide(y)) + abs(s) * np.abs(wide(x))
    exact = c * wide(y) - np.conj(s) * wide(x)
    assert_near(value(device, got.y), exact, dtype, magnitude=size, operations=3)
    assert_same(value(device, on_x), x)
    assert_same(value(device, on_y), y)


def test_a_cosine_is_real(device: Device) -> None:
    x, real = array.zeros(device, 3, "complex64"), array.zeros(device, 3)
    with refused(device, "Rot: c is 1j", "real"):
        blas.rot(x, x, 1j, 0)
    with refused(device, "Rot: s is 1j", "no complex values"):
        blas.rot(real, real, 1, 1j)


@settings(max_examples=60)
@given(
    a=st.complex_numbers(max_magnitude=1e3, allow_nan=False),
    b=st.complex_numbers(max_magnitude=1e3, allow_nan=False),
    dtype=wide_dtypes,
)
def test_rotg_turns_the_second_into_zero(
    device: Device, a: complex, b: complex, dtype: str
) -> None:
    """Its three laws; which of the two signs it takes is the vendor's."""
    first, second = (
        np.asarray(one if is_complex(dtype) else one.real).astype(dtype) for one in (a, b)
    )
    least = np.finfo(dtype).tiny / EPS[dtype]
    if any(0 < abs(one) < least for one in (first, second)):
        return  # what is lost to underflow on the way is no error
    givens = blas.rotg(device.put(first), device.put(second))
    real = real_of(dtype)
    assert [one.dtype for one in givens] == [real, dtype, dtype]
    c, s, r = (wide(value(device, one)) for one in givens)
    exact_a, exact_b = wide(first), wide(second)
    norm = np.hypot(abs(exact_a), abs(exact_b))
    bound = 32 * EPS[dtype]
    assert abs(c**2 + abs(s) ** 2 - 1) <= bound
    assert abs(c * exact_a + s * exact_b - r) <= bound * norm
    assert abs(c * exact_b - np.conj(s) * exact_a) <= bound * norm
    assert abs(abs(r) - norm) <= bound * norm


@pytest.mark.parametrize("dtype", WIDE)
def test_rotg_of_zeros_and_in_a_chain(device: Device, dtype: str) -> None:
    zero, three = array.zeros(device, (), dtype), array.full(device, (), 3, dtype)
    c, s, r = (value(device, one) for one in blas.rotg(zero, zero))
    assert abs(c) ** 2 + abs(s) ** 2 == 1
    assert r == 0
    givens = blas.rotg(three, zero)
    again = blas.rotg(givens.r, array.full(device, (), 4, dtype))
    assert abs(abs(value(device, again.r)) - 5) <= 16 * EPS[dtype]


def test_rotg_does_not_overflow_where_the_norm_fits(device: Device) -> None:
    for dtype, huge in (("float32", 1e30), ("float64", 1e300)):
        a = array.full(device, (), huge, dtype)
        r = value(device, blas.rotg(a, a).r)
        np.testing.assert_allclose(abs(r), np.sqrt(2) * huge, rtol=16 * EPS[dtype])
