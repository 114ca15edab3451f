"""The requests of one device as contexts come and go: filled, connected, held, rested, lost.

When one is lost the generation moves first; only then does any request learn of it.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from accel_lab.actor.reply import Reply
from accel_lab.compute.events.tree import State
from accel_lab.compute.lineage.markers import ContextBegan, ContextEnded, Failed
from accel_lab.compute.lineage.recorded_message import (
    WITHHOLD,
    decode,
    encode,
    releasing,
    withholding_with,
)
from accel_lab.compute.message.builtin import Free
from accel_lab.compute.requests.answers import InFlight, Overtaken, Settle
from accel_lab.compute.requests.wait_progress import WaitProgress
from accel_lab.compute.requests.waiting import Waiting
from accel_lab.compute.transfer.ipc_memory import IpcMemory
from accel_lab.compute.wire.codec import encode_entry
from accel_lab.compute.wire.link import Link
from accel_lab.display.progress import REFRESH_S
from accel_lab.errors import AccelError, Cancelled, SystemClosed

FREES_PER_BATCH = 4096


class Generations(Waiting):
    """The part of a device's requests that moves the generation when a context is lost.

    The part that sends owns what is declared here.
    """

    refusal: AccelError | None
    ipc_memory: IpcMemory | None
    revive: Callable[[], None]
    _freed: deque[int]
    _dropped: dict[int, str]
    _token: Hashable | None

    def fill(self, link: Link, token: Hashable) -> bool:
        """A context is up, and is sent nothing but what fills it until it is `connected`.

        Parameters:
            token: names its process.

        Returns False when the system is closed.
        """
        with self._lock:
            if self.state == "stopped":
                return False
            self._filling = link
            self._token = token
            return True

    def rebuilding(self, link: Link) -> tuple[set[int], int]:
        """Return the requests that wait for a context which is being filled.

        With them comes the number of the last request: later ones wait for it, too.

        Raises:
            Overtaken: it is lost.
        """
        with self._lock:
            if self._filling is not link:
                raise Overtaken
            if self._freed:
                self._frees()  # for the record: no context has them
            return set(self._queue), self._seq

    def unsent(self) -> tuple[list[int], list[bytes]]:
        """Return the buffers of which no context knows yet that they are freed, and what waits."""
        with self._lock:
            return list(self._freed), list(self._queue.values())

    def trailer(self) -> bytes | None:
        """Encode what has been freed, for the end of the next batch."""
        freed = self._freed
        if not freed or self._link is None:
            return None
        return self._frees()

    def _frees(self) -> bytes:
        freed = self._freed
        ids: list[int] = []
        while freed and len(ids) < FREES_PER_BATCH:
            ids.append(freed.popleft())
        data = encode_entry(0, 0, None, Free(ids))
        if self.recorder is not None:
            self.recorder.append(data)
        return data

    def number(self) -> int:
        """Return the number of a request that the record does not have."""
        with self._lock:
            self._seq += 1
            return self._seq

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
        with self._lock:
            if self._filling is not link:
                raise Overtaken
            if reply is not None:
                self._answers.expect(seq, reply, settle, in_turn=False)
            link.send(data, idle=False)

    def unwritten(self) -> set[int]:
        """The buffers that a context may have to refuse, for want of what was not written."""
        return self._answers.withheld.ids

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
        with self._lock:
            if self._filling is not link:
                raise Overtaken
            place, withheld = seq or next(iter(self._queue), math.inf), self._answers.withheld
            if over := withheld.released_between(since, place):
                for message in releasing(over):
                    link.send(encode_entry(0, 0, None, message), idle=False)
            for one in withheld.failed_between(since, place):
                for message in withholding_with(one, sharing.get(one.id, ())):
                    link.send(encode_entry(0, 0, None, message), idle=False)
            if not seq and any(sharing.values()):
                self._queue.update(_widened(self._queue, sharing))

    def _send_queue(self, link: Link) -> None:
        """Send what has waited, in order; the lock is held.

        Before the link is the device's: until then it takes along nothing of what has been freed,
        which may be named by what is not sent yet.
        """
        queue, self._queue = self._queue, {}
        for data in queue.values():
            link.send(data, idle=False)
        link.flush()
        self._room.notify_all()

    def connected(self, link: Link, pid: int, free: Iterable[int] = ()) -> bool:
        """A context is filled: send what has waited, in order; False when it is lost again.

        Parameters:
            free: buffers in it that nobody needs after what has waited.
        """
        with self._lock:
            if self._filling is not link:
                return False
            self.kept = False
            self.state = "running"
            self.refusal = None
            if self.recorder is not None:
                self.recorder.mark(ContextBegan(self.generation, time.time(), pid))
            self._send_queue(link)
            # Whoever asks without the lock sees no moment in which this has no link.
            self._link, self._filling = link, None
            self._freed.extend(free)
            return True

    def hold(self) -> Link | None:
        """Have what is sent from now on wait, while the context answers what it has.

        Returns its link; None when there is no context, or one that is being filled.
        """
        with self._lock:
            link = self._link
            if link is None:
                return None
            link.flush()
            self._filling, self._link = link, None
            return link

    def release(self, link: Link) -> None:
        """Undo `hold`, unless that context is lost."""
        with self._lock:
            if self._filling is link:
                self._send_queue(link)
                self._link, self._filling = link, None

    def rest(self, link: Link, refusal: AccelError | None = None) -> "InFlight | None":
        """Let go of a context that is held or being filled: what comes next has another started.

        Returns what was in flight, and with a `refusal` also what has waited, to be answered with
        that; None when that context is lost.
        """
        with self._lock:
            if self._filling is not link:
                return None
            self._filling = None
            self.state = "suspended"
            self.kept = True
            link.close()
            queued = self._queue if refusal is None else {}
            if refusal is not None:
                if self.recorder is not None:
                    for seq in self._queue:
                        kind, text = type(refusal).__name__, str(refusal)
                        self.recorder.mark(Failed(seq, kind, text))
                self._queue = {}
            self._room.notify_all()
            token = self._leave()
            return self._answers.take_all(token, queued)

    def _leave(self) -> Hashable | None:
        """Have no context any more; returns what names the one that there was."""
        token, self._token = self._token, None
        if token is not None and self.ipc_memory is not None:
            self.ipc_memory.left(token)
        return token

    def wake(self) -> bool:
        """Have a suspended device start a context; whether it was suspended."""
        with self._lock:
            return self._wake()

    def _wake(self) -> bool:
        if self.state != "suspended":
            return False
        self.state = "starting"
        self.revive()
        return True

    def disconnect(
        self, link: Link | None, state: State, refusal: AccelError | None = None
    ) -> "InFlight | None":
        """The context of `link` is lost: move the generation and return what was in flight.

        None when this link is no longer the current one. Nothing in flight is answered here. What
        is kept is not lost with a context that was to get it, and the generation stays.
        """
        with self._lock:
            if self.current_link is not link:
                return None
            self._link = self._filling = None
            self.state = state
            self.refusal = refusal
            if link is not None:
                self.generation += state != "stopped" and not self.kept
                if not self.kept:
                    self._dropped.clear()  # what is made again is told elsewhere
                link.close()
            if link is None and refusal is None:
                return InFlight({}, {}, None)  # nothing was sent; the queue waits for a context
            queued = self._queue if refusal is None else {}
            if self.recorder is not None and link is not None and not self.kept:
                unanswered = [*self._answers.pending, *self._answers.withdrawn]
                lost = [seq for seq in unanswered if seq not in queued]
                before = self.generation - (state != "stopped")
                self.recorder.mark(ContextEnded(before, time.time(), lost))
                for seq in set(self._answers.withdrawn).difference(queued):
                    # Nobody waits for what it has not done: it is not to be done again.
                    self.recorder.mark(
                        Failed(seq, Cancelled.__name__, f"request {seq} was taken back")
                    )
            if refusal is not None:
                self._queue.clear()
            if self.recovery is None and not self.kept:
                self._freed.clear()
                self._answers.withheld.clear()
            self._room.notify_all()
            token = self._leave()
            return self._answers.take_all(token, queued)

    def half_open(self) -> bool:
        """Take messages again: they wait for a context on probation. False if not refused."""
        with self._lock:
            if self.state != "circuit open":
                return False
            self.state = "half-open"
            self.refusal = None
            return True

    def settled(self, deadline: float) -> None:
        """Block until the device runs, is suspended, or has given up.

        Raises:
            TimeoutError: it does neither by `deadline`, in monotonic seconds.
        """
        began, wait_progress = time.monotonic(), WaitProgress(self.late)
        try:
            with self._lock:
                while self.state not in ("running", "suspended", "circuit open", "stopped"):
                    left = deadline - time.monotonic()
                    if left <= 0:
                        raise TimeoutError(f"{self.name} is still {self.state}")
                    if not self._room.wait(min(left, REFRESH_S)):
                        self._lock.release()  # writing may take its time
                        try:
                            self.tell_start(began)
                            wait_progress.look()
                        finally:
                            self._lock.acquire()
        finally:
            wait_progress.end(done=self.state == "running")

    def orphan(self) -> None:
        """Refuse everything: this process is a fork, and the device is its parent's."""
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._link = None
        self.state = "stopped"
        self.refusal = SystemClosed(
            f"{self.name} belongs to the process that opened its system; this one is a "
            "fork of it: open a System() of its own here"
        )
        if self.ipc_memory is not None:
            self.ipc_memory.orphan()
        for reply in self._answers.pending.values():
            reply.detach()
        self._answers.take_all(None).fail(self.refusal)


def _widened(queue: Mapping[int, bytes], sharing: Mapping[int, Iterable[int]]) -> dict[int, bytes]:
    """Return what refuses a buffer that will not be there, with what shares its memory."""
    found = {}
    for seq, data in queue.items():
        _, result, timeout_s, (tag, *fields), spec = decode(data)
        if tag == WITHHOLD:
            [id_, *_], *rest = fields
            ids = [id_, *sharing.get(id_, ())]
            found[seq] = encode([seq, result, timeout_s, [tag, ids, *rest], spec])
    return found
