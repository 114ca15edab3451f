"""Failures that nobody was waiting for: printed under their cell, kept for `lab.check()`."""

import threading
from collections import deque
from typing import Any

from accel_lab.actor.event_loop import EventLoop
from accel_lab.actor.events import EventStream
from accel_lab.actor.reply import Reply
from accel_lab.compute.events import lifecycle as facts
from accel_lab.errors import AccelError, Cancelled, DependencyFailed, SystemClosed

GRACE_S = 0.25
KEPT = 1000


class UnclaimedFailures:
    """Failures without a waiter; one line each, however many requests share the cause.

    It keeps no request, for a request may hold a buffer of the device or memory of the arena.
    """

    def __init__(self, event_loop: EventLoop, events: EventStream) -> None:
        self._event_loop = event_loop
        self._events = events
        self._lock = threading.RLock()  # what a finalizer sends may fail, too
        self._fresh: dict[int, _Fresh] = {}
        self._kept: deque[AccelError] = deque(maxlen=KEPT)
        self._escaped: deque[BaseException] = deque(maxlen=KEPT)

    def failed(self, device: str, reply: Reply[Any]) -> None:
        """Note a failed request; it counts unless somebody takes the answer. Any thread."""
        error = reply.error
        if error is None or isinstance(error, SystemClosed | Cancelled):
            return
        with self._lock:
            first = id(error) not in self._fresh
            fresh = self._fresh.setdefault(id(error), _Fresh(device, error, reply.origin))
            fresh.requests += 1
        if first:
            self._event_loop.call_later(GRACE_S, self._report, id(error))

    def escaped(self, error: BaseException) -> None:
        """Note what escaped a callback on the system thread."""
        self._escaped.append(error)

    def check(self, *standing: AccelError | None) -> None:
        """Raise what failed since the last check and was not taken by anybody.

        Parameters:
            standing: what is wrong still, each time it is asked; None is nothing.

        Raises:
            AccelError: the only failure.
            ExceptionGroup: several.
        """
        with self._lock:
            found = [*self._kept, *(fresh.error for fresh in self._fresh.values())]
            self._kept.clear()
            self._fresh.clear()
        untaken = [error for error in found if not error.taken]  # to take one takes its cause
        errors: list[Exception] = [error.take() for error in untaken]
        errors += [error.copy() for error in standing if error is not None]
        while self._escaped:
            escaped = self._escaped.popleft()
            if isinstance(escaped, Exception):
                errors.append(escaped)
        # What failed only because something else did adds nothing: its root was raised or is here.
        roots = [e for e in errors if not isinstance(e, DependencyFailed)]
        if len(roots) == 1:
            raise roots[0]
        if roots:
            text = f"{len(roots)} things failed in the background"
            raise ExceptionGroup(text, roots)

    def report(self) -> None:
        """Tell of what has failed and waits to be taken: nobody will. Any thread."""
        with self._lock:
            keys = list(self._fresh)
        for key in keys:
            self._report(key)

    def _report(self, key: int) -> None:
        with self._lock:
            fresh = self._fresh.pop(key, None)
            if fresh is None or fresh.error.taken:
                return
            self._kept.append(fresh.error)
        device, error, where = fresh.device, fresh.error, fresh.origin
        count = "one request" if fresh.requests == 1 else f"{fresh.requests} requests"
        what = ", ".join(getattr(error, "__notes__", ())) or count
        cell = getattr(where, "cell", None)
        self._events.publish(
            facts.RequestFailed(
                device=device, message=what, error=f"{type(error).__name__}: {error}", cell=cell
            )
        )
        if isinstance(error, DependencyFailed) or where is None:
            return
        where.say(f"{device}, {what}: {type(error).__name__}: {error}")


class _Fresh:
    """A failure that somebody may still take, and how many requests it failed."""

    __slots__ = ("device", "error", "origin", "requests")

    def __init__(self, device: str, error: AccelError, origin: Any) -> None:
        self.device = device
        self.error = error
        self.origin = origin
        self.requests = 0
