"""The requests of one device: numbered, encoded, queued, in flight, answered once.

`send` does all of its work in the caller's thread: it infers the result, checks the operands,
encodes the message once and appends the bytes to the link. Answers arrive in whichever thread
reads the wire. When a context is lost the generation moves first; only then does any request
learn of it.
"""

import asyncio
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Protocol

from accel_lab.actor.reply import FAILED, Reply
from accel_lab.compute import origin, urgency
from accel_lab.compute.buffer import AccelRef, Owner, RunRef
from accel_lab.compute.failure import unpack
from accel_lab.compute.link import Link
from accel_lab.compute.operation import Operation, Spec, answers_buffer, operands_of
from accel_lab.compute.support import check
from accel_lab.compute.transfer import Free
from accel_lab.compute.tree import State
from accel_lab.compute.user_code import ResultUnpickler
from accel_lab.compute.wire import Answer, Done, Failure, Report, Shaped, encode_entry
from accel_lab.errors import (
    AccelError,
    Cancelled,
    CircuitOpen,
    DependencyFailed,
    InvalidArgument,
    QueueFull,
    StaleRef,
    SystemClosed,
    UserCodeError,
)

IN_FLIGHT_LIMIT = 8192
ROOTS_KEPT = 1024
SECOND_INTERRUPT_S = 3.0

Settle = Callable[[Hashable | None], None]
Make = Callable[["Requests", int], Reply[Any]]


class Keeper(Protocol):
    """Who looks after the device's context; every call returns at once."""

    def noticed(self, link: Link, report: Report) -> None:
        """A report that is no answer arrived; called in the thread that reads the wire."""

    def link_ended(self, link: Link, reason: str) -> None:
        """The wire ended or is corrupt."""

    def wake(self) -> None:
        """Try a device whose circuit has been open for long enough."""

    def cancel(self, seqs: list[int]) -> None:
        """Ask the context not to begin these."""

    def replace(self, reason: str) -> None:
        """Replace the context, whatever it is doing."""

    def unclaimed(self, reply: Reply[Any]) -> None:
        """A request failed and nobody waits for it."""


