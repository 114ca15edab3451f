"""A bounded queue with waiting back-pressure, and the mark of who takes its turn.

Any thread puts; only the event loop takes. `put` tells its caller whether the owner has to be
scheduled, so that an owner is scheduled exactly once however many threads put.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from accel_lab.errors import ActorStopped, QueueFull

T = TypeVar("T")


class Mailbox(Generic[T]):
    """A FIFO of at most `capacity` items.

    Parameters:
        capacity: how many items `put` lets in.
        name: the owner, for error texts.
        never_waits: whether the calling thread must not be kept waiting (the event loop,
            which alone could make room).
    """

    def __init__(
        self,
        capacity: int,
        *,
        name: str = "mailbox",
        never_waits: Callable[[], bool] = lambda: False,
    ) -> None:
        if capacity < 1:
            msg = f"a mailbox holds at least 1 message, not {capacity}"
            raise ValueError(msg)
        self.capacity = capacity
        self._name = name
        self._never_waits = never_waits
        self._items: deque[T] = deque()
        self._closed = False
        self._scheduled = False
        self._putters = 0
        # Re-entrant, because a finalizer may put while this thread is in here.
        self._room = threading.Condition(threading.RLock())

    def __len__(self) -> int:
        return len(self._items)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is queued, and the owner has no turn."""
        with self._room:
            return not self._items and not self._scheduled

    def put(self, item: T, timeout_s: float = 0.0, *, over_capacity: bool = False) -> bool:
        """Append `item`, waiting up to `timeout_s` for room; True if the owner needs a turn.

        Waits in real time, and never in a thread that must not wait. `over_capacity` lets the
        system's own notices in even when the mailbox is full.

        Raises:
            QueueFull: there was no room in time.
            ActorStopped: the mailbox is closed, or was while this waited.
        """
        with self._room:
            if len(self._items) >= self.capacity and not over_capacity and not self._closed:
                self._wait_for_room(timeout_s)
            if self._closed:
                msg = f"{self._name} has stopped"
                raise ActorStopped(msg)
            self._items.append(item)
            return self._claim()

    def take(self) -> T | None:
        """Remove the oldest item; None when there is none, which ends the owner's turn."""
        with self._room:
            if not self._items:
                self._scheduled = False
                return None
            item = self._items.popleft()
            if self._putters:
                self._room.notify()
            return item

    def claim(self) -> bool:
        """Take the owner's next turn; False if it is already in somebody's hands."""
        with self._room:
            return self._claim()

    def end_turn(self, *, again: bool) -> bool:
        """Give the turn back, or keep it (True) when `again` and items are waiting."""
        with self._room:
            self._scheduled = again and bool(self._items)
            return self._scheduled

    def close(self) -> list[T]:
        """Let nothing more in, fail whoever waits for room, and return what was queued."""
        with self._room:
            self._closed = True
            left = list(self._items)
            self._items.clear()
            self._room.notify_all()
            return left

    def _claim(self) -> bool:
        claimed, self._scheduled = not self._scheduled, True
        return claimed

    def _wait_for_room(self, timeout_s: float) -> None:
        if timeout_s > 0 and not self._never_waits():
            deadline = time.monotonic() + timeout_s
            self._putters += 1
            try:
                while len(self._items) >= self.capacity and not self._closed:
                    left_s = deadline - time.monotonic()
                    if left_s <= 0 or not self._room.wait(left_s):
                        break
            finally:
                self._putters -= 1
        if len(self._items) >= self.capacity and not self._closed:
            waited = f" within {timeout_s:g} s" if timeout_s > 0 else ""
            msg = (
                f"{self._name} has no room{waited}: {len(self._items)} of {self.capacity} "
                "messages are queued; wait longer, or send less at once"
            )
            raise QueueFull(msg)
