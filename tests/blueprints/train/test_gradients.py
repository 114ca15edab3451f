"""Gradients: by finite differences in float64, and beside PyTorch's."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pytest

from accel_lab.blueprints import train
from accel_lab.blueprints.train.autograd.gradients import gradients_in_turn
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument, OutOfBounds
from accel_lab.libraries import array

Array = npt.NDArray[Any]
INDICES = np.array([[0, 2, 2], [1, 0, 2]])


Theirs = Callable[[Any], Callable[..., Any]]


class Case(NamedTuple):
    """A function of variables, and the shapes of its operands.

    Attributes:
        theirs: returns, of PyTorch, that of tensors; None where it is the same.
        positive: whether it is defined for positive numbers only.
    """

    ours: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    theirs: Theirs | None
    positive: bool


def case(
    ours: Callable[..., Any],
    *shapes: tuple[int, ...],
    theirs: Theirs | None = None,
    positive: bool = False,
) -> Case:
    return Case(ours, shapes, theirs, positive)


def _functional(name: str) -> Theirs:
    return lambda torch: getattr(torch.nn.functional, name)


CASES = {
    "add": case(lambda x, y: x + y, (3, 4), (4,)),
    "subtract": case(lambda x, y: x - y, (3, 1), (2, 1, 4)),
    "multiply": case(lambda x, y: 2 * x * y, (3, 4), (3, 1)),
    "divide": case(lambda x, y: 1 / x / y, (3, 4), (), positive=True),
    "power": case(lambda x, y: x**y, (3, 4), (4,), positive=True),
    "power of a number": case(
        lambda x: x**3 + train.power(2.0, x),
        (3, 4),
        theirs=lambda t: lambda x: x**3 + t.pow(2.0, x),
    ),
    "negative and absolute": case(lambda x: -abs(x), (5,)),
    "exp": case(
        lambda x: train.exp(x) + train.expm1(x),
        (5,),
        theirs=lambda t: lambda x: t.exp(x) + t.expm1(x),
    ),
    "log": case(
        lambda x: train.log(x) * train.log1p(x),
        (5,),
        theirs=lambda t: lambda x: t.log(x) * t.log1p(x),
        positive=True,
    ),
    "sqrt": case(
        lambda x: train.sqrt(x) * train.square(x),
        (5,),
        theirs=lambda t: lambda x: t.sqrt(x) * t.square(x),
        positive=True,
    ),
    "sin": case(
        lambda x: train.sin(x) + x * train.cos(x),
        (5,),
        theirs=lambda t: lambda x: t.sin(x) + x * t.cos(x),
    ),
    "maximum": case(
        lambda x, y: train.maximum(x, y) * train.minimum(x, y),
        (3, 4),
        (4,),
        theirs=lambda t: lambda x, y: t.maximum(x, y) * t.minimum(x, y),
    ),
    "clip": case(
        lambda x: train.clip(x, -0.5, 0.5), (9,), theirs=lambda t: lambda x: t.clamp(x, -0.5, 0.5)
    ),
    "where": case(
        lambda x, y: train.where(array.greater(x.value, 0), x * x, y),
        (3, 4),
        (4,),
        theirs=lambda t: lambda x, y: t.where(x > 0, x * x, y),
    ),
    "sum": case(lambda x: x.sum((0, 2)) * 3, (2, 3, 4)),
    "sum of all": case(lambda x: x.sum() * x, (2, 3)),
    "mean": case(
        lambda x: x.mean(-1, keepdims=True) * x,
        (2, 3),
        theirs=lambda t: lambda x: t.mean(x, -1, keepdim=True) * x,
    ),
    "var": case(
        lambda x: train.var(x, 1, ddof=1),
        (3, 5),
        theirs=lambda t: lambda x: t.var(x, 1, correction=1),
    ),
    "max": case(
        lambda x: x.max(0) + x.min(0),
        (4, 3),
        theirs=lambda t: lambda x: t.amax(x, 0) + t.amin(x, 0),
    ),
    "reshape": case(lambda x: x.reshape(2, 6).T * x.reshape(6, 2), (3, 4)),
    "transpose": case(
        lambda x: x.transpose(2, 0, 1) ** 2,
        (2, 3, 4),
        theirs=lambda t: lambda x: t.permute(x, (2, 0, 1)) ** 2,
    ),
    "slices": case(lambda x: x[1:, ..., ::2] * x[0, None, :, :2], (3, 2, 4)),
    "integers": case(lambda x: x[INDICES] * x[[0, 1, 1], :, [2, 0, 0]].sum(), (3, 2, 4)),
    "mask": case(lambda x: x[np.arange(6) % 2 == 0] ** 2, (6, 2)),
    "concatenate": case(
        lambda x, y: train.concatenate([x, y * 2, x], 1) ** 2,
        (2, 3),
        (2, 1),
        theirs=lambda t: lambda x, y: t.cat([x, y * 2, x], 1) ** 2,
    ),
    "stack": case(
        lambda x, y: train.stack([x, x * y], -1) ** 2,
        (2, 3),
        (2, 3),
        theirs=lambda t: lambda x, y: t.stack([x, x * y], -1) ** 2,
    ),
    "matmul": case(lambda a, b: a @ b, (3, 4), (4, 2)),
    "matmul of stacks": case(lambda a, b: a @ b, (2, 1, 3, 4), (5, 4, 2)),
    "matmul by a vector": case(lambda a, b: a @ b, (2, 3, 4), (4,)),
    "matmul of a vector": case(lambda a, b: a @ b, (4,), (2, 4, 3)),
    "dot": case(lambda a, b: a @ b, (4,), (4,)),
    "linear": case(train.linear, (2, 3, 4), (5, 4), (5,), theirs=lambda t: t.nn.functional.linear),
    "attention": case(
        partial(train.attention, causal=True),
        (2, 3, 4),
        (2, 3, 4),
        (2, 3, 5),
        theirs=lambda t: partial(t.nn.functional.scaled_dot_product_attention, is_causal=True),
    ),
    "attention with a mask": case(
        train.attention,
        (2, 3, 4),
        (2, 6, 4),
        (2, 6, 5),
        (3, 6),
        theirs=lambda t: t.nn.functional.scaled_dot_product_attention,
    ),
    "conv": case(
        partial(train.conv, padding=1, stride=2, groups=2),
        (2, 4, 5, 6),
        (6, 2, 3, 2),
        (6,),
        theirs=lambda t: partial(t.nn.functional.conv2d, padding=1, stride=2, groups=2),
    ),
    "conv along one extent": case(
        partial(train.conv, dilation=2),
        (2, 3, 9),
        (4, 3, 3),
        theirs=lambda t: partial(t.nn.functional.conv1d, dilation=2),
    ),
    "conv_transpose": case(
        partial(train.conv_transpose, stride=2, padding=1, extra=1),
        (2, 3, 4, 3),
        (3, 2, 3, 3),
        (2,),
        theirs=lambda t: partial(
            t.nn.functional.conv_transpose2d, stride=2, padding=1, output_padding=1
        ),
    ),
    "max_pool": case(
        lambda x: train.max_pool(x, (2, 2), stride=1),
        (2, 3, 4, 5),
        theirs=lambda t: lambda x: t.nn.functional.max_pool2d(x, 2, stride=1),
    ),
    "average_pool": case(
        lambda x: train.average_pool(x, (2, 2), padding=1, count_padding=False),
        (2, 3, 4, 6),
        theirs=lambda t: (
            lambda x: t.nn.functional.avg_pool2d(x, 2, padding=1, count_include_pad=False)
        ),
    ),
    "layer_norm": case(
        train.layer_norm,
        (4, 5),
        (5,),
        (5,),
        theirs=lambda t: lambda x, s, b: t.nn.functional.layer_norm(x, (5,), s, b),
    ),
    "rms_norm": case(
        train.rms_norm,
        (4, 5),
        (5,),
        theirs=lambda t: lambda x, s: t.nn.functional.rms_norm(x, (5,), s, 1e-5),
    ),
    "group_norm": case(
        partial(train.group_norm, groups=2),
        (3, 4, 5),
        (4,),
        (4,),
        theirs=lambda t: lambda x, s, b: t.nn.functional.group_norm(x, 2, s, b),
    ),
    "batch_norm": case(
        lambda x, s, b: train.batch_norm(x, s, b, _of(x, 0.0), _of(x, 1.0)).y,
        (4, 3, 2),
        (3,),
        (3,),
        theirs=lambda t: (
            lambda x, s, b: t.nn.functional.batch_norm(x, None, None, s, b, training=True)
        ),
    ),
    "batch_norm_inference": case(
        lambda x, s, b: train.batch_norm_inference(x, s, b, _of(x, 0.5), _of(x, 2.0)),
        (4, 3, 2),
        (3,),
        (3,),
        theirs=lambda t: (
            lambda x, s, b: t.nn.functional.batch_norm(
                x, t.full((3,), 0.5).double(), t.full((3,), 2.0).double(), s, b
            )
        ),
    ),
    "embedding": case(
        lambda table: train.embedding(table, table.device.put(INDICES)),
        (3, 4),
        theirs=lambda t: lambda table: t.nn.functional.embedding(t.tensor(INDICES), table),
    ),
    "softmax": case(
        lambda x: train.softmax(x, 0) * train.log_softmax(x),
        (3, 4),
        theirs=lambda t: lambda x: t.softmax(x, 0) * t.log_softmax(x, -1),
    ),
    **{
        op: case(getattr(train, op), (3, 4), theirs=_functional(op))
        for op in ("relu", "sigmoid", "tanh", "elu", "gelu", "softplus")
    },
    "gelu_tanh": case(
        train.gelu_tanh, (3, 4), theirs=lambda t: partial(t.nn.functional.gelu, approximate="tanh")
    ),
    "swish": case(train.swish, (3, 4), theirs=_functional("silu")),
}


def _of(x: Any, number: float) -> AccelRef:
    return array.full(x.device, (x.shape[1],), number, x.dtype)


def samples(one: Case) -> list[Array]:
    """Return operands no two elements of which are close to each other, or to a bound."""
    random = np.random.default_rng(3)
    made = []
    for shape in one.shapes:
        count = int(np.prod(shape))
        steps = random.permutation(count) + 0.5
        made.append((steps / count * 3 + (0.3 if one.positive else -1.45)).reshape(shape))
    return made


def ours(device: Device, one: Case, arrays: list[Array], seed: Array | None) -> Any:
    """Return the result and the gradients of `sum(result * seed)`."""
    variables = [train.Variable(device.put(x)) for x in arrays]
    made = one.ours(*variables)
    if seed is None:
        return made.get(), []
    found = train.gradients(made, variables, seed=device.put(seed))
    return made.get(), [np.asarray(ref.get()) for ref in found]


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_is_pytorchs(device: Device, name: str) -> None:
    torch = pytest.importorskip("torch")
    one = CASES[name]
    arrays = samples(one)
    tensors = [torch.tensor(x, requires_grad=True) for x in arrays]
    function = one.ours if one.theirs is None else one.theirs(torch)
    theirs = function(*tensors)
    seed = np.random.default_rng(4).standard_normal(tuple(theirs.shape))
    made, found = ours(device, one, arrays, seed)
    np.testing.assert_allclose(made, theirs.detach().numpy(), rtol=1e-10, atol=1e-12)
    wanted = torch.autograd.grad(theirs, tensors, torch.tensor(seed))
    for got, want in zip(found, wanted, strict=True):
        assert got.shape == tuple(want.shape)
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_is_what_a_small_step_changes(device: Device, name: str) -> None:
    """Along one direction through all operands: (f(x + h d) - f(x - h d)) / 2h, in float64."""
    one = CASES[name]
    arrays = samples(one)
    random = np.random.default_rng(5)
    made, _ = ours(device, one, arrays, None)
    seed = random.standard_normal(made.shape)
    _, found = ours(device, one, arrays, seed)
    directions = [random.standard_normal(x.shape) for x in arrays]
    h = 1e-6
    ends = []
    for step in (h, -h):
        moved = [x + step * d for x, d in zip(arrays, directions, strict=True)]
        ends.append((ours(device, one, moved, None)[0] * seed).sum())
    slope = (ends[0] - ends[1]) / (2 * h)
    along = sum((g * d).sum() for g, d in zip(found, directions, strict=True))
    size = sum(np.abs(g * d).sum() for g, d in zip(found, directions, strict=True)) + 1
    assert abs(slope - along) < 1e-7 * size


def test_equal_elements_share_a_gradient_as_pytorch_has_it(device: Device) -> None:
    torch = pytest.importorskip("torch")
    a, b = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 2.0]]), np.array([1.0, 0.0, 2.0])
    x, y = (train.Variable(device.put(one)) for one in (a, b))
    loss = (x.max(1) + train.maximum(x, y).sum(1) + train.minimum(x, y).sum(1)).sum()
    u, v = (torch.tensor(one, requires_grad=True) for one in (a, b))
    theirs = (u.amax(1) + torch.maximum(u, v).sum(1) + torch.minimum(u, v).sum(1)).sum()
    wanted = torch.autograd.grad(theirs, (u, v))
    for got, want in zip(train.gradients(loss, [x, y]), wanted, strict=True):
        np.testing.assert_array_equal(got.get(), want.numpy())


def test_what_is_used_twice_has_the_sum_and_what_is_not_used_zeros(device: Device) -> None:
    x, y = (train.Variable(device.put(np.arange(1.0, 4))) for _ in range(2))
    by_x, by_y, again = train.gradients((x * x + x).sum(), [x, y, x])
    np.testing.assert_array_equal(by_x.get(), [3, 5, 7])
    np.testing.assert_array_equal(by_y.get(), [0, 0, 0])
    np.testing.assert_array_equal(again.get(), [3, 5, 7])


def test_gradients_of_later_layers_come_first(device: Device) -> None:
    """So that they can be sent to others while the rest is computed."""
    weights = [train.Variable(device.put(np.eye(3) * k)) for k in range(1, 4)]
    x: Any = device.put(np.ones((2, 3)))
    for weight in weights:
        x = train.relu(train.linear(x, weight))
    places = [place for place, _ in gradients_in_turn(x.sum(), weights)]
    assert places == [2, 1, 0]


def test_no_gradient_is_computed_that_nobody_wants(device: Device) -> None:
    """A convolution of images has none by the images."""
    images, w = device.put(np.ones((1, 1, 4, 4))), train.Variable(device.put(np.ones((1, 1, 2, 2))))
    made = train.conv(images, w)
    assert [link.of for link in made.links] == [w]
    constant = train.Variable(images, is_tracked=False)
    assert [link.of for link in train.conv(constant, w).links] == [w]
    assert not train.relu(constant).is_tracked


def test_a_gradient_comes_back_in_the_dtype_of_its_parameter(device: Device) -> None:
    x = train.Variable(device.put(np.ones(3, "float32")))
    loss = (x.astype("float16") * 3).astype("float64").sum()
    (gradient,) = train.gradients(loss, [x])
    assert gradient.dtype == "float32"
    np.testing.assert_array_equal(gradient.get(), [3, 3, 3])


def test_dropout_has_the_same_elements_on_the_way_back(device: Device) -> None:
    x = train.Variable(device.put(np.ones((20, 20))))
    made = train.dropout(x, 0.5, 7)
    (gradient,) = train.gradients(made.sum(), [x])
    np.testing.assert_array_equal(gradient.get(), made.get())
    assert 100 < np.count_nonzero(gradient.get()) < 300


def test_running_statistics_are_pytorchs(device: Device) -> None:
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).standard_normal((4, 3, 2))
    mean, variance = torch.zeros(3).double(), torch.ones(3).double()
    torch.nn.functional.batch_norm(torch.tensor(x), mean, variance, training=True)
    at = train.Variable(device.put(x))
    made = train.batch_norm(at, _of(at, 1.0), _of(at, 0.0), _of(at, 0.0), _of(at, 1.0))
    np.testing.assert_allclose(made.mean.get(), mean.numpy(), rtol=1e-12)
    np.testing.assert_allclose(made.variance.get(), variance.numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda _: cast("Any", train.Variable)(np.ones(3)),
            "a handle, as gpu.put gives, not ndarray",
        ),
        (lambda x: train.gradients(x * 2, [x]), "take its sum or mean, or give a seed"),
        (lambda x: train.gradients(x, [x], seed=x.value[0]), "is to have the shape of loss"),
        (lambda x: train.linear(x, x.T), "weight is to be (outputs, inputs of x)"),
        (lambda _: train.sum(3.0), "sum: x is to be a variable or a handle, not float"),
        (lambda x: x + np.ones(5), "do not broadcast"),
        (lambda x: train.gradients(x.value, [x]), "loss is to be a variable, not AccelRef"),
        (lambda x: train.gradients(x.sum(), [x.value]), "by is to be variables, not AccelRef"),
        (lambda x: train.gradients(x.sum(), {"x": x}), "by is to be variables, not str"),  # type: ignore[arg-type]
        (lambda x: train.attention(x, x, x, np.eye(2) > 0), "attention: mask is of bool"),
    ],
)
def test_a_mistake_is_refused_at_the_call(device: Device, call: Any, words: str) -> None:
    x = train.Variable(device.put(np.ones((2, 3))))
    with pytest.raises(InvalidArgument) as caught:
        call(x)
    assert words in str(caught.value)


def test_a_number_has_no_axis(device: Device) -> None:
    x = train.Variable(device.put(np.array(3.0)))
    for reduce in (train.sum, train.mean, train.max, train.var):
        with pytest.raises(OutOfBounds, match="axis 0 is none of x"):
            reduce(x, 0)


def test_a_variance_of_too_few_is_none(device: Device) -> None:
    x = np.arange(3.0)
    for ddof in (3, 5):
        with np.errstate(all="ignore"), pytest.warns(RuntimeWarning, match="Degrees of freedom"):
            wanted = np.var(x, ddof=ddof)
        assert train.var(device.put(x), ddof=ddof).get() == wanted


def test_a_number_to_the_power_of_a_variable_has_its_gradient(device: Device) -> None:
    at = np.array([-1.0, 0.5, 400.0], "float32")
    x = train.Variable(device.put(at))
    made = 2.0**x
    with np.errstate(over="ignore"):
        wanted = np.float32(2) ** at
    np.testing.assert_allclose(made.get(), wanted, rtol=1e-6)
    (gradient,) = train.gradients(made.sum(), [x])
    np.testing.assert_allclose(gradient.get(), wanted * np.log(2), rtol=1e-6)
