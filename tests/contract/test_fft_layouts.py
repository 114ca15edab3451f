"""The contract of transforms in other layouts: cuFFT's formula, NumPy's views, single precision."""

from typing import Any

import numpy as np
import pytest
import scipy.fft
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, fft
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.fft.transform import Norm
from tests.contract.samples import (
    LAYOUTS,
    Layout,
    assert_equal,
    assert_same,
    layouts,
    place,
    reals,
    refused,
    seeds,
    value,
)
from tests.contract.tolerances import EPS, SMALLEST, assert_transformed, wide
from tests.contract.transforms import COMPLEX, REALS, norms


@pytest.mark.parametrize(
    ("n", "options"),
    [
        ((4,), {"batch": 5}),
        ((4,), {"batch": 5, "stride": 5, "distance": 1}),
        ((4,), {"batch": 3, "stride": 2, "distance": 9, "offset": 1}),
        ((2, 3), {"batch": 3, "embed": (4, 5), "offset": 2}),
        ((2, 3, 2), {"batch": 2, "embed": (2, 4, 3), "stride": 2, "distance": 61}),
        ((3,), {"batch": 1, "distance": 1}),
    ],
)
def test_an_embedded_element_lies_where_cuffts_manual_says(
    device: Device, n: tuple[int, ...], options: dict[str, Any]
) -> None:
    flat = np.arange(200.0)
    view = fft.embedded(device.put(flat), n, **options)
    embed, stride = options.get("embed", n), options.get("stride", 1)
    distance = options.get("distance", np.prod(embed) * stride)
    exact = np.empty((options["batch"], *n))
    for b, *at in np.ndindex(exact.shape):
        inner = 0
        for i, extent in zip(at, embed, strict=True):
            inner = inner * extent + i
        exact[b, *at] = flat[options.get("offset", 0) + b * distance + inner * stride]
    assert_equal(value(device, view), exact)


def test_a_batch_is_transformed_within_its_vector_and_the_gaps_stay(device: Device) -> None:
    """As cufftPlanMany and an execution in place."""
    flat = reals(0, (90,), "complex128")
    x = device.put(flat)
    lines = fft.embedded(x, 8, 5, stride=2, distance=17, offset=3)
    fft.c2c(lines, axes=-1, out=lines)
    at = 3 + 17 * np.arange(5)[:, None] + 2 * np.arange(8)
    got = value(device, x)
    assert_transformed(got[at], scipy.fft.fft(wide(flat[at])), "complex128", points=8)
    got[at] = flat[at]
    assert_same(got, flat)


def test_what_does_not_lie_in_the_vector_is_refused(device: Device) -> None:
    x = array.zeros(device, 20)
    with refused(device, "the last array ends behind 21 elements", "float32[20]"):
        fft.embedded(x, 4, 5, offset=1)
    for options in ({"distance": 3}, {"stride": 2, "distance": 2}, {"embed": 1, "distance": 2}):
        with refused(device, "two elements at one place", "n (4,)"):
            fft.embedded(x, 4, 2, **options)
    with refused(device, "Embedded: n (0,)", "points from 1"):
        fft.embedded(x, 0)
    with refused(device, "Embedded: n (4,)", "embed (4, 4) one for each"):
        fft.embedded(x, 4, embed=(4, 4))
    for name, least in (("batch", 1), ("stride", 1), ("distance", 1), ("offset", 0)):
        with refused(device, f"{name} must be an integer from {least}, not -1"):
            fft.embedded(x, 4, **{name: -1})


@pytest.mark.parametrize("dtype", [*REALS, *COMPLEX.values()])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_pairs_are_numpys_view(device: Device, dtype: str, layout: Layout) -> None:
    x = reals(0, (4, 6), dtype)
    other = {**COMPLEX, **{b: a for a, b in COMPLEX.items()}}[dtype]
    on = place(device, x, layout)
    if layout == "inside" and dtype in REALS:  # it begins at an odd element
        with pytest.raises(InvalidArgument, match=r"begin between multiples of .*; copy it first"):
            fft.interleaved(on).result(30)
    elif layout in {"contiguous", "inside"}:
        view = fft.interleaved(on)
        assert (view.shape, view.dtype) == (x.view(other).shape, other)
        assert_same(value(device, view), x.view(other))
        array.multiply(view, view, out=view)
        assert_same(value(device, on), (x.view(other) * x.view(other)).view(dtype))
        assert value(device, fft.interleaved(on[:0])).shape == (0, view.shape[-1])
    else:
        with pytest.raises(InvalidArgument, match=r"steps by -?\d+ bytes .* copy it first"):
            fft.interleaved(on).result(timeout_s=30)
        assert_same(value(device, fft.interleaved(on.copy())), x.view(other))


