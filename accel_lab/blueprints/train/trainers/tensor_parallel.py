"""A trainer whose ranks each have a part of large weights, and compute with it what others lack."""

from collections.abc import Mapping, Sequence
from typing import Unpack

import numpy.typing as npt

from accel_lab.blueprints.train.exchange.schedule import in_turn
from accel_lab.blueprints.train.optimizers.optimizer import Buffers, Optimizer
from accel_lab.blueprints.train.snapshots.snapshot import Array
from accel_lab.blueprints.train.trainers.attempt import Computed
from accel_lab.blueprints.train.trainers.cuts import Cuts
from accel_lab.blueprints.train.trainers.flow import Flow, Line, Stage
from accel_lab.blueprints.train.trainers.on_world import InParts
from accel_lab.blueprints.train.trainers.options import Batch, Batches, Loss, Options
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.world.world import World


class TensorParallelTrainer(InParts):
    """Trains one network on all ranks of a world, each with a part of the weights that are cut.

    The loss is called for each rank, with its parts and the whole batch, on a thread of its own. It
    uses `column_linear`, `row_linear` and `self_attention`, which exchange what is needed; in any
    other trainer these have whole weights, and the same loss gives the same numbers. All ranks have
    what is not cut, and compute the same with it; with `sequence`, each for its part of the places.

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
        if not cuts:
            text = "cuts is empty; DataParallelTrainer cuts nothing"
            raise InvalidArgument(f"{type(self).__name__}: {text}")
        self.loss = loss
        self._cuts = Cuts(cuts, parameters)
        self._cuts.require_even(type(self).__name__, len(world.devices))
        super().__init__(world, parameters, optimizer, batches, **options)

    def computed(self, batch: Batch, scale: float) -> Computed:
        """Send each rank's part of the loss, and the gradients of what it has."""
        ranks = range(len(self.devices))
        whole = Stage(self.loss, self._first)
        flow = Flow(self, [whole], [Line(ranks, self.world)], [(batch, 1.0)], scale)
        for work in in_turn(1, 1):
            flow.do(work)
            self.hear()
        return Computed(flow.losses, [flow.gradients[rank] for rank in ranks])

    def cut(self, rank: int, name: str, whole: Array) -> Array | None:
        """Return a rank's part of what is cut, and all of what is not."""
        return self._cuts.part(name, whole, rank, len(self.devices))

    def is_kept(self, rank: int, name: str) -> bool:
        """Whether it is a part, or the first of copies."""
        return rank == 0 or name in self._cuts

    def joined(self, name: str, parts: Sequence[Array]) -> Array:
        """Return all parts as one."""
        return self._cuts.joined(name, parts)

    def counted(self, rank: int, gradients: Buffers) -> Sequence[AccelRef]:
        """Return parts, and on the first rank what all ranks have alike."""
        return [ref for name, ref in gradients.items() if self.is_kept(rank, name)]

    def _heal(self) -> None:
        self.world.ready()
        self._cuts.require_even(type(self).__name__, len(self.world.devices))
        super()._heal()
