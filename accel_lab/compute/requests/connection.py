"""The link of one device to its context, as contexts come and go, and the state of the device.

Which event may follow in which state, and what state it leads to, is the table `TRANSITIONS`; what
an event does beside that is the method of its name. One that the table does not have, or that comes
from a context which is no longer the current one, is refused and changes nothing.
"""

import math
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Literal, Protocol

from accel_lab.actor.reply import Reply
from accel_lab.compute.events.tree import State
from accel_lab.compute.lineage.markers import ContextBegan, ContextEnded, Failed
from accel_lab.compute.lineage.recorded_message import releasing, withholding_with
from accel_lab.compute.lineage.recorder import Recorder
from accel_lab.compute.requests.answers import Answers, InFlight, Overtaken, Settle
from accel_lab.compute.requests.send_queue import SendQueue
from accel_lab.compute.wire.codec import encode_entry
from accel_lab.compute.wire.link import Link
from accel_lab.errors import AccelError, Cancelled, SystemClosed

Event = Literal[
    "fill",
    "connect",
    "hold",
    "release",
    "rest",
    "pause",
    "wake",
    "lose",
    "give_up",
    "half_open",
    "close",
]
TRANSITIONS: Mapping[tuple[State, Event], State] = {
    # A context is up: what fills it goes to it, all else waits.
    ("starting", "fill"): "starting",
    ("restarting", "fill"): "restarting",
    ("half-open", "fill"): "half-open",
    # It is filled: what has waited is sent, and from then on messages go to it.
    ("starting", "connect"): "running",
    ("restarting", "connect"): "running",
    ("half-open", "connect"): "running",
    # Messages wait, while it answers what it has; and go to it again.
    ("running", "hold"): "running",
    ("running", "release"): "running",
    # It is let go of in order: a held one with what it had kept, or one that could not be filled.
    ("running", "rest"): "suspended",
    ("starting", "rest"): "suspended",
    ("restarting", "rest"): "suspended",
    ("half-open", "rest"): "suspended",
    # Its process is kept as it is: a held one, or one that could not go on.
    ("running", "pause"): "suspended",
    ("starting", "pause"): "suspended",
    # A message came, or somebody asked: the next context is started.
    ("suspended", "wake"): "starting",
    # Its process is gone: the generation moves, unless all is kept on the host.
    ("running", "lose"): "restarting",
    ("starting", "lose"): "restarting",
    ("suspended", "lose"): "restarting",
    ("restarting", "lose"): "restarting",
    ("half-open", "lose"): "restarting",
    # No context comes any more, or none for long: everything is refused.
    ("starting", "give_up"): "circuit open",
    ("running", "give_up"): "circuit open",
    ("suspended", "give_up"): "circuit open",
    ("restarting", "give_up"): "circuit open",
    ("circuit open", "give_up"): "circuit open",
    ("half-open", "give_up"): "circuit open",
    # Messages wait again, for a context on probation.
    ("circuit open", "half_open"): "half-open",
    # The system is closed: everything is refused for good.
    ("starting", "close"): "stopped",
    ("running", "close"): "stopped",
    ("suspended", "close"): "stopped",
    ("restarting", "close"): "stopped",
    ("circuit open", "close"): "stopped",
    ("half-open", "close"): "stopped",
    ("stopped", "close"): "stopped",
}


class Rebuilder(Protocol):
    """What makes buffers again after a loss, and runs again what was in flight."""

    lost: dict[int, str]
    """Why buffers could not be made again, by id."""
    progress: tuple[int, int] | None
    """How many messages have been run again, and of how many; None when none are."""

    @property
    def held(self) -> dict[int, Reply[Any]]:
        """The requests that wait to be run again, or for the reason of their loss."""

    def cancel(self, seqs: list[int], error: Callable[[int], AccelError]) -> None:
        """Answer those of these requests that are held; any thread."""


class OpenMemory(Protocol):
    """What contexts have open of other processes' memory; a context is named by its token."""

    def left(self, token: Hashable) -> None:
        """A context takes no messages any more."""

    def reaped(self, token: Hashable) -> None:
        """Its process is gone."""

    def forget(self) -> None:
        """The system is closed."""

    def orphan(self) -> None:
        """This process is a fork, and nothing here is its own."""