def test_what_is_no_pairs_is_refused(device: Device) -> None:
    for shape in ((3, 5), ()):
        x = array.zeros(device, shape)
        with refused(device, "Interleaved: x is float32", "last axis, real numbers in pairs"):
            fft.interleaved(x)


@settings(max_examples=40)
@given(
    seed=seeds,
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    ndim=st.integers(1, 3),
    odd=st.booleans(),
    norm=norms,
    dtype=st.sampled_from(REALS),
    layout=layouts,
)
def test_padded_lines_are_transformed_in_place_and_back(
    device: Device,
    seed: int,
    shape: list[int],
    ndim: int,
    odd: bool,  # noqa: FBT001 - drawn
    norm: Norm,
    dtype: str,
    layout: Layout,
) -> None:
    ndim = min(ndim, len(shape))
    n = 2 * shape[-1] + (1 if odd else 0)
    room = reals(seed, (*shape[:-1], 2 * (n // 2 + 1)), dtype)
    points = room[..., :n].copy()
    on, axes = place(device, room, layout), tuple(range(-ndim, 0))
    options: dict[str, Any] = {"odd": odd, "norm": norm}
    expected = scipy.fft.rfftn(wide(points), axes=axes, norm=norm)
    made = fft.padded(on, ndim, out=on, **options)
    assert made.id == on.id
    computed_in = COMPLEX[dtype]
    got = value(device, made).copy().view(computed_in)
    total = 2 * points.size
    assert_transformed(got, expected, computed_in, points=total)
    apart = fft.padded(made, ndim, inverse=True, **options)
    assert_transformed(value(device, apart)[..., :n], wide(points), computed_in, points=total**2)
    fft.padded(made, ndim, inverse=True, out=made, **options)
    assert_transformed(value(device, on)[..., :n], wide(points), computed_in, points=total**2)
    assert not value(device, on)[..., n:].any()
    assert not value(device, apart)[..., n:].any()


def test_lines_without_room_are_refused(device: Device) -> None:
    for shape in ((3, 5), (3, 2)):
        lines = array.zeros(device, shape)
        with refused(device, f"Padded: x is float32{[*shape]}", "2 (n // 2 + 1)"):
            fft.padded(lines)
    x, none = array.zeros(device, (3, 4)), array.zeros(device, (0, 4))
    for ndim in (0, 3):
        with refused(device, f"Padded: ndim is {ndim}", "[3, 4]"):
            fft.padded(x, ndim)
    with refused(device, "Padded: x has the extents [0, 4]", "at least one point"):
        fft.padded(none, 2)
    assert value(device, fft.padded(none)).shape == (0, 4)


def assert_half(got: Any, exact: Any, points: int, dtype: str = "float16") -> None:
    """Compare as `assert_transformed`, in 16 bits: each stage of cuFFT may round to them."""
    assert str(got.dtype) == dtype
    assert got.shape == exact.shape
    error = np.linalg.norm((got.astype(np.float64) - exact).ravel())
    bound = 4 * EPS[dtype] * (1 + np.log2(points)) * np.linalg.norm(exact.ravel())
    assert error <= bound + SMALLEST[dtype] * exact.size


def pairs_of(z: Any) -> Any:
    return np.stack([z.real, z.imag], axis=-1)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize(
    ("shape", "ndim"),
    [((1,), 1), ((3, 2), 1), ((5, 64), 1), ((2, 16, 8), 2), ((4, 2, 8), 3), ((1, 4096), 1)],
)
@pytest.mark.parametrize(
    ("layout", "dtype"),
    [("contiguous", "float16"), ("transposed", "bfloat16"), ("stepped", "float16")],
)
def test_halves_are_the_transform_of_what_they_hold(
    device: Device, shape: tuple[int, ...], ndim: int, norm: Norm, layout: Layout, dtype: str
) -> None:
    axes = tuple(range(-ndim, 0))
    x = reals(0, (*shape, 2), dtype)
    on, wider = place(device, x, layout), x.astype(float)
    z = wider[..., 0] + 1j * wider[..., 1]
    points = int(np.prod(shape[-ndim:]))
    there = value(device, fft.half(on, ndim=ndim, norm=norm))
    assert_half(there, pairs_of(scipy.fft.fftn(z, axes=axes, norm=norm)), points, dtype)
    back = value(device, fft.half(on, ndim=ndim, norm=norm, inverse=True))
    assert_half(back, pairs_of(scipy.fft.ifftn(z, axes=axes, norm=norm)), points, dtype)
    real = wider[..., 0]
    kept = scipy.fft.rfftn(real, axes=axes, norm=norm)
    got = fft.half(place(device, x[..., 0].copy(), layout), "r2c", ndim, norm=norm)
    assert_half(value(device, got), pairs_of(kept), points, dtype)
    if shape[-1] > 1:
        again = value(device, fft.half(got, "c2r", ndim, norm=norm))
        assert_half(again, real, points**2, dtype)


def test_a_half_that_is_too_large_is_infinite(device: Device) -> None:
    x = np.full(4096, 32.0, np.float16)
    got = value(device, fft.half(device.put(x), "r2c"))
    assert np.isinf(got[0, 0])
    scaled = value(device, fft.half(device.put(x), "r2c", norm="forward"))
    assert scaled[0, 0] == 32.0


def test_out_of_a_half_may_be_a_part(device: Device) -> None:
    x = reals(0, (3, 8), "float16")
    base = device.put(np.full((3, 12, 2), 9, np.float16))
    out = base[:, ::2][:, :5]
    got = fft.half(device.put(x), "r2c", out=out)
    assert got.id == out.id
    assert_half(value(device, out), pairs_of(scipy.fft.rfft(x.astype(float))), 8)
    assert (value(device, base)[:, 1::2] == 9).all()


def test_what_half_precision_does_not_have_is_refused(device: Device) -> None:
    shapes = ((6,), (1, 2), (4, 3), (4,), (4, 2), (4, 0))
    six, pair, triple, four, pairs, none = (array.zeros(device, s, "float16") for s in shapes)
    with refused(device, "Half: the points along the last axes are [6]", "powers of two"):
        fft.half(six, "r2c")
    with refused(device, "are [0]", "powers of two"):
        fft.half(pair, "c2r")
    with refused(device, "Half: x is float16[4, 3]", "pair, of extent 2"):
        fft.half(triple)
    with refused(device, 'inverse is of "c2c"', '"r2c" has one way'):
        fft.half(four, "r2c", inverse=True)
    with refused(device, "Half: form is 'r2r'", "'c2c', 'r2c' or 'c2r'"):
        fft.half(four, "r2r")  # type: ignore[arg-type]
    with refused(device, "Half: ndim is 2", "[4]"):
        fft.half(pairs, ndim=2)
    with refused(device, "Half: norm is 'none'"):
        fft.half(pairs, norm="none")  # type: ignore[arg-type]
    with refused(device, "Half: x has the extents [4, 0]", "at least one point"):
        fft.half(none, "r2c", 2)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9, 1000])
@pytest.mark.parametrize("dtype", REALS)
def test_frequencies_are_scipys(device: Device, n: int, dtype: str) -> None:
    for name in ("fftfreq", "rfftfreq"):
        got = value(device, getattr(fft, name)(device, n, 0.1, dtype=dtype))
        exact = getattr(scipy.fft, name)(n, 0.1)
        assert got.dtype == dtype
        np.testing.assert_allclose(got, exact, rtol=2 * EPS[dtype], atol=0)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (4, 5), (2, 3, 4)])
def test_shifts_are_scipys_bit_for_bit(device: Device, shape: tuple[int, ...]) -> None:
    x = reals(0, shape, "complex64")
    for name in ("fftshift", "ifftshift"):
        for axes in (None, *range(x.ndim), tuple(range(x.ndim))):
            got = value(device, getattr(fft, name)(device.put(x), axes))
            exact = getattr(scipy.fft, name)(x, axes) if x.ndim else x  # NumPy stumbles there
            assert_same(got, exact)


def test_frequencies_that_are_none_are_refused(device: Device) -> None:
    with refused(device, "Frequencies: n must be an integer from 1, not 0"):
        fft.fftfreq(device, 0)
    for d in (0, float("inf"), float("nan")):
        with refused(device, f"Frequencies: d must be a number but 0, not {d}"):
            fft.rfftfreq(device, 4, d)
    x = array.zeros(device, 3)
    with refused(device, "Shift: axis 1", "1 axes", "x is float32[3]"):
        fft.fftshift(x, 1)
    with refused(device, "Shift: axes [0, -1]", "twice"):
        fft.ifftshift(x, (0, -1))
