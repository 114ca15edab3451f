"""Losses and their gradients are PyTorch's."""

from typing import Any, cast

import numpy as np
import pytest

from accel_lab.blueprints import train
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument, OutOfBounds

RANDOM = np.random.default_rng(1)
X, Y = RANDOM.standard_normal((4, 5)) * 2, RANDOM.standard_normal((4, 5))
BITS, SHARES = (Y > 0).astype("float64"), RANDOM.uniform(0.01, 0.99, (4, 5))
SHARES[0, :2] = 0.0, 1.0
LABELS = np.array([0, 4, -100, 2])
WEIGHT = RANDOM.uniform(0.5, 2, 5)

LOSSES: dict[str, tuple[Any, Any, Any, Any, dict[str, Any]]] = {
    "mse": (train.mse, "mse_loss", X, Y, {}),
    "huber": (train.huber, "huber_loss", X, Y, {"delta": 0.7}),
    "cross_entropy": (train.cross_entropy, "cross_entropy", X, LABELS, {}),
    "cross_entropy, weighted": (
        train.cross_entropy,
        "cross_entropy",
        X,
        LABELS,
        {"weight": WEIGHT, "label_smoothing": 0.1},
    ),
    "cross_entropy, another ignored": (
        train.cross_entropy,
        "cross_entropy",
        X[:2],
        LABELS[:2],
        {"ignore_index": 4},
    ),
    "bce": (train.binary_cross_entropy, "binary_cross_entropy", SHARES, BITS, {"weight": WEIGHT}),
    "bce with logits": (
        train.binary_cross_entropy_with_logits,
        "binary_cross_entropy_with_logits",
        30 * X,
        BITS,
        {"weight": WEIGHT, "pos_weight": WEIGHT[::-1].copy()},
    ),
    "bce with soft targets": (
        train.binary_cross_entropy_with_logits,
        "binary_cross_entropy_with_logits",
        X,
        SHARES,
        {},
    ),
}
OURS = {
    "label_smoothing": "smoothing",
    "ignore_index": "ignored",
    "pos_weight": "positive_weight",
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_pytorchs(device: Device, name: str, reduction: str) -> None:
    torch = pytest.importorskip("torch")
    function, called, x, target, options = LOSSES[name]

    def on(value: Any, put: Any) -> Any:
        return put(value) if isinstance(value, np.ndarray) else value

    given = {OURS.get(key, key): on(value, device.put) for key, value in options.items()}
    at = train.Variable(device.put(x))
    loss = function(at, device.put(target), reduction=reduction, **given)
    tensor = torch.tensor(x, requires_grad=True)
    theirs = getattr(torch.nn.functional, called)(
        tensor,
        torch.tensor(target),
        reduction=reduction,
        **{key: on(value, torch.tensor) for key, value in options.items()},
    )
    np.testing.assert_allclose(loss.get(), theirs.detach().numpy(), rtol=1e-12, atol=1e-14)
    seed = RANDOM.standard_normal(tuple(theirs.shape))
    (gradient,) = train.gradients(loss, [at], seed=device.put(np.asarray(seed)))
    (wanted,) = torch.autograd.grad(theirs, tensor, torch.tensor(seed))
    np.testing.assert_allclose(
        gradient.get(), wanted.numpy(), rtol=1e-8, atol=1e-13
    )  # 1e-12 is float there


def test_a_squared_error_has_a_gradient_by_both_sides(device: Device) -> None:
    x, y = (train.Variable(device.put(one)) for one in (X, Y))
    by_x, by_y = train.gradients(train.mse(x, y), [x, y])
    np.testing.assert_allclose(by_x.get(), 2 * (X - Y) / X.size)
    np.testing.assert_allclose(by_y.get(), 2 * (Y - X) / X.size)


@pytest.mark.parametrize(
    ("name", "x", "options"),
    [
        ("binary_cross_entropy", SHARES, {}),
        ("binary_cross_entropy_with_logits", X, {}),
        ("binary_cross_entropy_with_logits", X, {"positive_weight": WEIGHT}),
    ],
    ids=["of shares", "of logits", "of logits, weighted"],
)
def test_a_binary_one_has_pytorchs_gradient_by_the_target(
    device: Device, name: str, x: Any, options: dict[str, Any]
) -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.tensor(RANDOM.uniform(0, 1, X.shape), requires_grad=True)
    given = {"pos_weight": torch.tensor(WEIGHT)} if options else {}
    getattr(torch.nn.functional, name)(torch.tensor(x), theirs, **given).backward()
    ours = train.Variable(device.put(theirs.detach().numpy()))
    (gradient,) = train.gradients(getattr(train, name)(device.put(x), ours, **options), [ours])
    np.testing.assert_allclose(gradient.get(), theirs.grad.numpy(), rtol=1e-10)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda x: train.binary_cross_entropy_with_logits(x, x, positive_weight=x),
            "positive_weight is a variable; it is constant",
        ),
        (lambda x: train.mse(x, x[0]), "mse: x is #"),
        (lambda x: train.huber(x, x, delta=0.0), "delta is 0.0"),
        (
            lambda x: train.mse(x, x, reduction=cast("Any", "max")),
            "reduction is 'max'; it may be mean, sum, none",
        ),
    ],
)
def test_a_mistake_is_refused_at_the_call(device: Device, call: Any, words: str) -> None:
    x = train.Variable(device.put(X))
    with pytest.raises(InvalidArgument) as caught:
        call(x)
    assert words in str(caught.value)


def test_a_label_that_is_no_class_is_told(device: Device) -> None:
    loss = train.cross_entropy(device.put(X), device.put(np.array([0, 1, 5, 2])))
    with pytest.raises(OutOfBounds, match="labels"):
        loss.value.result()
