"""The dispatcher of a context process: decode, order, enqueue, complete.

One thread owns the device and every library handle. It reads entries from the wire, finds the
library actor by message type, checks the operands, lets the handler enqueue, and reports when
the streams get there.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from accel_lab.compute.dispatcher.completion import Completion
from accel_lab.compute.dispatcher.decoding import Seen, Unreadable
from accel_lab.compute.dispatcher.deferral import Deferral, Deferred
from accel_lab.compute.dispatcher.inbox import Inbox
from accel_lab.compute.dispatcher.reporter import Reporter
from accel_lab.compute.dispatcher.stream_bell import StreamBell
from accel_lab.compute.dispatcher.task import Task
from accel_lab.compute.dispatcher.verdicts import Undecided, Verdicts
from accel_lab.compute.execution.backend import Poison
from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.launch import Launch
from accel_lab.compute.execution.stream import Storage, Stream
from accel_lab.compute.execution.tracer import Tracer
from accel_lab.compute.fusion.fusion import Frame, Fusion, Run
from accel_lab.compute.groups.group import Group, Groups
from accel_lab.compute.message.builtin import OF_TABLE, CellBegan, CopyIn, Free, Release, Upload
from accel_lab.compute.message.operation import Operation, operands_of
from accel_lab.compute.message.parts import in_parts
from accel_lab.compute.message.results import ids_of
from accel_lab.compute.message.support import check
from accel_lab.compute.message.unwritten import Refusal
from accel_lab.compute.streams.strategies import LOOK_S
from accel_lab.compute.wire.codec import (
    Began,
    Crowded,
    Done,
    Failure,
    LibraryRestarted,
    Lifted,
    Poisoned,
    Ready,
    Report,
    encode_reports,
)
from accel_lab.compute.wire.failure import pack
from accel_lab.compute.wire.text import fitting
from accel_lab.compute.wire.transport import Transport
from accel_lab.errors import (
    AccelError,
    Cancelled,
    DependencyFailed,
    Directive,
    InvalidArgument,
    StaleRef,
)

ALONE_BELOW_S = 60.0
RETRY_S = 0.0002
REMEMBERED = 64
FORGET_ABOVE = 1 << 14
GARBAGE_S = 10.0
NAME_BYTES = 4 << 10


class Dispatcher:
    """Serves one context over one wire until the wire ends."""

    def __init__(
        self,
        transport: Transport,
        context: Context,
        *,
        spin_s: float,
        fuse: bool = True,
        look_s: float = LOOK_S,
    ) -> None:
        self._transport = transport
        self._context = context
        self._inbox = Inbox(transport, context, spin_s=spin_s)
        self._deferral = Deferral(parts_last=context.allocator.shares)
        self._fusion = Fusion(context) if fuse else None
        self._reporter = Reporter(transport, self._deferral.fail)
        self._completion = completion = Completion(
            self._reporter, self._broken, spins=spin_s > 0, look_s=look_s
        )
        self._bell = StreamBell(self._deferral.ring, self._broken)
        answer, arrive = self._reporter.answer, self._deferral.arrive
        self._verdicts = Verdicts(
            context,
            completion,
            self._fail_decided,
            answer,
            arrive,
            self._deferral.hear,
            self._tell_ready,
        )
        self.groups = context.service(Groups)
        self._tainted = self._verdicts.tainted
        self._recent: deque[tuple[int, type | str, Stream]] = deque(maxlen=REMEMBERED)
        self._remember = self._recent.append
        self.send = self._reporter.send
        self.offer = self._reporter.offer
        self.tracer = Tracer(context.backend.clock(), context.launched, context.operations)
        self.collected = threading.Event()
        context.spill.is_busy = self._is_busy
        context.held.is_busy = self._deferral.touches
        context.spill.collect_there = self._have_garbage_freed
        self.cancelled: set[int] = set()
        self.executing: Any = None
        # For the notebook to read: which request was begun last, and which was done with last. When
        # this process is gone, that tells which has ended it.
        self._told = transport.executing

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
        inbox, completion = self._inbox, self._completion
        completion.complete()
        if self._context.held or self._bell.rang:
            self._drop_held()
        if self._context.table.changed:
            self._context.table.measure()
        if self._deferral.ready:
            self._resume()
            self._catch_up()
        frame = self._transport.receive()
        if frame is None:
            if completion.is_empty:
                busy = self._is_holding() or completion.is_busy or bool(self.groups)
                frame = inbox.wait(self._deferral, busy=busy)
            else:
                frame = completion.look(self._transport.receive)
        if frame is not None:
            self._execute_all(inbox.open(frame))
            self._catch_up()

    def _drop_held(self) -> None:
        """Drop what launches held until now; before a look at what has been deferred."""
        if self._bell.rang:
            self._bell.rang = False
            self._deferral.acknowledge()  # what has finished by then is ready by now
        self._context.held.drop(self._deferral.begun)

    def _is_holding(self) -> bool:
        """Whether launches hold something; the streams ring when they have done with it."""
        held = self._context.held
        if not held:
            return False
        held.drop(self._deferral.begun)
        self._bell.watch(held.marks())
        return bool(held)

    def _catch_up(self) -> None:
        """Execute what was read ahead."""
        for entry in self._inbox.ahead():
            self._execute(entry)

    def under_way(self) -> list[Task]:
        """Return what runs now; read by the control thread."""
        found: list[Task] = []
        entry = self.executing
        route = None if entry is None else self._context.routes.get(type(entry.message))
        if route is not None:
            group = self.groups.of(entry.place)
            found.append(
                Task(entry, entry.seq, entry.message, route.stream, entry.timeout_s, group=group)
            )
        return [*found, *self._completion.tasks(), *self._deferral.tasks()]

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
        return not self._reporter.is_held_up and self._transport.unread()

    @property
    def busy_seq(self) -> int:
        """The request in execution, or 0."""
        entry = self.executing
        return 0 if entry is None else entry.seq

    def poisoned(self, poison: Poison) -> None:
        """Say why this context is beyond repair and end its process; does not return."""
        recent = [fitting(what, NAME_BYTES) for what in self.recent()]
        self.send([Poisoned(poison.code, poison.name, fitting(str(poison)), recent)])
        # The notebook kills us; waiting for that keeps the buffers' owner alive until it knows.
        threading.Event().wait(10.0)
        os._exit(70)

    def _execute_all(self, entries: list[Any]) -> None:
        """Execute the entries of a frame, and together those that can be."""
        fusion, end = self._fusion, len(entries)
        if fusion is None or end == 1:
            for entry in entries:
                self._execute(entry)
            return
        frame, at = Frame(self._context, entries), 0
        while at < end:
            if fusion.may_begin(frame, at) and self._is_calm():
                run = fusion.run_at(frame, at)
                if run is not None:
                    if self._execute_run(fusion, run):
                        at += len(run.entries)
                        continue
                    frame.alone_until = at + len(run.entries)
            self._execute(entries[at])
            at += 1

    def _is_calm(self) -> bool:
        """Whether nothing has to be looked at for each message."""
        return not (
            self.cancelled
            or self._deferral.begun
            or self._tainted
            or self._completion.watched
            or self.tracer.watched
            or self._context.table.withheld
        )

    def _execute_run(self, fusion: Fusion, run: Run) -> bool:
        """Enqueue messages as one; False where that failed, and each is to be tried alone."""
        entries, stream = run.entries, run.actor.stream
        self.executing = entries[0]
        if self._context.active is not stream:
            self._context.activate(stream)
        self._told[0] = entries[-1].seq
        try:
            fusion.enqueue(run)
        except Exception:  # noqa: BLE001 - alone each of them gets its own typed answer
            return False
        for entry in entries:
            self._remember((entry.seq, type(entry.message), stream))
            self._completion.add(entry, stream, entry.timeout_s)
        self.executing = None
        self._told[1] = entries[-1].seq
        return True

    def _execute(self, entry: Any) -> None:  # noqa: C901, PLR0912, PLR0915 - the hot path
        seen = entry.seen
        if seen is not None and seen.prepared is not None and self._repeat(entry, seen):
            return
        message = entry.message
        kind = type(message)
        if (self._deferral.begun or self._tainted) and self._hold_back(entry):
            return
        if not entry.seq and self._unnumbered(entry):
            return
        self.executing = entry
        context = self._context
        timeout_s = entry.timeout_s
        # What may hold this thread for long must not keep the answers to what is before it.
        alone = timeout_s is None or timeout_s < ALONE_BELOW_S
        if alone or self._completion.watched:
            self._completion.hand_over()
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
        awaits: Iterable[Undecided] = ()
        if entry.place is not None:
            launch.group, launch.once = self.groups.enter(entry.place), True
        try:
            if self.cancelled:
                self._require_wanted(seq)
            if self._tainted:
                awaits = self._verdicts.awaited(list_operands(message))
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
                check(context.served, message)
            title = kind if name is None else name(message) or kind
            self._remember((seq, title, stream))
            if context.active is not stream:
                context.activate(stream)
            if self.tracer.watched:
                launch.trace = self.tracer.begin(seq, message, stream)
            self._told[0] = seq
            if launch.group is None:
                handler(message, launch)
            else:
                self._handle_part(handler, launch, launch.group)
            if launch.prepared is not None and launch.checks is None:
                seen.prepared, seen.title = launch.prepared, title
            if launch.deferred is not None:
                if awaits:
                    self._verdicts.defer(launch, awaits)
                self._deferral.begin(entry, launch)
            elif result < 0:  # the notebook could not infer it
                launch.learn_shape()
            elif result and (launch.made is None or entry.several):
                launch.require_result()
            if launch.checks is not None and launch.deferred is None:
                self._verdicts.read_back(launch)
        except Exception as error:  # noqa: BLE001 - everything becomes this request's typed answer
            self._fail(launch, actor.library, error, awaits)
        else:
            if launch.deferred is None:
                if launch.trace is not None:
                    self.tracer.end(launch.trace)
                if awaits or launch.is_decided_later:
                    self._verdicts.add(launch, timeout_s, awaits)
                elif launch.at_once:
                    self._reporter.answer([launch])
                else:
                    self._completion.add(launch, stream, timeout_s, alone=alone)
        self.executing = None
        self._told[1] = seq

    def _hold_back(self, entry: Any) -> bool:
        """Whether an entry waits, for something deferred or for a verdict; it is kept then."""
        if self._deferral.hold_back(entry):
            return True
        if not self._tainted or not self._verdicts.hold_back(entry):
            return False
        self._deferral.keep(entry)
        return True

    def _unnumbered(self, entry: Any) -> bool:
        """Do what has no number, and no answer; whether it was that."""
        message, table = entry.message, self._context.table
        if type(message) is Free:
            for id_ in message.ids:
                table.free(id_)
            if table.lifted:
                lifted, table.lifted = table.lifted, []
                for some in in_parts(lifted):
                    self.send([Lifted(some)])
            return True
        if type(message) is CellBegan:
            self._context.cell = message.number
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
            or self._completion.watched
            or entry.seq in self.cancelled
            or self._deferral.begun
            or self._tainted
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
        self._told[0] = seq
        try:
            prepared.enqueue(seq)
        except Exception as error:  # noqa: BLE001 - everything becomes this request's typed answer
            launch = Launch(context, stream, seq, 0, entry.message, entry.spec)
            self._fail(launch, entry.message.library, error)
        else:
            self._completion.add(entry, stream, timeout_s)
        self.executing = None
        self._told[1] = seq
        return True

    def _is_busy(self, storage: Storage) -> bool:
        """Whether memory cannot go to the host now."""
        withheld = self._context.table.withheld
        return self._deferral.touches(storage) or storage in withheld or storage in self._tainted

    def _set_apart(self, entry: Any) -> None:
        """Refuse buffers, or refuse them no more."""
        self.executing = None
        message, table = entry.message, self._context.table
        if type(message) is Release:
            table.release(set(message.failed))
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
        self._completion.drain(until)
        self.collected.clear()
        self.send([Crowded()])
        last = False
        while not last:
            last = self.collected.is_set() or time.monotonic() > until
            self._inbox.read_ahead()
            time.sleep(RETRY_S)
        executing = self.executing
        if self._deferral.begun or self._tainted or executing is None:
            return
        named: set[int] = set()
        for entry in self._inbox.since(executing):
            message = entry.message
            if type(message) is Free:
                for id_ in [id_ for id_ in message.ids if id_ not in named]:
                    self._context.table.free(id_)
            else:
                named.update(operand.id for operand in operands_of(type(message))(message))
                named.update(ids_of(message, entry.result))

    def _resume(self) -> None:
        """Finish what was deferred, and execute what has waited for it."""
        self._deferral.acknowledge()
        for launch, error in self._deferral.failed():
            self._fail(launch, launch.message.library, error)
        self._verdicts.settle(self._deferral.arrived())
        self._verdicts.settle_groups(self._deferral.heard())
        for deferred in self._deferral.finished():
            self._finish(deferred)
        self._completion.complete()  # its answer does not wait for what comes next
        for entry in self._inbox.released(self._deferral.released()):
            self._execute(entry)

    def _finish(self, deferred: Deferred) -> None:
        """Finish a launch whose work was deferred."""
        launch, begun = deferred.launch, self._told[0]
        self._context.activate(launch.stream)
        one = self._verdicts.resume(launch)
        if one is not None and one.root:
            self._answer_failed(launch, self._verdicts.came_of(one), one)
            return
        awaits: Iterable[Undecided] = () if one is None else one.awaits
        try:
            if self.cancelled:
                self._require_wanted(deferred.entry.seq)
            self._told[0] = deferred.entry.seq
            deferred.resume()
            if deferred.entry.result < 0:
                launch.learn_shape()
            elif launch.made is None or deferred.entry.several:
                launch.require_result()
            if launch.checks is not None:
                self._verdicts.read_back(launch)
        except Exception as error:  # noqa: BLE001 - everything becomes this request's typed answer
            self._fail(launch, launch.message.library, error, awaits)
        else:
            if launch.trace is not None:
                self.tracer.end(launch.trace)
            self._await_end(launch, deferred.entry.timeout_s, awaits)
        self._told[1] = self._told[0] = begun

    def _await_end(
        self, launch: Launch, timeout_s: float | None, awaits: Iterable[Undecided]
    ) -> None:
        """Have a launch answered that was deferred and is enqueued now."""
        if awaits or launch.is_decided_later:
            self._verdicts.add(launch, timeout_s, awaits)
        elif launch.at_once:
            self._reporter.answer([launch])
        else:
            self._completion.add(launch, launch.stream, timeout_s)

    def _require_wanted(self, seq: int) -> None:
        """Refuse what the notebook has taken back.

        Raises:
            Cancelled: it has.
        """
        if seq in self.cancelled:
            self.cancelled.discard(seq)
            raise Cancelled(f"request {seq} was cancelled before it ran")
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
        is_read = isinstance(message, Operation)
        for id_ in ids_of(message, result) if is_read else filter(None, (result,)):
            self._context.table.fail(id_, result)
        self.send([pack(entry.seq, f"{kind} #{entry.seq}", InvalidArgument(text), result)])

    def _fail(
        self, launch: Launch, library: str, error: Exception, awaits: Iterable[Undecided] = ()
    ) -> None:
        """Answer a request that was not launched; nothing it began is left.

        Where it depends on what is not decided, its answer waits for that: it may come of it.
        """
        if not isinstance(error, AccelError | Poison):
            error = self._context.explain(error, library)
        if isinstance(error, Poison):
            self.poisoned(error)
        if launch.group is not None and launch.group.aborted:
            error = launch.group.error()  # whatever it has met with since then
        if awaits and not isinstance(error, DependencyFailed | Cancelled | StaleRef):
            self._verdicts.add_failed(launch, None, awaits, error)
        else:
            self._answer_failed(launch, error)

    def _handle_part(self, handler: Callable[..., None], launch: Launch, group: Group) -> None:
        """Have a part of a message to several devices handled, unless that was aborted."""
        group.require()
        if launch.trace is not None:
            launch.trace.place = group.place
        self.send([Began(launch.seq)])
        handler(launch.message, launch)
        if launch.finish is not None:
            kind = type(launch.message).__name__
            raise TypeError(f"a part of {kind} answers with buffers, or with nothing")

    def _tell_ready(self, launch: Launch) -> None:
        """Tell that such a part is done, and waits for word of the others."""
        self.send([Ready(launch.seq, *(launch.shaped or ()))])

    def _fail_decided(self, launch: Launch, error: Exception, one: Undecided) -> int:
        """Answer a request that has failed, by a verdict or for one; return what failed first."""
        if not isinstance(error, AccelError | Poison):
            error = self._context.explain(error, launch.message.library)
        if isinstance(error, Poison):
            self.poisoned(error)
        return self._answer_failed(launch, error, one)

    def _answer_failed(self, launch: Launch, error: Exception, one: Undecided | None = None) -> int:
        library = launch.message.library
        assert isinstance(error, AccelError)
        launch.abandon()
        if launch.group is not None:
            self.groups.leave(launch.group)
        if launch.trace is not None and (one is None or launch.trace.end is None):
            self.tracer.fail(launch.trace)
        table, message = self._context.table, launch.message
        root = launch.result or -launch.seq
        if isinstance(message, Upload):
            table.spoil(message.out)
            root = message.out.id
        if isinstance(error, DependencyFailed):
            first = one.root if one is not None else 0
            root = first or table.root_of(operands_of(type(message))(message)) or root
        for id_ in launch.ids:
            if one is None or table.known(id_) is not None:  # else it is freed by now
                table.fail(id_, root)
        withheld: tuple[int, ...] = ()
        if not isinstance(error, Cancelled):  # whoever has taken it back knows
            had = {} if one is None else one.had
            withheld = tuple(
                ref.id
                for ref in message.changes()
                if table.withhold(ref, Refusal(ref.id, root, launch.seq), had.get(ref))
            )
        reports = [_described(launch, error, root, withheld)]
        later = launch.deferred
        # What ran beside others that failed with the same actor does not count against the next.
        stale = (
            later is not None
            and later.way == "blocking"
            and (later.life != self._context.restarts[library])
        )
        judged = one is not None and one.judged  # the library itself is well
        if error.directive is Directive.RESTART and not stale and not judged:
            if not self._context.restart(library):
                self.poisoned(Poison(0, "RESTART_LIMIT", f"{library} failed too often: {error}"))
            cause = fitting(str(error))
            reports.append(LibraryRestarted(library, cause, self._context.restarts[library]))
        self.send(reports)
        return root

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
        what = f"request {launch.seq}"
        return Failure(launch.seq, what, kind, text, {}, root, b"", withheld, base=kind)
    return report
