"""What a supervisor does about a failure: who restarts, how often, how soon.

The error's class carries the directive (`errors.Directive`); the supervisor's strategy says whom
a restart concerns and when restarting has gone on for too long.
"""

import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from accel_lab.actor.clock import Clock
from accel_lab.errors import AccelError, ActorFailed, Directive

C = TypeVar("C")
_JITTER = random.Random()  # noqa: S311 - no secret, and not the user's sequence


def as_accel_error(error: BaseException) -> AccelError:
    """Return `error`, or an `ActorFailed` with it as `__cause__` when it is no AccelError."""
    if isinstance(error, AccelError):
        return error
    failed = ActorFailed(f"an actor raised {type(error).__name__}: {error}")
    failed.__cause__ = error
    return failed


def directive_of(error: BaseException) -> Directive:
    """Return what a supervisor does about `error`."""
    return as_accel_error(error).directive


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """How long to wait before a restart.

    The first restart in a window waits `first_s`, the second `base_s`, each further one
    `factor` times longer up to `cap_s`; each but the first varies by ± `jitter` of itself.
    """

    first_s: float = 0.0
    base_s: float = 0.1
    factor: float = 2.0
    cap_s: float = 2.0
    jitter: float = 0.1

    def delay_s(self, attempt: int, draw: Callable[[], float] = _JITTER.random) -> float:
        """Return the seconds before restart number `attempt`, counted from 1 in its window.

        Parameters:
            draw: gives a number in [0, 1) for the jitter.
        """
        if attempt <= 1:
            return self.first_s
        try:
            delay = min(self.cap_s, self.base_s * self.factor ** (attempt - 2))
        except OverflowError:
            delay = self.cap_s
        return delay * (1.0 + self.jitter * (2.0 * draw() - 1.0)) if self.jitter else delay


class RestartWindow:
    """Counts restarts in a sliding window: at most `max_restarts` in any `within_s` seconds.

    Not thread-safe: it belongs to the supervisor that asks it.
    """

    def __init__(self, max_restarts: int, within_s: float, clock: Clock) -> None:
        self.max_restarts = max_restarts
        self.within_s = within_s
        self._clock = clock
        self._restarts: deque[float] = deque()

    def record(self) -> int | None:
        """Count a restart now; return its number in the window, or None if there is no budget.

        A refused restart is not counted. A restart leaves the window `within_s` seconds later.
        """
        if self.count >= self.max_restarts:
            return None
        self._restarts.append(self._clock.now())
        return len(self._restarts)

    @property
    def count(self) -> int:
        """How many restarts the window holds now."""
        now = self._clock.now()
        while self._restarts and now - self._restarts[0] >= self.within_s:
            self._restarts.popleft()
        return len(self._restarts)

    def reset(self) -> None:
        """Forget every restart."""
        self._restarts.clear()


@dataclass(frozen=True, kw_only=True)
class Strategy(ABC):
    """The limits shared by all strategies.

    Parameters:
        max_restarts: restarts allowed within `within_s` seconds; one more exhausts the budget.
        backoff: how long each restart waits.
        exhausted: STOP stops the child that failed once too often; ESCALATE fails its
            supervisor with the same error.
    """

    max_restarts: int = 3
    within_s: float = 60.0
    backoff: Backoff = field(default_factory=Backoff)
    exhausted: Directive = Directive.STOP

    def __post_init__(self) -> None:
        if self.exhausted not in {Directive.STOP, Directive.ESCALATE}:
            msg = f"exhausted is STOP or ESCALATE, not {self.exhausted.name}"
            raise ValueError(msg)

    @property
    def shares_budget(self) -> bool:
        """Whether all children draw on one budget; otherwise each has its own."""
        return True

    @abstractmethod
    def affected(self, children: Sequence[C], failed: C) -> Sequence[C]:
        """Return whom the failure of `failed` restarts, in the order of their spawning."""

    def window(self, clock: Clock) -> RestartWindow:
        """Return a new, empty budget."""
        return RestartWindow(self.max_restarts, self.within_s, clock)


@dataclass(frozen=True, kw_only=True)
class OneForOne(Strategy):
    """Restart the child that failed. Each child has a budget of its own."""

    @property
    def shares_budget(self) -> bool:
        """Each child has its own."""
        return False

    def affected(self, children: Sequence[C], failed: C) -> Sequence[C]:
        """Return the failed child alone."""
        del children
        return [failed]


@dataclass(frozen=True, kw_only=True)
class AllForOne(Strategy):
    """Restart all children when one fails. They share one budget."""

    def affected(self, children: Sequence[C], failed: C) -> Sequence[C]:
        """Return all children."""
        del failed
        return list(children)


@dataclass(frozen=True, kw_only=True)
class RestForOne(Strategy):
    """Restart the child that failed and those spawned after it. They share one budget."""

    def affected(self, children: Sequence[C], failed: C) -> Sequence[C]:
        """Return the failed child and its younger siblings."""
        return list(children[children.index(failed) :])
