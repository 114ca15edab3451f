"""Cancel the requests of one device, queued or running, and say which were cancelled.

A request is answered with `Cancelled` at once, wherever it is. One that a context has got may still
run: until that says so, what the request reads and writes stays; see `Withdrawn`.
"""

import threading
from collections.abc import Callable
from typing import Any

from accel_lab.actor.reply import Reply
from accel_lab.compute.groups.part import Part
from accel_lab.compute.lineage.markers import Failed
from accel_lab.compute.lineage.recorder import Recorder
from accel_lab.compute.machine.deferred_interrupts import UNINTERRUPTED
from accel_lab.compute.message.buffer import Ref
from accel_lab.compute.message.builtin import TakeBack
from accel_lab.compute.message.operation import NO_RESULT
from accel_lab.compute.message.results_reply import ResultsReply
from accel_lab.compute.output import cell_origin
from accel_lab.compute.requests.answers import Answers
from accel_lab.compute.requests.connection import Connection
from accel_lab.compute.requests.send_queue import SendQueue
from accel_lab.compute.wire.codec import encode_entry
from accel_lab.errors import Cancelled

_OF_BUFFERS = Ref, ResultsReply


class Cancellation:
    """Takes requests of one device back; any thread may call.

    Attributes:
        lock, room: the device's.

    Parameters:
        skip: asks the context not to begin these requests; returns at once.
    """

    def __init__(
        self,
        connection: Connection,
        lock: threading.RLock,
        room: threading.Condition,
        answers: Answers,
        queue: SendQueue,
        recorder: Recorder | None,
        skip: Callable[[list[int]], None],
    ) -> None:
        self._connection = connection
        self.lock = lock
        self.room = room
        self._answers = answers
        self._queue = queue
        self._recorder = recorder
        self._skip = skip

    def cancel(self, reply: Reply[Any]) -> None:
        """Take one request back, and answer it now."""
        UNINTERRUPTED.begin()  # one that is half taken back would be in flight for ever
        try:
            seqs = [seq for seq, other in self.unanswered() if _answers(other, reply)]
            self._cancel_parts(seqs)
            self._cancel(seqs)
            for seq in seqs:
                self._withdraw(seq, Cancelled(f"request {seq} was cancelled"))
        finally:
            UNINTERRUPTED.end()

    def cancel_of(self, cell: object) -> list[int]:
        """Take back what a cell has sent and is not done; return the numbers of the requests."""
        return self._cancel_each(lambda reply: reply.origin is cell)

    def cancel_all(self) -> list[int]:
        """Take back whatever is not done, whoever sent it; return the numbers of the requests."""
        return self._cancel_each(lambda _: True)

    def _cancel_each(self, meant: Callable[[Reply[Any]], bool]) -> list[int]:
        UNINTERRUPTED.begin()
        try:
            seqs = [seq for seq, reply in self.unanswered() if meant(reply)]
            self._cancel_parts(seqs)
            self._cancel(seqs)
            return seqs
        finally:
            UNINTERRUPTED.end()

    def forget(self, seq: int) -> None:
        """Take a request out that was interrupted before it was sent; the lock is held."""
        if self._answers.take(seq) is not None:
            self._record(seq, _taken_back(seq))

    def undo(self, seq: int) -> None:
        """Take back what was interrupted while it was sent, so that nobody has its handle.

        What was sent by then may not run on, and keeps what it reads and writes till it is over.
        """
        self._unqueue(seq)
        self._skip([seq])
        self._withdraw(seq, Cancelled(f"request {seq} was cancelled"))

    def unanswered(self) -> list[tuple[int, Reply[Any]]]:
        """Return the requests without an answer and their numbers."""
        recovery = self._connection.recovery
        held = {} if recovery is None else recovery.held
        return [*held.items(), *self._answers.pending.copy().items()]

    def first_pending(self, seqs: list[int]) -> Reply[Any] | None:
        """Return the first of these that a context has to answer; None when there is none."""
        pending = self._answers.pending
        return next((one for seq in seqs if (one := pending.get(seq)) is not None), None)

    def unfinished(self) -> int:
        """Count what is not done, answers that have come apart; does not block."""
        link = self._connection.current_link
        if link is not None:
            link.drain()
        return len({seq for seq, _ in self.unanswered()}) + len(self._answers.withdrawn)

    def tell_closed(self, ended: int) -> None:
        """Say how many requests closing the system has ended."""
        name = self._connection.name
        what = f"{ended} requests to {name} did not finish"
        if ended == 1:
            what = f"1 request to {name} did not finish"
        cell_origin.current().say(f"closed; {what}.")

    def _cancel_parts(self, seqs: list[int]) -> None:
        """Take back, on all their devices, the messages of which some of these are a part."""
        for seq in seqs:
            reply = self._answers.pending.get(seq)
            if isinstance(reply, Part):
                reply.cancel()

    def _cancel(self, seqs: list[int]) -> None:
        """Answer what is held for a rebuild or waits; ask the context not to begin the rest."""
        if not seqs:
            return
        recovery = self._connection.recovery
        if recovery is not None:
            recovery.cancel(seqs, _taken_back)
        for seq in seqs:
            self._unqueue(seq)
        link = self._connection.current_link
        if link is not None:  # also one that is held, and runs what it has
            link.flush()
            self._skip(seqs)

    def _unqueue(self, seq: int) -> None:
        """Take one request back that has not been sent."""
        error = _taken_back(seq)
        with self.lock:
            reply = self._answers.pending.get(seq)
            if reply is None or seq not in self._queue.waiting:
                return
            if isinstance(reply, _OF_BUFFERS):  # what needs it must learn that it is never made
                refs = reply.refs if isinstance(reply, ResultsReply) else [reply]
                ids = [ref.id for ref in refs]
                instead = TakeBack(reply.id, ids, reply.library == "upload")
                self._queue.waiting[seq] = encode_entry(seq, 0, None, instead, NO_RESULT)
            else:
                del self._queue.waiting[seq]
                self.room.notify()
        if isinstance(reply, _OF_BUFFERS):
            self._record(seq, error)
            self._withdraw(seq, error)
        elif self._answers.take(seq) is not None:
            self._record(seq, error)
            reply.reject(error)

    def _withdraw(self, seq: int, error: Cancelled) -> None:
        """Answer a request that the context has, or will get something in place of."""
        with self.lock:
            found = self._answers.withdraw(seq)
        if found is None:
            return
        reply, stand_in = found
        if isinstance(reply, _OF_BUFFERS) and reply.id:
            self._answers.never_made(reply.id, error)
        over = reply.take_back(error)
        if over is not None:
            stand_in.hold(over)

    def _record(self, seq: int, error: Cancelled) -> None:
        if self._recorder is not None:
            self._recorder.mark(Failed.of(seq, error))


def _answers(request: Reply[Any], reply: Reply[Any]) -> bool:
    """Whether a reply, or one of several results, is answered by what answers a request."""
    if request is reply:
        return True
    return isinstance(request, ResultsReply | Part) and request.answers(reply)


def _taken_back(seq: int) -> Cancelled:
    return Cancelled(f"request {seq} was cancelled before it was sent")
