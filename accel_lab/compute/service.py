"""The dispatcher of a context process: decode, order, enqueue, complete.

One thread owns the device and every library handle. It reads entries from the wire, finds the
library actor by message type, checks the operands, lets the handler enqueue, and reports when
the streams get there. Streams that take long are waited for by a side thread, so that the
dispatcher can go on enqueueing.
"""

import itertools
import math
import os
import threading
import time
from collections import deque
from typing import Any

import msgspec

from accel_lab.compute.backend import Poison
from accel_lab.compute.completion import Batch, Completer, Enqueued
from accel_lab.compute.context import Context
from accel_lab.compute.deferral import Deferral
from accel_lab.compute.entries import Entries, Seen, Unreadable
from accel_lab.compute.failure import fitting, pack
from accel_lab.compute.launch import Launch
from accel_lab.compute.operation import operands_of
from accel_lab.compute.stream import Storage, Stream
from accel_lab.compute.support import check
from accel_lab.compute.task import Task
from accel_lab.compute.tracer import Tracer
from accel_lab.compute.transfer import OF_TABLE, CopyIn, Free, Release, Upload
from accel_lab.compute.transport import Transport
from accel_lab.compute.wire import (
    Crowded,
    Done,
    Failure,
    LibraryRestarted,
    Lifted,
    Poisoned,
    Report,
    Shaped,
    encode_reports,
)
from accel_lab.compute.withheld import Refusal
from accel_lab.errors import AccelError, Cancelled, DependencyFailed, Directive, InvalidArgument

FLUSH_AFTER_S = 0.001
SPIN_FOR_STREAMS_S = 0.0002
BATCH_LIMIT = 256
ALONE_BELOW_S = 60.0
RETRY_S = 0.0002
LOOKS = 16
YIELD_AFTER_S = 0.00005
REMEMBERED = 64
FORGET_ABOVE = 1 << 14
GARBAGE_S = 10.0


