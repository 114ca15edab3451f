"""Waiting for the answers of one device, and taking requests back.

It is the pump of the replies: who waits, reads the wire.
"""

import asyncio
import threading
import time
from typing import Any, Protocol

from accel_lab.actor.reply import Reply
from accel_lab.compute.arena.completion_flag import Flag
from accel_lab.compute.events.tree import State
from accel_lab.compute.lineage.markers import Failed
from accel_lab.compute.lineage.recorder import Recorder
from accel_lab.compute.machine import stop_signal, switch_interval
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.builtin import TakeBack
from accel_lab.compute.message.operation import NO_RESULT
from accel_lab.compute.output import cell_origin
from accel_lab.compute.recovery.recovery import Recovery
from accel_lab.compute.requests.answers import Answers
from accel_lab.compute.requests.stop_button import StopButton
from accel_lab.compute.requests.wait_progress import Late, LoopWaitProgress, WaitProgress
from accel_lab.compute.wire.codec import Report, encode_entry
from accel_lab.compute.wire.link import Link
from accel_lab.display.failure import interrupt
from accel_lab.display.progress import REFRESH_S
from accel_lab.display.sizes import size
from accel_lab.errors import Cancelled, InvalidArgument

LOOK_S = 0.05
QUIET_S = 1.0
"""Who waits for longer than this for a device that is not ready is told so, in a notebook."""


class Supervisor(Protocol):
    """Who looks after the device's context; every call returns at once."""

    def noticed(self, link: Link, report: Report) -> None:
        """A report that is no answer arrived; called in the thread that reads the wire."""

    def link_ended(self, link: Link, reason: str) -> None:
        """The wire ended or is corrupt."""

    def wake(self) -> None:
        """Try a device whose circuit has been open for long enough."""

    def cancel(self, seqs: list[int]) -> None:
        """Ask the context not to begin these."""

    def replace(self, reason: str) -> object:
        """Replace the context, whatever it is doing."""

    def unclaimed(self, reply: Reply[Any]) -> None:
        """A request failed and nobody waits for it."""

    def show(self, *, piped: bool) -> None:
        """Write what was printed before an answer; `piped`: what C code wrote, too."""


