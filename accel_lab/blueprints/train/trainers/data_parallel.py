"""A trainer on all ranks of a world, each with its rows of a batch."""

from collections.abc import Mapping
from typing import Unpack

import numpy.typing as npt

from accel_lab.blueprints.train.checks import require_count
from accel_lab.blueprints.train.exchange.buckets import BUCKET_BYTES, Buckets
from accel_lab.blueprints.train.optimizers.optimizer import Optimizer
from accel_lab.blueprints.train.trainers.attempt import Computed
from accel_lab.blueprints.train.trainers.by_rows import by_rows, in_buckets
from accel_lab.blueprints.train.trainers.on_world import OnWorld
from accel_lab.blueprints.train.trainers.options import (
    Batch,
    Batches,
    Loss,
    Options,
)
from accel_lab.world.world import World


class DataParallelTrainer(OnWorld):
    """Trains on all ranks of a world: each has all parameters, and some rows of each batch.

    Gradients are weighted by the rank's share of the rows and summed, so the loss is that of the
    whole batch if it is a mean over rows. They go in buckets, the last layers' first; a bucket is
    sent to all while the gradients of the layers before are computed.

    When a rank is lost the world heals, and the rank's parameters are rebuilt or copied from
    another rank. With `lab.world(on_loss="shrink")` training goes on without it.

    Parameters:
        bucket_bytes: how large a bucket is.
        loss, parameters, optimizer, batches, options: as `Trainer` has them.
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
        self.loss = loss
        self.bucket_bytes = bucket_bytes
        super().__init__(world, parameters, optimizer, batches, **options)

    def computed(self, batch: Batch, scale: float) -> Computed:
        """Send each rank's loss; sum the gradients while they are computed."""
        losses, turns = by_rows(self, self.loss, batch, scale)
        return Computed(
            losses, in_buckets(turns, Buckets(self.world, self.bucket_bytes, self.hear))
        )
