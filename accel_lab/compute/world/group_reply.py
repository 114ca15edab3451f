"""The answer to a message to several devices: all its parts are done, or none.

A part that a context has done waits there for word of the others, and so does the answer of what
depends on it. The last of them completes all handles; the first failure fails all of them at once,
before any context has ended its part.
"""

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Protocol

from accel_lab.actor.event_loop import EventLoop, Timer
from accel_lab.actor.reply import Reply
from accel_lab.compute.groups.part import Part
from accel_lab.compute.output import cell_origin
from accel_lab.compute.wire.link import Link
from accel_lab.compute.wire.side_channel import GroupWord
from accel_lab.compute.wire.text import fitting
from accel_lab.compute.world.member import Draft, results_of_handle
from accel_lab.compute.world.part_pump import PartPump
from accel_lab.errors import AccelError, Cancelled, GroupAborted, SystemClosed

WHY_BYTES = 4 << 10
"""How much of the reason a context is told."""


class Follower(Protocol):
    """Who is told how a message to several devices goes; any thread, and it returns at once."""

    def began(self, rank: int) -> None:
        """A context executes this part."""

    def over(self, error: AccelError | None, *, sent: bool) -> None:
        """All parts are done, or have failed; whether any was sent."""


class GroupReply(Reply[tuple[Any, ...]]):
    """What `lab.group` returns: `await` it, or call `result()`.

    Attributes:
        id: the number of the message in its system, as the journal has it.
        results: the handle of each rank, an operand at once, as `ask` returns it.
        places: the device of each part, and its number there.
        awaited: whether somebody waits, or has waited, for any of them.

    Parameters:
        drafts: the parts, by rank.
        timeout_s: how long the parts may take from the moment at which the first begins.
        follower: who is told how it goes.
    """

    def __init__(
        self,
        drafts: Sequence[Draft],
        timeout_s: float | None,
        event_loop: EventLoop,
        follower: Follower | None = None,
    ) -> None:
        pumps = [one.member.requests.pump for one in (*drafts, drafts[0])]  # the last is its own
        self._pumps = [PartPump(self, pump, self.flush, self._links) for pump in pumps]
        super().__init__(self._pumps[-1], cell_origin.current())
        self.id = 0
        self.results: tuple[Any, ...] = ()
        self.places: tuple[tuple[str, int], ...] = ()
        self.awaited = False
        self.library = drafts[0].plan.library
        kind = type(drafts[0].message).grouped
        self._kind: type[GroupAborted] = kind or GroupAborted
        self._drafts = drafts
        self._follower = follower
        self._parts: list[Part] = []
        self._timeout_s = timeout_s
        self._event_loop = event_loop
        self._timer: Timer | None = None
        self._began: dict[int, float] = {}
        self._ready: set[int] = set()
        self._is_over = False
        self._lock = threading.RLock()

    def pump_of(self, rank: int) -> PartPump:
        """Return what the handle of a rank waits with."""
        return self._pumps[rank]

    def take(self, id_: int, parts: list[Part]) -> None:
        """Take the parts, before any is sent."""
        self.id, self._parts = id_, parts
        self.results = tuple(results_of_handle(part.handle) for part in parts)
        pairs = zip(self._drafts, parts, strict=True)
        self.places = tuple((draft.member.name, part.seq) for draft, part in pairs)

    def _links(self) -> list[Link]:
        """Return the wires of all devices whose contexts take messages."""
        links = (draft.member.requests.connection.current_link for draft in self._drafts)
        return [link for link in links if link is not None]

    def flush(self) -> None:
        """Send what is held back."""
        for draft in self._drafts:
            draft.member.requests.flush()

    # What becomes of the parts; any thread.

    def began(self, rank: int) -> None:
        """A context executes this part: with the first one the time begins to run."""
        with self._lock:
            is_first = not self._began and not self._is_over
            self._began[rank] = time.monotonic()
        if is_first and self._timeout_s is not None:
            self._timer = self._event_loop.call_later(self._timeout_s, self._expire)
        if self._follower is not None:
            self._follower.began(rank)

    def ready(self, rank: int) -> None:
        """This part is done; with the last of them all are."""
        with self._lock:
            self._ready.add(rank)
            if self._is_over or len(self._ready) < len(self._parts):
                return
            self._is_over = True
        self._stop_clock()
        with ExitStack() as every:  # the last first, and each whatever befalls another
            every.callback(self._let_go)
            every.callback(self.resolve, tuple(map(_taken, self.results)))
            for part in reversed(self._parts):
                every.callback(part.handle.resolve)
            if self._follower is not None:  # whoever waits for a handle finds it told
                every.callback(self._follower.over, None, sent=True)
            for draft, part in zip(self._drafts, self._parts, strict=True):
                every.callback(draft.member.complete, part, self.id)

    def part_failed(self, rank: int, error: AccelError) -> None:
        """This part has failed, or its context is gone: so have all."""
        device = self._drafts[rank].member.name
        said = str(error).partition("\n")[0]
        self._abort(rank, error, f"rank {rank} on {device} failed: {type(error).__name__}: {said}")

    def cancel(self) -> None:
        """Take all parts back, or none where all are done."""
        self._abort(-1, Cancelled(f"{self._name} was cancelled"), "")

    def _expire(self) -> None:
        self._abort(-1, None, f"it was not done {self._timeout_s:g} s after its first part began")

    @property
    def _name(self) -> str:
        kinds = dict.fromkeys(type(draft.message).__name__ for draft in self._drafts)
        devices = ", ".join(draft.member.name for draft in self._drafts)
        return f"{' and '.join(kinds)} on {devices} (group {self.id})"

    def _abort(self, rank: int, cause: AccelError | None, reason: str) -> None:
        with self._lock:
            if self._is_over:
                return
            self._is_over = True
        self._stop_clock()
        if isinstance(cause, SystemClosed | Cancelled):
            error: AccelError = cause
        else:
            error = self._failure(rank, cause, reason)
        why = fitting(str(error), WHY_BYTES) or type(error).__name__
        word = GroupWord(self.id, why, isinstance(error, Cancelled))
        with ExitStack() as every:
            every.callback(self._let_go)
            if self._follower is not None:
                every.callback(self._follower.over, error, sent=True)
            every.callback(self._end, error)
            for draft, part in zip(self._drafts, self._parts, strict=True):
                every.callback(part.handle.reject, error)
                if part.rank != rank and not isinstance(error, SystemClosed):
                    every.callback(draft.member.abort, part, draft, error, word)

    def refuse(self, rank: int, error: AccelError) -> None:
        """Nothing is sent, for an operand of this rank was never made; the locks are held."""
        self._is_over = True
        device, said = self._drafts[rank].member.name, str(error).partition("\n")[0]
        aborted = self._failure(rank, error, f"rank {rank} on {device} cannot begin: {said}")
        for draft, part in zip(self._drafts, self._parts, strict=True):
            draft.member.refuse(draft, part, aborted)
        self._end(aborted)
        self._let_go()
        if self._follower is not None:
            self._follower.over(aborted, sent=False)

    def _let_go(self) -> None:
        """Have the handles keep nothing of each other: each rank's memory is its own to free."""
        for pump in self._pumps:
            pump.end()
        self._parts = []

    def _end(self, error: AccelError) -> None:
        waited = self.fail(error)
        if not (waited or self.awaited):
            self._drafts[0].member.requests.pump.unclaimed(self)

    def _failure(self, rank: int, cause: AccelError | None, reason: str) -> GroupAborted:
        now = time.monotonic()
        waited_s = now - min(self._began.values(), default=now)
        others = [part.rank for part in self._parts if part.rank != rank]
        missing = tuple(one for one in others if one not in self._began)
        unfinished = tuple(set(others) & self._began.keys() - self._ready)
        text = f"{self._name} was aborted {waited_s:.3g} s after its first part began: {reason}"
        if not self._began:
            text = f"{self._name} was aborted before it began: {reason}"
        elif missing:
            names = (f"rank {one} on {self._drafts[one].member.name}" for one in missing)
            text += f"; {', '.join(names)} had not begun"
        error = self._kind(
            text,
            rank=rank,
            device="" if rank < 0 else self._drafts[rank].member.name,
            reason=reason,
            missing=missing,
            unfinished=unfinished,
            waited_s=waited_s,
        )
        error.__cause__ = cause
        return error

    def _stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def orphan(self) -> None:
        """This process is a fork: its lock may be another thread's that is not here."""
        self._lock = threading.RLock()
        for part in self._parts:
            part.handle.detach()
        self.detach()


def _taken(result: Any) -> Any:
    """Return what an answer holds for a rank: its handles, or nothing."""
    return result.passed_on() if isinstance(result, Reply) else result
