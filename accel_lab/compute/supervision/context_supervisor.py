"""Supervise one device's context, from its start to its loss to its reaping.

A loss is noticed in whichever thread reads the wire, and there the generation moves. All else
happens on the system thread: the old process is killed and reaped, the requests it took along
are answered, and the context's actor is told, so that its supervisor decides.
"""

import gc
import math
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

import msgspec

from accel_lab.actor.reply import Reply
from accel_lab.compute.events import lifecycle as facts
from accel_lab.compute.lineage.markers import Explained
from accel_lab.compute.lineage.senders import Begins
from accel_lab.compute.machine import switch_interval
from accel_lab.compute.output.output_router import OutputRouter
from accel_lab.compute.process.bound_process import BoundProcess
from accel_lab.compute.process.environment import OWN, UNKNOWN, environment
from accel_lab.compute.recovery.recovery import Recovered, Recovery
from accel_lab.compute.requests.answers import InFlight
from accel_lab.compute.requests.requests import Requests, closed, open_circuit
from accel_lab.compute.residency.typed import called, typed
from accel_lab.compute.supervision.context_health import HEARTBEAT_LIMIT_S, ContextHealth
from accel_lab.compute.supervision.context_loss import (
    Loss,
    Reason,
    last_of,
    not_started,
    what_to_do,
)
from accel_lab.compute.supervision.device_records import DeviceRecords
from accel_lab.compute.supervision.sampler import DeviceSampler
from accel_lab.compute.supervision.shared_services import SharedServices
from accel_lab.compute.suspension.suspension import Suspension
from accel_lab.compute.wire.codec import (
    Born,
    Crowded,
    Display,
    LibraryRestarted,
    Lifted,
    Output,
    Poisoned,
    Report,
)
from accel_lab.compute.wire.link import ENDED, Link
from accel_lab.compute.wire.side_channel import (
    Bind,
    Blocks,
    CancelRequests,
    Collected,
    Downward,
    DropSegment,
    Expired,
    Flush,
    Heartbeat,
    Look,
    Recorded,
    Segment,
    StartFailed,
    Traced,
    Upward,
)
from accel_lab.errors import (
    AccelError,
    BackendUnavailable,
    ContextLost,
    ContextReplaced,
    DeadlineExceeded,
)

HURRY_LIMIT_S = 5.0
END_LIMIT_S = 5.0
CLOSING_LIMIT_S = 2.0
"""How long a context whose device is closed may take to close what is no array."""
LAST_READ_S = 1.0
# What only a change of the code mends.
MISTAKES = {
    "AttributeError",
    "ImportError",
    "ModuleNotFoundError",
    "NameError",
    "NotImplementedError",
    "SyntaxError",
    "TypeError",
    "UnboundLocalError",
}


