"""Transforms on wgpu against SciPy: every radix, Bluestein's sums, and what is kept."""

from typing import Any

import numpy as np
import pytest
import scipy.fft

from accel_lab import fft
from accel_lab.backends.wgpu.fft.stockham import RADICES, radices_of
from accel_lab.compute.device import Device
from accel_lab.errors import UnsupportedDtype

EPS = {"complex64": 1.2e-7, "complex128": 2.3e-16}


def drawn(shape: tuple[int, ...], dtype: str) -> Any:
    rng = np.random.default_rng(shape)
    if dtype.startswith("float"):
        return rng.standard_normal(shape).astype(dtype)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def assert_near(got: Any, x: Any, dtype: str) -> None:
    """Compare in the Euclidean norm, where a transform's error grows as the logarithm."""
    assert got.shape == x.shape
    error = np.linalg.norm((got - x).ravel()) / np.linalg.norm(x.ravel())
    assert error < 8 * EPS[dtype]


def test_lengths_are_divided_by_the_radices() -> None:
    for n in range(1, 400):
        found = radices_of(n)
        if found is None:
            assert any(n % prime == 0 for prime in range(17, n + 1) if radices_of(prime) is None)
        else:
            assert {*found} <= {*RADICES}
            assert np.prod(found, dtype=int) == n


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("n", [8 * 8 * 4, 2 * 3 * 5 * 7, 11 * 13, 17, 1009])
def test_lines_of_any_length_lie_at_any_place(device: Device, n: int, dtype: str) -> None:
    x = drawn((2, n, 3), dtype)
    on = device.put(x)
    got = fft.c2c(on, axes=1).get()
    assert_near(got, scipy.fft.fft(x.astype(np.complex128), axis=1), dtype)
    back = fft.c2c(on.transpose((2, 1, 0)), axes=1, inverse=True).get()
    assert_near(back, scipy.fft.ifft(x.T.astype(np.complex128), axis=1), dtype)


@pytest.mark.slow
def test_a_long_line_takes_more_work_groups_than_a_dimension_has(device: Device) -> None:
    x = drawn((1 << 16, 1 << 8), "float32")
    got = fft.rfft(device.put(x), axis=0).get()
    assert_near(got, scipy.fft.rfft(x.astype(np.float64), axis=0), "complex64")


def test_half_of_a_prime_length_is_cut_padded_and_undone(device: Device) -> None:
    x = drawn((5, 19), "float64")
    on = device.put(x)
    half = fft.rfftn(on)
    assert_near(half.get(), scipy.fft.rfftn(x), "complex128")
    assert_near(fft.irfftn(half, x.shape).get(), x, "complex128")
    assert_near(fft.rfft(on, 23).get(), scipy.fft.rfft(x, 23), "complex128")
    assert_near(fft.irfft(half, 12).get(), scipy.fft.irfft(scipy.fft.rfftn(x), 12), "complex128")


def test_tables_that_fill_their_room_are_made_again(device: Device) -> None:
    expected = {n: scipy.fft.fft(np.arange(n) + 0j) for n in (1 << 21, 3 << 20, 1 << 10)}
    for n in (1 << 21, 3 << 20, 1 << 10, 1 << 21):
        got = fft.fft(device.put(np.arange(n).astype("complex64"))).get()
        assert_near(got, expected[n], "complex64")


def test_what_it_lacks_is_refused_by_name(device: Device) -> None:
    x = device.put(np.ones(8))
    for send in (fft.dct, fft.hilbert, lambda x: fft.oaconvolve(x, x)):
        with pytest.raises(UnsupportedDtype, match=r"no fft\."):
            send(x)
