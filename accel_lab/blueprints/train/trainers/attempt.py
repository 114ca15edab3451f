"""What a step comes to while it is computed, and when all of it was sent."""

from typing import NamedTuple

from accel_lab.blueprints.train.optimizers.optimizer import Buffers
from accel_lab.compute.message.buffer import AccelRef


class Computed(NamedTuple):
    """What a batch came to.

    Attributes:
        losses: those of its parts, each with its share of the whole one.
        gradients: each rank's, by the names of parameters, summed over what all ranks computed.
    """

    losses: list[tuple[AccelRef, float]]
    gradients: list[Buffers]


class Attempt(NamedTuple):
    """A step that was sent.

    Attributes:
        losses: as `Computed` has them.
        states: what each rank has after it.
        finite: whether all gradients are finite; None where nobody asks.
        norm: that of the gradients before they were clipped; None where they are not.
    """

    losses: list[tuple[AccelRef, float]]
    states: list[Buffers]
    finite: AccelRef | None
    norm: AccelRef | None
