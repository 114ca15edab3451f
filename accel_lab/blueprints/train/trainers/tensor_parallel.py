"""A trainer whose ranks each have a part of large weights, and compute with it what others lack."""

from collections.abc import Mapping, Sequence
from typing import Unpack

import numpy as np
import numpy.typing as npt

from accel_lab.blueprints.train.autograd.variable import Variable
from accel_lab.blueprints.train.exchange.meeting import Meeting
from accel_lab.blueprints.train.optimizers.optimizer import SEPARATOR, Buffers, Optimizer
from accel_lab.blueprints.train.snapshots.snapshot import Array
from accel_lab.blueprints.train.trainers.by_rows import named_gradients, require_loss
from accel_lab.blueprints.train.trainers.on_world import InParts
from accel_lab.blueprints.train.trainers.options import Batch, Batches, Loss, Options
from accel_lab.blueprints.train.trainers.training import Computed
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.world.world import World


class TensorParallelTrainer(InParts):
    """Trains one network on all ranks of a world, each with a part of the weights that are cut.

    The loss is called for each rank, with its parts and the whole batch, on a thread of its own. It
    uses `column_linear`, `row_linear` and `self_attention`, which exchange what is needed; in any
    other trainer these have whole weights, and the same loss gives the same numbers. All ranks have
    what is not cut, and compute the same with it.

    What a lost rank had is nowhere else: training goes back to the last snapshot, and the curve is
    the same. Checkpoints have whole weights: they go on in any trainer, on any number of ranks by
    which the weights can be cut.

    Parameters:
        cuts: the axis along which each parameter is cut, by name: 0 for the weight and bias of a
            `column_linear`, 1 for the weight of a `row_linear`.
        optimizer: one that works element by element, so not Adafactor.
        loss, parameters, batches, options: as `Trainer` has them.
    """

    def __init__(
        self,
        world: World,
        loss: Loss,
        parameters: Mapping[str, npt.ArrayLike],
        optimizer: Optimizer,
        batches: Batches,
        *,
        cuts: Mapping[str, int],
        **options: Unpack[Options],
    ) -> None:
        optimizer.require_elementwise(type(self).__name__)
        self.loss = loss
        self.cuts = dict(cuts)
        self._shapes = {name: np.shape(x) for name, x in parameters.items()}
        self._require_even(len(world.devices))
        super().__init__(world, parameters, optimizer, batches, **options)

    def computed(self, batch: Batch, scale: float) -> Computed:
        """Send each rank's part of the loss, and the gradients of what it has."""

        def part(rank: int) -> tuple[AccelRef, Buffers]:
            state, device = self.states[rank], self.devices[rank]
            variables = {name: Variable(state[name]) for name in self.names}
            made = require_loss(self.loss(self.seen(variables), *self.put(device, batch)))
            return made.value, dict(named_gradients(made, variables, scale))

        meeting: Meeting[tuple[AccelRef, Buffers]]
        meeting = Meeting(self.world, len(self.devices), self.hear)
        made = meeting.run(part)
        return Computed([(made[0][0], 1.0)], [gradients for _, gradients in made])

    def cut(self, rank: int, name: str, whole: Array) -> Array | None:
        """Return a rank's part of what is cut, and all of what is not."""
        axis = self._axis(name)
        if axis is None:
            return whole
        made: Array = np.split(whole, len(self.devices), axis)[rank]
        return made

    def is_kept(self, rank: int, name: str) -> bool:
        """Whether it is a part, or the first of copies."""
        return rank == 0 or self._axis(name) is not None

    def joined(self, name: str, parts: Sequence[Array]) -> Array:
        """Return all parts as one."""
        axis = self._axis(name)
        if axis is None:
            return parts[0]
        made: Array = np.concatenate(parts, axis)
        return made

    def counted(self, rank: int, gradients: Buffers) -> Sequence[AccelRef]:
        """Return parts, and on the first rank what all ranks have alike."""
        return [ref for name, ref in gradients.items() if self.is_kept(rank, name)]

    def _axis(self, name: str) -> int | None:
        return self.cuts.get(name.partition(SEPARATOR)[0])

    def _heal(self) -> None:
        self.world.ready()
        self._require_even(len(self.world.devices))
        super()._heal()

    def _require_even(self, ranks: int) -> None:
        """Refuse weights that so many ranks cannot have equal parts of.

        Raises:
            InvalidArgument: there is one, or no parameter of this name, or none is cut.
        """
        kind = type(self).__name__
        if not self.cuts:
            raise InvalidArgument(f"{kind}: cuts is empty; DataParallelTrainer cuts nothing")
        for name, axis in self.cuts.items():
            shape = self._shapes.get(name)
            if shape is None:
                text = f"cuts names {name!r}, and the parameters are {list(self._shapes)}"
                raise InvalidArgument(f"{kind}: {text}")
            if type(axis) is not int or not 0 <= axis < len(shape) or shape[axis] % ranks:
                text = f"parameter {name!r} has the shape {list(shape)}"
                text += f"; it cannot be cut along axis {axis!r} into {ranks} equal parts"
                raise InvalidArgument(f"{kind}: {text}")
