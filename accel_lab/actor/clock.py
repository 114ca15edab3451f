"""Time as a dependency, so that tests own it."""

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """A source of monotonic seconds."""

    def now(self) -> float:
        """Return monotonic seconds."""


class MonotonicClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        """Return monotonic seconds."""
        return time.monotonic()


class FakeClock:
    """A clock that stands still until a test advances it."""

    def __init__(self) -> None:
        self._now = 0.0
        self._listeners: list[Callable[[], None]] = []

    def now(self) -> float:
        """Return the seconds advanced so far."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move time forward and tell whoever subscribed."""
        self._now += seconds
        for listener in list(self._listeners):
            listener()

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each advance, in the advancing thread."""
        self._listeners.append(listener)
