"""A trainer on one device."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

import numpy.typing as npt

from accel_lab.actor.reply import Reply
from accel_lab.blueprints.train.optimizers.clipping import LossScale
from accel_lab.blueprints.train.optimizers.optimizer import Optimizer
from accel_lab.blueprints.train.snapshots.snapshot import Keeper
from accel_lab.blueprints.train.trainers.training import Batch, Loss, Training
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import AccelError, InvalidArgument


class Trainer(Training):
    """Trains on one device; a lost context costs the step that it was at.

    Parameters:
        loss: returns the loss, a variable without axes, of a dict of parameters and a batch.
        parameters: what they begin with, by name; the dict has variables under the same names.
        batches: returns the batch of a step, always the same; its arrays are put on the device, and
            all else is given to `loss` as it is.
        clip_norm: the largest norm of all gradients together; None for any.
        loss_scale: by how much the loss is scaled, for narrow gradients.
        compute: the dtype in which `loss` gets parameters and batch, as "float16", while parameters
            stay as they are.
        snapshots: where snapshots are kept; in memory when not given.
        every: after how many steps there is a snapshot.
    """

    def __init__(
        self,
        device: Device,
        loss: Loss,
        parameters: Mapping[str, npt.ArrayLike],
        optimizer: Optimizer,
        batches: Callable[[int], Batch],
        *,
        clip_norm: float | None = None,
        loss_scale: LossScale | None = None,
        compute: str | None = None,
        snapshots: Keeper | None = None,
        every: int = 25,
    ) -> None:
        self.device = device
        self._checkpoints: list[Reply[None]] = []
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
        """The one that trains."""
        return [self.device]

    def reduced(
        self, ranks: Sequence[Iterator[tuple[int, AccelRef]]]
    ) -> list[list[tuple[int, AccelRef]]]:
        """Return the gradients as they are."""
        return [list(rank) for rank in ranks]

    def shorten(self) -> None:
        """Have the device keep its state on the host, so that what it rebuilds begins there."""
        before, self._checkpoints = self._checkpoints, []
        for reply in before:
            with suppress(AccelError):  # no room: then more is done again
                reply.result()
        with suppress(InvalidArgument):  # of a system that rebuilds nothing
            for ref in self._states[0].values():
                self._checkpoints.append(self.device.checkpoint(ref))