class ContextSupervisor:
    """The context of one device, whichever generation it is in."""

    def __init__(self, name: str, index: int, services: SharedServices) -> None:
        self.name = name
        self.requests: Requests
        self.lost: Callable[..., None]
        self.restart: Callable[[], None]
        self.health = ContextHealth()
        self.restarts = 0
        self.cause: AccelError | None = None
        self.process: BoundProcess | None = None
        self.events = services.events
        self._index = index
        self._services = services
        self._link: Link | None = None
        self._taking = threading.RLock()  # a process and its link are given up together, once
        # What a Condition asks of its lock: there is no public way.
        self._gives_up_here: Callable[[], bool] = attrgetter("_is_owned")(self._taking)
        self._opened = 0.0
        self._urgent = switch_interval.IntervalClaim()
        self._printed = OutputRouter(name, services.outputs)
        # What the context has been told of.
        self.environment = OWN if services.spawner.is_apart else environment()
        self.reopen_after_s = 60.0
        self.sampler = DeviceSampler(self, self._cells_since)
        self.records = DeviceRecords(name, self._ask, self._cell_of)
        self.recovery: Recovery | None = None
        self.suspension = Suspension(self, services.event_loop)

    @property
    def limit_bytes(self) -> int | None:
        """What the next context's buffers may take; None for all that its device has."""
        return self._services.limit_bytes

    @limit_bytes.setter
    def limit_bytes(self, nbytes: int | None) -> None:
        self._services = msgspec.structs.replace(self._services, limit_bytes=nbytes)

    def is_waited_for(self) -> bool:
        """Whether others wait for what this thread is in the middle of: a finalizer asks."""
        recovery = self.recovery
        return (
            self.is_entered()
            or self.suspension.is_at_work
            or (recovery is not None and recovery.is_at_work)
        )

    def is_entered(self) -> bool:
        """Whether this thread may not even wait for room in the arena.

        One that rebuilds buffers, or brings them back, waits for that as part of its work.
        """
        requests, services = self.requests, self._services
        return (
            requests.connection.is_entered
            or services.event_loop.is_current()
            or services.spawner.is_entered()
            or services.arena.is_entered
            or requests.outbox.is_entered
            or self._gives_up_here()
            or (requests.recorder is not None and requests.recorder.is_drained_here())
        )

    # The life of a context; system thread.

    def start(self) -> None:
        """Start a context in a fresh process."""
        services = self._services
        if self.process is not None or self.requests.state in ("stopped", "suspended"):
            return  # since a restart became due
        process = services.spawner.take(self._index)
        here = environment()
        new = here._replace(variables=services.spawner.variables)
        if services.spawner.is_apart:
            self.environment, here = OWN, OWN
        elif self.requests.connection.kept or process.place:
            self.environment = UNKNOWN  # it gets back what it had, or is on another machine
        else:
            self.environment = new
        process.bind(
            Bind(
                services.backend,
                process.index,
                self.requests.generation,
                services.limit_bytes,
                services.spill_bytes,
                services.spin_s,
                services.fuse,
                [os.fsencode(place) for place in here.path],
                os.fsencode(here.folder),
                services.allocator,
                services.strategy,
                list(services.trace),
                services.fallback,
            ),
            lambda packet: self._packet(process, packet),
        )
        process.on_exit.append(lambda status: self._exited(process, status))
        self.process = process  # it is bound: from here on any thread may tell it something
        segments = services.arena.segments
        for segment in segments:
            process.tell(Segment(segment.id, segment.size), segment.fd)
        for segment in set(segments).difference(services.arena.segments):  # dropped meanwhile
            process.tell(DropSegment(segment.id))
        link = Link(
            process.wire,
            services.event_loop,
            self.requests.answers.received,
            self.link_ended,
            self.requests.connection.trailer,
            spin_s=services.spin_s,
        )
        with self._taking:
            is_ours = self.process is process
            if is_ours:
                self._link = link
        if not is_ours:  # it was lost at once
            link.close()
        self.health.starts()
        self._watch_later(process)

    def stop(self, refusal: AccelError) -> None:
        """End the context for good: everything unanswered gets `refusal`."""
        ends = self.process is not None and self._ends_by_itself(self.process)
        link, process = self._let_go()
        in_flight = None
        while in_flight is None:  # another thread may be connecting it
            current = self.requests.connection.current_link
            in_flight = self.requests.connection.close(current, refusal)
        if link is not None and link is not current:
            link.close()
        if process is not None:
            if self.requests.handles.has_closing and ends:
                process.may_end = True
                self._services.event_loop.call_later(CLOSING_LIMIT_S, process.kill)
            else:
                process.kill()
        in_flight.fail(refusal)
        if self.recovery is not None:
            self.recovery.abandon(refusal)
        self.suspension.forget()
        self._urgent.drop()

    def retire(
        self, link: Link, refusal: AccelError | None = None
    ) -> tuple[InFlight, BoundProcess] | None:
        """Let a context that is held or being filled go, and its process end by itself.

        Returns what `rest` does, and the process; None when that context is lost. System thread.
        """
        with self._taking:
            in_flight = self.requests.connection.rest(link, refusal)
            if in_flight is None:
                return None
            ends = self.process is not None and self._ends_by_itself(self.process)
            _, process = self._let_go()
        assert process is not None
        self.emptied()
        self._services.event_loop.call_later(END_LIMIT_S if ends else 0.0, process.kill)
        return in_flight, process

    def emptied(self) -> None:
        """The device was given back in order: it holds nothing; any thread."""
        self._urgent.drop()
        self.sampler.emptied()
        self.health.emptied()

    def _ends_by_itself(self, process: BoundProcess) -> bool:
        """Whether a process can be left to end, once its link is closed."""
        return process.before_kill is None and not self.suspension.of_process.is_frozen

    def open_circuit(self, cause: AccelError | None) -> None:
        """Refuse every request until `reset`, or until a probe after the window succeeds."""
        self._opened = self._services.event_loop.clock.now()
        reset = typed(self.requests.device, "<gpu>.reset()")
        error: AccelError = open_circuit(called(self.requests.device, self.name), cause, reset)
        if isinstance(cause, BackendUnavailable):
            error = cause
        in_flight = self.requests.connection.give_up(error)
        self._services.events.publish(facts.CircuitOpened(device=self.name, cause=str(cause)))
        if in_flight is not None:
            in_flight.fail(error)
        if self.recovery is not None:
            self.recovery.abandon(error)

    def _let_go(self) -> tuple[Link | None, BoundProcess | None]:
        """Give up the process and its link, where this has them."""
        with self._taking:
            link, process = self._link, self.process
            self._link = self.process = None
            self.suspension.of_process.forget()
        return link, process

    @property
    def generation(self) -> int:
        """The number of the context that answers now."""
        return self.requests.generation

    def _cells_since(self, seq: int) -> Begins:
        """Return which cells have sent a request and all later ones."""
        return self.requests.outbox.senders.since(seq)

    def _cell_of(self, seq: int) -> int | None:
        """Return which cell has sent a request."""
        return self.requests.outbox.senders.cell_of(seq)

    def _ask(self, packet: Downward) -> bool:
        """Send a control packet; whether there is a context to answer it."""
        process = self.process
        return process is not None and not self._is_deaf(packet) and process.tell(packet)

    def _is_deaf(self, packet: Downward) -> bool:
        """Whether the context is frozen and cannot look at anything."""
        return self.suspension.of_process.is_frozen and isinstance(packet, Look | Flush)

    def tell(self, packet: Downward, *fds: int) -> None:
        """Send a control packet to the context, if there is one; any thread."""
        process = self.process
        if process is not None and not self._is_deaf(packet):
            process.tell(packet, *fds)

    def segment_made(self, segment: Any) -> None:
        """Pass a new arena segment on; any thread."""
        process = self.process
        if process is not None:
            process.tell(Segment(segment.id, segment.size), segment.fd)

    def segment_dropped(self, segment: Any) -> None:
        """Have the context forget an arena segment; any thread."""
        self.tell(DropSegment(segment.id))

    # Losing it.

    def _lose(self, reason: Reason, *, of: Link | None = None) -> None:
        """Begin a loss; any thread.

        Parameters:
            of: the link of the context that is lost, where it may be another's by now.
        """
        with self._taking:
            if of is not None and of is not self._link:
                return  # somebody else noticed first
            connection = self.requests.connection
            generation, kept = connection.generation, connection.kept
            link = connection.current_link
            # Of a device in error the context does not know either.
            ended = link is not None and reason.why is None
            executing = link.executing if link is not None and ended else 0
            in_flight = None if link is None else connection.lose(link)
            if link is not None and in_flight is None:
                return
            unused, process = self._let_go()
        if process is None:
            if in_flight is not None:  # between the two steps of `stop`
                in_flight.fail(closed(self.name))
            return
        self._hurry()
        self._services.event_loop.call_soon(self.sampler.lost)
        self._services.event_loop.call_soon(self.records.lost)
        repeats = False
        if self.recovery is not None and in_flight is not None:
            repeats = self.recovery.repeats_a_loss
            self.recovery.losing(process, in_flight)
        loss = Loss(
            called(self.requests.device, self.name),
            generation,
            self.requests.generation,
            process,
            in_flight,
            reason,
            noticed=lambda error: self._noticed_loss(
                error,
                process.number,
                reason.because,
                moved=in_flight is not None and not kept,
                counts=not repeats,
            ),
            explained=self._explained_loss,
            answer=partial(self._answer, reason, executing),
        )
        if in_flight is None and unused is not None:
            unused.close()  # it was never connected
        self._services.event_loop.call_soon(loss.handle, self._services.event_loop)

    def broke(self, error: BaseException, link: Link | None) -> None:
        """Something of ours failed: nobody is to wait for it. Any thread.

        Parameters:
            link: of the context that cannot go on without it, which is lost for that; None where
                others do not wait for it.
        """
        self._services.background.escaped(error)
        if link is not None:
            why = f"accel_lab failed beside it: {type(error).__name__}: {error}"
            self._lose(Reason(why, again=False), of=link)

    def _answer(
        self, reason: Reason, executing: int, in_flight: InFlight, error: ContextLost
    ) -> None:
        """Answer what a context took along, or have it run again on the next one."""
        if self.recovery is not None and self.requests.state not in ("stopped", "circuit open"):
            self.recovery.took(
                in_flight, error, reason.late, again=reason.again, executing=executing
            )
            return
        if self.recovery is not None:
            self.recovery.forgo(in_flight)
        in_flight.fail(error, reason.late)

    def _noticed_loss(
        self,
        error: ContextLost,
        number: int,
        because: AccelError | None,
        *,
        moved: bool,
        counts: bool,
    ) -> None:
        """Have the supervisor decide, unless it has."""
        self.cause = error
        error.__cause__ = because
        self.restarts += 1
        try:
            if moved:
                before = error.generation
                self._services.events.publish(
                    facts.GenerationChanged(device=self.name, before=before, after=before + 1)
                )
        finally:
            if because is None:
                self.lost(error, number, counts=counts)

    def _explained_loss(self, error: ContextLost, in_flight: int) -> None:
        self.cause = error
        if type(error) is ContextLost:
            error.remedy = what_to_do(self.requests.device)
        recorder = self.requests.recorder
        if recorder is not None:
            recorder.mark(Explained.of(error))
        self._services.events.publish(
            facts.ContextLost(
                device=self.name,
                generation=error.generation,
                cause=str(error),
                in_flight=in_flight,
                recent=error.recent,
                code=error.code,
                name=error.name,
                asked=isinstance(error, ContextReplaced),
            )
        )

    def link_ended(self, link: Link, reason: str) -> None:
        """The wire ended or is corrupt; the thread that reads it."""
        self._lose(Reason(None if reason == ENDED else reason), of=link)

    def replace(self, reason: str) -> bool:
        """Replace the context whatever it is doing, if there is one; any thread."""
        link = self.requests.connection.current_link
        if link is None:
            return False
        self._lose(Reason(reason, again=False, kind=ContextReplaced), of=link)
        return True

    def taken_along(self, cause: AccelError) -> None:
        """Lose the context because of the loss of another that it shares state with; system thread.

        Does nothing when it is lost already.
        """
        if self.process is not None:
            why = f"it shares state with a device that was lost ({cause})"
            self._lose(Reason(why, because=cause))

    def _exited(self, process: BoundProcess, status: str) -> None:
        try:
            self._after(process, status)
        except Exception as error:  # noqa: BLE001 - others are to hear of its end, too
            self.broke(error, None)

    def _after(self, process: BoundProcess, status: str) -> None:
        self._services.events.publish(
            facts.ContextExited(
                device=self.name, generation=process.generation, pid=process.pid, status=status
            )
        )
        self._services.arena.reaped(process.token)
        if self.requests.connection.ipc_memory is not None:
            self.requests.connection.ipc_memory.reaped(process.token)
        link = self._link
        if process is self.process and link is not None:
            # Its last answers may still be on the wire; the end of the wire tells of the loss,
            # unless whoever reads it does not get to.
            link.drain()
            self._services.event_loop.call_later(LAST_READ_S, self._exited_unread, process)

    def _exited_unread(self, process: BoundProcess) -> None:
        if process is self.process:
            self._lose(Reason())

    def _packet(self, process: BoundProcess, packet: Upward) -> None:
        try:
            self._take_in(process, packet)
        except Exception as error:  # noqa: BLE001 - the next packet is read all the same
            self.broke(error, None)

    def _take_in(self, process: BoundProcess, packet: Upward) -> None:
        if isinstance(packet, StartFailed):
            self._not_started(process, packet)
        if process is not self.process:
            return
        if isinstance(packet, Heartbeat):
            self.health.beats(packet, fills=self.requests.state != "running")
            self.requests.flush()
            if packet.unread_s > HEARTBEAT_LIMIT_S:
                why = f"it has read no message for {packet.unread_s:.0f} s, although nothing ran"
                self._lose(Reason(why, again=False))
        elif isinstance(packet, Blocks | Traced):
            if isinstance(packet, Blocks):
                # So that the tree says what the blocks do.
                self.health.used_bytes = packet.used_bytes
            self.sampler.heard(packet)
        elif isinstance(packet, Recorded):
            self.records.heard(packet)
        elif isinstance(packet, Expired):
            why = f"request {packet.seq} ran longer than its {packet.timeout_s:g} s"
            if packet.group:
                why = (
                    f"its part of group {packet.group} still ran {packet.timeout_s:g} s after the "
                    "group was aborted"
                )
            recent = tuple(packet.recent)
            late = DeadlineExceeded(
                f"{why} on {self.name}; its context was replaced{last_of(recent)}",
                generation=self.requests.generation,
                recent=recent,
            )
            self._lose(Reason(why, {"recent": recent}, {packet.seq: late}))

    def _not_started(self, process: BoundProcess, packet: StartFailed) -> None:
        why = process.failed = f"{packet.kind}: {packet.text}"
        if process is not self.process:
            return  # its end was seen before its word
        if packet.kind == "BackendUnavailable":
            self.give_up(BackendUnavailable(packet.text))
        elif packet.kind in MISTAKES:
            text = f"a context of {self.name} cannot start, and a restart would not help: {why}"
            self.give_up(BackendUnavailable(text))
        else:
            self._lose(Reason(not_started(why)))

    def give_up(self, error: BackendUnavailable) -> None:
        """No context can ever start; system thread."""
        link, process = self._let_go()
        if link is not None:
            link.close()
        if process is not None:
            process.kill()
        self.lost(error, 0 if process is None else process.number)

    def _watch_later(self, process: BoundProcess) -> None:
        pause_s = HEARTBEAT_LIMIT_S / 6
        due = time.monotonic() + pause_s
        self._services.event_loop.call_later(pause_s, self._watch, process, due)

    def _watch(self, process: BoundProcess, due: float = math.inf) -> None:
        """Give up a process that gives no sign of life; this was to be called when it was `due`."""
        if process is not self.process:
            return
        try:
            # A notebook that was stopped, or held the interpreter's lock for long, heard nothing.
            self.health.unheard(time.monotonic() - due)
            if process.is_mute:
                self.health.unheard(HEARTBEAT_LIMIT_S / 6)
            if self.suspension.of_process.is_frozen:
                self.health.unheard(self.health.silent_s)
            silent = self.health.silent_s
            if silent > HEARTBEAT_LIMIT_S:
                why = f"it has given no sign of life for {silent:.0f} s"
                self._lose(Reason(why, again=False))
        finally:
            if process is self.process:
                self._watch_later(process)

    # What requests need of their supervisor; the thread that reads the wire, or a caller's.

    def noticed(self, link: Link, report: Report) -> None:
        """A report that answers nothing; never raises, for others share its frame."""
        try:
            self._noticed(link, report)
        except Exception as error:  # noqa: BLE001 - what is shown is no reason to lose a context
            self.broke(error, None if isinstance(report, Output | Display) else link)

    def _noticed(self, link: Link, report: Report) -> None:
        call = self._services.event_loop.call_soon
        if isinstance(report, Poisoned):
            named = report.name in report.text
            why = report.text if named else f"{report.text} ({report.name}, code {report.code})"
            recent = tuple(report.recent)
            fields = {"code": report.code, "name": report.name, "recent": recent}
            self._lose(Reason(why, fields), of=link)
        elif isinstance(report, Output | Display):
            self._printed.take(report, self.requests.origin_of(report.seq))
        elif isinstance(report, LibraryRestarted):
            self.health.library_restarts[report.library] = report.restarts
            fact = facts.LibraryRestarted(
                device=self.name,
                library=report.library,
                cause=report.cause,
                restarts=report.restarts,
            )
            call(self._services.events.publish, fact)
        elif isinstance(report, Born):
            call(self._begin, link, report)
        elif isinstance(report, Crowded):
            self._services.patient.call_soon(self._collect)
        elif isinstance(report, Lifted):
            call(self.requests.unrecorded.lifted, report.refusals)

    def _collect(self) -> None:
        """Free what nobody can reach, with the user's own finalizers; patient thread."""
        try:
            gc.collect()
            self.requests.flush()
        finally:
            self.tell(Collected())  # it waits for that

    def _hurry(self) -> None:
        """Let the restart not wait for a busy cell, until it is over or has taken too long."""
        if not self._urgent.made:
            self._urgent.make()
            self._services.event_loop.call_later(HURRY_LIMIT_S, self._urgent.drop)
        if self.requests.state == "stopped":  # its end was overtaken, and drops nothing any more
            self._urgent.drop()

    def _begin(self, link: Link, born: Born) -> None:
        try:
            self._born(link, born)
        except Exception as error:  # noqa: BLE001 - whatever it is, the device must go on
            self.broke(error, link)

    def _born(self, link: Link, born: Born) -> None:
        self._urgent.drop()
        with self._taking:  # whoever notices its loss has been here, or finds that it is filled
            process = self.process
            if process is None or link is not self._link:
                return
            if not self.requests.connection.fill(link, process.token):
                return
        self.health.born(born, empty=self.recovery is None)
        probing = self.requests.state == "half-open"
        self._services.events.publish(
            facts.ContextStarted(
                device=self.name,
                generation=self.requests.generation,
                pid=born.pid,
                seconds=time.monotonic() - process.started,
            )
        )
        up = partial(self._taken_up, probing=probing)
        if self.suspension.begin(link, process, born.pid, up):
            return
        if self.recovery is None:
            if self.requests.connection.connect(link, born.pid):
                up()
        else:
            self.recovery.begin(link, born.pid, up)

    def _taken_up(self, *, probing: bool) -> None:
        """The device takes messages again; system thread, or that which filled the context."""
        if probing:
            self._services.events.publish(facts.CircuitClosed(device=self.name))

    def recovered(self, done: Recovered) -> None:
        """The buffers of a lost context have been made again; the recovery's thread."""
        self._services.events.publish(
            facts.BuffersRebuilt(
                device=self.name,
                generation=self.requests.generation,
                buffers=len(done.rebuilt),
                lost=len(done.lost),
                messages=done.messages,
                requests=done.requests,
                seconds=done.seconds,
            )
        )

    def show(self, *, piped: bool) -> None:
        """Write what has been printed, `piped` what C code wrote, too; who waits for an answer."""
        process = self.process
        if piped and process is not None:
            for pipe in process.pipes:
                pipe.settle()
        if self._services.outputs.waiting:
            self._services.outputs.write()

    def reset(self) -> None:
        """Take messages again at once, and try a context on probation; any thread."""
        if self.requests.connection.half_open():
            self.restart()

    def wake(self) -> None:
        """Probe a device whose circuit has been open for the whole window."""
        if (
            self.requests.state == "circuit open"
            and self._services.event_loop.clock.now() - self._opened > self.reopen_after_s
        ):
            self.reset()

    def cancel(self, seqs: list[int]) -> None:
        """Ask the context not to begin these."""
        for start in range(0, len(seqs), 4096):
            self.tell(CancelRequests(seqs[start : start + 4096]))

    def later(self, call: Callable[[], object]) -> None:
        """Have this called by the patient thread."""
        self._services.patient.call_soon(call)

    def unclaimed(self, reply: Reply[Any]) -> None:
        """A request failed and nobody waits for it."""
        self._services.background.failed(self.name, reply)
