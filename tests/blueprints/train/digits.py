"""What the tests of trainers share: a small network for the handwritten digits."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

from accel_lab import System
from accel_lab.blueprints import train

Array = npt.NDArray[Any]
IMAGES, LABELS = load_digits(return_X_y=True)
IMAGES = (IMAGES / 16).astype("float32")
SIZE = 60


def parameters(seed: int = 0) -> dict[str, Array]:
    """Return what a network of two layers begins with."""
    random = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> Array:
        made: Array = random.standard_normal((rows, columns)) / np.sqrt(columns)
        return made.astype("float32")

    zeros = np.zeros(24, "float32"), np.zeros(10, "float32")
    return {"w1": matrix(24, 64), "b1": zeros[0], "w2": matrix(10, 24), "b2": zeros[1]}


def loss(p: dict[str, train.Variable], images: Any, labels: Any) -> train.Variable:
    """Return the cross-entropy of the network."""
    hidden = train.relu(train.linear(images, p["w1"], p["b1"]))
    logits = train.linear(hidden, p["w2"], p["b2"])
    return train.cross_entropy(logits.astype("float32"), labels)


def batches(size: int = SIZE) -> train.Batches:
    """Return the digits in batches."""
    return train.Batches(IMAGES, LABELS, size=size, seed=1)


class Killing:
    """Batches whose device is killed while these steps are computed, each once."""

    def __init__(self, lab: System, device: int, *steps: int) -> None:
        self.asked: list[int] = []
        self.faults: list[Any] = []
        self._lab, self._device, self._steps = lab, device, {*steps}
        self._batches = batches()

    def __call__(self, step: int) -> Any:
        self.asked.append(step)
        if step in self._steps:
            self._steps.discard(step)
            self.faults.append(self._lab.inject("kill", self._device))
        return self._batches(step)


def torch_curve(torch: Any, steps: int, make: Callable[[Any], Any], clip: float) -> list[float]:
    """Return the losses of the same network, trained by a plain PyTorch script."""
    functional = torch.nn.functional
    p = {name: torch.tensor(x, requires_grad=True) for name, x in parameters().items()}
    optimizer = make(list(p.values()))
    losses = []
    of_step = batches()
    for step in range(steps):
        images, labels = map(torch.tensor, of_step(step))
        hidden = functional.linear(images, p["w1"], p["b1"]).relu()
        lost = functional.cross_entropy(functional.linear(hidden, p["w2"], p["b2"]), labels)
        optimizer.zero_grad()
        lost.backward()
        torch.nn.utils.clip_grad_norm_(list(p.values()), clip)
        optimizer.step()
        losses.append(lost.item())
    return losses
