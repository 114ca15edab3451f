"""Stochastic gradient descent."""

from accel_lab.blueprints.train.optimizers.optimizer import (
    Buffers,
    Into,
    Optimizer,
    Shape,
    require_least,
)
from accel_lab.blueprints.train.optimizers.schedules import Schedule
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import array


class SGD(Optimizer):
    """Descend along gradients, with momentum, Nesterov's or not, and decay, as torch.optim.SGD."""

    def __init__(
        self,
        rate: float | Schedule,
        *,
        momentum: float = 0.0,
        dampening: float = 0.0,
        decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(rate)
        require_least(self, momentum=momentum, decay=decay)
        if nesterov and (not momentum or dampening):
            raise InvalidArgument("SGD: nesterov needs a momentum, and no dampening")
        self.momentum, self.dampening = momentum, dampening
        self.decay, self.nesterov = decay, nesterov

    def slots(self, shape: Shape) -> dict[str, Shape]:
        """Return the momentum's, if there is one."""
        return {"momentum": shape} if self.momentum else {}

    def one(
        self, p: AccelRef, g: AccelRef, slots: Buffers, into: Into, step: int, rate: float
    ) -> tuple[AccelRef, Buffers]:
        """Return a parameter and its momentum after a step."""
        if self.decay:
            g = g + p * self.decay
        if not self.momentum:
            return array.subtract(p, g * rate, out=into()), {}
        if step == 1:
            moved = array.copy(g, out=into("momentum"))
        else:
            before = slots["momentum"] * self.momentum
            moved = array.add(before, g * (1 - self.dampening), out=into("momentum"))
        along = g + moved * self.momentum if self.nesterov else moved
        return array.subtract(p, along * rate, out=into()), {"momentum": moved}
