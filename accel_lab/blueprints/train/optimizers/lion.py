"""Lion: Chen et al., "Symbolic discovery of optimization algorithms", 2023."""

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


class Lion(Optimizer):
    """Descend by the sign of what gradients come to; it keeps one slot."""

    def __init__(
        self,
        rate: float | Schedule = 1e-4,
        *,
        betas: tuple[float, float] = (0.9, 0.99),
        decay: float = 0.0,
    ) -> None:
        super().__init__(rate)
        first, second = betas
        require_share(self, **{"betas[0]": first, "betas[1]": second})
        require_least(self, decay=decay)
        self.betas, self.decay = (first, second), decay

    def slots(self, shape: Shape) -> dict[str, Shape]:
        """Return that of the mean."""
        return {"mean": shape}

    def one(
        self, p: AccelRef, g: AccelRef, slots: Buffers, into: Into, step: int, rate: float
    ) -> tuple[AccelRef, Buffers]:
        """Return a parameter and its mean after a step."""
        del step
        first, second = self.betas
        mean = slots["mean"]
        way = array.sign(mean * first + g * (1 - first))
        after = array.subtract(p * (1 - rate * self.decay), way * rate, out=into())
        mean = array.add(mean * second, g * (1 - second), out=into("mean"))
        return after, {"mean": mean}
