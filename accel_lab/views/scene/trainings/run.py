"""What was seen of one trainer: its curve, thinned, its newest steps and its restarts."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from accel_lab.compute.events.training import StepTrained

POINTS = 512
"""So many steps are kept of a curve, and so many more of its end; beyond, each second one goes."""
NEWEST = 16
"""So many of the newest steps are kept, for means."""
RESTARTS = 32
"""So many of the newest steps that were done again are kept."""


@dataclass(slots=True)
class TrainingRun:
    """What was seen of one trainer.

    Attributes:
        points: steps of the whole curve, ascending: each `stride`-th one, from step 1 on.
        newest: the newest steps, the newest last.
        restarts: the newest steps that a fault has cost attempts, the newest last.
        stride: from one kept step of the curve to the next one.
    """

    points: list[StepTrained] = field(default_factory=list)
    newest: deque[StepTrained] = field(default_factory=lambda: deque(maxlen=NEWEST))
    restarts: deque[StepTrained] = field(default_factory=lambda: deque(maxlen=RESTARTS))
    stride: int = 1

    @property
    def last(self) -> StepTrained:
        """The newest step."""
        return self.newest[-1]

    def take(self, step: StepTrained) -> None:
        """Take a step; those that it does again are forgotten."""
        if self.newest and step.step <= self.last.step:
            self.points = [one for one in self.points if one.step < step.step]
            self.newest = _newest(one for one in self.newest if one.step < step.step)
        self.newest.append(step)
        if step.faults:
            self.restarts.append(step)
        if self._is_kept(step):
            self.points.append(step)
        while len(self.points) > POINTS:
            self.stride *= 2
            self.points = [one for one in self.points if self._is_kept(one)]

    def _is_kept(self, step: StepTrained) -> bool:
        return (step.step - 1) % self.stride == 0

    def curve(self) -> list[StepTrained]:
        """Return the steps that are drawn, ascending: of the whole curve, and the newest."""
        return _ascending((*self.points, *self.newest))

    def facts(self) -> list[StepTrained]:
        """Return the steps that make of nothing what is drawn of this, in their order in time."""
        found = {one.at: one for one in (*self.restarts, *self.curve())}
        return [found[at] for at in sorted(found)]

    def copy(self) -> "TrainingRun":
        """Return one that goes on by itself."""
        return TrainingRun(
            self.points.copy(), self.newest.copy(), self.restarts.copy(), self.stride
        )

    def until(self, moment: float) -> "TrainingRun | None":
        """Return what was known then, as far as it is not forgotten; None for nothing."""
        known = [one for one in self.curve() if one.at <= moment]
        if not known:
            return None
        twin = TrainingRun(newest=_newest(known), stride=self.stride)
        twin.points = [one for one in self.points if one.at <= moment]
        twin.restarts.extend(one for one in self.restarts if one.at <= moment)
        return twin


def _newest(steps: Iterable[StepTrained]) -> deque[StepTrained]:
    return deque(steps, maxlen=NEWEST)


def _ascending(steps: Iterable[StepTrained]) -> list[StepTrained]:
    found = {one.step: one for one in steps}
    return [found[step] for step in sorted(found)]
