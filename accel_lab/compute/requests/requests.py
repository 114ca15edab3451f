"""The requests of one device: joins the parts that send, connect, wait and cancel.

A message goes through `Outbox`: `DeviceHandles` checks its operands and makes its handle,
`SendQueue` numbers it, and it leaves on the link of the `Connection`, or waits. `Answers` has the
handle until the answer comes, which `ReplyPump` reads while somebody waits. `Cancellation` takes it
back. These change together, so they share one lock.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from accel_lab.compute.events.load import Load
from accel_lab.compute.events.tree import State
from accel_lab.compute.lineage.recorder import Recorder
from accel_lab.compute.output import cell_origin
from accel_lab.compute.requests.answers import Answers
from accel_lab.compute.requests.cancellation import Cancellation
from accel_lab.compute.requests.connection import Connection
from accel_lab.compute.requests.handles import DeviceHandles
from accel_lab.compute.requests.outbox import Outbox
from accel_lab.compute.requests.reply_pump import Audience, ReplyPump
from accel_lab.compute.requests.send_queue import SendQueue
from accel_lab.compute.requests.stop_button import StopButton
from accel_lab.compute.requests.unrecorded import Unrecorded
from accel_lab.compute.residency.owners import name_owners
from accel_lab.compute.residency.typed import typed
from accel_lab.compute.wire.codec import Report
from accel_lab.compute.wire.link import Link
from accel_lab.errors import AccelError, CircuitOpen, OutOfMemory, StaleRef, SystemClosed


class Supervisor(Audience, Protocol):
    """Who looks after the device's context; every call returns at once."""

    def noticed(self, link: Link, report: Report) -> None:
        """A report that is no answer arrived; called in the thread that reads the wire."""

    def wake(self) -> None:
        """Try a device whose circuit has been open for long enough."""

    def cancel(self, seqs: list[int]) -> None:
        """Ask the context not to begin these."""

    def later(self, call: Callable[[], object]) -> None:
        """Have this called by a thread that may wait, and has no lock."""

    def replace(self, reason: str) -> object:
        """Replace the context, whatever it is doing."""


class Requests:
    """What one device was asked, by the parts that see to it; any thread may call these.

    Parameters:
        support: the backend's table of dtypes.
        queue_limit, queue_timeout_s: how many messages may wait for a context, and how long a
            caller waits for room.
    """

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
        lock = threading.RLock()
        room = threading.Condition(lock)
        answers = Answers(supervisor.noticed, recorder, self._complete)
        queue = SendQueue(recorder)
        connection = Connection(name, lock, room, answers, queue, recorder)
        cancellation = Cancellation(
            connection, lock, room, answers, queue, recorder, supervisor.cancel
        )
        stop_button = StopButton(connection, cancellation, queue, supervisor.replace)
        pump = ReplyPump(connection, room, answers, cancellation, stop_button, supervisor)
        handles = DeviceHandles(connection, pump, queue, support)
        stop_button.replace_code = lambda: typed(handles.device(), "<gpu>.replace()")
        answers.adopt = handles.adopt
        unrecorded = Unrecorded(connection, lock, answers, queue, handles)
        self.answers = answers
        self.connection = connection
        self.cancellation = cancellation
        self.stop_button = stop_button
        self.pump = pump
        self.handles = handles
        self.unrecorded = unrecorded
        self.outbox = Outbox(
            connection,
            lock,
            room,
            answers,
            queue,
            handles,
            cancellation,
            unrecorded,
            recorder,
            limit=queue_limit,
            limit_s=queue_timeout_s,
            probe=supervisor.wake,
            later=supervisor.later,
        )
        self.queue = queue

    @property
    def device(self) -> Any:
        """The device whose requests these are; None once nobody holds it."""
        return self.handles.device()

    @property
    def state(self) -> State:
        """What the device is doing."""
        return self.connection.state

    @property
    def generation(self) -> int:
        """The number of the context that answers now."""
        return self.connection.generation

    @property
    def refusal(self) -> AccelError | None:
        """Why nothing is taken; None while it is, or waits."""
        return self.connection.refusal

    @property
    def last_number(self) -> int:
        """The number of the request that was sent last."""
        return self.queue.last

    @property
    def queued(self) -> int:
        """Messages that wait for a context."""
        return len(self.queue.waiting)

    @property
    def withdrawn(self) -> int:
        """Messages that were cancelled and that the context may still work at."""
        return len(self.answers.withdrawn)

    @property
    def in_flight(self) -> int:
        """Messages sent and not answered."""
        answers = self.answers
        return len(answers.pending) + len(answers.withdrawn) - len(self.queue.waiting)

    def first_unanswered(self) -> int | None:
        """Return the number of the oldest request without an answer."""
        recovery = self.connection.recovery
        held = () if recovery is None else recovery.held
        return min([*held, *list(self.answers.pending)], default=None)

    def load(self) -> Load:
        """Count for each library what the context has begun, and what waits; any thread."""
        link = self.connection.current_link
        queued = len(self.queue.waiting) if link is not None else len(self.answers.pending)
        return self.answers.load(None if link is None else link.begun, queued)

    def origin_of(self, seq: int) -> cell_origin.Origin | None:
        """Return the cell that sent a request, or the one that runs.

        None for what is run again to make a buffer: it has printed what it had to say before.
        """
        reply = self.answers.pending.get(seq)
        return cell_origin.current() if reply is None else reply.origin

    def flush(self) -> None:
        """Send what is held back."""
        self.outbox.flush()

    def orphan(self) -> None:
        """Refuse everything: this process is a fork, and the device is its parent's."""
        lock = threading.RLock()  # whoever held the other one is not in this process
        self.pump.room = room = threading.Condition(lock)
        self.connection.share(lock, room)
        self.outbox.lock, self.outbox.room = lock, room
        self.cancellation.lock, self.cancellation.room = lock, room
        self.unrecorded.lock = lock
        self.connection.orphan()

    def _complete(self, error: OutOfMemory | StaleRef) -> None:
        if isinstance(error, StaleRef):
            self.handles.complete(error)
        elif (device := self.device) is not None:
            name_owners(error, device)


def closed(name: str, again: str = "open another with System()") -> SystemClosed:
    """Say that a device's system is closed, and how to have another."""
    return SystemClosed(f"the system of {name} is closed: {again}")


def open_circuit(name: str, cause: AccelError | None, reset: str = "gpu.reset()") -> CircuitOpen:
    """Say that a device does not restart any more, and what to do.

    Parameters:
        reset: the code that tries it again.
    """
    error = CircuitOpen(
        f"{name} lost its context too often and no longer restarts it. Fix the cause, then call "
        f"{reset}. The last loss: {cause}"
    )
    error.remedy = f"Fix the cause, then call {reset}."
    error.__cause__ = cause
    return error
