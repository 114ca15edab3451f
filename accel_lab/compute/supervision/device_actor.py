"""The supervision of devices: an actor for one or several, and under it one for each context.

All run on the system thread. A context's actor fails when its process is lost; which contexts are
replaced, and how soon, is the strategy of their supervisor.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from accel_lab.actor.actor import Actor, ActorRef, Terminated, handles
from accel_lab.actor.message import Message
from accel_lab.actor.supervision import Strategy
from accel_lab.compute.supervision.context_supervisor import ContextSupervisor
from accel_lab.errors import AccelError, Directive


class Lost(Message[None], frozen=True):
    """The context whose process has this number is gone, or can never be (0); `error` says why.

    It does not `count` where the fault has been counted: what broke one context was tried again.
    """

    error: Any
    number: int = 0
    counts: bool = True


class Reset(Message[None], frozen=True):
    """Close open circuits: try contexts on probation."""


class Revive(Message[None], frozen=True):
    """Start a context for a device that was suspended, or have its own go on."""

    supervisor: Any


class ContextActor(Actor):
    """Owns the context process of the current generation; fails when it is lost."""

    def __init__(self, supervisor: ContextSupervisor) -> None:
        self._supervisor = supervisor
        self._number = 0

    def started(self) -> None:
        """Start a context process."""
        self._supervisor.start()
        process = self._supervisor.process
        self._number = 0 if process is None else process.number

    @handles(Revive)
    def revive(self, _: Revive) -> None:
        """Have the context go on where its process was kept; else start one."""
        if not self._supervisor.suspension.of_process.thaw():
            self.started()

    def restarting(self, cause: AccelError) -> None:
        """Give the process up, if it is another's loss that this one is replaced for."""
        self._supervisor.taken_along(cause)

    @handles(Lost)
    def lost(self, message: Lost) -> None:
        """Fail, so that the supervisor decides; unless that process has been replaced already."""
        if message.number in (0, self._number):
            # A copy: the device and its requests keep the error itself, which gathers no frames.
            error = message.error.copy()
            if not message.counts:
                error.directive = Directive.REPLACE
            raise error


class DeviceActor(Actor):
    """The stable parent of the contexts of some devices.

    Parameters:
        supervisors: those of the devices, in the order in which RestForOne takes them.
        strategy: whom a loss concerns. With a device's circuit those of all open whom its loss
            would restart, for they cannot do without it; they close together, too.
    """

    def __init__(self, supervisors: Sequence[ContextSupervisor], strategy: Strategy) -> None:
        self.strategy = strategy  # type: ignore[misc]
        self._supervisors = tuple(supervisors)
        self._children: dict[ContextSupervisor, ActorRef[ContextActor]] = {}

    def started(self) -> None:
        """Start the actors of the contexts."""
        me = self.context.self_ref
        for supervisor in self._supervisors:
            supervisor.lost = partial(self._lost, supervisor)
            supervisor.restart = lambda: me.tell(Reset())
            supervisor.requests.connection.revive = partial(me.tell, Revive(supervisor))
            self._spawn(supervisor)

    @handles(Terminated)
    def terminated(self, message: Terminated) -> None:
        """A context's actor has used up its restarts, or can never start."""
        for supervisor, child in self._children.items():
            if child is message.ref and message.cause is not None:
                self._give_up(supervisor, message.cause)
                return

    @handles(Reset)
    def reset(self, _: Reset) -> None:
        """Try again, on probation: with one device all that rest."""
        resting = [
            supervisor for supervisor in self._supervisors if supervisor not in self._children
        ]
        if not any(supervisor.requests.state == "half-open" for supervisor in resting):
            return
        self.context.forgive()
        for supervisor in resting:
            supervisor.requests.connection.half_open()
            self._spawn(supervisor)

    @handles(Revive)
    def revive(self, message: Revive) -> None:
        """Have a suspended device's context started, by the actor that will hear of its loss."""
        child = self._children.get(message.supervisor)
        if child is not None:
            child.tell(message)

    def _spawn(self, supervisor: ContextSupervisor) -> None:
        factory: Callable[[], ContextActor] = lambda: ContextActor(supervisor)  # noqa: E731
        name = "context" if len(self._supervisors) == 1 else supervisor.name
        child = self._children[supervisor] = self.context.spawn(factory, name=name)
        self.context.watch(child)

    def _lost(
        self, supervisor: ContextSupervisor, error: AccelError, number: int, *, counts: bool = True
    ) -> None:
        child = self._children.get(supervisor)
        if child is None:
            return
        if supervisor.requests.state == "half-open":
            self._give_up(supervisor, error)
        else:
            child.tell(Lost(error, number, counts))

    def _give_up(self, failed: ContextSupervisor, cause: AccelError) -> None:
        """Open the circuit of a device, and of those that are restarted with it."""
        for supervisor in self.strategy.affected(self._supervisors, failed):
            child = self._children.pop(supervisor, None)
            if child is None:
                continue
            child.stop()
            if supervisor is not failed:
                supervisor.taken_along(cause)
            supervisor.open_circuit(cause)
