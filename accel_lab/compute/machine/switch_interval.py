"""Shorter turns for the interpreter's threads while something must not wait for a busy cell.

A cell of pure Python holds the interpreter for 5 ms at a time, and every system call of another
thread queues for it again. A restart makes dozens of those. While one is under way, or a thread
beside the cell waits for an answer, the turns are shorter; afterwards they are as they were.
"""

import sys
import threading

SHORT_TURN_S = 0.0003

_lock = threading.RLock()  # a finalizer of the user's may send in the middle
_holders = 0
_usual = sys.getswitchinterval()


def begin() -> None:
    """Shorten the turns until as many `end` calls; any thread."""
    global _holders, _usual  # noqa: PLW0603 - the interpreter has one switch interval
    with _lock:
        _holders += 1
        if _holders == 1:
            _usual = sys.getswitchinterval()
            sys.setswitchinterval(min(_usual, SHORT_TURN_S))


def end() -> None:
    """Undo one `begin`."""
    global _holders  # noqa: PLW0603
    with _lock:
        _holders -= 1
        if _holders == 0:
            sys.setswitchinterval(_usual)


class IntervalClaim:
    """One reason for short turns, which is there or not; any thread, as often as it likes.

    Attributes:
        made: whether it is there.
    """

    __slots__ = ("_lock", "made")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.made = False

    def make(self) -> None:
        """Shorten the turns until it is dropped."""
        with self._lock:
            if not self.made:
                self.made = True
                begin()

    def drop(self) -> None:
        """Let the turns be as they were."""
        with self._lock:
            if self.made:
                self.made = False
                end()
