"""Which failures of a stage are faults, that are met by running items again, and how often."""

from collections.abc import Sequence

from accel_lab.actor.clock import MonotonicClock
from accel_lab.actor.supervision import RestForOne, Strategy
from accel_lab.errors import (
    AccelError,
    ActorFailed,
    CircuitOpen,
    DependencyFailed,
    Directive,
    StaleRef,
)
from accel_lab.pipeline.seats import Seats

STRATEGY = RestForOne(max_restarts=20, within_s=60.0)
"""One loss may restart each of the stages in turn, so there are more than a device may have."""
_RESTARTS = Directive.RESTART, Directive.REPLACE


def first_of(error: BaseException) -> BaseException:
    """Return what an error comes of: the failure of the operand that was never made."""
    while isinstance(error, DependencyFailed) and error.__cause__ is not None:
        error = error.__cause__
    return error


def is_fault(error: BaseException, *, has_another: bool) -> bool:
    """Whether running again may help: the context was lost, and not the function is wrong.

    Parameters:
        has_another: whether the stage has a device that takes work.
    """
    first = first_of(error)
    if isinstance(first, CircuitOpen):
        return has_another
    if not isinstance(first, AccelError) or isinstance(first, ActorFailed):
        return False
    return first.directive in _RESTARTS or isinstance(first, StaleRef | DependencyFailed)


def counts(error: BaseException) -> bool:
    """Whether a fault counts among those after which a stage gives up: not if it was asked for."""
    return getattr(first_of(error), "directive", None) is not Directive.REPLACE


def loses_input(error: BaseException) -> bool:
    """Whether what the stage got is gone, out of reach, or was never there."""
    return isinstance(error, StaleRef | DependencyFailed | CircuitOpen)


class Restarts:
    """What a supervisor does for actors, for the stages of one run."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy
        self._window = strategy.window(MonotonicClock())

    def decide(
        self, stages: Sequence[Seats], failed: Seats, error: BaseException
    ) -> tuple[Sequence[Seats], int, float] | None:
        """Return whom a restart concerns, its number and its delay; None: there were too many."""
        affected = self._strategy.affected(stages, failed)
        if not counts(error):
            return affected, 0, 0.0
        attempt = self._window.record()
        if attempt is None:
            return None
        return affected, attempt, self._strategy.backoff.delay_s(attempt)
