"""The requests of one device: numbered, encoded, queued, sent, answered once.

`send` does all of its work in the caller's thread: it infers the result, checks the operands,
encodes the message once and appends the bytes to the link. Answers arrive in whichever thread
reads the wire.
"""

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from msgspec.structs import astuple

from accel_lab.actor.reply import FAILED, Reply
from accel_lab.compute.events.tree import State
from accel_lab.compute.lineage.recorder import Kept, Recorder
from accel_lab.compute.message.buffer import FREED, AccelRef, Handles, Owner, RunRef
from accel_lab.compute.message.operation import (
    NO_RESULT,
    OWN_TIMEOUT,
    Operation,
    Spec,
    inferred,
    no_operand,
)
from accel_lab.compute.message.support import check
from accel_lab.compute.message.validation import require_timeout
from accel_lab.compute.output import cell_origin
from accel_lab.compute.recovery.recovery import Recovery
from accel_lab.compute.recovery.result_digests import ResultDigests
from accel_lab.compute.requests.answers import Answers, Learn, Settle, Told
from accel_lab.compute.requests.message_cache import MessageCache
from accel_lab.compute.requests.message_plan import MessagePlan, MessagePlans, require_options
from accel_lab.compute.requests.stale import say_why, stale
from accel_lab.compute.requests.stop_button import StopButton
from accel_lab.compute.requests.unrecorded import Asides
from accel_lab.compute.requests.waiting import Supervisor
from accel_lab.compute.residency.owners import name_owners
from accel_lab.compute.transfer.ipc_memory import IpcMemory
from accel_lab.compute.wire.codec import encode_entry
from accel_lab.compute.wire.failure import depends_on
from accel_lab.compute.wire.link import Link
from accel_lab.errors import (
    AccelError,
    Cancelled,
    CircuitOpen,
    InvalidArgument,
    OutOfMemory,
    QueueFull,
    StaleRef,
    SystemClosed,
)

IN_FLIGHT_LIMIT = 8192
ROOM_AFTER_S = 0.002

Make = Callable[["Requests", int], Reply[Any]]


