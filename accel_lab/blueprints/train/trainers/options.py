"""What all trainers take."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypedDict

from accel_lab.blueprints.train.autograd.variable import Variable
from accel_lab.blueprints.train.optimizers.clipping import LossScale
from accel_lab.blueprints.train.snapshots.snapshot import Keeper

Loss: TypeAlias = Callable[..., Variable]
"""Returns the loss of parameters, by their names, and of a batch."""
Batch: TypeAlias = Sequence[Any]
Batches: TypeAlias = Callable[[int], Batch]
"""Returns the batch of a step."""


class Options(TypedDict, total=False):
    """The options that all trainers have, as `Trainer` tells them."""

    clip_norm: float | None
    loss_scale: LossScale | None
    compute: str | None
    snapshots: Keeper | None
    every: int