class Waiting:
    """The half of a device's requests that begins when they have been sent.

    The other half, which sends, owns what is declared here.
    """

    name: str
    state: State
    generation: int
    recorder: Recorder | None
    recovery: Recovery | None
    _supervisor: Supervisor
    _lock: threading.Lock
    _answers: Answers
    _queue: dict[int, bytes]
    _link: Link | None
    _room: threading.Condition
    _filling: Link | None
    _seq: int
    _standbys: dict[asyncio.AbstractEventLoop, LoopWaitProgress]
    stop_button: StopButton
    kept: bool
    kept_bytes = 0
    """How much of the host's memory that takes which a suspended device held."""
    _told_of = 0
    """The generation of which was said that it is not ready."""

    @property
    def link(self) -> Link | None:
        """The link of the context that takes messages; None while there is none."""
        return self._link

    @property
    def current_link(self) -> Link | None:
        """The link of the context that answers now, or is being filled."""
        return self._link or self._filling

    @property
    def last_number(self) -> int:
        """The number of the request that was sent last."""
        return self._seq

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
            link = self.current_link
            if link is None or not link.spin(reply, soon_s, flag):
                self._wait_long(reply, timeout_s, shown=shown)
            self.taken(reply)
        except KeyboardInterrupt:
            self.interrupted(reply)
            self.taken(reply)
            raise interrupt() from None  # without the frames of whoever reads the wire

    def taken(self, reply: Reply[Any]) -> None:
        """Have all that a request has printed appear before its cell takes the answer."""
        self._supervisor.show(piped=reply.library == "run")

    def _wait_long(self, reply: Reply[Any], timeout_s: float | None, *, shown: bool) -> None:
        """Wait, so that a busy cell beside this thread does not keep it from its answer.

        Raises:
            InvalidArgument: this thread is reading an answer, and no other can be read meanwhile.
        """
        if self._answers.rebuilding == threading.get_ident():
            raise InvalidArgument(
                "an object that comes as an answer reads an array while it is rebuilt, and that "
                f"array is still on {self.name}: read it later than in __setstate__"
            )
        wait_progress = WaitProgress(self.late) if shown else None
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main:
            switch_interval.begin()
        try:
            self.pump(reply, timeout_s, wait_progress)
        finally:
            if wait_progress is not None:
                wait_progress.end(done=reply.done and not reply.failed)
            if not is_main:
                switch_interval.end()

    def pump(
        self, reply: Reply[Any], timeout_s: float | None, wait_progress: WaitProgress | None = None
    ) -> None:
        """Read the wire until the reply is done, or the time is over."""
        began = time.monotonic()
        deadline = None if timeout_s is None else began + timeout_s
        while not reply.done:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return
            link, ready = self.current_link, self._link is not None
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
        if self._link is not None:
            oldest = self._answers.oldest()
            return Late(oldest.copying) if oldest is not None and oldest.copying else None
        if self.state == "suspended":
            return None
        if self.kept:
            return Late(f"resume {self.name}, {size(self.kept_bytes)}")
        progress = None if self.recovery is None else self.recovery.progress
        return None if progress is None else Late(f"make buffers of {self.name} again", *progress)

    def attend(self, loop: asyncio.AbstractEventLoop, reply: Reply[Any]) -> bool:
        """Have the loop read the wire."""
        link = self.current_link
        if self._link is None:
            loop.call_later(QUIET_S, self.tell_start, time.monotonic() - QUIET_S)
        attended = link is not None and link.attend(loop, reply)
        if not attended:
            self.taken(reply)
        if not reply.done:
            wait_progress = self._standbys.get(loop) or self._standby_of(loop)
            wait_progress.attend(reply, leaves=attended)
        return attended

    def _standby_of(self, loop: asyncio.AbstractEventLoop) -> LoopWaitProgress:
        """Make what shows to a loop why it waits; those of closed loops go."""
        for other in [one for one in list(self._standbys) if one.is_closed()]:
            self._standbys.pop(other, None)
        wait_progress = self._standbys[loop] = LoopWaitProgress(self.late, loop)
        return wait_progress

    def leave(self, loop: asyncio.AbstractEventLoop, reply: Reply[Any]) -> None:
        """The loop awaits one reply less."""
        wait_progress = self._standbys.get(loop)
        if wait_progress is not None:
            wait_progress.left()
        self.taken(reply)
        link = self.current_link
        if link is not None:
            link.leave(loop)

    def tell_start(self, since: float) -> None:
        """Say in a notebook, once, that the device is not ready, if that was waited for so long."""
        starts = self._link is None and self.state in ("starting", "restarting", "half-open")
        if (
            starts
            and self._told_of != self.generation
            and time.monotonic() - since >= QUIET_S
            and cell_origin.in_notebook()
        ):
            self._told_of = self.generation
            cell_origin.current().say(f"{'re' if self.generation > 1 else ''}starting {self.name}…")

    def unclaimed(self, reply: Reply[Any]) -> None:
        """Remember a failure that nobody waits for."""
        self._supervisor.unclaimed(reply)

    def cancel(self, reply: Reply[Any]) -> None:
        """Take one request back, and answer it now."""
        seqs = [seq for seq, other in self.unanswered() if other is reply]
        self._cancel(seqs)
        for seq in seqs:
            self._withdraw(seq, Cancelled(f"request {seq} was taken back"))

    def abandon(self, reply: Reply[Any]) -> None:
        """Take back what a task awaits that is cancelled, as by the stop button of a notebook."""
        if stop_signal.taken():
            with stop_signal.raised():
                self.interrupted(reply)
        else:
            self.cancel(reply)

    def cancel_of(self, cell: object) -> list[int]:
        """Take back what a cell has sent and is not done; return the numbers of the requests."""
        seqs = [seq for seq, reply in self.unanswered() if reply.origin is cell]
        self._cancel(seqs)
        return seqs

    def unanswered(self) -> list[tuple[int, Reply[Any]]]:
        """Return the requests without an answer and their numbers; any thread."""
        held = {} if self.recovery is None else self.recovery.held
        return [*held.items(), *list(self._answers.pending.items())]

    def first_pending(self, seqs: list[int]) -> Reply[Any] | None:
        """Return the first of these that a context has to answer; None when there is none."""
        pending = self._answers.pending
        return next((one for seq in seqs if (one := pending.get(seq)) is not None), None)

    def _cancel(self, seqs: list[int]) -> None:
        if not seqs:
            return
        if self.recovery is not None:
            self.recovery.cancel(seqs, _taken_back)
        for seq in seqs:
            self._unqueue(seq)
        link = self._link
        if link is not None:
            link.flush()
            self._supervisor.cancel(seqs)

    def _unqueue(self, seq: int) -> None:
        """Take one request back that has not been sent."""
        error = _taken_back(seq)
        with self._lock:
            reply = self._answers.pending.get(seq)
            if reply is None or seq not in self._queue:
                return
            if isinstance(reply, AccelRef):  # what needs it must learn that it is never made
                instead = TakeBack(reply.id, reply.library == "upload")
                self._queue[seq] = encode_entry(seq, 0, None, instead, NO_RESULT)
            else:
                del self._queue[seq]
                self._room.notify()
        if isinstance(reply, AccelRef):
            if self.recorder is not None:
                self.recorder.mark(Failed(seq, "Cancelled", str(error)))
            self._withdraw(seq, error)
        elif self._answers.take(seq) is not None:
            if self.recorder is not None:
                self.recorder.mark(Failed(seq, "Cancelled", str(error)))
            reply.reject(error)

    def _withdraw(self, seq: int, error: Cancelled) -> None:
        """Answer a request that the context has, or will get something in place of."""
        with self._lock:
            found = self._answers.withdraw(seq)
        if found is None:
            return
        reply, stand_in = found
        if isinstance(reply, AccelRef):
            self._answers.never_made(reply.id, error)
        over = reply.take_back(error)
        if over is not None:
            stand_in.hold(over)

    def unfinished(self) -> int:
        """Count what is not done, answers that have come apart; does not block, any thread."""
        link = self.current_link
        if link is not None:
            link.drain()
        return len({seq for seq, _ in self.unanswered()}) + len(self._answers.withdrawn)

    def tell_closed(self, ended: int) -> None:
        """Say how many requests closing the system has ended."""
        what = f"{ended} requests to {self.name} are ended before they are done"
        if ended == 1:
            what = f"1 request to {self.name} is ended before it is done"
        cell_origin.current().say(f"closed; {what}.")

    def interrupted(self, reply: Reply[Any]) -> None:
        """A waiting thread got Ctrl-C."""
        self.stop_button.interrupted(reply)


def _taken_back(seq: int) -> Cancelled:
    return Cancelled(f"request {seq} was taken back before it was sent")
