"""The contract of `libraries.blas` between vectors: linearity, Cauchy-Schwarz, SciPy's BLAS."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.linalg.blas
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from accel_lab import array, blas
from accel_lab.compute.arrays.dtypes import NAMES, is_complex, real_of
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from tests.contract.products import PREFIX, Draw, Support, sum_of_products
from tests.contract.samples import (
    Layout,
    assert_equal,
    extents,
    layouts,
    place,
    reals,
    seeds,
    small,
    value,
)
from tests.contract.tolerances import (
    COMPUTED_IN,
    EPS,
    FLOATS,
    INEXACT,
    SMALLEST,
    WIDE,
    assert_near,
    wide,
)

shapes = npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)


@dataclass(frozen=True)
class Pair:
    """Two arrays of one shape, and the strides of their buffers."""

    seed: int
    shape: tuple[int, ...]
    layout: Layout

    def drawn(self, draw: Draw, dtype: str) -> tuple[Any, Any]:
        """Draw both arrays."""
        return draw(self.seed, self.shape, dtype), draw(self.seed + 1, self.shape, dtype)

    def placed(self, device: Device, *arrays: Any) -> Iterator[AccelRef]:
        """Put arrays on the device."""
        return (place(device, x, self.layout) for x in arrays)


pairs = st.builds(Pair, seeds, shapes, layouts)
vectors = st.builds(Pair, seeds, st.tuples(st.integers(1, 50)), layouts)


@pytest.mark.parametrize("dtype", NAMES)
@settings(max_examples=8)
@given(pair=pairs)
def test_axpy_and_scal_are_element_by_element(
    device: Device, support: Support, dtype: str, pair: Pair
) -> None:
    x, y = pair.drawn(small, dtype)
    alpha = 1 if dtype == "bool" else 2 - 1j if is_complex(dtype) else 2
    on_x, on_y = pair.placed(device, x, y)
    exact = np.asarray(alpha * x.astype(object))  # Python's own numbers
    if dtype in support["blas.Axpy"]:
        got = value(device, blas.axpy(on_x, on_y, alpha=alpha))
        assert_equal(got, np.asarray(exact + y.astype(object)).astype(x.dtype))
    if dtype in support["blas.Scal"]:
        assert_equal(value(device, blas.scal(on_x, alpha)), exact.astype(x.dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_factor_of_minus_zero_is_another_than_one_of_zero(device: Device, dtype: str) -> None:
    x = array.full(device, 3, 1, dtype)
    for alpha in (0.0, -0.0, 0.0, -0.0):
        signs = np.signbit(value(device, blas.scal(x, alpha)).astype("float32"))
        assert signs.all() == signs.any() == np.signbit(alpha)


@settings(max_examples=20)
@given(seed=seeds, shape=shapes, dtype=st.sampled_from(WIDE))
def test_axpy_and_scal_are_linear(
    device: Device, seed: int, shape: tuple[int, ...], dtype: str
) -> None:
    """a (x + y) = a x + a y; scaling twice is scaling by the product, exact by powers of two."""
    x, y = reals(seed, shape, dtype), reals(seed + 1, shape, dtype)
    on_x, on_y = device.put(x), device.put(y)
    left = value(device, blas.scal(blas.axpy(on_x, on_y), 3))
    right = value(device, blas.axpy(on_x, blas.scal(on_y, 3), alpha=3))
    magnitude = 3 * (np.abs(x) + np.abs(y))
    assert_near(left, wide(right), dtype, magnitude=magnitude, operations=4)
    twice = blas.scal(blas.scal(on_x, 0.5), 8)
    assert (value(device, twice) == value(device, blas.scal(on_x, 4))).all()


@pytest.mark.parametrize("dtype", WIDE)
@settings(max_examples=10)
@given(pair=vectors)
def test_vectors_agree_with_scipy(device: Device, dtype: str, pair: Pair) -> None:
    x, y = pair.drawn(reals, dtype)
    on_x, on_y = pair.placed(device, x, y)
    prefix = PREFIX[dtype]
    size = np.abs(x) @ np.abs(y)

    def check(ref: AccelRef, expected: Any, magnitude: Any, operations: int) -> None:
        assert_near(
            value(device, ref),
            wide(expected),
            ref.dtype,
            magnitude=magnitude,
            operations=operations,
        )

    axpy = getattr(scipy.linalg.blas, prefix + "axpy")(x, y.copy(), a=1.5)
    check(blas.axpy(on_x, on_y, alpha=1.5), axpy, 1.5 * np.abs(x) + np.abs(y), 4)
    scal = getattr(scipy.linalg.blas, prefix + "scal")(1.5, x.copy())
    check(blas.scal(on_x, 1.5), scal, 1.5 * np.abs(x), 2)
    dotu = prefix + ("dotu" if is_complex(dtype) else "dot")
    check(blas.dot(on_x, on_y), getattr(scipy.linalg.blas, dotu)(x, y), size, 2 * x.size)
    dotc = prefix + ("dotc" if is_complex(dtype) else "dot")
    conjugate = blas.dot(on_x, on_y, conjugate=True)
    check(conjugate, getattr(scipy.linalg.blas, dotc)(x, y), size, 2 * x.size)
    nrm2 = {"c": "scnrm2", "z": "dznrm2"}.get(prefix, prefix + "nrm2")
    norm = getattr(scipy.linalg.blas, nrm2)(x)
    check(blas.nrm2(on_x), norm, norm, 2 * x.size)


@pytest.mark.parametrize("dtype", NAMES)
@settings(max_examples=8)
@given(pair=vectors)
def test_dot_is_the_sum_of_products(
    device: Device, support: Support, dtype: str, pair: Pair
) -> None:
    if dtype not in support["blas.Dot"]:
        return
    x, y = pair.drawn(small, dtype)
    on_x, on_y = pair.placed(device, x, y)
    got = blas.dot(on_x, on_y)
    assert (got.shape, got.dtype) == ((), dtype)
    assert_equal(value(device, got), sum_of_products(x, y, dtype))
    conjugate = value(device, blas.dot(on_x, on_y, conjugate=True))
    assert_equal(conjugate, sum_of_products(x.conj() if is_complex(dtype) else x, y, dtype))


@pytest.mark.parametrize("dtype", INEXACT)
@settings(max_examples=10)
@given(pair=pairs)
def test_the_norm_squared_is_the_dot_with_itself(
    device: Device, support: Support, dtype: str, pair: Pair
) -> None:
    if dtype not in support["blas.Nrm2"]:
        return
    x, _ = pair.drawn(reals, dtype)
    (on_x,) = pair.placed(device, x)
    norm = blas.nrm2(on_x)
    real = real_of(dtype)
    assert (norm.shape, norm.dtype) == ((), real)
    got = value(device, norm)
    exact = np.sqrt(np.sum(np.abs(wide(x)) ** 2))
    assert_near(got, exact, real, magnitude=exact, operations=4 * x.size + 2)
    if dtype in support["blas.Dot"]:
        flat = array.reshape(on_x, -1)
        square = value(device, blas.dot(flat, flat, conjugate=True))
        rounding = 3 * EPS[dtype] + 16 * x.size * EPS[COMPUTED_IN.get(dtype, dtype)]
        bound = rounding * exact**2 + 2 * SMALLEST[dtype] * (1 + exact)
        assert abs(wide(square) - wide(got) ** 2) <= bound


@settings(max_examples=20)
@given(seed=seeds, n=st.integers(0, 40), dtype=st.sampled_from(WIDE))
def test_a_dot_is_no_larger_than_the_norms(device: Device, seed: int, n: int, dtype: str) -> None:
    """The Cauchy-Schwarz inequality, with equality for multiples."""
    x, y = device.put(reals(seed, (n,), dtype)), device.put(reals(seed + 1, (n,), dtype))
    norms = float(value(device, blas.nrm2(x))) * float(value(device, blas.nrm2(y)))
    rounding = 1 + 16 * (n + 1) * EPS[dtype]
    assert abs(value(device, blas.dot(x, y, conjugate=True))) <= norms * rounding
    parallel = value(device, blas.dot(blas.scal(x, -2), x, conjugate=True))
    square = 2 * float(value(device, blas.nrm2(x))) ** 2
    assert square <= abs(parallel) * rounding
    assert abs(parallel) <= square * rounding


@settings(max_examples=10)
@given(seed=seeds, n=extents, dtype=st.sampled_from(["complex64", "complex128"]))
def test_the_conjugate_dot_is_hermitian(device: Device, seed: int, n: int, dtype: str) -> None:
    x, y = device.put(small(seed, (n,), dtype)), device.put(small(seed + 1, (n,), dtype))
    xy = value(device, blas.dot(x, y, conjugate=True))
    assert xy == value(device, blas.dot(y, x, conjugate=True)).conj()


@pytest.mark.parametrize(
    ("dtype", "huge"),
    [("float32", 1e30), ("float64", 1e300), ("complex64", 1e30), ("complex128", 1e300)],
)
def test_a_norm_overflows_only_where_it_is_too_large_itself(
    device: Device, dtype: str, huge: float
) -> None:
    for scale in (huge, 1 / huge):
        norm = value(device, blas.nrm2(array.full(device, 4, scale, dtype)))
        np.testing.assert_allclose(norm, 2 * scale, rtol=16 * EPS[dtype])


def test_a_norm_of_nothing_is_zero_and_of_nan_is_nan(device: Device) -> None:
    assert value(device, blas.nrm2(array.zeros(device, (3, 0)))) == 0
    assert np.isnan(value(device, blas.nrm2(array.full(device, 3, float("nan")))))
    assert value(device, blas.nrm2(array.full(device, (), -3))) == 3


@pytest.mark.parametrize("dtype", FLOATS)
def test_overflow_is_infinite_or_nan_and_no_error(
    device: Device, support: Support, dtype: str
) -> None:
    if dtype not in support["blas.Scal"]:
        return
    top = array.full(device, 2, 256, dtype)
    powers = top
    for _ in range(140):
        powers = blas.scal(powers, 256)
    assert not np.isfinite(value(device, powers).astype(np.float64)).any()


def test_a_0d_answer_is_an_operand_at_once(device: Device) -> None:
    x = device.put(np.array([3.0, 4.0]))
    norm = blas.nrm2(x)
    total = blas.axpy(norm, blas.dot(x, x), alpha=2)
    assert total.shape == ()
    assert value(device, total) == 35


def test_a_factor_may_be_any_number(device: Device) -> None:
    x = device.put(np.array([1.0, 2]))
    for two in (2, 2.0, 2 + 0j, np.float32(2), np.float64(2), np.int8(2), np.complex64(2)):
        assert value(device, blas.scal(x, two)).tolist() == [2, 4]
        assert value(device, blas.axpy(x, x, alpha=two)).tolist() == [3, 6]
    assert np.isnan(value(device, blas.scal(x, float("nan")))).all()
    z = device.put(np.array([1.0, 2], np.complex64))
    assert value(device, blas.scal(z, np.complex128(1j))).tolist() == [1j, 2j]
