"""The supervision of one device: a device actor, and under it the actor of its context.

Both run on the system thread. The context's actor fails when its process is lost; whether, and
how soon, it starts again is the strategy of the device's actor.
"""

from collections.abc import Callable
from typing import Any

from accel_lab.actor.actor import Actor, ActorRef, Terminated, handles
from accel_lab.actor.message import Message
from accel_lab.actor.supervision import OneForOne
from accel_lab.compute.keeper import DeviceKeeper
from accel_lab.errors import AccelError


class Lost(Message[None], frozen=True):
    """The context is gone; `error` says why."""

    error: Any


class Reset(Message[None], frozen=True):
    """Close an open circuit: try a context on probation."""


class ContextActor(Actor):
    """Owns the context process of the current generation; fails when it is lost."""

    def __init__(self, keeper: DeviceKeeper) -> None:
        self._keeper = keeper

    def started(self) -> None:
        """Start a context process."""
        self._keeper.start()

    @handles(Lost)
    def lost(self, message: Lost) -> None:
        """Fail, so that the supervisor decides."""
        # A copy: the device and its requests keep the error itself, which gathers no frames.
        raise message.error.copy()


class DeviceActor(Actor):
    """The stable parent of a device's contexts."""

    def __init__(self, keeper: DeviceKeeper, max_restarts: int, within_s: float) -> None:
        self.strategy = OneForOne(max_restarts=max_restarts, within_s=within_s)  # type: ignore[misc]
        self._keeper = keeper
        self._child: ActorRef[ContextActor] | None = None

    def started(self) -> None:
        """Start the context's actor."""
        me = self.context.self_ref
        self._keeper.lost = self._lost
        self._keeper.restart = lambda: me.tell(Reset())
        self._spawn()

    @handles(Terminated)
    def terminated(self, message: Terminated) -> None:
        """The context's actor has used up its restarts: open the circuit."""
        if message.ref is self._child and message.cause is not None:
            self._child = None
            self._keeper.open_circuit(message.cause)

    @handles(Reset)
    def reset(self, _: Reset) -> None:
        """Try again, on probation."""
        if self._keeper.requests.state == "half-open" and self._child is None:
            self._spawn()

    def _spawn(self) -> None:
        factory: Callable[[], ContextActor] = lambda: ContextActor(self._keeper)  # noqa: E731
        self._child = self.context.spawn(factory, name="context")
        self.context.watch(self._child)

    def _lost(self, error: AccelError) -> None:
        child = self._child
        if child is None:
            return
        if self._keeper.requests.state == "half-open":
            self._child = None
            child.stop()
            self._keeper.open_circuit(error)
        else:
            child.tell(Lost(error))
