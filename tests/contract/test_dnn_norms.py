"""The contract of norms, softmax and activations: PyTorch, finite differences, refusals."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accel_lab import array, dnn
from accel_lab.compute.device import Device
from tests.contract.samples import reals, refused, value
from tests.contract.tolerances import EPS

of_each_axes = pytest.mark.parametrize("axes", [1, 2])
of_each_layout = pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
TORCHS: dict[str, Callable[[Any, Any], Any]] = {
    "relu": lambda t, x: t.nn.functional.relu(x),
    "clipped_relu": lambda t, x: t.nn.functional.relu6(x),
    "sigmoid": lambda t, x: t.sigmoid(x),
    "tanh": lambda t, x: t.tanh(x),
    "elu": lambda t, x: t.nn.functional.elu(x),
    "gelu": lambda t, x: t.nn.functional.gelu(x),
    "gelu_tanh": lambda t, x: t.nn.functional.gelu(x, approximate="tanh"),
    "swish": lambda t, x: t.nn.functional.silu(x),
    "softplus": lambda t, x: t.nn.functional.softplus(x, threshold=1e9),
}


def put(device: Device, x: Any, layout: str = "channels_first") -> Any:
    turned = np.moveaxis(x, 1, -1) if layout == "channels_last" else x
    return device.put(np.ascontiguousarray(turned))


def close(got: Any, expected: Any) -> None:
    expected = expected.detach().numpy() if hasattr(expected, "detach") else expected
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-11)


def of(device: Device, ref: Any, layout: str = "channels_first") -> Any:
    got = value(device, ref)
    return np.moveaxis(got, -1, 1) if layout == "channels_last" else got


def leaves(*shapes: tuple[int, ...]) -> tuple[Any, list[Any]]:
    torch = pytest.importorskip("torch")
    drawn = [reals(seed, shape, "float64") for seed, shape in enumerate(shapes)]
    return torch, [torch.tensor(x, requires_grad=True) for x in drawn]


@of_each_layout
@pytest.mark.parametrize("extents", [(), (5,), (4, 3)])
def test_batch_norm_is_pytorchs(device: Device, extents: Any, layout: Any) -> None:
    torch, (x, scale, bias, dy) = leaves((6, 4, *extents), (4,), (4,), (6, 4, *extents))
    mean, variance = reals(8, (4,), "float64"), reals(9, (4,), "float64") ** 2 + 0.5
    running = [torch.tensor(one) for one in (mean, variance)]
    y = torch.nn.functional.batch_norm(x, *running, scale, bias, training=True, momentum=0.3)
    y.backward(dy.detach())
    at: Any = [put(device, one.detach().numpy(), layout) for one in (x, dy)]
    given: Any = [device.put(one.detach().numpy()) for one in (scale, bias)]
    stats: Any = [device.put(one) for one in (mean, variance)]
    made = dnn.batch_norm(
        at[0], given[0], given[1], stats[0], stats[1], momentum=0.3, layout=layout
    )
    close(of(device, made.y, layout), y)
    for got, expected in zip((made.mean, made.variance), running, strict=True):
        close(value(device, got), expected)
    dx, dscale, dbias = dnn.batch_norm_gradient(at[0], at[1], given[0], layout=layout)
    close(of(device, dx, layout), x.grad)
    close(value(device, dscale), scale.grad)
    close(value(device, dbias), bias.grad)
    for one in (x, scale, bias):
        one.grad = None
    y = torch.nn.functional.batch_norm(
        x, torch.tensor(mean), torch.tensor(variance), scale, bias, training=False
    )
    y.backward(dy.detach())
    got = dnn.batch_norm_inference(at[0], given[0], given[1], stats[0], stats[1], layout=layout)
    close(of(device, got, layout), y)
    dx, dscale, dbias = dnn.batch_norm_gradient(
        at[0], at[1], given[0], stats[0], stats[1], layout=layout
    )
    close(of(device, dx, layout), x.grad)
    close(value(device, dscale), scale.grad)
    close(value(device, dbias), bias.grad)


@of_each_axes
def test_layer_and_rms_norm_are_pytorchs(device: Device, axes: int) -> None:
    shape = (3, 4, 5)
    tail = shape[3 - axes :]
    for name in ("layer", "rms"):
        torch, (x, scale, bias, dy) = leaves(shape, tail, tail, shape)
        functional = torch.nn.functional
        given: Any = [device.put(one.detach().numpy()) for one in (x, scale, bias)]
        put_dy = device.put(dy.detach().numpy())
        if name == "layer":
            y = functional.layer_norm(x, tail, scale, bias, 1e-3)
            got = dnn.layer_norm(*given, axes=axes, epsilon=1e-3)
            gradients: Any = dnn.layer_norm_gradient(
                given[0], put_dy, given[1], axes=axes, epsilon=1e-3
            )
        else:
            y = functional.rms_norm(x, tail, scale, 1e-3)
            got = dnn.rms_norm(*given[:2], axes=axes, epsilon=1e-3)
            gradients = dnn.rms_norm_gradient(given[0], put_dy, given[1], axes=axes, epsilon=1e-3)
        y.backward(dy.detach())
        close(value(device, got), y)
        for ref, leaf in zip(gradients, (x, scale, bias), strict=False):
            close(value(device, ref), leaf.grad)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("shape", [(1, 576), (5, 33), (300, 128), (2, 1)])
def test_rows_are_normalized_in_float32_and_rounded_once(
    device: Device, shape: tuple[int, int], dtype: str
) -> None:
    """Also rows with gaps between their elements, and where the operand lies."""
    x, scale, bias = (reals(at, one, dtype) for at, one in enumerate((shape, shape[1:], shape[1:])))
    wide, by, more = (one.astype("float64") for one in (x, scale, bias))
    mean, squares = wide.mean(axis=1, keepdims=True), (wide**2).mean(axis=1, keepdims=True)
    rms = wide / np.sqrt(squares + 1e-3) * by
    layer = (wide - mean) / np.sqrt(wide.var(axis=1, keepdims=True) + 1e-3) * by + more
    put_scale, put_bias = device.put(scale), device.put(bias)
    turned = array.transpose(device.put(x.T.copy()), (1, 0))
    for put_x in (device.put(x), turned):
        found = dnn.layer_norm(put_x, put_scale, put_bias, epsilon=1e-3)
        dnn.rms_norm(put_x, put_scale, epsilon=1e-3, out=put_x)
        for got, exact in ((found, layer), (put_x, rms)):
            off = 32 * EPS["float32"]
            made = value(device, got).astype("float64")
            np.testing.assert_allclose(made, exact, rtol=EPS[dtype], atol=off)


@of_each_layout
@pytest.mark.parametrize("groups", [0, 1, 2])
def test_group_and_instance_norm_are_pytorchs(device: Device, groups: int, layout: Any) -> None:
    torch, (x, scale, bias, dy) = leaves((3, 4, 5, 6), (4,), (4,), (3, 4, 5, 6))
    y = torch.nn.functional.group_norm(x, groups or 4, scale, bias)
    y.backward(dy.detach())
    at: Any = [put(device, one.detach().numpy(), layout) for one in (x, dy)]
    given: Any = [device.put(one.detach().numpy()) for one in (scale, bias)]
    close(
        of(device, dnn.group_norm(at[0], given[0], given[1], groups=groups, layout=layout), layout),
        y,
    )
    dx, dscale, dbias = dnn.group_norm_gradient(
        at[0], at[1], given[0], groups=groups, layout=layout
    )
    close(of(device, dx, layout), x.grad)
    close(value(device, dscale), scale.grad)
    close(value(device, dbias), bias.grad)


@of_each_layout
@pytest.mark.parametrize(
    ("size", "shape"), [(5, (2, 7, 3, 4)), (4, (3, 6, 5)), (9, (2, 3, 4, 2, 2))]
)
def test_local_response_norm_is_pytorchs(
    device: Device, size: int, shape: tuple[int, ...], layout: Any
) -> None:
    torch, (x, dy) = leaves(shape, shape)
    options = {"alpha": 0.3, "beta": 0.6, "k": 1.7}
    y = torch.nn.functional.local_response_norm(x, size, **options)
    y.backward(dy.detach())
    at, put_dy = (put(device, one.detach().numpy(), layout) for one in (x, dy))
    told: Any = {**options, "layout": layout}
    close(of(device, dnn.local_response_norm(at, size, **told), layout), y)
    dx = dnn.local_response_norm_gradient(at, put_dy, size, **told)
    close(of(device, dx, layout), x.grad)
    dnn.local_response_norm_gradient(at, put_dy, size, out=put_dy, **told)
    close(of(device, put_dy, layout), x.grad)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_local_response_norm_is_rounded_once(device: Device, dtype: str) -> None:
    torch, x = pytest.importorskip("torch"), reals(1, (2, 6, 5), dtype)
    exact = torch.nn.functional.local_response_norm(torch.tensor(x.astype("float64")), 3, 0.5)
    got = value(device, dnn.local_response_norm(device.put(x), 3, alpha=0.5))
    assert got.dtype == x.dtype
    bound = (EPS[dtype] * 0.51 + 8 * EPS["float32"]) * np.abs(exact.numpy())
    assert np.all(np.abs(got.astype("float64") - exact.numpy()) <= bound)


def test_finite_differences_are_the_gradient_of_local_response_norm(device: Device) -> None:
    x, dy, step = (reals(seed, (2, 5, 3), "float64") for seed in range(3))
    options: Any = {"alpha": 2.0, "beta": 0.9}
    up, down = (
        value(device, dnn.local_response_norm(device.put(x + h * step), 4, **options))
        for h in (1e-6, -1e-6)
    )
    got = dnn.local_response_norm_gradient(device.put(x), device.put(dy), 4, **options)
    slope = ((up - down) * dy).sum() / 2e-6
    np.testing.assert_allclose(slope, (value(device, got) * step).sum(), rtol=1e-7)


def test_parameters_may_be_missing(device: Device) -> None:
    x = reals(1, (3, 4, 5), "float64")
    ref = device.put(x)
    rows = x.reshape(3, 4, 5)
    normal = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)
    close(value(device, dnn.layer_norm(ref)), normal)
    close(value(device, dnn.group_norm(ref)), normal)
    close(value(device, dnn.rms_norm(ref)), x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5))
    zero = value(device, dnn.layer_norm_gradient(ref, device.put(np.ones((3, 4, 5)))).x)
    np.testing.assert_allclose(zero, 0, atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_is_pytorchs(device: Device, axis: int) -> None:
    torch, (x, dy) = leaves((4, 5, 6), (4, 5, 6))
    for ours, gradient, theirs in (
        (dnn.softmax, dnn.softmax_gradient, torch.softmax),
        (dnn.log_softmax, dnn.log_softmax_gradient, torch.log_softmax),
    ):
        x.grad = None
        y = theirs(x, axis)
        y.backward(dy.detach())
        got = ours(device.put(x.detach().numpy()), axis)
        close(value(device, got), y)
        close(value(device, gradient(got, device.put(dy.detach().numpy()), axis)), x.grad)


def test_softmax_does_not_overflow_and_adds_to_one(device: Device) -> None:
    x = device.put(np.array([[1e38, 1e38, -1e38], [0, 700, 1400]], "float32"))
    np.testing.assert_array_equal(value(device, dnn.softmax(x)), [[0.5, 0.5, 0], [0, 0, 1]])
    got = value(device, dnn.log_softmax(x))[1]
    np.testing.assert_allclose(got, [-1400, -700, 0])


@pytest.mark.parametrize("op", dnn.ACTIVATIONS)
def test_activations_are_pytorchs(device: Device, op: Any) -> None:
    torch, (x,) = leaves((400,))
    x = (x.detach() * 4).requires_grad_()
    y = TORCHS[op](torch, x)
    dy = reals(2, (400,), "float64")
    y.backward(torch.tensor(dy))
    at = device.put(x.detach().numpy())
    close(value(device, getattr(dnn, op)(at)), y)
    close(value(device, dnn.activate_gradient(at, device.put(dy), op)), x.grad)
    for dtype in ("float16", "bfloat16", "float32"):
        narrow = x.detach().numpy().astype(reals(1, (), dtype).dtype)
        exact = TORCHS[op](torch, torch.tensor(narrow.astype("float64"))).numpy()
        got = value(device, dnn.activate(device.put(narrow), op)).astype("float64")
        size = np.maximum(np.abs(exact), 1e-2 if dtype != "float32" else 1.0)
        assert np.all(np.abs(got - exact) <= 8 * EPS[dtype] * size)


@pytest.mark.parametrize("op", dnn.ACTIVATIONS)
def test_a_number_counts_and_finite_differences_are_the_derivative(device: Device, op: Any) -> None:
    x = reals(1, (200,), "float64") * 2
    x = x[(np.abs(x) > 1e-3) & (np.abs(x - 1.5) > 1e-3)]  # away from corners
    h = 1e-6
    up, down = (value(device, dnn.activate(device.put(x + s), op, alpha=1.5)) for s in (h, -h))
    ones = device.put(np.ones(x.shape))
    got = value(device, dnn.activate_gradient(device.put(x), ones, op, alpha=1.5))
    np.testing.assert_allclose(got, (up - down) / (2 * h), rtol=1e-6, atol=1e-7)


def test_mistakes_are_refused_with_what_and_what_was_expected(device: Device) -> None:
    x, four, five = (array.zeros(device, shape) for shape in ((6, 4), (4,), (5,)))
    lone, images = array.zeros(device, (1, 4)), array.zeros(device, (2, 4, 3))
    with refused(device, "scale is float32[5]", "[4]"):
        dnn.layer_norm(x, five)
    with refused(device, "axes is 3", "from 1 to 2"):
        dnn.rms_norm(x, axes=3)
    with refused(device, "two elements"):
        dnn.batch_norm(lone, four, four, four, four)
    with refused(device, "momentum is 2"):
        dnn.batch_norm(x, four, four, four, four, momentum=2)
    with refused(device, "4 channels", "groups=3"):
        dnn.group_norm(images, groups=3)
    with refused(device, "together"):
        dnn.batch_norm_gradient(x, x, four, four)
    with refused(device, "size is 0"):
        dnn.local_response_norm(x, 0)
    with refused(device, "beta is -1"):
        dnn.local_response_norm(x, 3, beta=-1)
    with refused(device, "x is float32[4]", "a batch and channels"):
        dnn.local_response_norm(four, 3)
    with refused(device, "dy is float32[2, 4, 3]", "[6, 4]"):
        dnn.local_response_norm_gradient(x, images, 3)
    with refused(device, "epsilon"):
        dnn.layer_norm(x, epsilon=-1)
    with refused(device, "axis is 2"):
        dnn.softmax(x, 2)
    with refused(device, "op is 'rely'", "softplus"):
        dnn.activate(x, "rely")  # type: ignore[arg-type]
