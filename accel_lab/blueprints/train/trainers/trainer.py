"""A trainer on one device."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Unpack

import numpy.typing as npt

from accel_lab.actor.reply import Reply
from accel_lab.blueprints.train.optimizers.optimizer import Optimizer
from accel_lab.blueprints.train.trainers.attempt import Computed
from accel_lab.blueprints.train.trainers.by_rows import by_rows
from accel_lab.blueprints.train.trainers.options import Batch, Batches, Loss, Options
from accel_lab.blueprints.train.trainers.training import Training
from accel_lab.compute.device import Device
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
        every: after how many steps there is a snapshot; 25 when not given.
    """

    def __init__(
        self,
        device: Device,
        loss: Loss,
        parameters: Mapping[str, npt.ArrayLike],
        optimizer: Optimizer,
        batches: Batches,
        **options: Unpack[Options],
    ) -> None:
        self.device = device
        self.loss = loss
        self._checkpoints: list[Reply[None]] = []
        super().__init__(parameters, optimizer, batches, **options)

    @property
    def devices(self) -> Sequence[Device]:
        """The one that trains."""
        return [self.device]

    def computed(self, batch: Batch, scale: float) -> Computed:
        """Send the loss of a batch, and its gradients."""
        losses, turns = by_rows(self, self.loss, batch, scale)
        return Computed(losses, [dict(turn) for turn in turns])

    def shorten(self) -> None:
        """Have the device keep its state on the host, so that what it rebuilds begins there."""
        before, self._checkpoints = self._checkpoints, []
        for reply in before:
            with suppress(AccelError):  # no room: then more is done again
                reply.result()
        with suppress(InvalidArgument):  # of a system that rebuilds nothing
            for ref in self.states[0].values():
                self._checkpoints.append(self.device.checkpoint(ref))