class Service:
    """Serves one context over one wire until the wire ends."""

    def __init__(self, transport: Transport, context: Context, *, spin_s: float) -> None:
        self._transport = transport
        self._context = context
        self._spin_s = spin_s
        self._decoder = Entries(context)
        self._send_lock = threading.Lock()
        self._launched: list[Enqueued] = []
        self._marked: Batch | None = None
        self._streams: dict[Stream, None] = {}
        self._first_launch = 0.0
        self._look_s = SPIN_FOR_STREAMS_S
        self._timeout_s = 0.0
        self._watched = False
        self._completer = Completer(self._report, self._broken)
        self._deferral = Deferral()
        self._recent: deque[tuple[int, type | str, Stream]] = deque(maxlen=REMEMBERED)
        self._remember = self._recent.append
        self.tracer = Tracer(context.backend.clock(), context.launched)
        self._entries: list[Any] = []
        self._ahead: deque[Any] = deque()
        self._released: deque[Any] = deque()  # what has waited for something deferred
        self.collected = threading.Event()
        context.spill.is_busy = self._is_busy
        context.spill.collect_there = self._have_garbage_freed
        self.cancelled: set[int] = set()
        self.executing: Any = None
        self._answering: set[int] = set()  # the threads that work out an answer, or cannot send it

    def run(self) -> None:
        """Serve until the notebook closes the wire; the calling thread becomes the dispatcher."""
        try:
            while True:
                self._turn()
        except EOFError:
            return
        except Exception as error:  # noqa: BLE001 - a device in error fails wherever it is asked
            self._broken(error)

    def _turn(self) -> None:
        """Complete what is done and execute what has arrived; EOFError at the wire's end."""
        if self._launched or self._marked is not None:
            self._complete()
        if self._deferral.ready:
            self._resume()
            self._catch_up()
        frame = self._transport.receive()
        if frame is None:
            if self._launched:
                frame = self._look_at_streams()
            elif self._marked is None:
                frame = self._next_frame()
        if frame is not None:
            self._entries = self._decoder.decode(frame)
            for entry in self._entries:
                self._execute(entry)
            self._catch_up()

    def _catch_up(self) -> None:
        """Execute what was read ahead."""
        while self._ahead:
            self._execute(self._ahead.popleft())

    def _look_at_streams(self) -> memoryview | None:
        """Poll the streams with the answer at hand, until they are done or a frame comes."""
        if self._marked is not None or not self._completer.idle:
            return None
        receive, answer = self._transport.receive, None
        simple = all([launch.finish is None for launch in self._launched])  # noqa: C419 - faster
        until = self._first_launch + self._look_s
        while time.perf_counter() < until:
            if self._all_done():
                if answer is None:
                    self._report(self._take_launched()[0])
                else:
                    self._send(answer)
                    self._take_launched()
                return None
            if simple and answer is None:
                answer = _answers(self._launched)
            frame = receive()
            if frame is not None:
                return frame
        return None

    def _next_frame(self) -> memoryview | None:
        """Wait for a frame, at first without sleeping; None when there is something else to do."""
        transport = self._transport
        if self._spin_s:
            begin = now = time.perf_counter()
            while now - begin < self._spin_s:
                for _ in range(LOOKS):
                    frame = transport.receive()
                    if frame is not None or self._deferral.ready:
                        return frame
                if now - begin > YIELD_AFTER_S:
                    os.sched_yield()  # the notebook may share this core
                now = time.perf_counter()
        if transport.sleep():
            transport.wait(also=self._deferral.wakeup if self._deferral.begun else -1)
            transport.wake()
        return transport.receive()

    def under_way(self) -> list[Task]:
        """Return what runs now; read by the control thread."""
        found: list[Task] = []
        entry, batch = self.executing, self._completer.head
        route = None if entry is None else self._context.routes.get(type(entry.message))
        if route is not None:
            found.append(Task(entry, entry.seq, entry.message, route.stream, entry.timeout_s))
        if batch is not None:
            first, (stream, _) = batch.launches[0], batch.events[0]
            limit = batch.timeout_s if batch.timeout_s > 0 else None
            more, traced = len(batch.launches) - 1, first.trace is not None
            found.append(Task(batch, first.seq, first.message, stream, limit, more, traced))
        for deferred in list(self._deferral.begun.values()):
            entry, launch = deferred.entry, deferred.launch
            traced = launch.trace is not None
            found.append(
                Task(deferred, entry.seq, entry.message, launch.stream, entry.timeout_s, 0, traced)
            )
        return found

    def recent(self) -> list[str]:
        """Return the last operations, the newest last, as "Gemm #12 on blas"; any thread.

        A launch has the name of its kernel. What it was is kept as text, not by the message, for
        that would keep its buffers.
        """
        return [
            f"{what if isinstance(what, str) else what.__name__} #{seq} on {stream.name}"
            for seq, what, stream in self._recent.copy()
        ]

    @property
    def last(self) -> object:
        """What was begun last, by identity; any thread."""
        return self._recent[-1] if self._recent else None

    @property
    def is_behind(self) -> bool:
        """Whether frames wait, and not for an answer to what came before; any thread."""
        return not self._answering and self._transport.unread()

    @property
    def busy_seq(self) -> int:
        """The request in execution, or 0."""
        entry = self.executing
        return 0 if entry is None else entry.seq

    def send(self, reports: list[Report]) -> None:
        """Send reports; any thread, blocks while the notebook does not read."""
        self._send(encode_reports(reports))

    def offer(self, reports: list[Report]) -> bool:
        """Send reports if that need not wait; any thread."""
        if not self._send_lock.acquire(blocking=False):
            return False
        try:
            return self._transport.offer(encode_reports(reports))
        finally:
            self._send_lock.release()

    def _send(self, frame: bytes) -> None:
        with self._send_lock:
            if self._transport.send(frame):
                return
            self._answering.add(threading.get_ident())
            while not self._transport.send(frame):
                time.sleep(RETRY_S)
            self._answering.discard(threading.get_ident())

    def poisoned(self, poison: Poison) -> None:
        """Say why this context is beyond repair and end its process; does not return."""
        recent = [fitting(what) for what in self.recent()]
        self.send([Poisoned(poison.code, poison.name, fitting(str(poison)), recent)])
        # The notebook kills us; waiting for that keeps the buffers' owner alive until it knows.
        threading.Event().wait(10.0)
        os._exit(70)

    def _execute(self, entry: Any) -> None:  # noqa: C901, PLR0912, PLR0915 - the hot path
        seen = entry.seen
        if seen is not None and seen.prepared is not None and self._repeat(entry, seen):
            return
        message = entry.message
        kind = type(message)
        if self._deferral.begun and self._deferral.hold_back(entry):
            return
        if not entry.seq and self._unnumbered(entry):
            return
        self.executing = entry
        context = self._context
        timeout_s = entry.timeout_s
        # What may hold this thread for long must not keep the answers to what is before it.
        alone = timeout_s is None or timeout_s < ALONE_BELOW_S
        if (alone or self._watched) and (self._launched or self._marked is not None):
            self._hand_over()
        route = context.routes.get(kind)
        if route is None:
            if kind in OF_TABLE:
                self._set_apart(entry)
            else:
                self._refuse(entry)
            return
        actor, handler, list_operands, stream, name = route
        seq, result, spec = entry.seq, entry.result, entry.spec
        launch = Launch(context, stream, seq, abs(result), message, spec)
        try:
            if self.cancelled:
                self._require_wanted(seq)
            if seen is None:
                operands = list_operands(message)
            else:
                operands, launch.comes_again = seen.operands, not result
            for operand in operands:
                storage = operand.storage
                if storage is None:
                    context.spill.gather(operands, seq)
                    break
                storage.used = seq
            if context.table.withheld:
                context.table.require_written(operands)
            if spec is None:  # the notebook did not know every dtype
                check(context.support, message)
            title = kind if name is None else name(message) or kind
            self._remember((seq, title, stream))
            if context.active is not stream:
                context.activate(stream)
            if self.tracer.watched:
                launch.trace = self.tracer.begin(seq, message, stream)
            handler(message, launch)
            if launch.prepared is not None:
                seen.prepared, seen.title = launch.prepared, title
            if launch.deferred is not None:
                self._deferral.begin(entry, launch)
            elif result < 0:  # the notebook could not infer it
                launch.learn_shape()
            elif result and launch.made is None:
                launch.require_result()
        except Exception as error:  # noqa: BLE001 - everything becomes this request's typed answer
            self._fail(launch, actor.library, error)
        else:
            if launch.deferred is None:
                self._enqueued(launch, stream, timeout_s, alone=alone)
        self.executing = None

    def _unnumbered(self, entry: Any) -> bool:
        """Do what has no number, and no answer; whether it was that."""
        message, table = entry.message, self._context.table
        if type(message) is Free:
            for id_ in message.ids:
                table.free(id_)
            if table.lifted:
                lifted, table.lifted = table.lifted, []
                self.send([Lifted(lifted)])
            return True
        if type(message) is CopyIn:
            if self.tracer.watched:  # all of it is to be seen between its marks
                table.begun[entry.result] = None
            else:
                upload: Any = self._context.actors[CopyIn.library]
                upload.begin(message, entry.result)
            return True
        return False

    def _repeat(self, entry: Any, seen: Seen) -> bool:
        """Enqueue what was prepared; False where there is more to look at."""
        prepared, context = seen.prepared, self._context
        assert prepared is not None
        timeout_s = entry.timeout_s
        if (
            entry.result
            or timeout_s is None
            or timeout_s < ALONE_BELOW_S
            or self._watched
            or entry.seq in self.cancelled
            or self._deferral.begun
            or self.tracer.watched
            or context.table.withheld
        ):
            return False
        changes = context.table.changes
        if prepared.changes != changes and not prepared.holds(changes):
            seen.prepared = None
            return False
        self.executing = entry
        stream, seq = prepared.stream, entry.seq
        self._remember((seq, seen.title, stream))
        if context.active is not stream:
            context.activate(stream)
        try:
            prepared.enqueue(seq)
        except Exception as error:  # noqa: BLE001 - everything becomes this request's typed answer
            launch = Launch(context, stream, seq, 0, entry.message, entry.spec)
            self._fail(launch, entry.message.library, error)
        else:
            self._enqueued(entry, stream, timeout_s)
        self.executing = None
        return True

    def _is_busy(self, storage: Storage) -> bool:
        """Whether memory cannot go to the host now."""
        return self._deferral.touches(storage) or storage in self._context.table.withheld

    def _set_apart(self, entry: Any) -> None:
        """Refuse buffers, or refuse them no more."""
        self.executing = None
        message, table = entry.message, self._context.table
        if type(message) is Release:
            table.release(message.failed)
        else:
            refusal = Refusal(message.buffers[0].id, message.root, message.failed)
            for buffer in message.buffers:
                table.withhold(buffer, refusal)
        for buffer in message.buffers:
            table.dismiss(buffer)
        if entry.seq:
            self.send([Done([entry.seq])])

    def _have_garbage_freed(self) -> None:
        """Have the notebook free what nobody there can reach, and take that out of turn.

        What it had sent before is read, and executed afterwards in its order; what that names is
        not freed yet.
        """
        until = time.monotonic() + GARBAGE_S
        # A request whose answer the notebook does not have yet keeps its handles there.
        self._hand_over()
        while not self._completer.idle and time.monotonic() < until:
            time.sleep(RETRY_S)
        self.collected.clear()
        self.send([Crowded()])
        last = False
        while not last:
            last = self.collected.is_set() or time.monotonic() > until
            while (frame := self._transport.receive()) is not None:
                self._ahead += self._decoder.decode(frame)
            time.sleep(RETRY_S)
        executing = self.executing
        if self._deferral.begun or executing is None:
            return
        # Of the frame at hand those before it are done: all, where this one was deferred.
        rest = itertools.dropwhile(lambda entry: entry is not executing, self._entries)
        named: set[int] = set()
        for entry in (executing, *self._released, *rest, *self._ahead):
            message = entry.message
            if type(message) is Free:
                for id_ in [id_ for id_ in message.ids if id_ not in named]:
                    self._context.table.free(id_)
            else:
                named.update(operand.id for operand in operands_of(type(message))(message))
                named.add(abs(entry.result))

    def _enqueued(
        self, launch: Any, stream: Stream, timeout_s: float | None, *, alone: bool = False
    ) -> None:
        """Have an answer sent when the stream has done this: a launch, or a repeated entry."""
        if launch.trace is not None:
            self.tracer.end(launch.trace)
        now = time.perf_counter()
        launched = self._launched
        if not launched:
            self._first_launch = now
        launched.append(launch)
        self._streams[stream] = None
        if launch.soon_s and self._spin_s:
            self._look_s = max(self._look_s, SPIN_FOR_STREAMS_S + launch.soon_s)
        self._timeout_s += -math.inf if timeout_s is None else timeout_s
        if alone or len(launched) >= BATCH_LIMIT or now - self._first_launch > FLUSH_AFTER_S:
            self._complete()
        # The next message may block in the driver until this one is done, so its time must be
        # watched by then.
        self._watched = alone

    def _resume(self) -> None:
        """Finish what was deferred, and execute what has waited for it."""
        self._deferral.acknowledge()
        for deferred in self._deferral.finished():
            launch = deferred.launch
            self._context.activate(launch.stream)
            try:
                if self.cancelled:
                    self._require_wanted(deferred.entry.seq)
                deferred.resume()
                if deferred.entry.result < 0:
                    launch.learn_shape()
                elif launch.made is None:
                    launch.require_result()
            except Exception as error:  # noqa: BLE001 - everything becomes this request's typed answer
                self._fail(launch, launch.message.library, error)
            else:
                self._enqueued(launch, launch.stream, deferred.entry.timeout_s)
        if self._launched:  # its answer does not wait for what comes next
            self._complete()
        self._released += self._deferral.released()
        while self._released:
            self._execute(self._released.popleft())

    def _require_wanted(self, seq: int) -> None:
        """Refuse what the notebook has taken back.

        Raises:
            Cancelled: it has.
        """
        if seq in self.cancelled:
            self.cancelled.discard(seq)
            raise Cancelled(f"request {seq} was taken back before it ran")
        if len(self.cancelled) > FORGET_ABOVE:  # most came too late
            self.cancelled.difference_update([s for s in list(self.cancelled) if s < seq])

    def _refuse(self, entry: Any) -> None:
        """Answer a message that cannot be read, or for which this context has no library actor."""
        self.executing = None
        message, kind = entry.message, type(entry.message).__name__
        if isinstance(message, Unreadable):
            kind, text = "the message", f"it cannot be read: {message.why}"
        else:
            known = ", ".join(self._context.actors)
            text = f"no library actor of this context handles {kind}; it has those of {known}"
        result = abs(entry.result)
        if result:
            self._context.table.fail(result, result)
        self.send([pack(entry.seq, f"{kind} #{entry.seq}", InvalidArgument(text), result)])

    def _fail(self, launch: Launch, library: str, error: Exception) -> None:
        """Answer a request that was not launched; nothing it began is left."""
        if not isinstance(error, AccelError | Poison):
            error = self._context.explain(error, library)
        if isinstance(error, Poison):
            self.poisoned(error)
        assert isinstance(error, AccelError)
        launch.abandon()
        if launch.trace is not None:
            self.tracer.fail(launch.trace)
        table, message = self._context.table, launch.message
        root = launch.result or -launch.seq
        if isinstance(message, Upload):
            table.spoil(message.out)
            root = message.out.id
        if isinstance(error, DependencyFailed):
            root = table.root_of(operands_of(type(message))(message)) or root
        if launch.result:
            table.fail(launch.result, root)
        withheld: tuple[int, ...] = ()
        if not isinstance(error, Cancelled):  # whoever has taken it back knows
            withheld = tuple(
                ref.id
                for ref in message.changes()
                if table.withhold(ref, Refusal(ref.id, root, launch.seq))
            )
        reports = [_described(launch, error, root, withheld)]
        if error.directive is Directive.RESTART:
            if not self._context.restart(library):
                self.poisoned(Poison(0, "RESTART_LIMIT", f"{library} failed too often: {error}"))
            cause = fitting(str(error))
            reports.append(LibraryRestarted(library, cause, self._context.restarts[library]))
        self.send(reports)

    def _complete(self) -> None:
        """Report what is done; mark what is not, and have a side thread wait for what takes long.

        Answers keep the order of the requests. A mark that the streams reach soon is noticed here,
        which spares the threads' turns.
        """
        marked = self._marked
        if marked is not None:
            if self._completer.idle and marked.reached():
                self._marked = None
                self._report(marked.launches)
            elif time.perf_counter() - marked.since > SPIN_FOR_STREAMS_S:
                self._completer.submit(marked)
                self._marked = None
        if not self._launched or self._marked is not None:
            return
        if self._completer.idle and self._all_done():
            launched, _, _ = self._take_launched()
            self._report(launched)
        elif (
            time.perf_counter() - self._first_launch > self._look_s
            or len(self._launched) >= BATCH_LIMIT
        ):
            self._marked = Batch(*self._take_launched())

    def _all_done(self) -> bool:
        return all([stream.native.done() for stream in self._streams])  # noqa: C419 - it is faster

    def _take_launched(self) -> tuple[list[Enqueued], list[Stream], float]:
        """Empty the list of what has been launched: the launches, their streams, their time."""
        taken = self._launched, list(self._streams), self._timeout_s
        self._launched = []
        self._streams.clear()
        self._timeout_s = 0.0
        self._look_s = SPIN_FOR_STREAMS_S
        return taken

    def _hand_over(self) -> None:
        """Report what is done, and have the side thread report the rest."""
        self._complete()
        if self._marked is not None:
            self._completer.submit(self._marked)
            self._marked = None
        if self._launched:
            self._completer.submit(Batch(*self._take_launched()))

    def _report(self, launches: list[Enqueued]) -> None:
        """Answer completed launches in order; dispatcher or side thread."""
        waiting: list[Enqueued] = []
        for launch in launches:
            if launch.finish is None:
                waiting.append(launch)
                continue
            if waiting:
                self._send(_answers(waiting))
                waiting = []
            self._answering.add(threading.get_ident())
            reports = launch.finish()
            self._answering.discard(threading.get_ident())
            for report in reports:  # each may fill a frame
                self.send([report])
        if waiting:
            self._send(_answers(waiting))

    def _broken(self, error: BaseException) -> None:
        """A wait failed: the device is in error, and so is everything enqueued on it."""
        if isinstance(error, Poison):
            self.poisoned(error)
        if isinstance(error, BrokenPipeError | ConnectionResetError):
            os._exit(0)
        if isinstance(error, msgspec.DecodeError):
            self.poisoned(Poison(0, "CORRUPT_WIRE", f"its wire is corrupt: {error}"))
        explained = self._context.backend.explain(error, "context")
        if not isinstance(explained, Poison):
            explained = Poison(getattr(explained, "code", 0), type(error).__name__, str(explained))
        self.poisoned(explained)


def _described(launch: Launch, error: AccelError, root: int, withheld: tuple[int, ...]) -> Report:
    """Describe why a request failed; barely where a field of the error cannot travel."""
    try:
        report = pack(launch.seq, launch.label, error, root, withheld)
        encode_reports([report])
    except Exception as strange:  # noqa: BLE001 - whatever it is, the request has its answer
        kind, text = type(error).__name__, f"it cannot be told: {fitting(repr(strange))}"
        return Failure(launch.seq, f"request {launch.seq}", kind, text, {}, root, b"", withheld)
    return report


def _answers(launches: list[Enqueued]) -> bytes:
    """Encode the answers of launches that need no finishing."""
    done: list[int] = []
    reports: list[Report] = [Done(done)]
    for launch in launches:
        if launch.shaped is None:
            done.append(launch.seq)
        else:
            reports.append(Shaped(launch.seq, *launch.shaped))
    return encode_reports(reports)
