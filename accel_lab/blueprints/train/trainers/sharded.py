"""A trainer whose ranks each own a share of the optimizer's state: ZeRO, second stage.

Rajbhandari, Rasley, Ruwase and He, "ZeRO: memory optimizations toward training trillion parameter
models", 2020.
"""

from collections.abc import Mapping, Sequence
from typing import Unpack

import numpy as np
import numpy.typing as npt

from accel_lab.blueprints.train.checks import require_count
from accel_lab.blueprints.train.exchange.buckets import BUCKET_BYTES, Buckets
from accel_lab.blueprints.train.exchange.pieces import Gathers, Scatters, filled, piece
from accel_lab.blueprints.train.optimizers.optimizer import SEPARATOR, Buffers, Optimizer
from accel_lab.blueprints.train.snapshots.snapshot import Array
from accel_lab.blueprints.train.trainers.attempt import Computed
from accel_lab.blueprints.train.trainers.by_rows import by_rows, in_buckets
from accel_lab.blueprints.train.trainers.on_world import InParts
from accel_lab.blueprints.train.trainers.options import (
    Batch,
    Batches,
    Loss,
    Options,
)
from accel_lab.world.world import World


class ShardedTrainer(InParts):
    """Trains as `DataParallelTrainer`, with the optimizer's state only once over all ranks.

    Each parameter is cut into as many pieces as there are ranks. Gradients are reduce-scattered in
    buckets, so that each rank has the sums of its own pieces; it updates these with its share of
    the optimizer's state, and the new parameters are all-gathered.

    A lost rank's share of the state is nowhere else: training goes back to the last snapshot, and
    the curve is the same. A checkpoint goes on on any number of devices, and in any trainer. With
    `lab.world(on_loss="shrink")` the state is cut anew for the ranks that are left.

    Parameters:
        optimizer: one that works element by element, so not Adafactor.
        bucket_bytes: how large a bucket is.
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
        bucket_bytes: int = BUCKET_BYTES,
        **options: Unpack[Options],
    ) -> None:
        require_count(self, "bucket_bytes", bucket_bytes)
        optimizer.require_elementwise(type(self).__name__)
        self.loss = loss
        self.bucket_bytes = bucket_bytes
        super().__init__(world, parameters, optimizer, batches, **options)

    def computed(self, batch: Batch, scale: float) -> Computed:
        """Send each rank's loss; reduce-scatter the gradients while they are computed."""
        losses, turns = by_rows(self, self.loss, batch, scale)
        way = Scatters(len(self.devices))
        buckets = Buckets(self.world, self.bucket_bytes, self.hear, way)
        return Computed(losses, in_buckets(turns, buckets))

    def shared(self, states: list[Buffers]) -> list[Buffers]:
        """Give all ranks the new parameters."""
        buckets = Buckets(self.world, self.bucket_bytes, self.hear, Gathers())
        for name in self.names:
            buckets.add(name, [state[name] for state in states])
        made = []
        for state, whole in zip(states, buckets.done(), strict=True):
            shaped = {}
            for name, x in self._first.items():
                shaped[name] = whole[name].reshape(-1)[: x.size].reshape(x.shape)
            made.append(state | shaped)
        return made

    def own(self, rank: int, state: Buffers) -> Buffers:
        """Return a rank's pieces of the parameters."""
        ranks = len(self.devices)
        return {name: piece(state[name], rank, ranks) for name in self.names}

    def cut(self, rank: int, name: str, whole: Array) -> Array | None:
        """Return all of a parameter, and a rank's piece of a slot."""
        if SEPARATOR not in name:
            return whole
        made: Array = np.split(filled(whole, len(self.devices)), len(self.devices))[rank]
        return made

    def is_kept(self, rank: int, name: str) -> bool:
        """Whether it is a piece, or the first of copies."""
        return rank == 0 or SEPARATOR in name

    def joined(self, name: str, parts: Sequence[Array]) -> Array:
        """Return a parameter, or a slot of its pieces."""
        parameter, of_slot, _ = name.partition(SEPARATOR)
        if not of_slot:
            return parts[0]
        first = self._first[parameter]
        whole: Array = np.concatenate(parts)[: first.size].reshape(first.shape)
        return whole
