"""What the numbers on a GPU must be where the contract leaves a backend some freedom."""

from typing import Any

import numpy as np
import pytest

from accel_lab import array, blas
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import Device

pytestmark = pytest.mark.gpu

WAIT_S = 60.0
NARROW = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def value(device: Device, ref: Any) -> Any:
    return device.get(ref).result(timeout_s=WAIT_S)


def awkward(dtype: str) -> Any:
    """Return float64 values at, and a hair beside, the numbers of a dtype and their ties."""
    native = numpy_dtype(dtype)
    with np.errstate(all="ignore"):
        every = np.arange(2 ** (8 * native.itemsize)).astype(f"u{native.itemsize}").view(native)
        numbers = np.unique(every.astype(np.float64))
        numbers = numbers[np.isfinite(numbers)]
        ties = (numbers[1:] + numbers[:-1]) / 2
        exact = np.concatenate([numbers, ties, numbers[-1:] * 1.5, [np.inf, -np.inf]])
        return np.concatenate([exact, exact * (1 + 2.0**-40), exact * (1 - 2.0**-40)])


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("dtype", NARROW)
def test_floats_round_to_the_same_bits_as_on_the_host(gpu: Device, dtype: str, source: str) -> None:
    with np.errstate(all="ignore"):
        x = awkward(dtype).astype(source)
        if np.float64(1 + 2**-8 + 2**-40).astype(numpy_dtype("bfloat16")) == 1:
            # This ml_dtypes rounds float64 twice, by way of float32; give it nothing to round.
            x = x.astype(np.float32).astype(source)
        expected = x.astype(numpy_dtype(dtype))
    got = value(gpu, array.cast(gpu.put(x), dtype))
    number = ~np.isnan(expected.astype(np.float64))
    assert got[number].tobytes() == expected[number].tobytes()
    assert np.isnan(got[~number].astype(np.float64)).all()


def test_float32_products_are_no_tf32(gpu: Device) -> None:
    """TF32 keeps 10 bits of each factor, so this product would be off by 2**-11."""
    x = np.full((256, 256), 1 + 2.0**-12, np.float32)
    one = np.eye(256, dtype=np.float32)
    assert (value(gpu, blas.gemm(gpu.put(x), gpu.put(one))) == x).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_partial_sums_of_long_products_are_not_rounded(gpu: Device, dtype: str) -> None:
    """A few rows and a long inner axis make cuBLAS add partial sums of several blocks."""
    k = 1 << 20
    x = np.random.default_rng(0).integers(-1, 2, (2, k)).astype(numpy_dtype(dtype))
    exact = x.astype(np.float64) @ x.astype(np.float64).T
    on = gpu.put(x)
    got = value(gpu, blas.gemm(on, on, trans_b="t"))
    with np.errstate(over="ignore"):
        assert (got == exact.astype(numpy_dtype(dtype))).all()


def test_the_norm_of_narrow_floats_does_not_overflow_on_the_way(gpu: Device) -> None:
    norm = value(gpu, blas.nrm2(array.full(gpu, 4, 2.0**100, "bfloat16")))
    assert float(norm) == 2.0**101


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_a_factor_of_zero_hides_no_infinity(gpu: Device, number: float) -> None:
    x, y = array.full(gpu, 4, number), array.zeros(gpu, 4)
    blas.axpy(x, y, alpha=0, out=y)
    assert np.isnan(value(gpu, y)).all()
    blas.scal(x, 0, out=x)
    assert np.isnan(value(gpu, x)).all()


def test_minus_zero_fills_as_minus_zero(gpu: Device) -> None:
    for dtype in ("float32", "float16", "bfloat16", "float64"):
        filled = value(gpu, array.full(gpu, 3, -0.0, dtype)).astype(np.float64)
        assert np.signbit(filled).all()


def test_operands_may_be_updated_in_place(gpu: Device) -> None:
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    on_x, on_y = gpu.put(x), gpu.put(x + 1)
    blas.axpy(on_x, on_y, alpha=2, out=on_y)
    assert (value(gpu, on_y) == 3 * x + 1).all()
    blas.axpy(on_x, on_y, alpha=2, out=on_x)
    assert (value(gpu, on_x) == 5 * x + 1).all()
    blas.scal(on_x, 3, out=on_x)
    assert (value(gpu, on_x) == 15 * x + 3).all()
    step = array.slice(on_x, np.s_[:, ::2])
    blas.scal(step, 0.5, out=step)
    expected = 15 * x + 3
    expected[:, ::2] /= 2
    assert (value(gpu, on_x) == expected).all()
