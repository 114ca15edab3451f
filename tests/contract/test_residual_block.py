"""A residual block of our messages alone learns digits, step by step as PyTorch's does."""

from typing import Any

import numpy as np
import pytest

from accel_lab.compute.device import Device
from tests.contract.blocks import learned_by_residuals
from tests.contract.samples import reals, value

STEPS, BATCH, RATE = 24, 64, 0.3
CHANNELS, CLASSES = 8, 10
SHAPES = {
    "stem": (CHANNELS, 1, 3, 3),
    "conv1": (CHANNELS, CHANNELS, 3, 3),
    "scale1": (CHANNELS,),
    "bias1": (CHANNELS,),
    "conv2": (CHANNELS, CHANNELS, 3, 3),
    "scale2": (CHANNELS,),
    "bias2": (CHANNELS,),
    "head": (CHANNELS, CLASSES),
}


def parameters() -> dict[str, Any]:
    """Return weights to begin with."""
    made = {}
    for seed, (name, shape) in enumerate(SHAPES.items()):
        spread = float(np.prod(shape[1:])) ** -0.5 if len(shape) > 1 else 0.1
        made[name] = spread * reals(seed, shape, "float64") + name.startswith("scale")
    return made


def losses_of_pytorch(images: Any, labels: Any) -> list[float]:
    """Return the losses of the same block, whose gradients are autograd's."""
    torch = pytest.importorskip("torch")
    of = torch.nn.functional
    p = {name: torch.tensor(one, requires_grad=True) for name, one in parameters().items()}
    found = []
    for x, y in zip(images, labels, strict=True):
        h = of.relu(of.conv2d(torch.tensor(x), p["stem"], padding=1))
        c = of.conv2d(h, p["conv1"], padding=1)
        a = of.relu(of.batch_norm(c, None, None, p["scale1"], p["bias1"], training=True))
        c = of.conv2d(a, p["conv2"], padding=1)
        h = of.relu(of.batch_norm(c, None, None, p["scale2"], p["bias2"], training=True) + h)
        loss = of.cross_entropy(h.mean(dim=(2, 3)) @ p["head"], torch.tensor(y))
        found.append(loss.item())
        gradients = torch.autograd.grad(loss, list(p.values()))
        with torch.no_grad():
            for one, by in zip(p.values(), gradients, strict=True):
                one.sub_(RATE * by)
    return found


def test_a_residual_block_learns_digits_as_pytorchs_does(device: Device) -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    digits = datasets.load_digits()
    images = digits.images[: STEPS * BATCH].reshape(STEPS, BATCH, 1, 8, 8) / 16
    labels = digits.target[: STEPS * BATCH].reshape(STEPS, BATCH)
    expected = losses_of_pytorch(images, labels)
    p = {name: device.put(one) for name, one in parameters().items()}
    begin = device.put(np.zeros(CHANNELS))
    found = []
    for x, y in zip(images, labels, strict=True):
        loss, by = learned_by_residuals({**p, "begin": begin}, device.put(x), device.put(y))
        p = {name: one - RATE * by[name] for name, one in p.items()}
        found.append(float(value(device, loss)))
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert found[-1] < 0.9 * found[0]
