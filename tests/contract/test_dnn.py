"""The contract of convolutions: PyTorch, adjoints, finite differences, views, refusals."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab import array, dnn
from accel_lab.compute.device import Device
from accel_lab.errors import DependencyFailed, UnsupportedDtype
from tests.contract.samples import LAYOUTS, place, reals, refused, seeds, value
from tests.contract.tolerances import assert_near

DTYPES = ("float16", "bfloat16", "float32", "float64")
GEOMETRIES: tuple[tuple[Any, ...], ...] = (
    ((2, 4, 9), (6, 4, 3), {}),
    ((2, 4, 9), (6, 2, 3), {"padding": 2, "stride": 2, "dilation": 2, "groups": 2}),
    ((3, 4, 8, 7), (4, 4, 3, 2), {"padding": (1, 0), "stride": (2, 1)}),
    ((3, 4, 8, 7), (4, 1, 3, 3), {"padding": 1, "groups": 4}),
    ((2, 8, 6, 6), (16, 8, 1, 1), {}),
    ((2, 2, 5, 6, 4), (4, 1, 2, 3, 2), {"dilation": (1, 2, 1), "groups": 2, "padding": (0, 1, 1)}),
)
of_each_geometry = pytest.mark.parametrize(("x", "w", "options"), GEOMETRIES)
of_each_layout = pytest.mark.parametrize("layout", ["channels_first", "channels_last"])


def last(x: Any, layout: str) -> Any:
    """Return an array as a layout has it."""
    return np.moveaxis(x, 1, -1) if layout == "channels_last" else x


def first(x: Any, layout: str) -> Any:
    """Return an array of a layout with its channels behind its first axis."""
    return np.moveaxis(x, -1, 1) if layout == "channels_last" else x


def torchs(x: Any, w: Any, options: dict[str, Any], *, transposed: bool = False) -> Any:
    """Return PyTorch's convolution in double precision, and of absolute values."""
    torch = pytest.importorskip("torch")
    name = f"conv{'_transpose' * transposed}{x.ndim - 2}d"
    function = getattr(torch.nn.functional, name)
    both = [torch.tensor(np.asarray(one, "float64")) for one in (x, w)]
    return [function(*arrays, **options).numpy() for arrays in (both, [one.abs() for one in both])]


@of_each_layout
@of_each_geometry
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_convolution_is_pytorchs(
    device: Device, x: Any, w: Any, options: dict[str, Any], layout: Any, dtype: str
) -> None:
    a, b = reals(1, x, dtype), reals(2, w, dtype)
    exact, magnitude = torchs(a.astype("float64"), b.astype("float64"), options)
    operands: Any = [device.put(np.ascontiguousarray(last(one, layout))) for one in (a, b)]
    got = first(value(device, dnn.conv(*operands, layout=layout, **options)), layout)
    assert_near(got, exact, dtype, magnitude=magnitude, operations=int(np.prod(w[1:])) + 1)


