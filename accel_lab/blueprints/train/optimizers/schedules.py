"""Learning rates that change from step to step, by the formulas of torch.optim.lr_scheduler."""

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

Schedule: TypeAlias = Callable[[int], float]
"""Returns the learning rate of a step; the first is 0. It depends on nothing else."""


class StepDecay(NamedTuple):
    """Multiply by `factor` after each `every` steps (StepLR)."""

    rate: float
    every: int
    factor: float = 0.1

    def __call__(self, step: int) -> float:
        """Return the rate of a step."""
        return float(self.rate * self.factor ** (step // self.every))


class Exponential(NamedTuple):
    """Multiply by `factor` after each step (ExponentialLR)."""

    rate: float
    factor: float

    def __call__(self, step: int) -> float:
        """Return the rate of a step."""
        return float(self.rate * self.factor**step)


class Linear(NamedTuple):
    """Go in a line from `first` to `last` times the rate (LinearLR), as to warm up."""

    rate: float
    steps: int
    first: float = 1 / 3
    last: float = 1.0

    def __call__(self, step: int) -> float:
        """Return the rate of a step."""
        part = min(step, self.steps) / self.steps
        return self.rate * (self.first + (self.last - self.first) * part)


class Cosine(NamedTuple):
    """Go down by half a cosine to `least` (CosineAnnealingLR), and stay there."""

    rate: float
    steps: int
    least: float = 0.0

    def __call__(self, step: int) -> float:
        """Return the rate of a step."""
        part = min(step, self.steps) / self.steps
        return self.least + (self.rate - self.least) * (1 + math.cos(math.pi * part)) / 2


class InTurn(NamedTuple):
    """Follow one schedule up to a step, and from there another, from its beginning (SequentialLR).

    Attributes:
        first: for the steps before `until`.
        then: for those from there on.
    """

    first: Schedule
    until: int
    then: Schedule

    def __call__(self, step: int) -> float:
        """Return the rate of a step."""
        return self.first(step) if step < self.until else self.then(step - self.until)
