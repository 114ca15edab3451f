"""The same loss on each rank, of its rows of a batch."""

from collections.abc import Iterator, Mapping, Sequence

from accel_lab.blueprints.train.autograd.gradients import gradients_in_turn
from accel_lab.blueprints.train.autograd.variable import Variable
from accel_lab.blueprints.train.batches import shared_out
from accel_lab.blueprints.train.checks import require_loss
from accel_lab.blueprints.train.exchange.buckets import Buckets
from accel_lab.blueprints.train.optimizers.optimizer import Buffers
from accel_lab.blueprints.train.trainers.options import Batch, Loss
from accel_lab.blueprints.train.trainers.training import Training
from accel_lab.compute.message.buffer import AccelRef

Turn = Iterator[tuple[str, AccelRef]]
"""A rank's gradients by the names of parameters, the last layer's first."""


def by_rows(
    trainer: Training, loss: Loss, batch: Batch, scale: float
) -> tuple[list[tuple[AccelRef, float]], list[Turn]]:
    """Send each rank's loss; return all with their shares, and what sends the gradients."""
    devices = trainer.devices
    losses, turns = [], []
    for device, state, (part, share) in zip(
        devices, trainer.states, shared_out(batch, len(devices)), strict=True
    ):
        variables = {name: Variable(state[name]) for name in trainer.names}
        made = require_loss(loss(trainer.seen(variables), *trainer.put(device, part)))
        losses.append((made.value, share))
        trainer.hear.sent.append(made.value)
        turns.append(named_gradients(made, variables, share * scale))
        trainer.hear()
    return losses, turns


def in_buckets(turns: Sequence[Turn], buckets: Buckets) -> list[Buffers]:
    """Return what each rank has of the gradients of all, sent while they are computed."""
    # All ranks compute the same, so their gradients come in one order.
    for row in zip(*turns, strict=True):
        buckets.add(row[0][0], [ref for _, ref in row])
    return buckets.done()


def named_gradients(
    made: Variable, variables: Mapping[str, Variable], seed: float | AccelRef
) -> Turn:
    """Give each gradient with its parameter's name when it is sent."""
    names = list(variables)
    for place, gradient in gradients_in_turn(made, list(variables.values()), seed=seed):
        yield names[place], gradient
