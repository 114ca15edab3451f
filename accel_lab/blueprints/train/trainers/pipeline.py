"""A trainer whose ranks each have some layers, and work on several micro-batches at once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Unpack

import numpy.typing as npt

from accel_lab.blueprints.train.autograd.variable import Variable
from accel_lab.blueprints.train.optimizers.optimizer import SEPARATOR, Buffers, Optimizer
from accel_lab.blueprints.train.snapshots.snapshot import Array
from accel_lab.blueprints.train.trainers.by_rows import named_gradients, require_loss
from accel_lab.blueprints.train.trainers.on_world import InParts
from accel_lab.blueprints.train.trainers.options import Batch, Batches, Options, require_count
from accel_lab.blueprints.train.trainers.rows import shared_out
from accel_lab.blueprints.train.trainers.schedule import Bubble, Stopwatch, in_turn
from accel_lab.blueprints.train.trainers.training import Computed
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.world.world import World

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


class PipelineParallelTrainer(InParts):
    """Trains a network whose stages are on the ranks of a world, one on each.

    A batch is cut into micro-batches by its rows. Each stage goes forward and backward in turn
    (1F1B), on one micro-batch while the other stages are at others, and updates its own parameters
    when all are through. The loss is that of the whole batch if it is a mean over rows.

    What a lost rank had is nowhere else: training goes back to the last snapshot, and the curve is
    the same. Checkpoints have the parameters of all stages: they go on in any trainer.

    Parameters:
        stages: one for each rank, in their order.
        micro_batches: into how many a batch is cut.
        optimizer, batches, options: as `Trainer` has them.
    """

    def __init__(
        self,
        world: World,
        stages: Sequence[Stage],
        optimizer: Optimizer,
        batches: Batches,
        *,
        micro_batches: int = 4,
        **options: Unpack[Options],
    ) -> None:
        kind = type(self).__name__
        require_count(self, "micro_batches", micro_batches)
        parameters: dict[str, npt.ArrayLike] = {}
        for at, stage in enumerate(stages):
            twice = [name for name in stage.parameters if name in parameters]
            if twice:
                text = f"parameter {twice[0]!r} is in stage {at}, and in one before"
                raise InvalidArgument(f"{kind}: {text}")
            if not stage.parameters:
                raise InvalidArgument(f"{kind}: stage {at} has no parameters")
            parameters |= stage.parameters
        self.stages = tuple(stages)
        self.micro_batches = micro_batches
        self._require_ranks(len(world.devices))
        self._watch: Stopwatch | None = None
        super().__init__(world, parameters, optimizer, batches, **options)

    def computed(self, batch: Batch, scale: float) -> Computed:
        """Send all micro-batches through all stages, and back."""
        count = len(self.stages)
        micros = shared_out(batch, self.micro_batches, "micro-batches")
        watch = self._watch = Stopwatch(count, len(micros))
        flow = _Flow(self, micros, scale)
        for work in in_turn(count, len(micros)):
            if work.is_forward:
                flow.forward(work.stage, work.micro)
            else:
                flow.backward(work.stage, work.micro)
            watch.sent(work, self.devices[work.stage])
            self.hear()
        return Computed(flow.losses, flow.gradients)

    def statistics(self) -> Bubble:
        """Return how much of the last step the stages were idle.

        Raises:
            InvalidArgument: no step was done.
        """
        if self._watch is None:
            raise InvalidArgument(f"{type(self).__name__}: no step was done yet")
        return self._watch.bubble()

    def cut(self, rank: int, name: str, whole: Array) -> Array | None:
        """Return what is a stage's."""
        return whole if name.partition(SEPARATOR)[0] in self.stages[rank].parameters else None

    def is_kept(self, rank: int, name: str) -> bool:
        """Keep all: each is on one rank."""
        del rank, name
        return True

    def _heal(self) -> None:
        self.world.ready()
        self._require_ranks(len(self.world.devices))
        super()._heal()

    def _require_ranks(self, ranks: int) -> None:
        if len(self.stages) != ranks:
            text = f"there are {len(self.stages)} stages, and the world has {ranks} ranks"
            raise InvalidArgument(f"{type(self).__name__}: {text}; it takes one for each")


class _Flow:
    """One batch on its way through the stages.

    Attributes:
        losses: of the micro-batches, with their shares.
        gradients: of each stage, of the micro-batches so far.
    """

    def __init__(
        self, trainer: PipelineParallelTrainer, micros: Sequence[tuple[Batch, float]], scale: float
    ) -> None:
        self._trainer, self._micros, self._scale = trainer, micros, scale
        self._own = [
            {name: Variable(state[name]) for name in stage.parameters}
            for stage, state in zip(trainer.stages, trainer.states, strict=True)
        ]
        self._seen = [trainer.seen(variables) for variables in self._own]
        self._given: dict[tuple[int, int], Variable] = {}
        self._made: dict[tuple[int, int], Variable] = {}
        self._back: dict[tuple[int, int], AccelRef] = {}
        self.losses: list[tuple[AccelRef, float]] = []
        self.gradients: list[Buffers] = [{} for _ in trainer.stages]

    def forward(self, stage: int, micro: int) -> None:
        """Compute a stage, and have the next one get the result."""
        device, last = self._trainer.devices[stage], len(self._own) - 1
        part, share = self._micros[micro]
        operands: list[Any] = []
        if stage:
            operands.append(self._given[stage, micro])
        else:
            operands += self._trainer.put(device, part[:1])
        if stage == last:
            operands += self._trainer.put(device, part[1:])
        made = require_loss(self._trainer.stages[stage].function(self._seen[stage], *operands))
        self._made[stage, micro] = made
        if stage == last:
            self.losses.append((made.value, share))
        else:
            after = self._trainer.devices[stage + 1]
            self._given[stage + 1, micro] = Variable(after.put(made.value))

    def backward(self, stage: int, micro: int) -> None:
        """Compute the gradients of a stage, and have the one before get that of its result."""
        made = self._made.pop((stage, micro))
        seed: AccelRef | float = self._micros[micro][1] * self._scale
        if stage < len(self._own) - 1:
            seed = self._back.pop((stage, micro))
        variables = dict(self._own[stage])
        if stage:
            variables[_INPUT] = self._given.pop((stage, micro))
        for name, gradient in named_gradients(made, variables, seed):
            if name == _INPUT:
                before = self._trainer.devices[stage - 1]
                self._back[stage - 1, micro] = before.put(gradient)
            else:
                so_far = self.gradients[stage].get(name)
                self.gradients[stage][name] = gradient if so_far is None else so_far + gradient
