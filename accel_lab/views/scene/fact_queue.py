"""A bounded queue of facts for whoever looks; facts that find it full are counted."""

import threading
from collections import deque
from collections.abc import Iterable

from accel_lab.actor.events import Event

ROOM = 10_000


class Arrivals:
    """Takes facts from any thread; when nobody looks for long, the oldest go."""

    def __init__(self) -> None:
        self._waiting: deque[Event] = deque()
        self._dropped = 0
        # Re-entrant because a finalizer may publish at any allocation.
        self._lock = threading.RLock()

    def put(self, fact: Event) -> None:
        """Add one, at the cost of the oldest where there is no room."""
        with self._lock:
            if len(self._waiting) >= ROOM:
                self._waiting.popleft()
                self._dropped += 1
            self._waiting.append(fact)

    def precede(self, facts: Iterable[Event], dropped: int) -> None:
        """Add those that came before all others, and how many went before them."""
        with self._lock:
            later, self._waiting = self._waiting, deque(facts)
            self._dropped += dropped
            for fact in later:
                self.put(fact)

    def take(self) -> tuple[int, deque[Event]]:
        """Return how many went since the last time, and those that came after them."""
        with self._lock:
            taken = self._dropped, self._waiting
            self._dropped, self._waiting = 0, deque()
            return taken
