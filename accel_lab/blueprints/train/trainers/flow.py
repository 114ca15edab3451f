"""Micro-batches on their way through stages, each of which is on one rank or on several."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy.typing as npt

from accel_lab.blueprints.train.autograd.variable import Variable
from accel_lab.blueprints.train.checks import require_loss
from accel_lab.blueprints.train.exchange.meeting import Meeting
from accel_lab.blueprints.train.exchange.schedule import Work
from accel_lab.blueprints.train.optimizers.optimizer import SEPARATOR, Buffers
from accel_lab.blueprints.train.trainers.by_rows import named_gradients
from accel_lab.blueprints.train.trainers.options import Batch
from accel_lab.blueprints.train.trainers.training import Training
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.world.world import World

R = TypeVar("R")
_INPUT = SEPARATOR
"""The name of what a stage is given, which no parameter can have."""


class Stage(NamedTuple):
    """Some layers of a network, which one rank has.

    Attributes:
        function: of the first stage, it gets the stage's parameters and the first array of a batch;
            of the others, parameters and what the stage before has returned. The last one gets all
            else of the batch, too, and returns the loss.
        parameters: what they begin with, by name.
    """

    function: Callable[..., Variable]
    parameters: Mapping[str, npt.ArrayLike]


def parameters_of(trainer: str, stages: Sequence[Stage]) -> dict[str, npt.ArrayLike]:
    """Return the parameters of all stages.

    Raises:
        InvalidArgument: one is in two stages, or a stage has none.
    """
    found: dict[str, npt.ArrayLike] = {}
    for at, stage in enumerate(stages):
        twice = [name for name in stage.parameters if name in found]
        if twice:
            text = f"parameter {twice[0]!r} is in stage {at}, and in one before"
            raise InvalidArgument(f"{trainer}: {text}")
        if not stage.parameters:
            raise InvalidArgument(f"{trainer}: stage {at} has no parameters")
        found |= stage.parameters
    return found


class Line(NamedTuple):
    """Ranks that have a stage together, each with its parts of the weights that are cut.

    Attributes:
        ranks: which ones.
        world: the world in which they exchange.
    """

    ranks: Sequence[int]
    world: World


class Flow:
    """One batch on its way through the stages.

    Attributes:
        losses: of the micro-batches, with their shares.
        gradients: of each rank, of the micro-batches so far.
    """

    def __init__(
        self,
        trainer: Training,
        stages: Sequence[Stage],
        lines: Sequence[Line],
        micros: Sequence[tuple[Batch, float]],
        scale: float,
    ) -> None:
        self._trainer, self._stages, self._lines = trainer, stages, lines
        self._micros, self._scale = micros, scale
        self._own = {
            rank: {name: Variable(trainer.states[rank][name]) for name in stage.parameters}
            for stage, line in zip(stages, lines, strict=True)
            for rank in line.ranks
        }
        self._seen = {rank: trainer.seen(variables) for rank, variables in self._own.items()}
        # By rank and micro-batch: what a stage was given, what it made, the gradient by that.
        self._given: dict[tuple[int, int], Variable] = {}
        self._made: dict[tuple[int, int], Variable] = {}
        self._back: dict[tuple[int, int], AccelRef] = {}
        self.losses: list[tuple[AccelRef, float]] = []
        self.gradients: dict[int, Buffers] = {rank: {} for rank in self._own}

    def do(self, work: Work) -> None:
        """Send a stage's work with a micro-batch."""
        stage, micro = work.stage, work.micro
        if work.is_forward:
            made = self._on_line(stage, lambda rank: self._forward(stage, micro, rank))
            if stage == len(self._stages) - 1:
                self.losses.append((made[0].value, self._micros[micro][1]))
            else:
                for rank, one in zip(self._lines[stage + 1].ranks, made, strict=True):
                    device = self._trainer.devices[rank]
                    self._given[rank, micro] = Variable(device.put(one.value))
            return
        ranks = self._lines[stage].ranks
        for rank, gradients in zip(
            ranks,
            self._on_line(stage, lambda rank: self._backward(stage, micro, rank)),
            strict=True,
        ):
            if stage:
                before = self._lines[stage - 1].ranks[ranks.index(rank)]
                device = self._trainer.devices[before]
                self._back[before, micro] = device.put(gradients.pop(_INPUT))
            so_far = self.gradients[rank]
            for name, gradient in gradients.items():
                so_far[name] = so_far[name] + gradient if name in so_far else gradient

    def _on_line(self, stage: int, function: Callable[[int], R]) -> list[R]:
        """Return what a function returns of each rank that has a stage."""
        ranks, world = self._lines[stage]
        if len(ranks) == 1:
            return [function(ranks[0])]
        meeting: Meeting[R] = Meeting(world, len(ranks), self._trainer.hear)
        return meeting.run(lambda place: function(ranks[place]))

    def _forward(self, stage: int, micro: int, rank: int) -> Variable:
        """Compute a stage."""
        device, part = self._trainer.devices[rank], self._micros[micro][0]
        operands = self._trainer.put(device, part[:1]) if not stage else [self._given[rank, micro]]
        if stage == len(self._stages) - 1:
            operands += self._trainer.put(device, part[1:])
        made = require_loss(self._stages[stage].function(self._seen[rank], *operands))
        self._made[rank, micro] = made
        return made

    def _backward(self, stage: int, micro: int, rank: int) -> Buffers:
        """Compute the gradients of a stage, and that by what it was given."""
        seed: AccelRef | float = self._micros[micro][1] * self._scale
        if stage < len(self._stages) - 1:
            seed = self._back.pop((rank, micro))
        variables = dict(self._own[rank])
        if stage:
            variables[_INPUT] = self._given.pop((rank, micro))
        return dict(named_gradients(self._made.pop((rank, micro)), variables, seed))