class Connection:
    """The state of one device, its generation, and the link that takes its messages.

    Any thread may call; what is public is set here alone, apart from what is handed in.

    Attributes:
        link: that of the context that takes messages; None while there is none.
        filling: that of a context which is being filled, or held.
        refusal: why nothing is taken; None while it is, or waits.
        dropped: why buffers of this generation are gone, by id.
        kept: whether what the device holds is kept on the host, until a context has it again.
        kept_bytes: how much of the host's memory that takes.
        ids_before: buffers above this number were never in a context that was lost.
        revive: has a suspended device start a context; any thread, returns at once.
        recovery: what makes buffers again after a loss; None if nothing does.
        ipc_memory: what the context has open of another process's memory; None where it cannot.
        lock, room: the device's.
        is_mine: whether this thread has the lock.
        busy: say whether this thread is in the middle of what a wait would hold up elsewhere.
    """

    def __init__(
        self,
        name: str,
        lock: threading.RLock,
        room: threading.Condition,
        answers: Answers,
        queue: SendQueue,
        recorder: Recorder | None,
    ) -> None:
        self.name = name
        self.state: State = "starting"
        self.generation = 1
        self.refusal: AccelError | None = None
        self.link: Link | None = None
        self.filling: Link | None = None
        self.dropped: dict[int, str] = {}
        self.kept = False
        self.kept_bytes = 0
        self.ids_before = 0
        self.revive: Callable[[], None] = _nothing
        self.recovery: Rebuilder | None = None
        self.ipc_memory: OpenMemory | None = None
        self.busy: list[Callable[[], bool]] = []
        self.lock: threading.RLock
        self.room: threading.Condition
        self.share(lock, room)
        self._answers = answers
        self._queue = queue
        self._recorder = recorder
        self._token: Hashable | None = None

    @property
    def is_entered(self) -> bool:
        """Whether this thread is in the middle of something here: a finalizer asks."""
        link = self.current_link
        return self.is_mine() or (link is not None and (link.is_written_here or link.is_read_here))

    @property
    def is_waited_for(self) -> bool:
        """Whether others wait for what this thread is in the middle of, here or elsewhere."""
        return self.is_entered or any(is_busy() for is_busy in tuple(self.busy))

    def share(self, lock: threading.RLock, room: threading.Condition) -> None:
        """Use this lock, and `room` to tell of a change in what waits."""
        self.lock, self.room = lock, room
        # What a Condition asks of its lock: there is no public way.
        self.is_mine: Callable[[], bool] = attrgetter("_is_owned")(lock)

    @property
    def current_link(self) -> Link | None:
        """The link of the context that answers now, or is being filled."""
        return self.link or self.filling

    def _step(self, event: Event) -> bool:
        """Move the state, if the table has the event; the lock is held."""
        after = TRANSITIONS.get((self.state, event))
        if after is None:
            return False
        self.state = after
        return True

    # A context comes.

    def fill(self, link: Link, token: Hashable) -> bool:
        """A context is up, and is sent nothing but what fills it until it is connected.

        Parameters:
            token: names its process.

        Returns False when the system is closed.
        """
        with self.lock:
            if not self._step("fill"):
                return False
            self.filling = link
            self._token = token
            return True

    def rebuilding(self, link: Link) -> tuple[set[int], int]:
        """Return the requests that wait for a context which is being filled.

        With them comes the number of the last request: later ones wait for it, too.

        Raises:
            Overtaken: it is lost.
        """
        with self.lock:
            self._require_filling(link)
            if self._queue.freed:
                self._queue.free()  # for the record: no context has them
            return set(self._queue.waiting), self._queue.last

    def unsent(self) -> tuple[list[int], list[bytes]]:
        """Return the buffers of which no context knows yet that they are freed, and what waits."""
        with self.lock:
            return list(self._queue.freed), list(self._queue.waiting.values())

    def resend(
        self,
        link: Link,
        seq: int,
        data: bytes,
        reply: Reply[Any] | None = None,
        settle: Settle | None = None,
    ) -> None:
        """Send an entry to a context that is being filled.

        Raises:
            Overtaken: that one is lost; it has not got the entry.
        """
        with self.lock:
            self._require_filling(link)
            if reply is not None:
                self._answers.expect(seq, reply, settle, in_turn=False)
            link.send(data, idle=False)

    def withhold(
        self, link: Link, since: int, seq: int, sharing: Mapping[int, Iterable[int]]
    ) -> None:
        """Have a context that is being filled refuse what a message finds refused at its place.

        Parameters:
            since: the message for which this was done last.
            seq: the message that comes next; 0 for the first that has waited.
            sharing: what shares the memory of a buffer that is not there itself.

        Raises:
            Overtaken: that context is lost.
        """
        with self.lock:
            self._require_filling(link)
            place = seq or next(iter(self._queue.waiting), math.inf)
            withheld = self._answers.withheld
            if over := withheld.released_between(since, place):
                for message in releasing(over):
                    link.send(encode_entry(0, 0, None, message), idle=False)
            for one in withheld.failed_between(since, place):
                for message in withholding_with(one, sharing.get(one.id, ())):
                    link.send(encode_entry(0, 0, None, message), idle=False)
            if not seq and any(sharing.values()):
                self._queue.widen(sharing)

    def _require_filling(self, link: Link) -> None:
        if self.filling is not link:
            raise Overtaken

    def connect(self, link: Link, pid: int, free: Iterable[int] = ()) -> bool:
        """A context is filled: send what has waited, in order; False when it is lost again.

        Parameters:
            free: buffers in it that nobody needs after what has waited.
        """
        with self.lock:
            if self.filling is not link or not self._step("connect"):
                return False
            self.kept = False
            self.refusal = None
            if self._recorder is not None:
                self._recorder.mark(ContextBegan(self.generation, time.time(), pid))
            self._take_messages(link)
            self._queue.freed.extend(free)
            return True

    def _take_messages(self, link: Link) -> None:
        """Send what has waited, and from then on what comes; the lock is held.

        The link is the device's only after that: until then it takes along nothing of what has been
        freed, which may be named by what is not sent yet.
        """
        self._queue.send_to(link)
        self.room.notify_all()
        # Whoever asks without the lock sees no moment in which there is no link.
        self.link, self.filling = link, None

    def trailer(self) -> bytes | None:
        """Encode what has been freed, for the end of the next batch."""
        if not self._queue.freed or self.link is None:
            return None
        return self._queue.free()

    # It waits, or goes in order.

    def hold(self) -> Link | None:
        """Have what is sent from now on wait, while the context answers what it has.

        Returns its link; None when there is no context, or one that is being filled.
        """
        with self.lock:
            link = self.link
            if link is None or not self._step("hold"):
                return None
            link.flush()
            self.filling, self.link = link, None
            return link

    def release(self, link: Link) -> None:
        """Undo `hold`, unless that context is lost."""
        with self.lock:
            if self.filling is link and self._step("release"):
                self._take_messages(link)

    def rest(self, link: Link, refusal: AccelError | None = None) -> InFlight | None:
        """Let go of a context that is held or being filled: what comes next has another started.

        Returns what was in flight, and with a `refusal` also what has waited, to be answered with
        that; None when that context is lost.
        """
        with self.lock:
            if self.filling is not link or not self._step("rest"):
                return None
            self.filling = None
            self.kept = True
            link.close()
            queued = self._waiting(refusal)
            self.room.notify_all()
            return self._answers.take_all(self._leave(), queued)

    def pause(self, link: Link, refusal: AccelError | None = None) -> InFlight | None:
        """Have a context that is held, or was to go on, stay as it is until it is woken.

        Returns what has waited, to be answered with the `refusal` if there is one; None when that
        context is lost.
        """
        with self.lock:
            if self.filling is not link or not self._step("pause"):
                return None
            queued = self._waiting(refusal)
            self.room.notify_all()
            return self._answers.take_all(None, queued)

    def _waiting(self, refusal: AccelError | None) -> Mapping[int, bytes]:
        """Return what waits for a context; nothing with a refusal, with which it is answered."""
        queued = self._queue.waiting
        if refusal is None:
            return queued
        if self._recorder is not None:
            for seq in queued:
                self._recorder.mark(Failed.of(seq, refusal))
        self._queue.waiting = {}
        return self._queue.waiting

    def wake(self) -> bool:
        """Have a suspended device start a context, or go on; whether it was suspended."""
        with self.lock:
            if not self._step("wake"):
                return False
            self.revive()
            return True

    # It is lost, or none comes.

    def lose(self, link: Link) -> InFlight | None:
        """The context of `link` is lost: move the generation and return what was in flight.

        None when this link is no longer the current one. Nothing in flight is answered here. What
        is kept is not lost with a context that was to get it, and the generation stays.
        """
        with self.lock:
            if self.current_link is not link or not self._step("lose"):
                return None
            self.refusal = None
            before = self.generation
            if not self.kept:
                self.generation += 1
            return self._ended(link, before, None)

    def give_up(self, refusal: AccelError) -> InFlight | None:
        """No context comes, or none for long: refuse what comes, and return what has waited.

        None when there is one.
        """
        with self.lock:
            if self.current_link is not None or not self._step("give_up"):
                return None
            return self._ended(None, self.generation, refusal)

    def close(self, link: Link | None, refusal: AccelError) -> InFlight | None:
        """The system is closed: refuse what comes, and return what was in flight and has waited.

        None when this link is no longer the current one.
        """
        with self.lock:
            if self.current_link is not link or not self._step("close"):
                return None
            return self._ended(link, self.generation, refusal)

    def _ended(self, link: Link | None, before: int, refusal: AccelError | None) -> InFlight:
        """Let go of the context of generation `before`, if any; return what it took along.

        With a `refusal` what has waited goes, too. The lock is held.
        """
        self.link = self.filling = None
        self.refusal = refusal
        if link is not None:
            self.ids_before = next(self._queue.ids)
            if not self.kept:
                self.dropped.clear()  # what is made again is told elsewhere
            link.close()
        queued = self._queue.waiting if refusal is None else {}
        if link is not None and not self.kept:
            self._record_end(before, queued)
        if refusal is not None:
            self._queue.waiting.clear()
        if self.recovery is None and not self.kept:
            self._queue.freed.clear()
            self._answers.withheld.clear()
        self.room.notify_all()
        return self._answers.take_all(self._leave(), queued)

    def _record_end(self, generation: int, queued: Mapping[int, bytes]) -> None:
        if self._recorder is None:
            return
        unanswered = [*self._answers.pending, *self._answers.withdrawn]
        lost = [seq for seq in unanswered if seq not in queued]
        closed = self.state == "stopped"
        self._recorder.mark(ContextEnded(generation, time.time(), lost, closed))
        for seq in self._answers.cancelled().difference(queued):
            # Nobody waits for what it has not done: it is not to be done again.
            self._recorder.mark(Failed(seq, Cancelled.__name__, f"request {seq} was cancelled"))

    def _leave(self) -> Hashable | None:
        """Have no context any more; returns what names the one that there was."""
        token, self._token = self._token, None
        if token is not None and self.ipc_memory is not None:
            self.ipc_memory.left(token)
        return token

    def half_open(self) -> bool:
        """Take messages again: they wait for a context on probation. False if not refused."""
        with self.lock:
            if not self._step("half_open"):
                return False
            self.refusal = None
            return True

    def orphan(self) -> None:
        """Refuse everything: this process is a fork, and the device is its parent's."""
        self.link = None
        self.state = "stopped"
        self.refusal = SystemClosed(
            f"{self.name} belongs to the process that opened its system, and this process is a "
            "fork of that one: open a System() of its own here"
        )
        if self.ipc_memory is not None:
            self.ipc_memory.orphan()
        for reply in self._answers.pending.values():
            reply.detach()
        self._answers.take_all(None).fail(self.refusal)


def _nothing() -> None:
    pass