class Requests(Asides):
    """What one device was asked; the pump of its replies."""

    def __init__(
        self,
        name: str,
        supervisor: Supervisor,
        support: Mapping[str, frozenset[str]],
        *,
        queue_limit: int,
        queue_timeout_s: float,
        recorder: Recorder | None = None,
    ) -> None:
        self.name = name
        self.recorder = recorder
        self.generation = 1
        self.state: State = "starting"
        # Whoever sends holds the device; what runs on its behalf must not keep it open.
        self._device: Callable[[], Any] = lambda: None
        self.refusal: AccelError | None = None
        self._supervisor = supervisor
        self._support = support
        self._plans = MessagePlans()
        self._told: dict[str, Told] = {}
        self._queue_limit = queue_limit
        self._queue_timeout_s = queue_timeout_s
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._seq = 0
        self._ids = 0
        self._answers = Answers(self._adopt, supervisor.noticed, recorder, self._complete)
        self.received = self._answers.received
        self._queue: dict[int, bytes] = {}
        self._freed: deque[int] = deque()
        self._link: Link | None = None
        self._filling: Link | None = None
        self._token: Hashable | None = None
        self.recovery: Recovery | None = None
        self.digests: ResultDigests | None = None
        self.ipc_memory: IpcMemory | None = None
        self._standbys = {}
        self.stop_button = StopButton(self, supervisor)
        self._dropped: dict[int, str] = {}
        self.kept = False
        """Whether what the device holds is kept on the host, until a context has it again."""
        self.revive: Callable[[], None] = _nothing
        """Have a suspended device start a context; any thread, returns at once."""

    @property
    def device(self) -> Any:
        """The device whose requests these are."""
        return self._device()

    def serve(self, device: Any) -> None:
        """Name the device whose requests these are."""
        self._device = weakref.ref(device)

    def send(  # noqa: C901, PLR0912, PLR0915 - the hot path, in one piece
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
    ) -> Reply[Any]:
        """Send one message and return the handle of its answer.

        `make` builds another kind of handle. `settle` is called once before the handle is done,
        with None when the context has answered, else with the token of the lost context, whose
        process may still read or write until it is reaped. `kept` is what the message names by
        its place in the arena, for the record. `announced` is what `announce` has
        returned. `made_of` is what was given for the message, to be noted in `repeats`.
        """
        plan = self._plans[type(message)]
        if timeout_s is OWN_TIMEOUT:
            timeout_s = plan.timeout_s
        elif timeout_s is not None:
            timeout_s = require_timeout(timeout_s)
        spec: Spec | None = None
        expected: Spec | None = None
        known, sound = True, not self._dropped
        device, generation, lost = self._device(), self.generation, Handles.lost
        before = None
        if plan.is_flat and make is None:
            repeats = plan.repeats
            if repeats.skip:
                repeats.skip -= 1
            else:
                made_of = astuple(message)
                before = repeats.find(made_of, generation)
        if before is not None:
            spec, expected = before.spec, before.expected
        else:
            if plan.options:
                require_options(message, plan.options)
            try:
                operands = plan.operands(message)
                for ref in operands:
                    if ref.device is not device:
                        raise self._foreign(ref, message)
                    if ref.generation != generation or ref._state == FAILED:  # noqa: SLF001 - hot
                        sound = False
                    if not ref.known:
                        known = False
            except (AttributeError, TypeError):
                raise no_operand(message) from None
            if known:
                spec = inferred(message)
                expected = spec or NO_RESULT
                if plan.listed:
                    dtype = operands[0].dtype if operands else message.dtype_key
                    if dtype not in plan.supported:
                        check(self._support, message)
                        plan.supported.add(dtype)
        with self._lock:
            link = self._link
            if link is None or len(self._answers.pending) >= IN_FLIGHT_LIMIT:
                link = self._admit(nowait=nowait)
            if self._answers.withheld:
                self._release_known(link)
            if not sound or self.generation != generation:
                failed = self._first_failed(plan.operands(message))
                if failed is not None:
                    if settle is not None:
                        settle(None)
                    if kept is not None:
                        kept.done()
                    reply, _ = self._handle(message, plan, spec, make, announced, known=known)
                    refused = self._refused(failed, reply)
                    self._not_written(message, refused, link)
                    return refused
            self._seq = seq = self._seq + 1
            reply, result = self._handle(message, plan, spec, make, announced, known=known)
            body = message if before is None else before.body
            data = encode_entry(seq, result, timeout_s, body, expected)
            if before is None and made_of and known and repeats is not None:
                repeats.note(made_of, message, (spec, expected), (self.generation, lost))
            reply.library = plan.library
            batched = self._enter(
                seq, reply, data, link, settle, recorded=recorded, at_once=announced > 0
            )
            if kept is not None and recorded and self.recorder is not None:
                self.recorder.keep(seq, kept)
        if batched and link is not None:
            link.collect()
        if self.digests is not None and recorded:
            self.digests(seq, reply)
        return reply

    def follow_results(self, learn: Learn) -> None:
        """Have `learn` called with what only the context can tell of results."""
        self._answers.learn = learn

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
        if repeats.skip:
            repeats.skip -= 1
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
        if timeout_s is OWN_TIMEOUT:
            timeout_s = plan.timeout_s
        with self._lock:
            before = repeats.find(made_of, self.generation)
            link = self._link
            if before is None or link is None or len(self._answers.pending) >= IN_FLIGHT_LIMIT:
                return None
            if self._answers.withheld:
                self._release_known(link)
            self._seq = seq = self._seq + 1
            reply: Reply[Any] = Reply(self, cell_origin.current())
            reply.library = plan.library
            data = encode_entry(seq, 0, timeout_s, before.body, before.expected)
            batched = self._enter(seq, reply, data, link)
        if batched:
            link.collect()
        if self.digests is not None:
            self.digests(seq, reply)
        return reply

    def tell(self, message: Operation[Any], *, nowait: bool) -> None:
        """Send one message whose answer nobody waits for; only a failure makes a handle of it."""
        plan = self._plans[type(message)]
        if not plan.bare and (
            plan.has_out or plan.answers_buffer or not self._ready(plan, message)
        ):
            self.send(message, OWN_TIMEOUT, nowait=nowait)
            return
        told, here = self._told.get(plan.library), cell_origin.current()
        if told is None or told.origin is not here:
            told = self._told[plan.library] = Told(self, here, plan.library)
        with self._lock:
            link = self._link
            if link is None or len(self._answers.pending) >= IN_FLIGHT_LIMIT:
                link = self._admit(nowait=nowait)
            if self._answers.withheld:
                self._release_known(link)
            self._seq = seq = self._seq + 1
            data = encode_entry(seq, 0, plan.timeout_s, message, NO_RESULT)
            batched = self._enter(seq, told, data, link)
        if batched and link is not None:
            link.collect()

    def _enter(
        self,
        seq: int,
        reply: Reply[Any],
        data: bytes,
        link: Link | None,
        settle: Settle | None = None,
        *,
        recorded: bool = True,
        at_once: bool = False,
    ) -> bool:
        """Send or queue an encoded message, and record it; the lock is held.

        Returns whether it has completed a batch, and it is time for the link to `collect`.
        """
        answers = self._answers
        idle = not answers.pending
        if settle is None and reply.library is answers.library:
            answers.pending[seq] = reply  # the hot path: `expect`, without the call
        else:
            answers.expect(seq, reply, settle)
        batched = False
        try:
            if link is None:
                self._queue[seq] = data
            elif at_once:
                link.send_now(data)
            else:
                batched = link.send(data, idle=idle)
        except BaseException:
            # An interrupt: the caller has no handle, so nothing may wait for the answer. What
            # was sent by then may not run on, and keeps what it reads and writes till it is over.
            self._lock.release()  # a context that does not read may hold this up
            try:
                self._unqueue(seq)
                self._supervisor.cancel([seq])
                self._withdraw(seq, Cancelled(f"request {seq} was taken back"))
            finally:
                self._lock.acquire()
            raise
        recorder = self.recorder
        if recorder is not None and recorded:
            if recorder.origin is not reply.origin:
                recorder.sent_by(reply.origin, time.time())
            recorder.append(data)
            if recorder.resting:
                recorder.rouse()
        return batched

    def _ready(self, plan: MessagePlan, message: Operation[Any]) -> bool:
        """Whether all is known and well: the shapes, the operands, the backend's support."""
        device, generation = self._device(), self.generation
        operands: tuple[Any, ...] = plan.operands(message)
        for ref in operands:
            if (
                not isinstance(ref, AccelRef)
                or ref.device is not device
                or ref.generation != generation
                or ref.failed
                or not ref.known
            ):
                return False
        if plan.listed and message.dtype_key not in plan.supported:
            return False
        inferred(message)
        return True

    @property
    def timeout_s(self) -> float | None:
        """How long a message may execute that has no time of its own."""
        return self._plans.timeout_s

    @timeout_s.setter
    def timeout_s(self, timeout_s: float | None) -> None:
        self._plans = MessagePlans(require_timeout(timeout_s))

    def _handle(
        self,
        message: Any,
        plan: MessagePlan,
        spec: Spec | None,
        make: Make | None,
        announced: int = 0,
        *,
        known: bool,
    ) -> tuple[Reply[Any], int]:
        """Return the handle of the answer and the result's id on the wire."""
        here = cell_origin.current()
        if plan.has_out and message.out is not None:
            out = message.out
            shape, dtype = (out.shape, out.dtype) if out.known else (None, None)
            alias = AccelRef(self, here, self.device, out.owner, self.generation, shape, dtype)
            return alias, 0 if out.known else -out.id
        if make is None and spec is None and (known or not plan.answers_buffer):
            return Reply(self, here), 0
        id_ = announced
        if not id_:
            self._ids = id_ = self._ids + 1
        if make is not None:
            made = make(self, id_)
            return made, id_ if isinstance(made, AccelRef) else 0
        owner = Owner(id_, self._freed)
        if spec is None:
            return AccelRef(self, here, self.device, owner, self.generation, None, None), -id_
        return AccelRef(
            self, here, self.device, owner, self.generation, spec.shape, spec.dtype
        ), id_

    def run_ref(self, id_: int) -> RunRef:
        """Build the handle of an answer that may turn out to be a buffer."""
        owner = Owner(id_, self._freed)
        return RunRef(self, cell_origin.current(), self.device, owner, self.generation, None, None)

    def buffer_ref(self, id_: int, shape: tuple[int, ...], dtype: str) -> AccelRef:
        """Build the handle of a buffer whose shape is known."""
        owner = Owner(id_, self._freed)
        here = cell_origin.current()
        return AccelRef(self, here, self.device, owner, self.generation, shape, dtype)

    def _admit(self, *, nowait: bool) -> Link | None:
        """Wait, with the lock held, until a message may be sent or queued."""
        deadline = time.monotonic() + self._queue_timeout_s
        while True:
            if self.refusal is not None:
                self._lock.release()
                try:
                    self._supervisor.wake()
                finally:
                    self._lock.acquire()
                if self.refusal is not None:
                    raise self.refusal.copy()
            self._wake()
            link = self._link
            depth, limit = (
                (len(self._queue), self._queue_limit)
                if link is None
                else (len(self._answers.pending), IN_FLIGHT_LIMIT)
            )
            if depth < limit:
                return link
            left = deadline - time.monotonic()
            if nowait or left <= 0:
                text = f"{self.name} has {depth} messages waiting and takes {limit}"
                raise QueueFull(text)
            if link is None:
                self._room.wait(left)
            else:
                oldest = self._answers.oldest()
                if oldest is None:
                    continue
                self._lock.release()
                try:
                    link.wait(oldest, min(left, ROOM_AFTER_S))
                finally:
                    self._lock.acquire()

    def _refused(self, failed: AccelRef, reply: Reply[Any]) -> Reply[Any]:
        first = failed.error
        assert first is not None
        error = depends_on(first, f"operand {failed.id} was never made")
        error.first = (first,)
        error.root = first.root or failed.id
        reply.reject(error)
        return reply

    def _adopt(self, reply: Reply[Any], id_: int, shape: tuple[int, ...], dtype: str) -> AccelRef:
        """Make the handle of a buffer that came inside an answer."""
        generation = reply.generation if isinstance(reply, AccelRef) else self.generation
        owner = Owner(id_, self._freed)
        ref = AccelRef(self, reply.origin, self.device, owner, generation, shape, dtype)
        ref.resolve()
        return ref

    def _first_failed(self, operands: tuple[AccelRef, ...]) -> AccelRef | None:
        """Return an operand that was never made; raises StaleRef for one that is no more."""
        for ref in operands:
            if ref.failed:
                return ref
            if not self.holds(ref):
                raise stale(ref, self.name, self.generation, self._dropped, self.recovery)
        return None

    def holds(self, ref: AccelRef) -> bool:
        """Whether a buffer is, or is about to be, in the current generation; never blocks."""
        if ref.generation == self.generation:
            return ref.id not in self._dropped
        recovery = self.recovery
        return recovery is not None and ref.generation != FREED and ref.id not in recovery.lost

    def drop(self, why: Mapping[int, str]) -> None:
        """Give buffers up that could not be kept while the device is suspended."""
        self._dropped.update(why)
        Handles.lost += len(why)  # what is sent again and again is looked at again

    def _complete(self, error: OutOfMemory | StaleRef) -> None:
        device = self.device
        if isinstance(error, StaleRef):
            if error.buffer > self.ids_before:
                return  # no loss has cost it
            say_why(error, self.name, self.generation, self.recovery)
        elif device is not None:
            name_owners(error, device)

    def _foreign(self, ref: Any, message: Operation[Any]) -> InvalidArgument:
        if not isinstance(ref, AccelRef):
            return no_operand(message)
        where = f"{ref!r} is not on {self.name}"
        if ref.device.state == "stopped":
            return InvalidArgument(
                f"{where}, but of a system that is closed: put or compute it again"
            )
        if ref.device.name == self.name:
            where = f"{ref!r} is of another system than this {self.name}"
        return InvalidArgument(f"{where}: bring it there with get() and put()")

    def why_lost(self, ref: AccelRef) -> str:
        """Return why a buffer was not made again after the last loss; empty where none knows."""
        return "" if self.recovery is None else self.recovery.lost.get(ref.id, "")

    @property
    def in_flight(self) -> int:
        """Messages sent and not answered."""
        answers = self._answers
        return len(answers.pending) + len(answers.withdrawn) - len(self._queue)

    def first_unanswered(self) -> int | None:
        """Return the number of the oldest request without an answer; any thread."""
        return min((seq for seq, _ in self.unanswered()), default=None)

    def by_library(self) -> dict[str, int]:
        """Count what is in flight for each library."""
        return self._answers.by_library()

    @property
    def queued(self) -> int:
        """Messages that wait for a context."""
        return len(self._queue)

    def origin_of(self, seq: int) -> cell_origin.Origin | None:
        """Return the cell that sent a request, or the one that runs.

        None for what is run again to make a buffer: it has printed what it had to say before.
        """
        reply = self._answers.pending.get(seq)
        return cell_origin.current() if reply is None else reply.origin

    def flush(self) -> None:
        """Send what is held back."""
        link = self._link
        if link is not None:
            link.flush()


def _nothing() -> None:
    pass


def closed(name: str, again: str = "open another with System()") -> SystemClosed:
    """Say that a device's system is closed, and how to have another."""
    return SystemClosed(f"the system of {name} is closed: {again}")


def open_circuit(name: str, cause: AccelError | None, reset: str = "gpu.reset()") -> CircuitOpen:
    """Say that a device does not restart any more, and what to do.

    Parameters:
        reset: the code that tries it again.
    """
    error = CircuitOpen(
        f"{name} lost its context too often and rests; call {reset} when the cause is mended (the "
        f"last one: {cause})"
    )
    error.remedy = f"Mend the cause, then {reset}."
    error.__cause__ = cause
    return error
