"""What was seen of the trainers of a system, by their names."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from accel_lab.compute.events.training import StepTrained
from accel_lab.views.scene.trainings.run import TrainingRun

RUNS = 16
"""So many trainers are kept; beyond, the one goes whose newest step is the oldest."""


@dataclass
class Trainings:
    """What was seen of all trainers; made in one thread at a time.

    Attributes:
        runs: by name, the one whose first step came first before the others.
    """

    runs: dict[str, TrainingRun] = field(default_factory=dict)

    def take(self, step: StepTrained) -> None:
        """Take a step."""
        if step.trainer not in self.runs and len(self.runs) >= RUNS:
            del self.runs[min(self.runs, key=lambda name: self.runs[name].last.at)]
        self.runs.setdefault(step.trainer, TrainingRun()).take(step)

    def facts(self) -> Iterator[StepTrained]:
        """Yield steps that make of nothing what is drawn of these."""
        for run in self.runs.values():
            yield from run.facts()

    def until(self, moment: float) -> "Trainings":
        """Return what was known then, as far as it is not forgotten."""
        known = ((name, run.until(moment)) for name, run in self.runs.items())
        return Trainings({name: run for name, run in known if run is not None})

    def copy(self) -> "Trainings":
        """Return one that goes on by itself."""
        return Trainings({name: run.copy() for name, run in self.runs.items()})
