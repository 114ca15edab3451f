"""A trainer on a grid of ranks: rows of a batch, stages and parts of weights at once."""

from collections.abc import Mapping, Sequence
from typing import Unpack

import numpy as np

from accel_lab.blueprints.train.batches import shared_out
from accel_lab.blueprints.train.checks import require_count
from accel_lab.blueprints.train.exchange.buckets import BUCKET_BYTES, Buckets
from accel_lab.blueprints.train.exchange.schedule import Bubble, Stopwatch, in_turn
from accel_lab.blueprints.train.optimizers.optimizer import SEPARATOR, Buffers, Optimizer
from accel_lab.blueprints.train.snapshots.snapshot import Array
from accel_lab.blueprints.train.trainers.attempt import Computed
from accel_lab.blueprints.train.trainers.cuts import Cuts
from accel_lab.blueprints.train.trainers.flow import Flow, Line, Stage, parameters_of
from accel_lab.blueprints.train.trainers.on_world import InParts
from accel_lab.blueprints.train.trainers.options import Batch, Batches, Options
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import array
from accel_lab.world.split import grid
from accel_lab.world.world import World

DIMENSIONS = ("data", "pipe", "model")


class GridTrainer(InParts):
    """Trains on `lab.world(shape={"data": d, "pipe": p, "model": m})`.

    Along "data" each line has other rows of a batch, and gradients are summed, as by
    `DataParallelTrainer`. Along "pipe" there are stages, as of `PipelineParallelTrainer`; along
    "model" the weights are cut, as by `TensorParallelTrainer`.

    What a lost rank had comes from a rank with the same stage and the same parts, if there is one,
    or else training goes back to the last snapshot; the curve is the same.

    Parameters:
        stages: one for each place along "pipe".
        cuts: the axis along which each parameter is cut, by name; none if "model" is 1.
        micro_batches: into how many each line's rows are cut.
        optimizer: one that works element by element, if anything is cut.
        batches, options: as `Trainer` has them.
    """

    def __init__(
        self,
        world: World,
        stages: Sequence[Stage],
        optimizer: Optimizer,
        batches: Batches,
        *,
        cuts: Mapping[str, int] | None = None,
        micro_batches: int = 4,
        **options: Unpack[Options],
    ) -> None:
        kind = type(self).__name__
        require_count(self, "micro_batches", micro_batches)
        if list(world.shape) != list(DIMENSIONS):
            text = f"the world has the dimensions {list(world.shape)}"
            raise InvalidArgument(f"{kind}: {text}; it takes one of {list(DIMENSIONS)}")
        if len(stages) != world.shape["pipe"]:
            text = f"there are {len(stages)} stages, and the world has {world.shape['pipe']}"
            raise InvalidArgument(f"{kind}: {text} places along 'pipe'")
        if bool(cuts) != (world.shape["model"] > 1):
            text = f"cuts is {cuts!r}, and the world has {world.shape['model']} along 'model'"
            raise InvalidArgument(f"{kind}: {text}; weights are cut where these are several")
        if cuts:
            optimizer.require_elementwise(kind)
        parameters = parameters_of(kind, stages)
        self.stages = tuple(stages)
        self.micro_batches = micro_batches
        self._cuts = Cuts(cuts or {}, parameters)
        self._cuts.require_even(kind, world.shape["model"])
        # The rank at each place along data, pipe and model, and back.
        self._grid = grid(world.shape, world.size)
        self._places = {int(rank): at for at, rank in np.ndenumerate(self._grid)}
        self._watch: Stopwatch | None = None
        super().__init__(world, parameters, optimizer, batches, **options)

    def computed(self, batch: Batch, scale: float) -> Computed:
        """Send all micro-batches through all stages of each line, and back; sum the gradients."""
        lines = self.world.shape["data"]
        flows, shares = [], shared_out(batch, lines, "lines along 'data'")
        for at, (rows, share) in enumerate(shares):
            micros = [
                (part, share * own)
                for part, own in shared_out(rows, self.micro_batches, "micro-batches")
            ]
            ranks = [[int(rank) for rank in stage] for stage in self._grid[at]]
            on = [Line(own, self._line("model", own[0])) for own in ranks]
            flows.append(Flow(self, self.stages, on, micros, scale))
        watch = self._watch = Stopwatch(len(self.stages), self.micro_batches)
        for work in in_turn(len(self.stages), self.micro_batches):
            for flow in flows:
                flow.do(work)
            watch.sent(work, self.devices[int(self._grid[0, work.stage, 0])])
            self.hear()
        gradients: dict[int, Buffers] = {}
        for flow in flows:
            gradients |= flow.gradients
        if lines > 1:
            for first in self._grid[0].flat:
                gradients |= self._summed(int(first), gradients)
        losses = [loss for flow in flows for loss in flow.losses]
        return Computed(losses, [gradients[rank] for rank in range(len(self.devices))])

    def statistics(self) -> Bubble:
        """Return how much of the last step the stages were idle, those of the first line.

        Raises:
            InvalidArgument: no step was done.
        """
        if self._watch is None:
            raise InvalidArgument(f"{type(self).__name__}: no step was done yet")
        return self._watch.bubble()

    def cut(self, rank: int, name: str, whole: Array) -> Array | None:
        """Return a rank's part of what its stage has."""
        _, stage, place = self._places[rank]
        if name.partition(SEPARATOR)[0] not in self.stages[stage].parameters:
            return None
        return self._cuts.part(name, whole, place, self.world.shape["model"])

    def is_kept(self, rank: int, name: str) -> bool:
        """Whether it is a part, or the first of copies."""
        line, _, place = self._places[rank]
        return line == 0 and (place == 0 or name in self._cuts)

    def joined(self, name: str, parts: Sequence[Array]) -> Array:
        """Return all parts as one."""
        return self._cuts.joined(name, parts)

    def counted(self, rank: int, gradients: Buffers) -> Sequence[AccelRef]:
        """Return those of which the norm is to have this rank's."""
        kept = [ref for name, ref in gradients.items() if self.is_kept(rank, name)]
        return kept or [array.zeros(self.devices[rank], ())]

    def _summed(self, first: int, gradients: Mapping[int, Buffers]) -> dict[int, Buffers]:
        """Return the gradients of ranks with the same parts, summed over them."""
        _, stage, place = self._places[first]
        ranks = [int(rank) for rank in self._grid[:, stage, place]]
        buckets = Buckets(self._line("data", first), BUCKET_BYTES, self.hear)
        for name in gradients[first]:
            buckets.add(name, [gradients[rank][name] for rank in ranks])
        return dict(zip(ranks, buckets.done(), strict=True))

    def _line(self, dimension: str, rank: int) -> World:
        """Return the world of a rank's line along a dimension."""
        device = self.devices[rank]
        return next(one for one in self.world[dimension] if device in one.devices)

    def _found(self) -> list[Buffers] | None:
        """Return the states, lost ones copied from ranks with the same parts."""
        found: list[Buffers] = []
        for rank, device in enumerate(self.devices):
            _, stage, place = self._places[rank]
            alike = [rank, *(int(one) for one in self._grid[:, stage, place])]
            whole = (self.states[one] for one in alike)
            state = next((one for one in whole if all(x.is_valid for x in one.values())), None)
            if state is None:
                return None
            found.append(
                state
                if state is self.states[rank]
                else {name: device.put(ref) for name, ref in state.items()}
            )
        return found

    def _heal(self) -> None:
        if len(self.world.devices) != self._grid.size:
            text = f"the world has {len(self.world.devices)} ranks, and its grid {self._grid.size}"
            raise InvalidArgument(f"{type(self).__name__}: {text}; it cannot shrink")
        for dimension in ("data", "model"):
            for line in self.world[dimension]:
                line.ready()
        super()._heal()
