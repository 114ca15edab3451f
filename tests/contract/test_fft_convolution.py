"""The contract of convolutions and analytic signals: the definition, laws, then SciPy."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.signal
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, fft
from accel_lab.compute.device import Device
from tests.contract.samples import Layout, layouts, place, reals, refused, seeds, small, value
from tests.contract.tolerances import WIDE, assert_near, assert_transformed, wide

MODES = ("full", "same", "valid")
shapes = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=0, max_size=3)


def definition(a: Any, b: Any, mode: str) -> Any:
    """Return the sums over j of a[i - j] b[j], in long double; a mode keeps some."""
    a, b = wide(a), wide(b)
    shape = [n + k - 1 for n, k in zip(a.shape, b.shape, strict=True)]
    whole = np.zeros(shape, np.result_type(a, b))
    for at in np.ndindex(b.shape):
        whole[tuple(slice(i, i + n) for i, n in zip(at, a.shape, strict=True))] += a * b[at]
    kept = {"full": shape, "same": a.shape}
    pairs = zip(a.shape, b.shape, strict=True)
    extents = kept.get(mode) or [max(pair) - min(pair) + 1 for pair in pairs]
    starts = [(n - k) // 2 for n, k in zip(shape, extents, strict=True)]
    return whole[tuple(slice(i, i + n) for i, n in zip(starts, extents, strict=True))]


def assert_convolved(got: Any, exact: Any, a: Any, b: Any) -> None:
    """Compare with the bound of three transforms (Higham, section 24.1).

    What each is off by is relative to the norm of all its elements.
    """
    norms = np.linalg.norm(wide(a).ravel()) * np.linalg.norm(wide(b).ravel())
    steps = 16 * (3 + round(math.log2(a.size + b.size)))
    assert got.dtype == a.dtype
    assert got.shape == exact.shape
    assert_near(got, exact, str(a.dtype), magnitude=norms, operations=steps)


@settings(max_examples=80)
@given(
    seed=seeds,
    pairs=shapes,
    mode=st.sampled_from(MODES),
    dtype=st.sampled_from(WIDE),
    layout=layouts,
    name=st.sampled_from(["fftconvolve", "oaconvolve", "correlate"]),
)
def test_it_is_the_definition(
    device: Device,
    seed: int,
    pairs: list[tuple[int, int]],
    mode: str,
    dtype: str,
    layout: Layout,
    name: str,
) -> None:
    if mode == "valid":
        pairs = [(max(pair), min(pair)) for pair in pairs]
        pairs = pairs if seed % 2 else [pair[::-1] for pair in pairs]
    a = reals(seed, tuple(n for n, _ in pairs), dtype)
    b = reals(seed + 1, tuple(k for _, k in pairs), dtype)
    kernel = b[(slice(None, None, -1),) * b.ndim].conj() if name == "correlate" else b
    send: Callable[..., Any] = getattr(fft, name)
    got = value(device, send(place(device, a, layout), place(device, b, layout), mode))
    assert_convolved(got, definition(a, kernel, mode), a, b)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(1000, 7), (7, 1000), (4099, 3), (65, 8), (64, 8), (500, 1)])
def test_blocks_join_without_a_seam(device: Device, shape: tuple[int, int], mode: str) -> None:
    a, b = (reals(at, (2, n), "float64") for at, n in enumerate(shape))
    got = value(device, fft.oaconvolve(device.put(a), device.put(b), mode, axes=1))  # type: ignore[arg-type]
    scipys: Any = scipy.signal.oaconvolve
    exact = scipys(a, b, mode, axes=1)
    assert_convolved(got, wide(exact), a, b)


@pytest.mark.parametrize("name", ["fftconvolve", "oaconvolve"])
@pytest.mark.parametrize(
    ("of_a", "of_b", "axes"),
    [
        ((3, 40, 5), (3, 4, 2), (1, 2)),
        ((3, 40, 5), (3, 4, 2), (-1, -2)),
        ((1, 90, 3), (4, 5, 3), (1,)),
        ((4, 5, 3), (1, 90, 3), (1,)),
        ((200, 5), (3, 2), (1, 0)),
    ],
)
def test_along_some_axes_it_is_scipys_and_others_broadcast(
    device: Device, name: str, of_a: Any, of_b: Any, axes: tuple[int, ...]
) -> None:
    a, b = reals(1, of_a, "float64"), reals(2, of_b, "float64")
    exact = getattr(scipy.signal, name)(a, b, axes=axes)
    on_a, on_b = device.put(a), device.put(b)
    whole = value(device, getattr(fft, name)(on_a, on_b, axes=axes))
    assert_convolved(whole, wide(exact), a, b)
    middle = value(device, getattr(fft, name)(on_a, on_b, "same", axes))
    cut = [slice(None)] * a.ndim
    for axis in axes:
        start = (b.shape[axis] - 1) // 2
        cut[axis] = slice(start, start + a.shape[axis])
    assert_convolved(middle, wide(whole[tuple(cut)]), a, b)


@pytest.mark.parametrize("dtype", WIDE)
def test_an_impulse_shifts_and_order_is_no_matter(device: Device, dtype: str) -> None:
    x = small(3, (50,), dtype)
    impulse = np.zeros(9, x.dtype)
    impulse[4] = 1
    shifted = value(device, fft.fftconvolve(device.put(x), device.put(impulse), "same"))
    assert_convolved(shifted, wide(x), x, impulse)
    one = fft.oaconvolve(device.put(x), device.put(x[:3]))
    other = fft.fftconvolve(device.put(x[:3]), device.put(x))
    assert_convolved(value(device, one), wide(value(device, other)), x, x[:3])


def test_nothing_is_convolved_in_an_empty_batch_and_a_nan_is_in_all(device: Device) -> None:
    none = array.zeros(device, (0, 4))
    assert value(device, fft.fftconvolve(none, none, axes=1)).shape == (0, 7)
    x = np.ones(8)
    x[2] = np.nan
    got = value(device, fft.fftconvolve(device.put(x), device.put(np.ones(2))))
    assert np.isnan(got).all()


@settings(max_examples=30)
@given(
    seed=seeds,
    shape=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    n=st.none() | st.integers(1, 50),
    axis=st.integers(-2, 1),
    dtype=st.sampled_from(["float32", "float64"]),
    layout=layouts,
)
def test_the_analytic_signal_is_scipys(
    device: Device,
    seed: int,
    shape: tuple[int, int],
    n: int | None,
    axis: int,
    dtype: str,
    layout: Layout,
) -> None:
    x = reals(seed, shape, dtype)
    got = value(device, fft.hilbert(place(device, x, layout), n, axis))
    exact = scipy.signal.hilbert(wide(x).astype(float), n, axis)
    computed_in = "complex64" if dtype == "float32" else "complex128"
    assert got.dtype == computed_in
    assert_transformed(got, wide(exact), computed_in, points=16 * got.shape[axis])


def test_a_cosine_turns_to_a_sine(device: Device) -> None:
    """The definition: each frequency but 0 is turned by a quarter of a period."""
    turns = 2 * np.pi * np.arange(64) / 64
    got = value(device, fft.hilbert(device.put(np.cos(5 * turns) + 2)))
    exact = np.cos(5 * turns) + 2 + 1j * np.sin(5 * turns)
    assert_transformed(got, exact, "complex128", points=64)


def test_a_mistake_is_refused(device: Device) -> None:
    a, b = array.zeros(device, (3, 4)), array.zeros(device, (2, 5))
    vector, none = array.zeros(device, 2), array.zeros(device, (2, 0))
    other = array.zeros(device, (2, 5))
    double = array.zeros(device, (2, 5), "float64")
    with refused(device, "Convolve: mode is 'middle'", "'full', 'same' or 'valid'"):
        fft.fftconvolve(a, b, "middle")  # type: ignore[arg-type]
    with refused(device, "Convolve: method is 'direct'", "'fft' or 'oa'"):
        fft.convolve(a, b, method="direct")  # type: ignore[arg-type]
    with refused(device, "a float32[3, 4] and b float32[2, 5]", '"valid"'):
        fft.fftconvolve(a, b, "valid")
    with refused(device, "a float32[3, 4] and b float32[2]", "equally many axes"):
        fft.fftconvolve(a, vector)
    with refused(device, "do not broadcast along axis 0"):
        fft.oaconvolve(a, b, axes=1)
    for axes in ((0, -2), ()):
        with refused(device, "need axes, each once", f"not {[*axes]}"):
            fft.fftconvolve(a, b, axes=axes)
    with refused(device, "axis 2", "2 axes"):
        fft.fftconvolve(a, b, axes=2)
    with refused(device, "at least one point along the axes [0, 1]"):
        fft.correlate(a, none)
    with refused(device, "one dtype", "b is float64[2, 5]", "array.cast"):
        fft.fftconvolve(a, double)
    with refused(device, "Convolve results in float32[3, 4]", "but out is float32[2, 5]"):
        fft.convolve(a, b, "same", out=b)
    with refused(device, "b is float32[2, 5]", "out is the same"):
        fft.convolve(other, b, "same", out=b)
    with refused(device, "Hilbert: axis 2", "float32[3, 4]"):
        fft.hilbert(a, axis=2)
    with refused(device, "Hilbert: n must be an integer from 1, not 0"):
        fft.hilbert(a, 0)
