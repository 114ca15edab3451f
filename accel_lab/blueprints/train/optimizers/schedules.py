"""Learning rates that change from step to step, by the formulas of torch.optim.lr_scheduler."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from accel_lab.errors import InvalidArgument

Schedule: TypeAlias = Callable[[int], float]
"""Returns the learning rate of a step; the first is 0. It depends on nothing else."""


@dataclass(frozen=True)
class StepDecay:
    """Multiply by `factor` after each `every` steps (StepLR)."""

    rate: float
    every: int
    factor: float = 0.1

    def __post_init__(self) -> None:
        _require_steps(self, self.every)

    def __call__(self, step: int) -> float:
        """Return the rate of a step."""
        return float(self.rate * self.factor ** (step // self.every))


@dataclass(frozen=True)
class Exponential:
    """Multiply by `factor` after each step (ExponentialLR)."""

    rate: float
    factor: float

    def __call__(self, step: int) -> float:
        """Return the rate of a step."""
        return float(self.rate * self.factor**step)


@dataclass(frozen=True)
class Linear:
    """Go in a line from `first` to `last` times the rate (LinearLR), as to warm up."""

    rate: float
    steps: int
    first: float = 1 / 3
    last: float = 1.0

    def __post_init__(self) -> None:
        _require_steps(self, self.steps)

    def __call__(self, step: int) -> float:
        """Return the rate of a step."""
        part = min(step, self.steps) / self.steps
        return self.rate * (self.first + (self.last - self.first) * part)


@dataclass(frozen=True)
class Cosine:
    """Go down by half a cosine to `least` (CosineAnnealingLR), and stay there."""

    rate: float
    steps: int
    least: float = 0.0

    def __post_init__(self) -> None:
        _require_steps(self, self.steps)

    def __call__(self, step: int) -> float:
        """Return the rate of a step."""
        part = min(step, self.steps) / self.steps
        return self.least + (self.rate - self.least) * (1 + math.cos(math.pi * part)) / 2


@dataclass(frozen=True)
class InTurn:
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


def _require_steps(schedule: object, steps: int) -> None:
    """Refuse less than one step.

    Raises:
        InvalidArgument: it is less.
    """
    if type(steps) is not int or steps < 1:
        raise InvalidArgument(f"{schedule}: {steps!r} steps; it is an integer from 1")
