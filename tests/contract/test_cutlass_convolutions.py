"""Convolutions by `cutlass` and their gradients, against PyTorch's on the CPU in float64."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, cutlass
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from tests.conftest import require
from tests.contract.samples import Layout, layouts, place, refused, small, value

torch = pytest.importorskip("torch")
DTYPES = ("float16", "bfloat16", "float32")


@pytest.fixture(scope="module", autouse=True)
def _headers(device: Device) -> None:
    """Require CUTLASS's headers, if the device is a card."""
    if device.name.startswith("gpu"):
        require("cutlass")


class Problem(NamedTuple):
    """Arrays of small integers, and how they are convolved."""

    x: Any
    w: Any
    dy: Any
    options: dict[str, Any]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    two = st.tuples(st.integers(1, 3), st.integers(1, 3))
    (r, s), stride, dilation = draw(two), draw(two), draw(two)
    padding = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    p, q = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    n, c, k = draw(st.tuples(*[st.sampled_from((1, 3, 8, 20))] * 3))
    extra = draw(two)  # elements at the end that a stride leaves out
    h, w = (
        max((places - 1) * step + d * (window - 1) + 1 - 2 * pad + min(more, step) - 1, 1)
        for places, step, d, window, pad, more in zip(
            (p, q), stride, dilation, (r, s), padding, extra, strict=True
        )
    )
    p, q = (
        (extent + 2 * pad - d * (window - 1) - 1) // step + 1
        for extent, pad, d, window, step in zip(
            (h, w), padding, dilation, (r, s), stride, strict=True
        )
    )
    dtype, seed = draw(st.sampled_from(DTYPES)), draw(st.integers(0, 99))
    shapes = (n, h, w, c), (k, r, s, c), (n, p, q, k)
    x, w, dy = (small(seed + at, shape, dtype) for at, shape in enumerate(shapes))
    return Problem(x, w, dy, {"padding": padding, "stride": stride, "dilation": dilation})


def first(x: Any) -> Any:
    """Return PyTorch's tensor, with the channels first."""
    return torch.from_numpy(np.moveaxis(x.astype("float64"), 3, 1).copy())


def last(x: Any) -> Any:
    return np.moveaxis(x.numpy(), 1, 3)


def assert_is(device: Device, ref: Any, exact: Any, dtype: str) -> None:
    """Compare whole numbers, which are rounded once, to the nearest."""
    got = value(device, ref)
    assert (got.shape, ref.dtype) == (exact.shape, dtype)
    np.testing.assert_array_equal(got.astype("float64"), exact.astype(got.dtype).astype("float64"))


@settings(max_examples=40)
@given(problem=problems(), layout=layouts, biased=st.booleans(), relu=st.booleans())
def test_images_are_convolved(
    device: Device,
    problem: Problem,
    layout: Layout,
    biased: bool,  # noqa: FBT001 - drawn
    relu: bool,  # noqa: FBT001 - drawn
) -> None:
    x, w, _, options = problem
    bias = small(7, w.shape[:1], str(x.dtype))
    x_, w_, bias_ = (place(device, one, layout) for one in (x, w, bias))
    added = bias_ if biased else None
    got = cutlass.conv(x_, w_, added, scale=2, epilogue="relu" if relu else "identity", **options)
    exact = 2 * last(torch.nn.functional.conv2d(first(x), first(w), **options))
    exact = exact + biased * bias.astype("float64")
    assert_is(device, got, np.maximum(exact, 0) if relu else exact, str(x.dtype))


@settings(max_examples=40)
@given(problem=problems(), layout=layouts)
def test_the_gradient_by_the_input(device: Device, problem: Problem, layout: Layout) -> None:
    x, w, dy, options = problem
    dy_, w_ = (place(device, one, layout) for one in (dy, w))
    got = cutlass.conv_data_gradient(dy_, w_, x.shape[1:3], scale=-1, **options)
    shape = [x.shape[0], x.shape[3], *x.shape[1:3]]
    exact = torch.nn.grad.conv2d_input(shape, first(w), first(dy), **options)
    assert_is(device, got, -last(exact), str(x.dtype))


