"""Adam and AdamW.

Kingma and Ba, "Adam: a method for stochastic optimization", 2015; Loshchilov and Hutter,
"Decoupled weight decay regularization", 2019.
"""

import math
from typing import ClassVar

from accel_lab.blueprints.train.optimizers.optimizer import (
    Buffers,
    Into,
    Optimizer,
    Shape,
    require_least,
    require_share,
)
from accel_lab.blueprints.train.optimizers.schedules import Schedule
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries import array


class Adam(Optimizer):
    """Descend by the mean of gradients over the root of the mean of their squares.

    As torch.optim.Adam: `decay` is added to the gradient.
    """

    decays_apart: ClassVar = False

    def __init__(
        self,
        rate: float | Schedule = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        decay: float = 0.0,
    ) -> None:
        super().__init__(rate)
        first, second = betas
        require_share(self, **{"betas[0]": first, "betas[1]": second})
        require_least(self, epsilon=epsilon, decay=decay)
        self.betas, self.epsilon, self.decay = (first, second), epsilon, decay

    def slots(self, shape: Shape) -> dict[str, Shape]:
        """Return those of the mean and of the mean of squares."""
        return {"mean": shape, "square": shape}

    def one(
        self, p: AccelRef, g: AccelRef, slots: Buffers, into: Into, step: int, rate: float
    ) -> tuple[AccelRef, Buffers]:
        """Return a parameter and its means after a step."""
        first, second = self.betas
        if self.decay and self.decays_apart:
            p = p * (1 - rate * self.decay)
        elif self.decay:
            g = g + p * self.decay
        mean, square = slots["mean"], slots["square"]
        mean = array.add(mean, (g - mean) * (1 - first), out=into("mean"))
        square = array.add(square * second, g * g * (1 - second), out=into("square"))
        root = array.sqrt(square) / math.sqrt(1 - second**step) + self.epsilon
        moved = mean / root * (rate / (1 - first**step))
        return array.subtract(p, moved, out=into()), {"mean": mean, "square": square}


class AdamW(Adam):
    """Adam whose decay is apart from the gradient, as torch.optim.AdamW."""

    decays_apart: ClassVar = True

    def __init__(
        self,
        rate: float | Schedule = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        decay: float = 1e-2,
    ) -> None:
        super().__init__(rate, betas=betas, epsilon=epsilon, decay=decay)