@of_each_layout
@of_each_geometry
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_are_adjoint(
    device: Device, x: Any, w: Any, options: dict[str, Any], layout: Any, dtype: str
) -> None:
    torch = pytest.importorskip("torch")
    a, b = reals(1, x, dtype), reals(2, w, dtype)
    at = [torch.tensor(one.astype("float64"), requires_grad=True) for one in (a, b)]
    y = getattr(torch.nn.functional, f"conv{len(x) - 2}d")(*at, **options)
    c = reals(3, tuple(y.shape), dtype)
    wide_c = torch.tensor(c.astype("float64"))
    exact = [one.numpy() for one in torch.autograd.grad(y, at, wide_c, retain_graph=True)]
    ats = [one.detach().abs().requires_grad_() for one in at]
    of_abs = getattr(torch.nn.functional, f"conv{len(x) - 2}d")(*ats, **options)
    magnitudes = [one.numpy() for one in torch.autograd.grad(of_abs, ats, wide_c.abs())]
    put_a, put_b, put_c = (device.put(np.ascontiguousarray(last(one, layout))) for one in (a, b, c))
    dx = dnn.conv_data_gradient(put_c, put_b, x[2:], layout=layout, **options)
    dw = dnn.conv_filter_gradient(put_a, put_c, w[2:], layout=layout, **options)
    for ref, one, magnitude in zip((dx, dw), exact, magnitudes, strict=True):
        got = first(value(device, ref), layout)
        assert_near(got, one, dtype, magnitude=magnitude, operations=c.size // c.shape[1] + 1)


@of_each_layout
def test_a_transposed_convolution_is_pytorchs(device: Device, layout: Any) -> None:
    torch = pytest.importorskip("torch")
    x, w, bias = (
        reals(1, (2, 4, 5, 6), "float64"),
        reals(2, (4, 3, 3, 2), "float64"),
        reals(3, (6,), "float64"),
    )
    options: dict[str, Any] = {"padding": (1, 0), "stride": (2, 3), "groups": 2, "dilation": (1, 2)}
    exact = torch.nn.functional.conv_transpose2d(
        *map(torch.tensor, (x, w, bias)), output_padding=(1, 2), **options
    ).numpy()
    operands: Any = [device.put(np.ascontiguousarray(last(one, layout))) for one in (x, w)]
    made = dnn.conv_transpose(
        operands[0], operands[1], device.put(bias), extra=(1, 2), layout=layout, **options
    )
    np.testing.assert_allclose(first(value(device, made), layout), exact, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("activation", dnn.CONV_ACTIVATIONS)
def test_a_bias_and_an_activation_come_behind_the_sum(device: Device, activation: Any) -> None:
    x, w, bias = (reals(n, s, "float32") for n, s in enumerate([(2, 3, 8, 8), (4, 3, 3, 3), (4,)]))
    at: Any = [device.put(one) for one in (x, w, bias)]
    plain = device.put(value(device, dnn.conv(*at[:2])) + bias[:, None, None])
    expected = plain if activation == "identity" else dnn.activate(plain, activation)
    got = value(device, dnn.conv(*at, activation=activation))
    np.testing.assert_allclose(got, value(device, expected), rtol=1e-5, atol=1e-5)


def test_finite_differences_are_the_gradients(device: Device) -> None:
    x, w = reals(1, (2, 2, 6, 5), "float64"), reals(2, (4, 1, 3, 2), "float64")
    options: dict[str, Any] = {"padding": 1, "stride": (2, 1), "groups": 2}

    def loss(x: Any, w: Any) -> float:
        y = value(device, dnn.conv(device.put(x), device.put(w), **options))
        return float((y**2).sum() / 2)

    y = dnn.conv(device.put(x), device.put(w), **options)
    dx = value(device, dnn.conv_data_gradient(y, device.put(w), (6, 5), **options))
    dw = value(device, dnn.conv_filter_gradient(device.put(x), y, (3, 2), **options))
    for seed in range(3):
        step_x, step_w = reals(seed, x.shape, "float64"), reals(seed + 9, w.shape, "float64")
        h = 1e-6
        up = loss(x + h * step_x, w + h * step_w)
        down = loss(x - h * step_x, w - h * step_w)
        expected = (dx * step_x).sum() + (dw * step_w).sum()
        np.testing.assert_allclose((up - down) / (2 * h), expected, rtol=1e-7)


@given(
    seed=seeds,
    layout=st.sampled_from(LAYOUTS),
    extents=st.tuples(st.integers(3, 7), st.integers(3, 7)),
    batch=st.integers(0, 3),
)
def test_operands_are_views_and_out_is_written(
    device: Device, seed: int, layout: Any, extents: tuple[int, int], batch: int
) -> None:
    x, w = reals(seed, (batch, 3, *extents), "float32"), reals(seed + 1, (2, 3, 2, 3), "float32")
    calm = value(device, dnn.conv(device.put(x), device.put(w), padding=1))
    out = place(device, np.full_like(calm, 7), layout)
    made = dnn.conv(place(device, x, layout), place(device, w, layout), padding=1, out=out)
    np.testing.assert_allclose(value(device, made), calm, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(value(device, out), value(device, made))


def test_large_images_are_convolved_in_parts(device: Device) -> None:
    x, w = reals(1, (3, 8, 64, 64), "float64"), reals(2, (4, 8, 11, 11), "float64")
    dy = reals(3, (3, 4, 54, 54), "float64")
    put_x, put_w, put_dy = (device.put(one) for one in (x, w, dy))
    each = [(device.put(a[None]), device.put(b[None])) for a, b in zip(x, dy, strict=True)]
    ys = [value(device, dnn.conv(a, put_w)) for a, _ in each]
    dxs = [value(device, dnn.conv_data_gradient(b, put_w, (64, 64))) for _, b in each]
    dws = [value(device, dnn.conv_filter_gradient(a, b, (11, 11))) for a, b in each]
    for made, expected in (
        (dnn.conv(put_x, put_w), np.concatenate(ys)),
        (dnn.conv_data_gradient(put_dy, put_w, (64, 64)), np.concatenate(dxs)),
        (dnn.conv_filter_gradient(put_x, put_dy, (11, 11)), sum(dws)),
    ):
        np.testing.assert_allclose(value(device, made), expected, rtol=1e-10, atol=1e-9)


def test_what_is_not_narrow_is_not_rounded_to_less(device: Device) -> None:
    x = np.full((1, 1, 4, 4), 1 + 2.0**-20, "float32")  # tf32 would lose the last bits
    got = value(device, dnn.conv(device.put(x), device.put(np.ones((1, 1, 1, 1), "float32"))))
    np.testing.assert_array_equal(got, x)


def test_mistakes_are_refused_with_what_and_what_was_expected(device: Device) -> None:
    z0 = array.zeros(device, (2, 4, 8))
    z1 = array.zeros(device, (5,))
    z2 = array.zeros(device, (6, 4, 3, 3), "float64")
    z3 = array.zeros(device, (2, 6, 6, 6))
    z4 = array.zeros(device, (3, 6, 6, 6))
    z5 = array.zeros(device, (2, 6, 6, 5))
    z6 = array.zeros(device, (4, 4, 3, 3))
    x, w = array.zeros(device, (2, 4, 8, 8)), array.zeros(device, (6, 4, 3, 3))
    with refused(device, "w is float32[6, 4, 3, 3]", "groups=2"):
        dnn.conv(x, w, groups=2)
    with refused(device, "x is float32[2, 4, 8]", "3 to 5 axes"):
        dnn.conv(z0, w)
    with refused(device, "bias is float32[5]", "[6]"):
        dnn.conv(x, w, z1)
    with refused(device, "padding", "-1"):
        dnn.conv(x, w, padding=-1)
    with refused(device, "stride", "2 integers from 1"):
        dnn.conv(x, w, stride=(1, 1, 1))
    with refused(device, "does not fit into float32[2, 4, 8, 8]"):
        dnn.conv(x, w, dilation=4)
    with refused(device, "activation", "softplus"):
        dnn.conv(x, w, activation="rely")
    with refused(device, "layout", "channels_last"):
        dnn.conv(x, w, layout="nhwc")  # type: ignore[arg-type]
    with refused(device, "one dtype", "w is float64"):
        dnn.conv(x, z2)
    with refused(device, "extents (9, 8)", "dy has (6, 6)"):
        dnn.conv_data_gradient(z3, w, (9, 8))
    with refused(device, "batches"):
        dnn.conv_filter_gradient(x, z4, (3, 3))
    with refused(device, "extra", "below"):
        dnn.conv_transpose(z3, w, extra=1)
    with refused(device, "out is float32[2, 6, 6, 5]"):
        dnn.conv(x, w, out=z5)
    same = array.zeros(device, (2, 4, 8, 8))
    with refused(device, "out is the same buffer"):
        dnn.conv(same, z6, padding=1, out=same)


def test_an_out_that_overlaps_is_refused(device: Device) -> None:
    both = array.zeros(device, (3, 2, 4, 4))
    made = dnn.conv(both[:2], array.zeros(device, (2, 2, 3, 3)), padding=1, out=both[1:])
    with pytest.raises(DependencyFailed, match="overlapping"):
        value(device, made)


def test_a_dtype_that_is_no_float_is_refused(device: Device) -> None:
    x = array.zeros(device, (1, 1, 4, 4), "int32")
    with pytest.raises(UnsupportedDtype, match="int32"):
        dnn.conv(x, x)
