"""What failed while nobody was waiting: printed under its cell, kept for `lab.check()`."""

import threading
from collections import deque
from typing import Any

from accel_lab.actor.dispatcher import Dispatcher
from accel_lab.actor.events import EventStream
from accel_lab.actor.reply import Reply
from accel_lab.compute import events as facts
from accel_lab.errors import AccelError, Cancelled, DependencyFailed, SystemClosed

GRACE_S = 0.25
KEPT = 1000


class Background:
    """Failures without a waiter; one line each, however many requests share the cause."""

    def __init__(self, dispatcher: Dispatcher, events: EventStream) -> None:
        self._dispatcher = dispatcher
        self._events = events
        self._lock = threading.Lock()
        self._fresh: dict[int, tuple[str, AccelError, list[Reply[Any]]]] = {}
        self._kept: deque[AccelError] = deque(maxlen=KEPT)
        self._escaped: deque[BaseException] = deque(maxlen=KEPT)

    def failed(self, device: str, reply: Reply[Any]) -> None:
        """Note a failed request; it counts unless somebody takes the answer. Any thread."""
        error = reply.error
        if error is None or isinstance(error, SystemClosed | Cancelled):
            return
        with self._lock:
            first = id(error) not in self._fresh
            _, _, replies = self._fresh.setdefault(id(error), (device, error, []))
            if len(replies) < KEPT:
                replies.append(reply)
        if first:
            self._dispatcher.call_later(GRACE_S, self._report, id(error))

    def escaped(self, error: BaseException) -> None:
        """Note what escaped a callback on the system thread."""
        self._escaped.append(error)

    def check(self) -> None:
        """Raise what failed since the last check and was not taken by anybody.

        Raises:
            AccelError: the only failure.
            ExceptionGroup: several.
        """
        with self._lock:
            found = [*self._kept, *(error for _, error, _ in self._fresh.values())]
            self._kept.clear()
            self._fresh.clear()
        errors: list[Exception] = [error for error in found if not error.taken]
        while self._escaped:
            escaped = self._escaped.popleft()
            if isinstance(escaped, Exception):
                errors.append(escaped)
        # What failed only because something else did adds nothing: its root was raised or is here.
        roots = [e for e in errors if not isinstance(e, DependencyFailed)]
        if len(roots) == 1:
            raise roots[0]
        if roots:
            text = f"{len(roots)} requests failed in the background"
            raise ExceptionGroup(text, roots)

    def _report(self, key: int) -> None:
        with self._lock:
            device, error, replies = self._fresh.pop(key, ("", None, []))
            if error is None or error.taken:
                return
            self._kept.append(error)
        where = replies[0].origin
        count = "one request" if len(replies) == 1 else f"{len(replies)} requests"
        what = ", ".join(getattr(error, "__notes__", ())) or count
        cell = getattr(where, "cell", None)
        self._events.publish(
            facts.RequestFailed(
                device=device, message=what, error=f"{type(error).__name__}: {error}", cell=cell
            )
        )
        if isinstance(error, DependencyFailed) or where is None:
            return
        where.write("stderr", f"accel_lab: {device}, {what}: {type(error).__name__}: {error}\n")
