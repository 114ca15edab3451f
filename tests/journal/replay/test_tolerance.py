"""How far a replayed result may be off."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab import System, array, blas, fft, rng
from accel_lab.compute.arrays.dtypes import NAMES, is_complex, is_float, numpy_dtype
from accel_lab.journal.replay.tolerance import distance, eps_of, tolerance

EXACT = [name for name in NAMES if not is_float(name) and not is_complex(name)]


def test_the_distance_is_that_of_numpys_norms() -> None:
    chance = np.random.default_rng(1)
    a, b = chance.standard_normal((2, 30, 7))
    assert distance(a, b) == pytest.approx(np.linalg.norm(a - b) / np.linalg.norm(a))
    assert distance(a + 1j * b, a) == pytest.approx(np.linalg.norm(b) / np.linalg.norm(a + 1j * b))


@given(st.floats(1e-300, 1e300))
def test_the_distance_does_not_depend_on_the_scale(scale: float) -> None:
    a, b = np.array([3.0, 4.0]), np.array([3.0, 4.5])
    assert distance(a * scale, b * scale) == pytest.approx(0.1)


def test_what_is_not_finite_differs_unless_it_is_the_same() -> None:
    inf, nan = math.inf, math.nan
    assert distance(np.array([1, inf, -inf, nan]), np.array([1, inf, -inf, nan])) == 0
    for other in (1.0, -inf, nan):
        assert distance(np.array([1, inf]), np.array([1, other])) == math.inf
    assert distance(np.zeros(3), np.array([0, 0, 1e-30])) == math.inf
    assert distance(np.zeros(0), np.zeros(0)) == 0


@pytest.mark.parametrize(
    ("dtype", "a", "b"),
    [
        ("int64", 2**60, 2**60 + 1),
        ("int64", -(2**63), 1 - 2**63),
        ("int64", -(2**63), 2**63 - 1),
        ("uint64", 2**64 - 1, 2**64 - 2),
        ("int8", -128, 127),
        ("bool", False, True),
    ],
)
def test_integers_that_are_not_equal_are_apart(dtype: str, a: int, b: int) -> None:
    """A float64 does not tell all of them from each other."""
    x, y = np.array([a, 1], dtype), np.array([b, 1], dtype)
    assert distance(x, y) == pytest.approx(abs(a - b) / math.hypot(a, 1), rel=1e-12, abs=0)
    assert distance(x, x) == 0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_epsilon_is_the_distance_from_one_to_the_next_number(dtype: str) -> None:
    one = numpy_dtype(dtype).type(1)
    assert eps_of(dtype) == np.nextafter(one, numpy_dtype(dtype).type(2)) - one


def test_what_moves_or_draws_words_has_no_tolerance() -> None:
    for dtype in EXACT:
        assert tolerance(array.Zeros((2,), dtype), dtype) == 0
    uniform = rng.Uniform((2,), "float32", 1, 0, 0, None, 0.0, 1.0)
    assert tolerance(uniform, "float32") == 0


def test_computed_results_may_be_off_by_a_little_and_not_by_much() -> None:
    chance = np.random.default_rng(3)
    with System("host") as lab:
        gpu = lab.devices[0]
        a = chance.standard_normal((200, 200))
        x = gpu.put(a.astype(np.float32))
        product = blas.Gemm(x, x)
        exact = (a.astype(np.float32).astype(np.float64)) @ a.astype(np.float32)
        got = gpu.get(gpu.ask(product)).result()
        assert 0 < distance(exact, got) <= tolerance(product, "float32")
        assert distance(exact, got * np.float32(1 + 1e-4)) > tolerance(product, "float32")
        transform = fft.R2C(x)
        spectrum = np.fft.rfftn(a.astype(np.float32).astype(np.float64))
        found = gpu.get(gpu.ask(transform)).result()
        assert 0 < distance(spectrum, found) <= tolerance(transform, "complex64")
        assert distance(spectrum, found * np.float32(1 + 1e-3)) > tolerance(transform, "complex64")


def test_operators_have_a_tolerance_by_what_they_add_up() -> None:
    with System("host") as lab:
        x = lab.devices[0].put(np.ones((16, 9), np.float32))
        index, one = lab.devices[0].put(np.arange(3)), lab.devices[0].put(np.float32(1))
        for message, units in (
            (array.Reduce("sum", x, (0,)), 8 + 4 * 4),
            (array.Reduce("mean", x), 8 + 4 * 12),
            (array.Matmul(x, x), 8 + 4 * 3),
            (blas.GemmBy(x, x, one, trans_a="t"), 8 + 4 * 4),
            (blas.GemvBy(x, x[0], one), 8 + 4 * 3),
            (blas.AxpyBy(x, x, one), 2),
            (array.Binary("add", x, x), 64),
            (array.Take(x, index, 0), 0),
            (array.Concatenate((x, x)), 0),
            (array.Sort(x), 0),
            (array.Scan("cumsum", x), 8 + 4 * 12),
            (array.Scan("cumsum", x, 0), 8 + 4 * 4),
            (fft.R2R(x, axes=(0,)), 16 * (1 + 5)),
            (fft.Padded(x[:, :8]), 16 * (1 + 8)),
            (fft.Hilbert(x[:, :8]), 2 * 16 * (1 + 8)),
            (fft.Convolve(x[:, :4], x[:, :4]), 3 * 16 * (1 + 8)),
            (fft.Shift(x), 0),
        ):
            assert tolerance(message, "float32") == units * eps_of("float32")
        rounded = blas.Gemm(x, x, trans_a="t", compute="tf32")
        assert tolerance(rounded, "float32") == (8 + 4 * 4) * 2.0**-10
