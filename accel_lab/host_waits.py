"""When the notebook's thread waited for answers: the newest waits that took longer than a moment.

Each `await`, `result()` and `get` notes its begin and its end, whether or not anybody looks: that
costs two looks at the clock. A view draws what is here.
"""

import threading
import time
from collections import deque
from itertools import takewhile

LEAST_S = 0.003
"""A wait that is shorter is not kept."""
KEPT = 4_000
"""So many waits are kept, the newest."""


class HostWaits:
    """The waits of the main thread; those that overlap, as of tasks of one loop, are one.

    Attributes:
        since: when the wait began that goes on, wall seconds; 0 while there is none.
    """

    def __init__(self) -> None:
        self.since = 0.0
        self._under_way = 0
        self._thread = threading.main_thread().ident
        self._kept: deque[tuple[float, float]] = deque(maxlen=KEPT)

    def begin(self) -> bool:
        """Note that this thread begins to wait; whether `end` has to follow."""
        if threading.get_ident() != self._thread:
            return False
        if not self._under_way:
            self.since = time.time()
        self._under_way += 1
        return True

    def end(self) -> None:
        """Note that one of the waits is over."""
        self._under_way -= 1
        if self._under_way:
            return
        since, self.since = self.since, 0.0
        now = time.time()
        if now - since >= LEAST_S:
            self._kept.append((since, now))

    def after(self, moment: float) -> list[tuple[float, float]]:
        """Return the waits that ended later than a moment, the oldest first; any thread."""
        while True:
            try:
                found = list(takewhile(lambda wait: wait[1] > moment, reversed(self._kept)))
            except RuntimeError:  # one was added meanwhile
                continue
            return found[::-1]


HOST_WAITS = HostWaits()
