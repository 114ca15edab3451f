"""A trainer whose ranks each have some layers, and work on several micro-batches at once."""

from collections.abc import Sequence
from typing import Unpack

from accel_lab.blueprints.train.batches import shared_out
from accel_lab.blueprints.train.checks import require_count
from accel_lab.blueprints.train.exchange.schedule import Bubble, Stopwatch, in_turn
from accel_lab.blueprints.train.optimizers.optimizer import SEPARATOR, Optimizer
from accel_lab.blueprints.train.snapshots.snapshot import Array
from accel_lab.blueprints.train.trainers.attempt import Computed
from accel_lab.blueprints.train.trainers.flow import Flow, Line, Stage, parameters_of
from accel_lab.blueprints.train.trainers.on_world import InParts
from accel_lab.blueprints.train.trainers.options import Batch, Batches, Options
from accel_lab.errors import InvalidArgument
from accel_lab.world.world import World


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
        parameters = parameters_of(kind, stages)
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
        lines = [Line([rank], self.world) for rank in range(count)]
        flow = Flow(self, self.stages, lines, micros, scale)
        for work in in_turn(count, len(micros)):
            flow.do(work)
            watch.sent(work, self.devices[work.stage])
            self.hear()
        return Computed(flow.losses, [flow.gradients[rank] for rank in range(count)])

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
