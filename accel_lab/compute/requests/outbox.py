"""Sending to one device: check, admit, number, encode, send or queue.

All of it happens in the caller's thread: `send` infers the result, checks the operands, encodes the
message once and appends the bytes to the link.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, Protocol

from msgspec.structs import astuple

from accel_lab.actor.reply import Reply
from accel_lab.compute.lineage.recorder import Kept, Recorder
from accel_lab.compute.lineage.senders import Senders
from accel_lab.compute.machine.deferred_interrupts import UNINTERRUPTED
from accel_lab.compute.message.buffer import Handles, Ref
from accel_lab.compute.message.operation import NO_RESULT, OWN_TIMEOUT, Operation
from accel_lab.compute.message.validation import require_timeout
from accel_lab.compute.output import cell_origin
from accel_lab.compute.requests.answers import Answers, Settle, Told
from accel_lab.compute.requests.cancellation import Cancellation
from accel_lab.compute.requests.connection import Connection
from accel_lab.compute.requests.handles import Answering, DeviceHandles, Make
from accel_lab.compute.requests.message_cache import MessageCache
from accel_lab.compute.requests.message_plan import MessagePlan, MessagePlans
from accel_lab.compute.requests.send_queue import SendQueue
from accel_lab.compute.requests.unrecorded import Unrecorded
from accel_lab.compute.wire.codec import encode_entry
from accel_lab.compute.wire.failure import depends_on
from accel_lab.compute.wire.link import Link
from accel_lab.display.buffer_number import short
from accel_lab.errors import AccelError, InvalidArgument, QueueFull

IN_FLIGHT_LIMIT = 8192
ROOM_AFTER_S = 0.002
LOOKS_EVERY = 64
"""After so many messages those in flight are looked through for results that nobody holds."""


class Recording(Protocol):
    """A block of one thread whose messages are written down instead of sent: `gpu.graph()`."""

    @property
    def is_here(self) -> bool:
        """Whether what this thread sends is recorded."""

    def take(self, message: Operation[Any]) -> Reply[Any] | None:
        """Record a message; None for one that is to be sent as always."""

    def counts(self, field: str, counter: Any, offset: int, at: int = -1) -> None:
        """Have a field of the message recorded last follow the words that a generator takes."""


class Outbox:
    """Sends messages to one device; any thread may call.

    Attributes:
        recording: a block that is recorded, if there is one.
        digests: called with each recorded request and its number, once that is sent.
        watch: called with each message, its number and its answer, once that is sent; what it
            raises, the sender gets.
        bring: returns a message with operands of other devices replaced by copies, if any.
        lock, room: the device's; `room` tells of a change in what waits.
        senders: which cells have sent which requests.

    Parameters:
        limit: so many messages may wait for a context.
        limit_s: so long a caller waits for room.
        probe: tries a device that refuses, if it has rested for long enough; returns at once.
        later: has something called by a thread that may wait.

    A finalizer of the user's runs at any moment, also in the middle of `send`, and may send itself.
    Its message follows then, from `_later`, and before anything that anybody sends afterwards.
    """

    def __init__(
        self,
        connection: Connection,
        lock: threading.RLock,
        room: threading.Condition,
        answers: Answers,
        queue: SendQueue,
        handles: DeviceHandles,
        cancellation: Cancellation,
        unrecorded: Unrecorded,
        recorder: Recorder | None,
        *,
        limit: int,
        limit_s: float,
        probe: Callable[[], None],
        later: Callable[[Callable[[], object]], None],
    ) -> None:
        self.digests: Callable[[int, Reply[Any]], None] | None = None
        self.watch: Callable[[Operation[Any], int, Reply[Any]], None] | None = None
        self.bring: Callable[[Operation[Any]], Operation[Any]] | None = None
        self.recording: Recording | None = None
        self._connection = connection
        self.lock = lock
        self.room = room
        self._answers = answers
        self._queue = queue
        self._handles = handles
        self._cancellation = cancellation
        self._unrecorded = unrecorded
        self._recorder = recorder
        self._limit = limit
        self._limit_s = limit_s
        self._probe = probe
        self._call_later = later
        self._later: deque[Callable[[], None]] = deque()
        self._in_turn = threading.RLock()
        # What a Condition asks of its lock: there is no public way.
        self._sends_here: Callable[[], bool] = attrgetter("_is_owned")(self._in_turn)
        self._sends_waiting = False
        self._plans = MessagePlans()
        self._told: dict[str, Told] = {}
        self.senders = Senders()
        self._sender: cell_origin.Origin | None = None

    @property
    def timeout_s(self) -> float | None:
        """How long a message may execute that has no time of its own."""
        return self._plans.timeout_s

    @timeout_s.setter
    def timeout_s(self, timeout_s: float | None) -> None:
        self._plans = MessagePlans(require_timeout(timeout_s))

    def send(  # noqa: C901, PLR0912, PLR0915 - the hot path
        self,
        message: Operation[Any],
        timeout_s: float | None,
        *,
        nowait: bool = False,
        make: Make | None = None,
        settle: Settle | None = None,
        kept: Kept | None = None,
        recorded: bool = True,
        announced: int = 0,
        made_of: tuple[Any, ...] = (),
        repeats: MessageCache | None = None,
        handle: Answering | None = None,
    ) -> Reply[Any]:
        """Send one message and return the handle of its answer.

        `make` builds another kind of handle. `settle` is called once before the handle is done,
        with None when the context has answered, else with the token of the lost context, whose
        process may still read or write until it is reaped. `kept` is what the message names by
        its place in the arena, for the record. `announced` is what `announce` has
        returned. `made_of` is what was given for the message, to be noted in `repeats`. `handle` is
        that of a message that was to be sent before.
        """
        if self.recording is not None and self.recording.is_here:
            recorded_as = self.recording.take(message)
            if recorded_as is not None:
                return recorded_as
        plan = self._plans[type(message)]
        bring = self.bring
        if bring is not None and message is not (brought := bring(message)):
            message, made_of, repeats = brought, (), None  # the next gets copies of its own
        limit_s = plan.timeout_s if timeout_s is OWN_TIMEOUT else require_timeout(timeout_s)
        connection, lost, before = self._connection, Handles.lost, None
        generation = connection.generation
        if plan.is_flat and make is None:
            repeats = plan.repeats
            if repeats.skip:
                repeats.skip -= 1
            else:
                made_of = astuple(message)
                before = repeats.find(made_of, generation)
        if before is None:
            spec, expected, known, sound = self._handles.check(message, plan)
        else:
            spec, expected, known = before.spec, before.expected, True
            sound = not connection.dropped
        link = connection.link
        is_odd = self._later or connection.is_mine() or (link is not None and link.writer)
        if is_odd and handle is None and not self._is_my_turn():
            handle = self._handles.of_answer(message, plan, spec, make, announced, known=known)
            again = partial(self.send, message, timeout_s, make=make, recorded=recorded)
            return self._send_later(again, handle, settle, kept)
        with self.lock:
            link = connection.link
            if link is None or len(self._answers.pending) >= IN_FLIGHT_LIMIT:
                link = self._admit(nowait=nowait)
            if self._answers.withheld:
                self._unrecorded.release_known(link)
            moved = not sound or connection.generation != generation
            failed = self._handles.first_failed(plan.operands(message)) if moved else None
            if failed is not None:
                _let_go(settle, kept)
                reply, _ = handle or self._handles.of_answer(
                    message, plan, spec, make, announced, known=known
                )
                return self._refused(failed, message, reply, link)
            self._queue.last = seq = self._queue.last + 1
            reply, result = handle or self._handles.of_answer(
                message, plan, spec, make, announced, known=known
            )
            body = message if before is None else before.body
            data = encode_entry(seq, result, limit_s, body, expected)
            if before is None and made_of and known and repeats is not None:
                standing = connection.generation, lost
                repeats.note(made_of, message, (spec, expected), standing)
            reply.library = plan.library
            if plan.results is not None:
                self._learn(reply)
            full = self._enter(
                seq, reply, data, link, settle, kept, recorded=recorded, at_once=announced > 0
            )
        if full is not None or self.digests is not None or not seq % LOOKS_EVERY:
            self._sent(seq, reply, full, recorded=recorded)
        if self.watch is not None and recorded:
            self.watch(message, seq, reply)
        return reply

    def _learn(self, reply: Any) -> None:
        """Have the record know the shapes of several results, where the notebook does."""
        learn = self._answers.learn
        for ref in reply.refs:
            if learn is not None and ref.known:
                learn(ref.id, ref.shape, ref.dtype, 0)

    def send_made(
        self,
        kind: type[Operation[Any]],
        made_of: tuple[Any, ...],
        make: Callable[..., Operation[Any]],
        timeout_s: float | None,
        repeats: MessageCache,
    ) -> Reply[Any]:
        """Send what is made of these objects, or what was made of the very same ones before.

        It is of a type that answers with no buffer, and those before are in `repeats`.
        """
        if repeats.skip or self.recording is not None or self.watch is not None:
            repeats.skip = max(repeats.skip - 1, 0)
            return self.send(make(*made_of), timeout_s)
        plan = self._plans[kind]
        reply = self._again(plan, made_of, timeout_s, repeats)
        if reply is not None:
            return reply
        return self.send(make(*made_of), timeout_s, made_of=made_of, repeats=repeats)

    def _again(
        self,
        plan: MessagePlan,
        made_of: tuple[Any, ...],
        timeout_s: float | None,
        repeats: MessageCache,
    ) -> Reply[Any] | None:
        """Send the message that was made of these very objects, if there was one that holds."""
        connection = self._connection
        link = connection.link
        is_odd = self._later or connection.is_mine() or (link is not None and link.writer)
        if is_odd and not self._is_my_turn():
            return None
        if timeout_s is OWN_TIMEOUT:
            timeout_s = plan.timeout_s
        with self.lock:
            before = repeats.find(made_of, connection.generation)
            link = connection.link
            if before is None or link is None or len(self._answers.pending) >= IN_FLIGHT_LIMIT:
                return None
            if self._answers.withheld:
                self._unrecorded.release_known(link)
            self._queue.last = seq = self._queue.last + 1
            reply: Reply[Any] = Reply(self._handles.pump, cell_origin.current())
            reply.library = plan.library
            data = encode_entry(seq, 0, timeout_s, before.body, before.expected)
            full = self._enter(seq, reply, data, link)
        if full is not None or self.digests is not None or not seq % LOOKS_EVERY:
            self._sent(seq, reply, full)
        return reply

    def tell(self, message: Operation[Any], *, nowait: bool) -> None:
        """Send one message whose answer nobody waits for; only a failure makes a handle of it."""
        if self.recording is not None or self.watch is not None:
            self.send(message, OWN_TIMEOUT, nowait=nowait)
            return
        plan = self._plans[type(message)]
        connection = self._connection
        link = connection.link
        is_odd = self._later or connection.is_mine() or (link is not None and link.writer)
        if (is_odd and not self._is_my_turn()) or (
            not plan.bare
            and (
                plan.has_out
                or plan.answers_buffer
                or plan.handle is not None
                or not self._handles.is_plain(message, plan)
            )
        ):
            self.send(message, OWN_TIMEOUT, nowait=nowait)
            return
        told, here = self._told.get(plan.library), cell_origin.current()
        if told is None or told.origin is not here:
            told = self._told[plan.library] = Told(self._handles.pump, here, plan.library)
        with self.lock:
            link = connection.link
            if link is None or len(self._answers.pending) >= IN_FLIGHT_LIMIT:
                link = self._admit(nowait=nowait)
            if self._answers.withheld:
                self._unrecorded.release_known(link)
            self._queue.last = seq = self._queue.last + 1
            data = encode_entry(seq, 0, plan.timeout_s, message, NO_RESULT)
            full = self._enter(seq, told, data, link)
        if full is not None or not seq % LOOKS_EVERY:
            self._sent(seq, told, full, recorded=False)

    def _enter(
        self,
        seq: int,
        reply: Reply[Any],
        data: bytes,
        link: Link | None,
        settle: Settle | None = None,
        kept: Kept | None = None,
        *,
        recorded: bool = True,
        at_once: bool = False,
    ) -> Link | None:
        """Send or queue an encoded message, and record it; the lock is held.

        Returns the link if that completed a batch of it, and it is time for it to `collect`.
        """
        answers, recorder = self._answers, self._recorder
        idle = not answers.pending
        batched = False
        try:
            if settle is None and reply.library is answers.library:
                answers.pending[seq] = reply  # the hot path: `expect`, without the call
            else:
                answers.expect(seq, reply, settle)
            if recorder is not None and recorded:
                if recorder.origin is not reply.origin:
                    recorder.sent_by(reply.origin, time.time())
                    self._sent_by(seq, reply.origin)
                recorder.append(data)
            else:
                self._sent_unrecorded_by(seq, reply.origin)
            if link is None:
                self._queue.waiting[seq] = data
            elif at_once:
                link.send_now(data)
            else:
                batched = link.send(data, idle=idle)
        except BaseException:
            self._undo(seq, data, link)
            raise
        if recorder is not None and recorded:
            if recorder.resting:
                recorder.rouse()
            if kept is not None:
                recorder.keep(seq, kept)
        return link if batched else None

    def _sent_by(self, seq: int, origin: cell_origin.Origin) -> None:
        """Note that requests from this one on are this cell's; the lock is held."""
        if self._sender is not origin:
            self._sender = origin
            self.senders.begin(seq, origin.cell)
            link = self._connection.link
            if self._queue.cells is not None and link is not None:
                self._queue.tell_cell(link, seq)

    def _sent_unrecorded_by(self, seq: int, origin: cell_origin.Origin | None) -> None:
        """Note the same of a request that the record does not have; the lock is held.

        What is sent for no cell, as digests of results, follows what a cell has sent.
        """
        if origin is not None and self._sender is not origin:
            self._sent_by(seq, origin)
            if self._recorder is not None:
                self._recorder.origin = None  # the next that is recorded says again whose it is

    # For messages of which other devices have a part, too; `Member` encodes those.

    def make_room(self, *, nowait: bool) -> None:
        """Wait until a message may be sent or queued.

        Raises:
            AccelError: as `send`.
            InvalidArgument: this thread is in the middle of sending another message, or records a
                graph.
        """
        if self.recording is not None and self.recording.is_here:
            raise InvalidArgument(
                "a message to several devices, as a collective operation, cannot be in a graph of "
                "one of them; record what comes before it and what comes behind it as two graphs, "
                "and send it between their launches"
            )
        if not self._is_my_turn():
            raise InvalidArgument(
                "a finalizer (__del__) cannot send a message to several devices while its thread "
                "sends another one; send it elsewhere"
            )
        with self.lock:
            if not self.has_room():
                self._admit(nowait=nowait)

    def has_room(self) -> bool:
        """Whether a message may be sent or queued now; the lock is held."""
        connection = self._connection
        if connection.refusal is not None or connection.state == "suspended":
            return False
        if connection.link is None:
            return len(self._queue.waiting) < self._limit
        return len(self._answers.pending) < IN_FLIGHT_LIMIT

    @property
    def handles(self) -> DeviceHandles:
        """What makes the device's handles, and checks them."""
        return self._handles

    def let_go(self) -> None:
        """Give up the buffers of results that nobody holds, though they are not answered yet."""
        self._answers.let_go_all()

    def plan(self, kind: type[Operation[Any]]) -> MessagePlan:
        """Return what is the same for all messages of a type.

        Raises:
            InvalidArgument: they have a part on each of several devices.
        """
        return self._plans[kind]

    def plan_of_part(self, kind: type[Operation[Any]]) -> MessagePlan:
        """Return the plan of messages of which several devices have a part.

        Raises:
            InvalidArgument: they are for one device.
        """
        return self._plans.of_part(kind)

    def enter(self, seq: int, part: Reply[Any], data: bytes) -> None:
        """Send or queue a message that is encoded, and record it; the lock is held."""
        self._enter(seq, part, data, self._connection.link)

    def _is_my_turn(self) -> bool:
        """Whether a message may be sent now; what finalizers had to put off is sent before it.

        Not in the middle of another one, where a finalizer sends.
        """
        connection = self._connection
        link = connection.link
        if connection.is_mine() or (link is not None and link.writer and link.is_written_here):
            return False
        return not self._later or self._send_waiting()

    @property
    def is_entered(self) -> bool:
        """Whether this thread sends what finalizers had to put off."""
        return self._sends_here()

    def _send_later(
        self,
        send: Callable[..., Reply[Any]],
        handle: Answering,
        settle: Settle | None,
        kept: Kept | None,
    ) -> Reply[Any]:
        """Put a message off until this thread is done with another; return its handle."""
        reply, _ = handle

        def send_now() -> None:
            try:
                send(handle=handle, settle=settle, kept=kept)
            except AccelError as error:
                _let_go(settle, kept)
                reply.reject(error)

        self._later.append(send_now)
        self._call_later(self._send_waiting)
        return reply

    def _send_waiting(self) -> bool:
        """Send what finalizers had to put off, in their order.

        False where another finalizer comes in the middle of that.
        """
        with self._in_turn:
            if self._sends_waiting:
                return False
            self._sends_waiting = True
            try:
                while self._later:
                    try:
                        self._later[0]()
                    finally:  # not before: whoever sends meanwhile has to see that it comes first
                        self._later.popleft()
            finally:
                self._sends_waiting = False
        return True

    def _undo(self, seq: int, data: bytes, link: Link | None) -> None:
        """Take back what was interrupted while it was entered: the caller has no handle of it.

        The lock is held. Another interrupt waits until nothing can be left behind.
        """
        UNINTERRUPTED.begin()
        try:
            if link is not None and not link.took(data):
                self._cancellation.forget(seq)
                return
            self.lock.release()  # a context that does not read may hold this up
            try:
                self._cancellation.undo(seq)
            finally:
                self.lock.acquire()
        finally:
            UNINTERRUPTED.end()

    def _sent(
        self, seq: int, reply: Reply[Any], full: Link | None, *, recorded: bool = True
    ) -> None:
        """Do what follows a message; no lock is held."""
        if full is not None:
            full.collect()
        if not seq % LOOKS_EVERY:
            self._answers.let_go(seq)
        if self.digests is not None and recorded:
            self.digests(seq, reply)

    def _admit(self, *, nowait: bool) -> Link | None:
        """Wait, with the lock held, until a message may be sent or queued."""
        connection = self._connection
        deadline = time.monotonic() + self._limit_s
        may_wait: bool | None = None
        while True:
            if connection.refusal is not None:
                self.lock.release()
                try:
                    self._probe()
                finally:
                    self.lock.acquire()
                if connection.refusal is not None:
                    raise connection.refusal.copy()
            connection.wake()
            link = connection.link
            depth, limit = (
                (len(self._queue.waiting), self._limit)
                if link is None
                else (len(self._answers.pending), IN_FLIGHT_LIMIT)
            )
            if depth < limit:
                return link
            left = deadline - time.monotonic()
            if may_wait is None and not nowait:
                may_wait = self._may_wait()
                continue  # there may be room by now
            if not may_wait or left <= 0:
                text = f"{connection.name} has {depth} messages waiting and takes {limit}"
                raise QueueFull(text)
            if link is None:
                self.room.wait(left)
            else:
                oldest = self._answers.oldest()
                if oldest is None:
                    continue
                self.lock.release()
                try:
                    link.wait(oldest, min(left, ROOM_AFTER_S))
                finally:
                    self.lock.acquire()

    def _may_wait(self) -> bool:
        """Whether room can come while this thread waits; the lock is held, for this message."""
        self.lock.release()
        try:
            return not self._connection.is_waited_for
        finally:
            self.lock.acquire()

    def _refused(
        self, failed: Ref[Any], message: Operation[Any], reply: Reply[Any], link: Link | None
    ) -> Reply[Any]:
        """Fail an answer because this operand was never made; the lock is held."""
        first = failed.error
        assert first is not None
        error = depends_on(first, f"operand {short(failed.id)} was never made")
        error.first = (first,)
        error.root = first.root or failed.id
        reply.reject(error)
        self._unrecorded.withhold_writes(message, reply, link)
        return reply

    def number(self) -> int:
        """Return the number of a request that the record does not have."""
        with self.lock:
            return self._queue.number()

    def flush(self) -> None:
        """Send what is held back."""
        link = self._connection.link
        if link is not None:
            link.flush()


def _let_go(settle: Settle | None, kept: Kept | None) -> None:
    """Let go of what a message names that is not sent."""
    if settle is not None:
        settle(None)
    if kept is not None:
        kept.done()
