"""Internal messages of a device, sent between those of its user and kept in no record."""

import threading
from collections.abc import Iterable
from typing import Any

from accel_lab.actor.reply import Reply
from accel_lab.compute.lineage.recorded_message import releasing, withholding
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import DEFAULT_TIMEOUT_S, NO_RESULT, Operation
from accel_lab.compute.message.unwritten import Refusal
from accel_lab.compute.output import cell_origin
from accel_lab.compute.requests.answers import Again, Answers, Settle
from accel_lab.compute.requests.connection import Connection
from accel_lab.compute.requests.handles import DeviceHandles
from accel_lab.compute.requests.send_queue import SendQueue
from accel_lab.compute.wire.codec import encode_entry
from accel_lab.compute.wire.link import Link


class Unrecorded:
    """Sends a device what nobody has asked for.

    Attributes:
        lock: the device's.
    """

    def __init__(
        self,
        connection: Connection,
        lock: threading.RLock,
        answers: Answers,
        queue: SendQueue,
        handles: DeviceHandles,
    ) -> None:
        self._connection = connection
        self.lock = lock
        self._answers = answers
        self._queue = queue
        self._handles = handles

    def announce(self, message: Operation[AccelRef]) -> int:
        """Have the context begin with what makes a buffer, before it is sent; any thread.

        Returns the buffer's id, for `send` or `give_up`; 0 where no context takes messages now.
        """
        if self._connection.is_entered:
            return 0
        with self.lock:
            link = self._connection.link
            if link is None:
                return 0
            id_ = self._handles.new_id()
            try:
                link.send_now(encode_entry(0, id_, None, message, NO_RESULT))
            except BaseException:  # an interrupt
                self.give_up(id_)
                raise
        return id_

    def give_up(self, announced: int) -> None:
        """Have the context forget what is not sent, if it was announced; any thread."""
        if announced:
            self._queue.freed.append(announced)

    def post(self, message: Operation[None], settle: Settle) -> bool:
        """Send a message that is not recorded, if a context takes messages now; any thread.

        Otherwise nothing is sent, and a device that is suspended stays so. Does not block. Only
        `settle` learns of the answer.
        """
        with self.lock:
            link = self._connection.link
            if link is not None:
                self._slip_in(message, link, settle)
            return link is not None

    def withhold_writes(
        self, message: Operation[Any], refused: Reply[Any], link: Link | None
    ) -> None:
        """Have what a message that is not sent should have written refused; the lock is held."""
        ids = [ref.id for ref in message.changes()]
        if ids and refused.error is not None:
            seq = self._queue.number()
            for one in self._answers.not_written(ids, seq, refused.error, refused.origin):
                self._slip_in(withholding(one), link)

    def lifted(self, refusals: Iterable[Refusal]) -> None:
        """Forget what is refused of memory that is gone in the context; any thread."""
        with self.lock:
            pending = self._answers.pending
            last, link = self._queue.last, self._connection.link
            oldest = 0 if link is None else min(list(pending), default=last)
            self._answers.withheld.released(refusals, last, oldest)

    def release_known(self, link: Link | None) -> None:
        """Have the context use what it refuses, where the caller knows why; the lock is held."""
        withheld = self._answers.withheld
        refusals = withheld.known(cell_origin.current())
        if refusals:
            for message in releasing(refusals):
                self._slip_in(message, link)
            # Without a context there may be requests to be run again that are not in there.
            pending = [] if link is None else list(self._answers.pending)
            withheld.released(refusals, self._queue.last, min(pending, default=0))

    def _slip_in(self, message: Any, link: Link | None, settle: Settle | None = None) -> None:
        """Send or queue a message, as it is or as what it is on the wire; the lock is held."""
        idle = not self._answers.pending
        seq = self._queue.number()
        reply = Again()
        reply.library = "upload"  # all of them are
        self._answers.expect(seq, reply, settle)
        data = encode_entry(seq, 0, DEFAULT_TIMEOUT_S, message, NO_RESULT)
        if link is None:
            self._queue.waiting[seq] = data
            return
        try:
            link.send(data, idle=idle)
        except BaseException:  # an interrupt: nothing may wait for the answer
            self._answers.take(seq)
            raise
