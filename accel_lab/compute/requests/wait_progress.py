"""A progress bar for late answers: the device is being restored, or runs a large copy."""

import asyncio
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from accel_lab.actor.reply import Reply
from accel_lab.display.progress import REFRESH_S, Bar


class Late(NamedTuple):
    """What a device is at: `done` of `total`, which is None where that cannot be told."""

    text: str
    done: int = 0
    total: int | None = None


Why = Callable[[], Late | None]
"""Tells what a device is at; None where that needs no bar. Any thread."""


class WaitProgress:
    """Shows to a thread that waits what the wait is for, once that has gone on for a second."""

    def __init__(self, why: Why) -> None:
        self._why = why
        self._late: Late | None = None
        self._bar: Bar | None = None

    @property
    def shows(self) -> bool:
        """Whether there is a bar."""
        return self._bar is not None

    def look(self) -> None:
        """See what is waited for; a few times a second is enough."""
        before, self._late = self._late, self._why()
        late = self._late
        if before is not None and (late is None or late[::2] != before[::2]):
            self.end(done=late is None)
        if late is not None:
            if self._bar is None:
                self._bar = Bar(late.text, late.total)
            self._bar.at(late.done)

    def end(self, *, done: bool) -> None:
        """Leave the bar as it is, or full when it is `done`; a second call is fine."""
        bar, self._bar = self._bar, None
        self._late = None
        if bar is not None:
            bar.end(done=done)


class LoopWaitProgress:
    """The same for all that a loop awaits of a device; used by the loop's thread."""

    def __init__(self, why: Why, loop: asyncio.AbstractEventLoop) -> None:
        self._wait_progress = WaitProgress(why)
        self._loop = loop
        self._awaited: list[weakref.ref[Reply[Any]]] = []
        self._ticks = False

    def attend(self, reply: Reply[Any], *, leaves: bool) -> None:
        """Look while this is awaited, which it keeps no longer for that.

        Parameters:
            leaves: whether `left` is called in the end; else this sees to it.
        """
        self._awaited.append(weakref.ref(reply))
        if not leaves:
            reply.add_waiter(self._left_soon)
        if not self._ticks:
            self._ticks = True
            self._loop.call_later(REFRESH_S, self._tick)

    def left(self) -> None:
        """The loop awaits one less; what is shown ends with the last."""
        if self._wait_progress.shows and not self._waits():
            self._wait_progress.end(done=True)

    def _left_soon(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self.left)

    def _waits(self) -> bool:
        awaited = [(one, one()) for one in self._awaited]
        # A handle is no bool here: that would fetch it.
        self._awaited = [one for one, reply in awaited if reply is not None and not reply.done]
        return bool(self._awaited)

    def _tick(self) -> None:
        self._ticks = self._waits()
        if self._ticks:
            self._wait_progress.look()
            self._loop.call_later(REFRESH_S, self._tick)
        else:
            self._wait_progress.end(done=True)
