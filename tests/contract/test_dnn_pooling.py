"""The contract of pooling: PyTorch, finite differences, refusals."""

from typing import Any

import numpy as np
import pytest

from accel_lab import array, dnn
from accel_lab.compute.device import Device
from tests.contract.samples import LAYOUTS, assert_equal, place, reals, refused, value

SHAPES: tuple[tuple[Any, ...], ...] = (
    ((2, 3, 11), (3,), {}),
    ((2, 3, 9, 10), (3, 2), {"stride": 2, "padding": 1}),
    ((2, 3, 9, 10), (2, 2), {}),
    ((1, 2, 5, 6, 7), (2, 3, 2), {"stride": (1, 2, 2), "padding": (0, 1, 1)}),
)
of_each_shape = pytest.mark.parametrize(("shape", "window", "options"), SHAPES)


def torch_of(name: str, shape: Any) -> Any:
    torch = pytest.importorskip("torch")
    return torch, getattr(torch.nn.functional, f"{name}_pool{len(shape) - 2}d")


@of_each_shape
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_maxima_and_where_they_were_are_pytorchs(
    device: Device, shape: Any, window: Any, options: dict[str, Any], dtype: str
) -> None:
    torch, pool = torch_of("max", shape)
    x = np.round(reals(1, shape, "float64")).astype(reals(1, (), dtype).dtype)  # many are equal
    at = torch.tensor(x.astype("float64"), requires_grad=True)
    y = pool(at, window, **options)
    dy = np.round(reals(2, tuple(y.shape), "float64") * 4).astype(x.dtype)
    y.backward(torch.tensor(dy.astype("float64")))
    got = value(device, dnn.max_pool(device.put(x), window, **options))
    assert_equal(got, y.detach().numpy().astype(x.dtype))
    dx = dnn.max_pool_gradient(device.put(x), device.put(dy), window, **options)
    assert_equal(value(device, dx), at.grad.numpy().astype(x.dtype))


def test_a_maximum_may_be_dilated_or_nothing_but_infinite_or_no_number(device: Device) -> None:
    torch, pool = torch_of("max", (1, 1, 1, 1))
    x = reals(1, (1, 2, 8, 9), "float64")
    x[0, 0, :5] = -np.inf
    x[0, 1, 2, 3] = np.nan
    at = torch.tensor(x, requires_grad=True)
    y = pool(at, 3, stride=2, padding=1, dilation=2)
    dy = reals(2, tuple(y.shape), "float64")
    y.backward(torch.tensor(dy))
    options: dict[str, Any] = {"stride": 2, "padding": 1, "dilation": 2}
    got = value(device, dnn.max_pool(device.put(x), (3, 3), **options))
    np.testing.assert_array_equal(got, y.detach().numpy())
    dx = dnn.max_pool_gradient(device.put(x), device.put(dy), (3, 3), **options)
    np.testing.assert_allclose(value(device, dx), at.grad.numpy(), rtol=1e-12, atol=1e-12)


@of_each_shape
@pytest.mark.parametrize("count_padding", [True, False])
def test_averages_are_pytorchs(
    device: Device, shape: Any, window: Any, options: dict[str, Any], *, count_padding: bool
) -> None:
    torch, pool = torch_of("avg", shape)
    at = torch.tensor(reals(1, shape, "float64"), requires_grad=True)
    y = pool(at, window, count_include_pad=count_padding, **options)
    dy = reals(2, tuple(y.shape), "float64")
    y.backward(torch.tensor(dy))
    x = device.put(at.detach().numpy())
    got = dnn.average_pool(x, window, count_padding=count_padding, **options)
    np.testing.assert_allclose(value(device, got), y.detach().numpy(), rtol=1e-13, atol=1e-14)
    dx = dnn.average_pool_gradient(
        device.put(dy), shape[2:], window, count_padding=count_padding, **options
    )
    np.testing.assert_allclose(value(device, dx), at.grad.numpy(), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_channels_may_be_last_and_operands_views(device: Device, layout: Any) -> None:
    x = reals(1, (2, 6, 5, 3), "float32")
    turned = np.ascontiguousarray(np.moveaxis(x, -1, 1))
    dy = reals(2, (2, 3, 2, 3), "float32")
    ours, theirs = place(device, x, layout), device.put(turned)
    g, h = place(device, dy, layout), device.put(np.ascontiguousarray(np.moveaxis(dy, -1, 1)))
    last: Any = {"layout": "channels_last"}
    for one, other in (
        (dnn.max_pool(ours, (2, 2), **last), dnn.max_pool(theirs, (2, 2))),
        (dnn.average_pool(ours, (2, 2), **last), dnn.average_pool(theirs, (2, 2))),
        (dnn.max_pool_gradient(ours, g, (2, 2), **last), dnn.max_pool_gradient(theirs, h, (2, 2))),
        (
            dnn.average_pool_gradient(g, (6, 5), (2, 2), **last),
            dnn.average_pool_gradient(h, (6, 5), (2, 2)),
        ),
    ):
        assert_equal(np.moveaxis(value(device, one), -1, 1), value(device, other))


def test_finite_differences_are_the_gradients(device: Device) -> None:
    x, dy = reals(1, (1, 2, 6, 6), "float64"), reals(2, (1, 2, 3, 3), "float64")
    step, h = reals(3, x.shape, "float64"), 1e-7
    for pool, dx in (
        (dnn.max_pool, dnn.max_pool_gradient(device.put(x), device.put(dy), (2, 2))),
        (dnn.average_pool, dnn.average_pool_gradient(device.put(dy), (6, 6), (2, 2))),
    ):
        up, down = (value(device, pool(device.put(x + s * step), (2, 2))) for s in (h, -h))
        slope = ((up - down) * dy).sum() / (2 * h)
        np.testing.assert_allclose(slope, (value(device, dx) * step).sum(), rtol=1e-6)


def test_mistakes_are_refused_with_what_and_what_was_expected(device: Device) -> None:
    z0 = array.zeros(device, (2, 3, 8, 8))
    z1 = array.zeros(device, (2, 3, 0, 8))
    x = array.zeros(device, (2, 3, 8, 8))
    with refused(device, "x is float32[2, 3, 8, 8]", "window is (2,)"):
        dnn.max_pool(x, 2)
    with refused(device, "padding (2, 2) is more than half"):
        dnn.average_pool(x, (3, 3), padding=2)
    with refused(device, "does not fit into"):
        dnn.max_pool(x, (9, 2))
    with refused(device, "at least 1"):
        dnn.max_pool(x, (0, 2))
    with refused(device, "dy is float32[2, 3, 8, 8]", "[2, 3, 4, 4]"):
        dnn.max_pool_gradient(x, z0, (2, 2))
    with refused(device, "extents (9, 8) makes (4, 4) places", "dy is"):
        dnn.average_pool_gradient(x, (9, 8), (2, 2))
    with refused(device, "an extent of 0"):
        dnn.max_pool(z1, (1, 2))
    with refused(device, "stride"):
        dnn.max_pool(x, (2, 2), stride=0)