class Requests:
    """What one device was asked; the pump of its replies."""

    device: Any

    def __init__(
        self,
        keeper: Keeper,
        support: Mapping[str, frozenset[str]],
        *,
        queue_limit: int,
        queue_timeout_s: float,
    ) -> None:
        self.generation = 1
        self.state: State = "starting"
        self.refusal: AccelError | None = None
        self._keeper = keeper
        self._support = support
        self._supported: set[tuple[type, str]] = set()
        self._queue_limit = queue_limit
        self._queue_timeout_s = queue_timeout_s
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._seq = 0
        self._ids = 0
        self._pending: dict[int, Reply[Any]] = {}
        self._settle: dict[int, Settle] = {}
        self._queue: dict[int, bytes] = {}
        self._freed: deque[int] = deque()
        self._roots: OrderedDict[int, AccelError] = OrderedDict()
        self._parts: dict[int, bytearray] = {}
        self._link: Link | None = None
        self._token: Hashable | None = None
        self._interrupted = float("-inf")

    # Sending.

    def send(
        self,
        message: Operation[Any],
        timeout_s: float | None,
        *,
        nowait: bool = False,
        make: Make | None = None,
        settle: Settle | None = None,
    ) -> Reply[Any]:
        """Send one message and return the handle of its answer.

        `make` builds another kind of handle. `settle` is called once before the handle is done,
        with None when the context has answered, else with the token of the lost context, whose
        process may still read or write until it is reaped.
        """
        kind = type(message)
        operands = operands_of(kind)(message)
        spec: Spec | None = None
        known = True
        for ref in operands:
            if ref._device is not self.device:
                text = f"{ref!r} is not on {self.device.name}: bring it there with get() and put()"
                raise InvalidArgument(text)
            known = known and ref.known
        if known:
            spec = message.infer()
            pair = kind, operands[0].dtype if operands else message.dtype_key
            if pair not in self._supported:
                check(self._support, message)
                self._supported.add(pair)
        with self._lock:
            link = self._link
            if link is None or len(self._pending) >= IN_FLIGHT_LIMIT:
                link = self._admit(nowait=nowait)
            for ref in operands:
                if ref._state == FAILED:
                    return self._refused(ref)
                if ref.generation != self.generation:
                    raise self._stale(ref)
            self._seq = seq = self._seq + 1
            reply, result = self._handle(message, spec, make, known=known)
            data = encode_entry(seq, result, timeout_s, message, checked=known)
            idle = not self._pending
            self._pending[seq] = reply
            reply._library = message.library
            if settle is not None:
                self._settle[seq] = settle
            try:
                if link is None:
                    self._queue[seq] = data
                else:
                    link.send(data, idle=idle)
            except BaseException:
                # An interrupt: the caller has no handle, so nothing may wait for the answer.
                self._pending.pop(seq, None)
                self._forget(seq)
                raise
        return reply

    def _handle(
        self, message: Operation[Any], spec: Spec | None, make: Make | None, *, known: bool
    ) -> tuple[Reply[Any], int]:
        """Return the handle of the answer and the result's id on the wire."""
        out: AccelRef | None = getattr(message, "out", None)
        here = origin.current()
        if out is not None:
            shape, dtype = (out.shape, out.dtype) if out.known else (None, None)
            alias = AccelRef(self, here, self.device, out._owner, self.generation, shape, dtype)
            return alias, 0
        if make is None and spec is None and (known or not answers_buffer(type(message))):
            return Reply(self, here), 0
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
        return RunRef(self, origin.current(), self.device, owner, self.generation, None, None)

    def _admit(self, *, nowait: bool) -> Link | None:
        """Wait, with the lock held, until a message may be sent or queued."""
        deadline = time.monotonic() + self._queue_timeout_s
        while True:
            if self.refusal is not None:
                self._keeper.wake()
                if self.refusal is not None:
                    raise type(self.refusal)(str(self.refusal)) from self.refusal.__cause__
            link = self._link
            depth, limit = (
                (len(self._queue), self._queue_limit)
                if link is None
                else (len(self._pending), IN_FLIGHT_LIMIT)
            )
            if depth < limit:
                return link
            left = deadline - time.monotonic()
            if nowait or left <= 0:
                text = f"{self.device.name} has {depth} messages waiting and takes {limit}"
                raise QueueFull(text)
            if link is None:
                self._room.wait(left)
            else:
                oldest = next(iter(self._pending.values()))
                self._lock.release()
                try:
                    link.wait(oldest, left)
                finally:
                    self._lock.acquire()

    def _refused(self, failed: AccelRef) -> Reply[Any]:
        reply: Reply[Any] = Reply(self, origin.current())
        error = DependencyFailed(f"operand {failed.id} was never made: {failed._error}")
        error.__cause__ = failed._error
        reply._reject(error)
        return reply

    def _stale(self, ref: AccelRef) -> StaleRef:
        return StaleRef(
            f"buffer {ref.id} is of generation {ref.generation}; {self.device.name} is at "
            f"{self.generation}, and what it held before is gone: compute or put() it again"
        )

    def trailer(self) -> bytes | None:
        """Encode what has been freed, for the end of the next batch."""
        freed = self._freed
        if not freed:
            return None
        ids: list[int] = []
        while freed and len(ids) < 4096:
            ids.append(freed.popleft())
        return encode_entry(0, 0, None, Free(ids))

    # Answers; in the thread that reads the wire.

    def received(self, link: Link, reports: list[Report]) -> None:
        """Deliver one frame's reports."""
        for report in reports:
            if type(report) is Done:
                for seq in report.seqs:
                    reply = self._pending.pop(seq, None)
                    if reply is not None:
                        if self._settle:
                            self._forget(seq)
                        reply._resolve()
            elif type(report) is Failure:
                self._failed(report)
            elif type(report) is Shaped:
                shaped = self._take(report.seq)
                if isinstance(shaped, AccelRef):
                    shaped.learn(tuple(report.shape), report.dtype)
                    shaped._resolve()
            elif type(report) is Answer:
                self._answered(report)
            else:
                self._keeper.noticed(link, report)

    def _answered(self, answer: Answer) -> None:
        data = self._parts.pop(answer.seq, None)
        if data is None:
            data = bytearray()
        data += answer.part
        if not answer.last:
            self._parts[answer.seq] = data
            return
        reply = self._take(answer.seq)
        if reply is None:
            return
        arrays = {id_: (tuple(shape), dtype) for id_, shape, dtype in answer.arrays}

        def handle(id_: int) -> AccelRef:
            owner = Owner(id_, self._freed)
            ref = AccelRef(self, reply._origin, self.device, owner, self.generation, *arrays[id_])
            ref._resolve()
            return ref

        try:
            reply._resolve(ResultUnpickler(bytes(data), handle).load())
        except Exception as error:  # noqa: BLE001 - a class of the context may be unknown here
            wrapped = UserCodeError(f"the answer cannot be rebuilt in this process: {error!r}")
            wrapped.__cause__ = error
            reply._reject(wrapped)

    def _failed(self, failure: Failure) -> None:
        reply = self._take(failure.seq)
        if reply is None:
            return
        error = unpack(failure, self._roots.get(failure.root))
        if isinstance(reply, AccelRef):
            self._roots[reply.id] = error
            if len(self._roots) > ROOTS_KEPT:
                self._roots.popitem(last=False)
        reply._reject(error)

    def _take(self, seq: int) -> Reply[Any] | None:
        reply = self._pending.pop(seq, None)
        if reply is not None:
            self._forget(seq)
        return reply

    def _forget(self, seq: int) -> None:
        settle = self._settle.pop(seq, None)
        if settle is not None:
            settle(None)

    # Generations.

    def connected(self, link: Link, token: Hashable) -> None:
        """A context is up: send what has waited, in order. `token` names its process."""
        with self._lock:
            if self.state == "stopped":
                return
            self._link = link
            self._token = token
            self.state = "running"
            self.refusal = None
            queue, self._queue = self._queue, {}
            for data in queue.values():
                link.send(data, idle=False)
            link.flush()
            self._room.notify_all()

    def disconnect(
        self, link: Link | None, state: State, refusal: AccelError | None = None
    ) -> "InFlight | None":
        """The context of `link` is lost: move the generation and return what was in flight.

        None when this link is no longer the current one. Nothing in flight is answered here.
        """
        with self._lock:
            if self._link is not link:
                return None
            self._link = None
            self.state = state
            self.refusal = refusal
            if link is not None:
                self.generation += 1
                link.close()
            pending, self._pending = self._pending, {}
            settle, self._settle = self._settle, {}
            if link is None and refusal is None:
                # Nothing was sent yet; the queue waits for the next context.
                self._pending, self._settle = pending, settle
                return InFlight({}, {}, None)
            self._queue.clear()
            self._parts.clear()
            self._freed.clear()
            self._room.notify_all()
            token, self._token = self._token, None
            return InFlight(pending, settle, token)

    @property
    def in_flight(self) -> int:
        """Messages sent and not answered."""
        return len(self._pending) - len(self._queue)

    def by_library(self) -> dict[str, int]:
        """Count what is in flight for each library."""
        counts: dict[str, int] = {}
        for reply in list(self._pending.values()):
            counts[reply._library] = counts.get(reply._library, 0) + 1
        return counts

    @property
    def queued(self) -> int:
        """Messages that wait for a context."""
        return len(self._queue)

    def settled(self, deadline: float) -> None:
        """Block until the device runs, or has given up.

        Raises:
            TimeoutError: it does neither by `deadline`, in monotonic seconds.
        """
        with self._lock:
            while self.state not in ("running", "circuit open", "stopped"):
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"{self.device.name} is still {self.state}")
                self._room.wait(left)

    @property
    def current_link(self) -> Link | None:
        """The link of the context that answers now."""
        return self._link

    def origin_of(self, seq: int) -> origin.Origin:
        """Return the cell that sent a request, or the one that runs."""
        reply = self._pending.get(seq)
        return origin.current() if reply is None else reply._origin

    def half_open(self) -> None:
        """Take messages again: they wait for a context on probation."""
        with self._lock:
            self.state = "half-open"
            self.refusal = None

    def orphan(self) -> None:
        """Refuse everything: this process is a fork, and the device is its parent's."""
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._link = None
        self.state = "stopped"
        self.refusal = SystemClosed(
            f"{self.device.name} belongs to the process that opened its system; this one is a "
            "fork of it: open a System() of its own here"
        )
        pending, self._pending = self._pending, {}
        for reply in pending.values():
            reply._pump = None
            reply._reject(self.refusal)

    def flush(self) -> None:
        """Send what is held back."""
        link = self._link
        if link is not None:
            link.flush()

    # The pump of the replies.

    def wait(self, reply: Reply[Any], timeout_s: float | None) -> None:
        """Block until the reply is done; reads the wire meanwhile."""
        beside = threading.current_thread() is not threading.main_thread()
        if beside:
            urgency.begin()
        try:
            self._wait(reply, timeout_s)
        except KeyboardInterrupt:
            self.interrupted(reply)
            raise
        finally:
            if beside:
                urgency.end()

    def _wait(self, reply: Reply[Any], timeout_s: float | None) -> None:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not reply.done:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return
            link = self._link
            if link is not None and not link.closed:
                link.wait(reply, left)
            else:
                reply._block(0.05 if left is None else min(left, 0.05))

    def attend(self, loop: asyncio.AbstractEventLoop, reply: Reply[Any]) -> bool:
        """Have the loop read the wire."""
        link = self._link
        return link is not None and link.attend(loop, reply)

    def leave(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop awaits one reply less."""
        link = self._link
        if link is not None:
            link.leave(loop)

    def unclaimed(self, reply: Reply[Any]) -> None:
        """Remember a failure that nobody waits for."""
        self._keeper.unclaimed(reply)

    def cancel(self, reply: Reply[Any]) -> None:
        """Take one request back."""
        self._cancel([seq for seq, other in list(self._pending.items()) if other is reply])

    def cancel_of(self, cell: object) -> int:
        """Take back what a cell has sent and is not done; return how many requests that is."""
        seqs = [seq for seq, reply in list(self._pending.items()) if reply._origin is cell]
        self._cancel(seqs)
        return len(seqs)

    def _cancel(self, seqs: list[int]) -> None:
        if not seqs:
            return
        with self._lock:
            queued = [(seq, self._pending.pop(seq)) for seq in seqs if self._queue.pop(seq, None)]
            for seq, _ in queued:
                self._forget(seq)
        for seq, reply in queued:
            reply._reject(Cancelled(f"request {seq} was taken back before it was sent"))
        link = self._link
        if link is not None:
            link.flush()
            self._keeper.cancel(seqs)

    def interrupted(self, reply: Reply[Any]) -> None:
        """A waiting thread got Ctrl-C: take its cell's requests back; the second time, replace."""
        now = time.monotonic()
        if now - self._interrupted < SECOND_INTERRUPT_S:
            self._keeper.replace("interrupted twice within 3 s")
            return
        self._interrupted = now
        count = self.cancel_of(reply._origin)
        text = (
            f"accel_lab: interrupted; {count} requests of this cell to {self.device.name} are taken "
            f"back. Interrupt again within {SECOND_INTERRUPT_S:g} s to replace its context.\n"
        )
        origin.current().write("stderr", text)


class InFlight:
    """Requests that were in flight when their context was lost, still unanswered."""

    def __init__(
        self, pending: dict[int, Reply[Any]], settle: dict[int, Settle], token: Hashable | None
    ) -> None:
        self._pending = pending
        self._settle = settle
        self._token = token

    def __len__(self) -> int:
        return len(self._pending)

    def fail(self, error: AccelError, special: Mapping[int, AccelError] | None = None) -> None:
        """Answer all of them with `error`, or with what `special` has for their number."""
        for settle in self._settle.values():
            settle(self._token)
        for seq, reply in self._pending.items():
            reply._reject((special or {}).get(seq, error))


def closed(name: str) -> SystemClosed:
    """Say that a device's system is closed."""
    return SystemClosed(f"the system of {name} is closed: open another with System()")


def open_circuit(name: str, cause: AccelError | None) -> CircuitOpen:
    """Say that a device does not restart any more, and what to do."""
    error = CircuitOpen(
        f"{name} lost its context too often and rests; call device.reset() when the cause is "
        f"mended (the last one: {cause})"
    )
    error.__cause__ = cause
    return error
