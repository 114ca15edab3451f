"""A transformer block of our messages alone learns digits, step by step as PyTorch's does."""

from typing import Any

import numpy as np
import pytest

from accel_lab.compute.device import Device
from tests.contract.blocks import learned
from tests.contract.samples import reals, value

STEPS, BATCH, RATE = 12, 64, 0.3
TOKENS, WIDTH, HEADS, HIDDEN, CLASSES = 8, 16, 4, 32, 10
SHAPES = {
    "embed": (TOKENS, WIDTH),
    "place": (TOKENS, WIDTH),
    "scale1": (WIDTH,),
    "bias1": (WIDTH,),
    "to_q": (WIDTH, WIDTH),
    "to_k": (WIDTH, WIDTH),
    "to_v": (WIDTH, WIDTH),
    "mix": (WIDTH, WIDTH),
    "scale2": (WIDTH,),
    "bias2": (WIDTH,),
    "up": (WIDTH, HIDDEN),
    "down": (HIDDEN, WIDTH),
    "head": (WIDTH, CLASSES),
}


def parameters() -> dict[str, Any]:
    """Return weights to begin with."""
    made = {}
    for seed, (name, shape) in enumerate(SHAPES.items()):
        spread = shape[0] ** -0.5 if len(shape) > 1 else 0.1
        made[name] = spread * reals(seed, shape, "float64") + name.startswith("scale")
    return made


def losses_of_pytorch(images: Any, labels: Any) -> list[float]:
    """Return the losses of the same block, whose gradients are autograd's."""
    torch = pytest.importorskip("torch")
    of, size = torch.nn.functional, WIDTH // HEADS
    p = {name: torch.tensor(one, requires_grad=True) for name, one in parameters().items()}
    found = []
    for x, y in zip(images, labels, strict=True):
        h = torch.tensor(x) @ p["embed"] + p["place"]
        n = of.layer_norm(h, (WIDTH,), p["scale1"], p["bias1"])
        q, k, v = (
            (n @ p[name]).reshape(BATCH, TOKENS, HEADS, size).transpose(1, 2)
            for name in ("to_q", "to_k", "to_v")
        )
        mixed = of.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + mixed.transpose(1, 2).reshape(BATCH, TOKENS, WIDTH) @ p["mix"]
        n = of.layer_norm(h, (WIDTH,), p["scale2"], p["bias2"])
        h = h + of.gelu(n @ p["up"]) @ p["down"]
        loss = of.cross_entropy(h.mean(dim=1) @ p["head"], torch.tensor(y))
        found.append(loss.item())
        gradients = torch.autograd.grad(loss, list(p.values()))
        with torch.no_grad():
            for one, by in zip(p.values(), gradients, strict=True):
                one.sub_(RATE * by)
    return found


def test_a_transformer_block_learns_digits_as_pytorchs_does(device: Device) -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    digits = datasets.load_digits()
    images = digits.images[: STEPS * BATCH].reshape(STEPS, BATCH, TOKENS, TOKENS) / 16
    labels = digits.target[: STEPS * BATCH].reshape(STEPS, BATCH)
    expected = losses_of_pytorch(images, labels)
    p = {name: device.put(one) for name, one in parameters().items()}
    found = []
    for x, y in zip(images, labels, strict=True):
        loss, by = learned(p, device.put(x.reshape(BATCH * TOKENS, TOKENS)), device.put(y), HEADS)
        p = {name: one - RATE * by[name] for name, one in p.items()}
        found.append(float(value(device, loss)))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert found[-1] < 0.8 * found[0]