@settings(max_examples=40)
@given(problem=problems(), layout=layouts)
def test_the_gradient_by_the_filters(device: Device, problem: Problem, layout: Layout) -> None:
    x, w, dy, options = problem
    x_, dy_ = (place(device, one, layout) for one in (x, dy))
    got = cutlass.conv_filter_gradient(x_, dy_, w.shape[1:3], **options)
    shape = [w.shape[0], w.shape[3], *w.shape[1:3]]
    exact = torch.nn.grad.conv2d_weight(first(x), shape, first(dy), **options)
    assert_is(device, got, last(exact), str(x.dtype))


def test_gelu_and_several_blocks(device: Device) -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype("float32") for s in ((3, 40, 36, 24), (160, 3, 3, 24)))
    got = value(device, cutlass.conv(*map(device.put, (x, w)), padding=1, epilogue="gelu"))
    summed = torch.nn.functional.conv2d(first(x), first(w), padding=1)
    exact = last(torch.nn.functional.gelu(summed, approximate="tanh"))
    np.testing.assert_allclose(got, exact, atol=2e-4)


def test_no_image_has_no_gradient(device: Device) -> None:
    x, dy = (array.zeros(device, (0, n, n, 8)) for n in (5, 3))
    got = value(device, cutlass.conv_filter_gradient(x, dy, (3, 3)))
    assert got.shape == (8, 3, 3, 8)
    assert not got.any()


@pytest.mark.parametrize(
    ("x", "w", "options", "words"),
    [
        ((1, 5, 5), (4, 3, 3, 2), {}, ("float32[1, 5, 5] has 3 axes", "channels last")),
        ((1, 5, 5, 2), (4, 3, 3, 3), {}, ("2 channels", "float32[4, 3, 3, 3]")),
        ((1, 5, 5, 2), (4, 7, 3, 2), {}, ("does not fit into float32[1, 5, 5, 2]",)),
        ((1, 40, 40, 2), (4, 33, 3, 2), {}, ("the window is (33, 3)", "at most 32")),
        ((1, 5, 5, 2), (4, 3, 3, 2), {"stride": 0}, ("stride is",)),
        ((1, 5, 5, 2), (4, 3, 3, 2), {"epilogue": "tanh"}, ("epilogue is 'tanh'",)),
        ((1, 5, 5, 2), (4, 3, 3, 2), {"scale": 1j}, ("scale",)),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_by_name(
    device: Device, x: Any, w: Any, options: dict[str, Any], words: tuple[str, ...]
) -> None:
    on = [array.zeros(device, shape) for shape in (x, w)]
    with refused(device, "Conv", *words):
        cutlass.conv(*on, **options)


def test_gradients_of_other_shapes_are_refused(device: Device) -> None:
    dy, w, x = (array.zeros(device, shape) for shape in ((1, 3, 3, 4), (4, 3, 3, 2), (1, 5, 5, 2)))
    with refused(device, "ConvDataGradient", "extents (6, 5) makes (4, 3) places"):
        cutlass.conv_data_gradient(dy, w, (6, 5))
    with refused(device, "ConvFilterGradient", "makes (4, 3) places"):
        cutlass.conv_filter_gradient(x, dy, (2, 3))
    with refused(device, "ConvFilterGradient", "window (3,)"):
        cutlass.conv_filter_gradient(x, dy, (3,))


def test_options_beyond_32_bits_are_refused_on_every_backend(device: Device) -> None:
    x, w = device.put(np.zeros((1, 1, 1, 2048), "f4")), device.put(np.zeros((8, 2, 2, 2048), "f4"))
    far = 1 << 20
    with pytest.raises(InvalidArgument, match="elements; use dnn"):
        cutlass.conv(x, w, padding=far, stride=far, dilation=far)
    one = device.put(np.zeros((8, 1, 1, 2048), "f4"))
    with pytest.raises(InvalidArgument, match="an option is above"):
        cutlass.conv(x, one, dilation=1 << 31)
