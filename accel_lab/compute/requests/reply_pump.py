"""Waiting for the answers of one device: who waits, reads the wire."""

import asyncio
import threading
import time
from typing import Any, Protocol

from accel_lab.actor.reply import Reply
from accel_lab.compute.arena.completion_flag import Flag
from accel_lab.compute.machine import stop_signal, switch_interval
from accel_lab.compute.output import cell_origin
from accel_lab.compute.requests.answers import Answers
from accel_lab.compute.requests.cancellation import Cancellation
from accel_lab.compute.requests.connection import Connection
from accel_lab.compute.requests.stop_button import StopButton
from accel_lab.compute.requests.wait_progress import Late, LoopWaitProgress, WaitProgress
from accel_lab.display.failure import interrupt
from accel_lab.display.progress import REFRESH_S
from accel_lab.display.sizes import size
from accel_lab.errors import InvalidArgument

LOOK_S = 0.05
STARTING = ("starting", "restarting", "half-open")
QUIET_S = 1.0
"""Who waits for longer than this for a device that is not ready is told so, in a notebook."""


class Audience(Protocol):
    """Who is told what a wait has brought; every call returns at once."""

    def unclaimed(self, reply: Reply[Any]) -> None:
        """A request failed and nobody waits for it."""

    def show(self, *, piped: bool) -> None:
        """Write what was printed before an answer; `piped`: what C code wrote, too."""


