"""The contract of `libraries.fft`: the definition and laws, then SciPy in long double."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.fft
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from accel_lab import array, blas, fft
from accel_lab.compute.arrays.dtypes import is_complex, real_of
from accel_lab.compute.device import Device
from accel_lab.libraries.fft.transform import NORMS, Norm
from tests.contract.samples import assert_equal, place, reals, refused, seeds, value
from tests.contract.tolerances import assert_transformed, wide
from tests.contract.transforms import (
    COMPLEX,
    REALS,
    SINGLE_AND_DOUBLE,
    Case,
    cases,
    computed_in,
    definition,
    dtypes,
    norms,
    scipy_s,
)

ONE_AXIS = ("fft", "ifft", "rfft", "irfft")
TWO_AXES = ("fft2", "ifft2", "rfft2", "irfft2")
MANY_AXES = ("fftn", "ifftn", "rfftn", "irfftn")
# Powers of two and of small primes, primes, products of large ones, and what is padded to more.
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 31, 64, 97, 100, 127, 128, 210, 251, 1009, 2048, 4099)


def operand(name: str, seed: int, shape: tuple[int, ...], dtype: str) -> Any:
    """Draw numbers that the function takes: `rfft` takes no complex ones."""
    return reals(seed, shape, real_of(dtype) if name.startswith("r") else dtype)


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("dtype", SINGLE_AND_DOUBLE)
@pytest.mark.parametrize("n", [n for n in LENGTHS if n <= 251])
def test_c2c_is_the_definition(device: Device, n: int, dtype: str, inverse: bool) -> None:  # noqa: FBT001
    """X[k] = sum over j of x[j] exp(-+ 2 pi i j k / n), the way back divided by n."""
    x = reals(n, (3, n), dtype)
    got = fft.c2c(device.put(x), axes=-1, inverse=inverse)
    assert (got.shape, got.dtype) == ((3, n), dtype)
    exact = definition(x, inverse=inverse) / (n if inverse else 1)
    assert_transformed(value(device, got), exact, dtype, points=n)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("n", LENGTHS)
def test_r2c_is_the_first_half_of_c2c(device: Device, n: int, dtype: str) -> None:
    x = reals(n, (2, n), dtype)
    half = value(device, fft.r2c(device.put(x), axes=-1))
    assert half.dtype == COMPLEX[dtype]
    whole = value(device, fft.c2c(array.cast(device.put(x), COMPLEX[dtype]), axes=-1))
    exact = wide(whole[:, : n // 2 + 1])
    assert_transformed(half, exact, COMPLEX[dtype], points=n)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("n", LENGTHS)
def test_c2r_undoes_r2c(device: Device, n: int, dtype: str) -> None:
    x = reals(n, (2, n), dtype)
    back = fft.c2r(fft.r2c(device.put(x), axes=-1), s=n, axes=-1)
    assert (back.shape, back.dtype) == (x.shape, dtype)
    assert_transformed(value(device, back), wide(x), COMPLEX[dtype], points=n)


@settings(max_examples=60)
@given(case=cases(), dtype=st.sampled_from(SINGLE_AND_DOUBLE))
def test_the_way_back_undoes_the_way_there(device: Device, case: Case, dtype: str) -> None:
    x = reals(case.seed, case.shape, dtype)
    there = fft.fftn(place(device, x, case.layout), axes=case.axes, norm=case.norm)
    back = fft.ifftn(there, axes=case.axes, norm=case.norm)
    assert_transformed(value(device, back), wide(x), dtype, points=case.points)


@settings(max_examples=60)
@given(case=cases(), dtype=st.sampled_from(REALS))
def test_the_way_back_undoes_half_the_way_there(device: Device, case: Case, dtype: str) -> None:
    x = reals(case.seed, case.shape, dtype)
    there = fft.rfftn(place(device, x, case.layout), axes=case.axes, norm=case.norm)
    s = [x.shape[axis] for axis in case.axes]
    back = fft.irfftn(there, s, axes=case.axes, norm=case.norm)
    assert_transformed(value(device, back), wide(x), COMPLEX[dtype], points=case.points)


@settings(max_examples=40)
@given(case=cases(), dtype=dtypes)
def test_energy_is_kept(device: Device, case: Case, dtype: str) -> None:
    """Parseval: with norm "ortho" the Euclidean norm stays."""
    x = reals(case.seed, case.shape, dtype)
    there = fft.fftn(place(device, x, case.layout), axes=case.axes, norm="ortho")
    got = value(device, blas.nrm2(there))
    assert_transformed(got, np.linalg.norm(wide(x)), computed_in(dtype), points=case.points)


@settings(max_examples=20)
@given(seed=seeds, n=st.sampled_from(LENGTHS), dtype=st.sampled_from(SINGLE_AND_DOUBLE))
def test_transforms_are_linear(device: Device, seed: int, n: int, dtype: str) -> None:
    x, y = reals(seed, (n,), dtype), reals(seed + 1, (n,), dtype)
    on_x, on_y = device.put(x), device.put(y)
    left = value(device, fft.fft(blas.axpy(on_x, on_y, alpha=2 - 3j)))
    right = value(device, blas.axpy(fft.fft(on_x), fft.fft(on_y), alpha=2 - 3j))
    assert_transformed(left, wide(right), dtype, points=n * n)


@settings(max_examples=20)
@given(seed=seeds, n=st.sampled_from(LENGTHS), shift=st.integers(0, 5000))
def test_a_shift_turns_phases(device: Device, seed: int, n: int, shift: int) -> None:
    """What comes `shift` later has its k-th component turned by exp(-2 pi i k shift / n)."""
    x = reals(seed, (n,), "complex128")
    there = value(device, fft.fft(device.put(x)))
    later = value(device, fft.fft(device.put(np.roll(x, shift))))
    turns = np.arange(n) * (shift % n) % n / n
    exact = wide(there) * np.exp(-2j * np.pi * turns)
    assert_transformed(later, exact, "complex128", points=n * n)


@pytest.mark.parametrize("name", ONE_AXIS)
@settings(max_examples=40)
@given(
    seed=seeds,
    n=st.sampled_from([None, *LENGTHS]),
    m=st.sampled_from([n for n in LENGTHS if n > 1]),
    axis=st.integers(-2, 1),
    norm=norms,
    dtype=dtypes,
)
def test_along_one_axis_it_is_scipy_s(
    device: Device,
    name: str,
    seed: int,
    n: int | None,
    m: int,
    axis: int,
    norm: Norm,
    dtype: str,
) -> None:
    shape = (3, m) if axis in {-1, 1} else (m, 3)
    x = operand(name, seed, shape, dtype)
    exact = scipy_s(name, x, n=n, axis=axis, norm=norm)
    got = value(device, getattr(fft, name)(device.put(x), n, axis, norm))
    assert_transformed(got, exact, computed_in(dtype), points=2 * (n or m))
    assert got.dtype == getattr(scipy.fft, name)(x, n, axis).dtype


@pytest.mark.parametrize("name", TWO_AXES)
@pytest.mark.parametrize("norm", [None, *NORMS])
@pytest.mark.parametrize("dtype", [*REALS, *SINGLE_AND_DOUBLE])
def test_along_two_axes_it_is_scipy_s(
    device: Device, name: str, norm: Norm | None, dtype: str
) -> None:
    x = operand(name, 0, (3, 8, 10), dtype)
    for options in ({}, {"s": (5, 12)}, {"axes": (0, 1)}, {"s": (4, 3), "axes": (-1, 0)}):
        exact = scipy_s(name, x, norm=norm, **options)
        got = value(device, getattr(fft, name)(device.put(x), norm=norm, **options))
        assert_transformed(got, exact, computed_in(dtype), points=240)


@pytest.mark.parametrize("name", MANY_AXES)
@settings(max_examples=120)
@given(case=cases(), dtype=dtypes)
def test_along_any_axes_it_is_scipy_s(device: Device, name: str, case: Case, dtype: str) -> None:
    """Whatever the layout: views step, are transposed, or run backwards."""
    x = operand(name, case.seed, case.shape, dtype)
    assume(not (name == "irfftn" and case.s is None and x.shape[case.axes[-1]] == 1))
    exact = scipy_s(name, x, **case.options)
    got = value(device, getattr(fft, name)(place(device, x, case.layout), **case.options))
    assert_transformed(got, exact, computed_in(dtype), points=case.points)


@pytest.mark.parametrize("name", MANY_AXES)
def test_without_axes_they_are_the_last_or_all(device: Device, name: str) -> None:
    x = operand(name, 1, (2, 3, 4, 5, 6), "complex128")
    for options in ({}, {"s": (4, 4)}, {"s": (-1, 7)}, {"s": (2, 2, 2, 2, 2)}):
        exact = scipy_s(name, x, **options)
        got = value(device, getattr(fft, name)(device.put(x), **options))
        assert_transformed(got, exact, "complex128", points=2 * 720)


@pytest.mark.parametrize("name", ["irfft", "irfftn"])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 9, 64, 8192, 16384])
def test_what_would_make_the_result_complex_is_ignored(device: Device, name: str, n: int) -> None:
    """Noise is the half of no real array's transform; SciPy takes the nearest that is."""
    for shape in ((n // 2 + 1,), (4, n // 2 + 1)):
        x = reals(n, shape, "complex128")
        option: dict[str, Any] = {"n": n} if name == "irfft" else {"s": (*shape[:-1], n)}
        exact = scipy_s(name, x, **option)
        got = value(device, getattr(fft, name)(device.put(x), **option))
        assert_transformed(got, exact, "complex128", points=4 * n)


@pytest.mark.parametrize("dtype", [*REALS, *SINGLE_AND_DOUBLE])
@pytest.mark.parametrize("shape", [(1 << 20,), (199_999,), (509, 521), (64, 4096), (100_000, 3)])
def test_large_and_prime_sizes_stay_precise(
    device: Device, shape: tuple[int, ...], dtype: str
) -> None:
    x = reals(0, shape, dtype)
    points = math.prod(shape)
    got = value(device, fft.fftn(device.put(x)))
    assert_transformed(got, scipy_s("fftn", x), computed_in(dtype), points=points)
    if not is_complex(dtype):
        half = fft.rfftn(device.put(x))
        exact = scipy_s("rfftn", x)
        assert_transformed(value(device, half), exact, computed_in(dtype), points=points)
        back = value(device, fft.irfftn(half, shape))
        assert_transformed(back, wide(x), computed_in(dtype), points=points)


@pytest.mark.parametrize(
    ("name", "shape", "options"),
    [
        ("fft", (0, 4), {}),
        ("fft", (3, 0), {"n": 4}),
        ("rfft", (0, 4), {"n": 7}),
        ("irfft", (0, 4), {}),
        ("irfft", (2, 0), {"n": 3}),
        ("fftn", (0, 4, 3), {"axes": (1, 2)}),
        ("fftn", (2, 3), {"axes": ()}),
        ("fftn", (), {}),
        ("ifftn", (2, 0, 3), {"s": (4, 4), "axes": (2, 1)}),
        ("irfftn", (2, 0, 1), {"s": (4, 4), "axes": (1, 2)}),
    ],
)
def test_empty_arrays_are_treated_as_scipy_does(
    device: Device, name: str, shape: tuple[int, ...], options: dict[str, Any]
) -> None:
    x = operand(name, 0, shape, "complex64")
    exact = scipy_s(name, x, **options)
    got = value(device, getattr(fft, name)(device.put(x), **options))
    assert_transformed(got, exact, "complex64", points=32)


@settings(max_examples=40)
@given(case=cases(), inverse=st.booleans())
def test_out_of_c2c_may_be_its_operand(device: Device, case: Case, inverse: bool) -> None:  # noqa: FBT001
    x = reals(case.seed, case.shape, "complex128")
    on = place(device, x, case.layout)
    exact = scipy_s("ifftn" if inverse else "fftn", x, axes=case.axes, norm=case.norm)
    got = fft.c2c(on, axes=case.axes, norm=case.norm, inverse=inverse, out=on)
    assert got.id == on.id
    assert_transformed(value(device, on), exact, "complex128", points=case.points)


@pytest.mark.parametrize("name", ["fftn", "rfftn", "irfftn"])
@settings(max_examples=40)
@given(case=cases())
def test_out_may_be_a_part_and_the_rest_stays(device: Device, name: str, case: Case) -> None:
    s = case.s or tuple(case.shape[axis] for axis in case.axes)
    dtypes = {"fftn": "complex128", "rfftn": "float64", "irfftn": "complex128"}
    x = reals(case.seed, case.shape, dtypes[name])
    exact = scipy_s(name, x, s=s, axes=case.axes, norm=case.norm)
    around = np.full([2 * n + 1 for n in exact.shape], 9, exact.real.astype(float).dtype)
    around = around.astype(np.float64 if name == "irfftn" else np.complex128)
    base = device.put(around)
    odd = (slice(1, None, 2),) * exact.ndim
    send = {"fftn": fft.c2c, "rfftn": fft.r2c, "irfftn": fft.c2r}[name]
    on = place(device, x, case.layout)
    send(on, s=s, axes=case.axes, norm=case.norm, out=array.slice(base, odd))
    got = value(device, base)
    assert_transformed(got[odd], exact, "complex128", points=case.points)
    got[odd] = 9
    assert_equal(got, around)


REFUSED: dict[str, tuple[Callable[[Any], object], tuple[str, ...]]] = {
    "axis": (lambda b: fft.fft(b.x, axis=2), ("C2C", "axis 2", "2 axes", "x is complex64[3, 4]")),
    "axis of a number": (lambda b: fft.fft(b.number), ("axis -1", "complex64[]")),
    "two axes of one": (lambda b: fft.fft2(b.vector), ("axis -2", "complex64[5]")),
    "axis twice": (lambda b: fft.fftn(b.x, axes=(0, -2)), ("[0, -2]", "twice")),
    "no axis": (lambda b: fft.rfftn(b.real, axes=()), ("at least one axis", "float32[3, 4]")),
    "no axis back": (lambda b: fft.irfftn(b.x, axes=()), ("C2R", "at least one axis")),
    "no axis of a number": (lambda b: fft.irfftn(b.number), ("at least one axis", "complex64[]")),
    "extents and axes": (
        lambda b: fft.fftn(b.x, (3,), axes=(0, 1)),
        ("s has 1 extents for 2 axes",),
    ),
    "more extents than axes": (lambda b: fft.fftn(b.x, (3, 3, 3)), ("3 extents", "only 2 axes")),
    "no points": (lambda b: fft.fft(b.empty), ("at least one point", "[0]", "complex64[2, 0]")),
    "no points asked for": (lambda b: fft.fft(b.x, 0), ("n is 0", "at least one point")),
    "minus one points": (lambda b: fft.irfft(b.x, -1), ("n is -1", "at least one point")),
    "no points of several": (lambda b: fft.fftn(b.x, (2, 0)), ("at least one point", "[2, 0]")),
    "one component back": (lambda b: fft.irfft(b.column), ("C2R", "[0]", "complex64[3, 1]")),
    "norm": (
        lambda b: fft.fft(b.x, norm=b.text),
        ("C2C: norm is '2'", "'backward', 'ortho' or 'forward'"),
    ),
    "n that is no integer": (lambda b: fft.fft(b.x, b.text), ("n must be one integer, not '2'",)),
    "n for two axes": (lambda b: fft.fft(b.x, b.two), ("n must be one integer, not (2, 2)",)),
    "two axes for one": (lambda b: fft.rfft(b.real, axis=b.two), ("axis must be one integer",)),
    "no axis for one": (lambda b: fft.ifft(b.x, axis=b.none), ("axis must be one integer",)),
    "axes that are no integers": (
        lambda b: fft.fftn(b.x, axes=b.text),
        ("axes must be integers, not '2'",),
    ),
    "larger than can be": (lambda b: fft.fft(b.x, 2**57), ("C2C would make complex64",)),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_mistake_is_refused_with_what_and_what_was_expected(device: Device, mistake: str) -> None:
    send, words = REFUSED[mistake]
    buffers = SimpleNamespace(
        x=array.zeros(device, (3, 4), "complex64"),
        real=array.zeros(device, (3, 4)),
        vector=array.zeros(device, 5, "complex64"),
        column=array.zeros(device, (3, 1), "complex64"),
        empty=array.zeros(device, (2, 0), "complex64"),
        number=array.zeros(device, (), "complex64"),
        two=(2, 2),
        none=None,
        text="2",
    )
    with refused(device, *words):
        send(buffers)
