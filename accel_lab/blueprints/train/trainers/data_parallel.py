"""A trainer on all ranks of a world, each with its rows of a batch."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy.typing as npt

from accel_lab.blueprints.train.optimizers.clipping import LossScale
from accel_lab.blueprints.train.optimizers.optimizer import Optimizer
from accel_lab.blueprints.train.snapshots.snapshot import Keeper
from accel_lab.blueprints.train.trainers.buckets import Buckets
from accel_lab.blueprints.train.trainers.training import Batch, Loss, Training
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.world.world import World

BUCKET_BYTES = 25 << 20
"""As PyTorch's DistributedDataParallel has it."""


class DataParallelTrainer(Training):
    """Trains on all ranks of a world: each has all parameters, and some rows of each batch.

    Gradients are weighted by the rank's share of the rows and summed, so the loss is that of the
    whole batch if it is a mean over rows. They go in buckets, the last layers' first; a bucket is
    sent to all while the gradients of the layers before are computed.

    When a rank is lost the world heals, and the rank's parameters are rebuilt or copied from
    another rank. With `lab.world(on_loss="shrink")` training goes on without it.

    Parameters:
        bucket_bytes: how large a bucket is.
        loss, parameters, optimizer, batches, clip_norm, loss_scale, compute, snapshots, every: as
            `Trainer` has them.
    """

    def __init__(
        self,
        world: World,
        loss: Loss,
        parameters: Mapping[str, npt.ArrayLike],
        optimizer: Optimizer,
        batches: Callable[[int], Batch],
        *,
        bucket_bytes: int = BUCKET_BYTES,
        clip_norm: float | None = None,
        loss_scale: LossScale | None = None,
        compute: str | None = None,
        snapshots: Keeper | None = None,
        every: int = 25,
    ) -> None:
        if type(bucket_bytes) is not int or bucket_bytes < 1:
            text = f"bucket_bytes is {bucket_bytes!r}; it is an integer from 1"
            raise InvalidArgument(f"DataParallelTrainer: {text}")
        self.world = world
        self.bucket_bytes = bucket_bytes
        self._devices = world.devices
        super().__init__(
            loss,
            parameters,
            optimizer,
            batches,
            clip_norm=clip_norm,
            loss_scale=loss_scale,
            compute=compute,
            snapshots=snapshots,
            every=every,
        )

    @property
    def devices(self) -> Sequence[Device]:
        """The ranks, as they were when the state was last seen to."""
        return self._devices

    def reduced(
        self, ranks: Sequence[Iterator[tuple[int, AccelRef]]]
    ) -> list[list[tuple[int, AccelRef]]]:
        """Return each rank's gradients, summed over all ranks."""
        buckets = Buckets(self.world, self.bucket_bytes, self.hear)
        # All ranks compute the same, so their gradients come in one order.
        for row in zip(*ranks, strict=True):
            buckets.add(row[0][0], [ref for _, ref in row])
        return buckets.done()

    def shorten(self) -> None:
        """Do nothing: what a rank has lost is copied from another."""

    def _is_fault(self, error: AccelError) -> bool:
        return super()._is_fault(error) or self.world.devices != self._devices

    def _heal(self) -> None:
        self.world.ready()
        self._devices = self.world.devices
        super()._heal()
