"""What a context knows of messages of which it has one part, and other devices the others."""

import math
import threading
import time
from collections.abc import Callable
from typing import Any

from accel_lab.compute.groups.place import Place
from accel_lab.errors import AccelError, Cancelled, GroupAborted

GRACE_S = 5.0
"""So long an aborted part may take to end; then its context is replaced, as for a hang."""
EARLY_KEPT = 4096
"""So many words are kept of parts that have not come."""


class Group:
    """A message to several devices, as the handler of one of its parts sees it: `launch.group`.

    Attributes:
        id: its number, the same for every part.
        rank: which part this is, from 0.
        size: how many there are.
        place: these three.
        aborted: whether it was aborted; any thread, never blocks.
        has_word: whether it is known what became of it.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.id, self.rank, self.size = place
        self.aborted = self.has_word = False
        self._aborted_at = math.inf
        self._why, self._cancelled = "", False
        self._calls: list[Callable[[], object]] = []
        self._heard: Callable[[], object] = _nothing
        self._lock = threading.Lock()

    def on_abort(self, call: Callable[[], object]) -> None:
        """Have `call` called when the group is aborted, at once and on a thread of its own.

        For what ends work that waits for the others, as `ncclCommAbort`; the dispatcher may be busy
        meanwhile, and the stream stuck. It is not called once all parts are done. Any thread.
        """
        with self._lock:
            if not self.aborted:
                if not self.has_word:
                    self._calls.append(call)
                return
        self._call(call)

    def require(self) -> None:
        """Go on only if the group was not aborted.

        Raises:
            AccelError: it was.
        """
        if self.aborted:
            raise self.error()

    def error(self) -> AccelError:
        """Return what this part fails with, once the group was aborted."""
        if self._cancelled:
            return Cancelled(self._why)
        return GroupAborted(self._why, reason=self._why)

    def until_aborted(self, ready: Callable[[], bool]) -> Callable[[], bool]:
        """Return what asks the same, and raises once the group is aborted."""

        def ask() -> bool:
            self.require()
            return ready()

        return ask

    def expect(self, heard: Callable[[], object]) -> None:
        """Have `heard` called when it is known what became of the group, if it is not by now."""
        with self._lock:
            self._heard = heard

    def hear(self, why: str, *, cancelled: bool) -> None:
        """Take in what became of it, as in a `GroupWord`; the first time counts. Any thread."""
        with self._lock:
            if self.has_word:
                return
            self._why, self._cancelled = why, cancelled
            if why:
                self.aborted, self._aborted_at = True, time.monotonic()
            self.has_word = True
            calls, self._calls = self._calls, []
            heard = self._heard
        if why:
            for call in calls:
                self._call(call)
        heard()

    def has_waited_in_vain(self, now: float) -> bool:
        """Whether it was aborted so long ago that the part should have come to its end."""
        return now - self._aborted_at > GRACE_S

    def _call(self, call: Callable[[], object]) -> None:
        # What it raises is printed, as of any thread.
        threading.Thread(target=call, name=f"abort of group {self.id}", daemon=True).start()


class Groups:
    """The groups of which a context has a part that is not decided."""

    def __init__(self, context: object) -> None:
        del context  # a service of each
        self._open: dict[int, Group] = {}
        self._early: dict[int, tuple[str, bool]] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._open)

    def enter(self, place: list[Any]) -> Group:
        """Return the group of a part that has come, with its place on the wire; dispatcher."""
        group = Group(Place(*place[:3]))
        with self._lock:
            self._open[group.id] = group
            early = self._early.pop(group.id, None)
        why, cancelled = early or place[3:] or ("", False)
        if why:
            group.hear(why, cancelled=cancelled)
        return group

    def of(self, place: list[Any] | None) -> Group | None:
        """Return the group of a part, if it is one and not decided; any thread."""
        return None if place is None else self._open.get(place[0])

    def leave(self, group: Group) -> None:
        """Forget a group that is decided here."""
        with self._lock:
            self._open.pop(group.id, None)

    def hear(self, id_: int, why: str, *, cancelled: bool) -> None:
        """Take in what became of a group, which may come before the part. Any thread."""
        with self._lock:
            group = self._open.get(id_)
            if group is None:
                if why:
                    self._early[id_] = why, cancelled
                while len(self._early) > EARLY_KEPT:
                    del self._early[next(iter(self._early))]
                return
        group.hear(why, cancelled=cancelled)


def _nothing() -> None:
    """Nobody waits for word."""