class ReplyPump:
    """Moves the answers of one device from the wire to their handles while somebody waits.

    Attributes:
        name, room: the device's.
        cancel: takes the request of a reply back.
        unclaimed: remembers a failure that nobody waits for.
    """

    def __init__(
        self,
        connection: Connection,
        room: threading.Condition,
        answers: Answers,
        cancellation: Cancellation,
        stop_button: StopButton,
        audience: Audience,
    ) -> None:
        self.name = connection.name
        self.cancel = cancellation.cancel
        self.unclaimed = audience.unclaimed
        self._connection = connection
        self.room = room
        self._answers = answers
        self._stop_button = stop_button
        stop_button.read = self.read
        self._show = audience.show
        self._bars: dict[asyncio.AbstractEventLoop, LoopWaitProgress] = {}
        self._told_of = 0
        """The generation of which was said that it is not ready."""

    def wait(
        self,
        reply: Reply[Any],
        timeout_s: float | None,
        *,
        shown: bool = True,
        soon_s: float = 0.0,
        flag: Flag | None = None,
    ) -> None:
        """Block until the reply is done; reads the wire meanwhile.

        Parameters:
            shown: whether a bar is to say what the wait is for, if that takes over a second.
            soon_s: how long the work takes, where that is known and not worth a sleep.
            flag: what is set when it is done; then this may return before the answer is there.
        """
        try:
            link = self._connection.current_link
            if link is None or not link.spin(reply, soon_s, flag):
                self._wait_long(reply, timeout_s, shown=shown)
            self.taken(reply)
        except KeyboardInterrupt:
            self.interrupted(reply)
            self.taken(reply)
            raise interrupt() from None  # without the frames of whoever reads the wire

    def taken(self, reply: Reply[Any]) -> None:
        """Have all that a request has printed appear before its cell takes the answer."""
        self._show(piped=reply.library == "run")

    def _wait_long(self, reply: Reply[Any], timeout_s: float | None, *, shown: bool) -> None:
        """Wait, so that a busy cell beside this thread does not keep it from its answer.

        Raises:
            InvalidArgument: a finalizer, or an object that is rebuilt, waits in the middle of what
                the answer waits for: its thread sends, reads, or does accel_lab's own work.
        """
        if self._answers.rebuilding == threading.get_ident():
            raise InvalidArgument(
                "__setstate__ of an object that has arrived reads an array that is still on "
                f"{self._connection.name}; read the array after __setstate__"
            )
        if shown or self._connection.is_entered:  # else it is accel_lab's own, on a thread that may
            self.require_free()
        wait_progress = WaitProgress(self.late) if shown else None
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main:
            switch_interval.begin()
        try:
            self.read(reply, timeout_s, wait_progress)
        finally:
            if wait_progress is not None:
                wait_progress.end(done=reply.done and not reply.failed)
            if not is_main:
                switch_interval.end()

    def require_free(self) -> None:
        """Refuse to wait in a thread that is in the middle of what others wait for.

        Raises:
            InvalidArgument: it is; so a finalizer asks, or a callback.
        """
        if self._connection.is_waited_for:
            raise InvalidArgument(
                f"a finalizer (__del__) or a callback cannot wait for {self.name} here: it would "
                "wait for its own thread, which is inside accel_lab; it may send messages"
            )

    def read(
        self, reply: Reply[Any], timeout_s: float | None, wait_progress: WaitProgress | None = None
    ) -> None:
        """Read the wire until the reply is done, or the time is over."""
        connection, began = self._connection, time.monotonic()
        deadline = None if timeout_s is None else began + timeout_s
        while not reply.done:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return
            link, ready = connection.current_link, connection.link is not None
            if not ready:
                self.tell_start(began)
            if wait_progress is not None:
                wait_progress.look()
            look = LOOK_S if left is None else min(left, LOOK_S)
            if link is None or link.closed:
                reply.block(look)
            elif not ready:
                link.wait(reply, look)
            elif wait_progress is not None and reply.copying:
                link.wait(reply, REFRESH_S if left is None else min(left, REFRESH_S))
            else:
                link.wait(reply, left)

    def late(self) -> Late | None:
        """Return what the device is at that may take long: it comes back, or copies something."""
        connection = self._connection
        if connection.link is not None:
            oldest = self._answers.oldest()
            return Late(oldest.copying) if oldest is not None and oldest.copying else None
        if connection.state == "suspended":
            return None
        if connection.kept:
            return Late(f"resume {connection.name}, {size(connection.kept_bytes)}")
        progress = None if connection.recovery is None else connection.recovery.progress
        if progress is None:
            return None
        return Late(f"make buffers of {connection.name} again", *progress)

    def attend(self, loop: asyncio.AbstractEventLoop, reply: Reply[Any]) -> bool:
        """Have the loop read the wire."""
        link = self._connection.current_link
        if self._connection.link is None:
            loop.call_later(QUIET_S, self.tell_start, time.monotonic() - QUIET_S)
        attended = link is not None and link.attend(loop, reply)
        if not attended:
            self.taken(reply)
        if not reply.done:
            wait_progress = self._bars.get(loop) or self._bar_of(loop)
            wait_progress.attend(reply, leaves=attended)
        return attended

    def _bar_of(self, loop: asyncio.AbstractEventLoop) -> LoopWaitProgress:
        """Make what shows to a loop why it waits; those of closed loops go."""
        for other in [one for one in list(self._bars) if one.is_closed()]:
            self._bars.pop(other, None)
        wait_progress = self._bars[loop] = LoopWaitProgress(self.late, loop)
        return wait_progress

    def leave(self, loop: asyncio.AbstractEventLoop, reply: Reply[Any]) -> None:
        """The loop awaits one reply less."""
        wait_progress = self._bars.get(loop)
        if wait_progress is not None:
            wait_progress.left()
        self.taken(reply)
        link = self._connection.current_link
        if link is not None:
            link.leave(loop)

    def tell_start(self, since: float) -> None:
        """Say in a notebook, once, that the device is not ready, if that was waited for so long."""
        connection = self._connection
        starts = connection.link is None and connection.state in STARTING
        if (
            starts
            and self._told_of != connection.generation
            and time.monotonic() - since >= QUIET_S
            and cell_origin.in_notebook()
        ):
            self._told_of = connection.generation
            again = "re" if connection.generation > 1 else ""
            cell_origin.current().say(f"{again}starting {connection.name}…")

    def interrupted(self, reply: Reply[Any]) -> None:
        """A waiting thread got Ctrl-C."""
        self._stop_button.interrupted(reply)

    def abandon(self, reply: Reply[Any]) -> None:
        """Take back what a task awaits that is cancelled, as by the stop button of a notebook."""
        if stop_signal.taken():
            with stop_signal.raised():
                self.interrupted(reply)
        else:
            self.cancel(reply)

    def settled(self, deadline: float) -> None:
        """Block until the device runs, is suspended, or has given up.

        Raises:
            TimeoutError: it does neither by `deadline`, in monotonic seconds.
            InvalidArgument: as `wait`, where the device is not at that yet.
        """
        if self._connection.state in STARTING:
            self.require_free()
        connection, room = self._connection, self.room
        began, wait_progress = time.monotonic(), WaitProgress(self.late)
        try:
            with room:
                while connection.state in STARTING:
                    left = deadline - time.monotonic()
                    if left <= 0:
                        raise TimeoutError(f"{connection.name} is still {connection.state}")
                    if not room.wait(min(left, REFRESH_S)):
                        room.release()  # writing may take its time
                        try:
                            self.tell_start(began)
                            wait_progress.look()
                        finally:
                            room.acquire()
        finally:
            wait_progress.end(done=connection.state == "running")
