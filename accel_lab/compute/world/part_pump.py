"""Waiting for a part of a message to several devices."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from accel_lab.actor.reply import Reply
from accel_lab.compute.machine import stop_signal
from accel_lab.compute.requests.reply_pump import ReplyPump
from accel_lab.compute.wire import joint_spin
from accel_lab.compute.wire.link import Link
from accel_lab.display.failure import interrupt


class Awaited(Protocol):
    """What the parts of one message share."""

    awaited: bool

    def cancel(self) -> None:
        """Take all parts back."""


class PartPump:
    """What a handle waits with that is done only when other devices have answered, too.

    All wires are read for a moment, and then by the system thread, or by whoever waits for
    something else of theirs: a reader of one of them would not see what comes on another.

    Parameters:
        pump: of the device.
        flush: sends what is held back for any of the devices.
        links: returns the wires on which the answer comes; None where it is not worth a look.
    """

    def __init__(
        self,
        group: Awaited,
        pump: ReplyPump,
        flush: Callable[[], None],
        links: Callable[[], Iterable[Link]] | None = None,
    ) -> None:
        self._group: Awaited | None = group
        self._pump = pump
        self._flush = flush
        self._links = links

    def end(self) -> None:
        """Let go of the group: it is over, and whoever has one of its handles keeps no other."""
        self._group, self._flush, self._links = None, _nothing, None

    def _await(self) -> None:
        group = self._group
        if group is not None:
            group.awaited = True

    def _cancel(self) -> None:
        group = self._group
        if group is not None:
            group.cancel()

    def wait(self, reply: Reply[Any], timeout_s: float | None) -> None:
        """Block the calling thread until the reply is done or the time is over."""
        pump = self._pump
        self._await()
        try:
            pump.require_free()
            self._flush()
            if self._links is not None:
                joint_spin.spin(self._links(), reply)
            reply.block(timeout_s)
            pump.taken(reply)
        except KeyboardInterrupt:
            pump.interrupted(reply)
            pump.taken(reply)
            raise interrupt() from None

    def attend(self, loop: asyncio.AbstractEventLoop, reply: Reply[Any]) -> bool:
        """Leave the reading to others."""
        del loop
        self._await()
        self._flush()
        self._pump.taken(reply)
        return False

    def leave(self, loop: asyncio.AbstractEventLoop, reply: Reply[Any]) -> None:
        """Do nothing: no loop reads."""

    def taken(self, reply: Reply[Any]) -> None:
        """Have all that was printed appear before the answer is taken."""
        self._pump.taken(reply)

    def cancel(self, reply: Reply[Any]) -> None:
        """Take all parts back."""
        del reply
        self._cancel()

    def abandon(self, reply: Reply[Any]) -> None:
        """Take all parts back, of which a cancelled task awaits one."""
        if stop_signal.taken():
            with stop_signal.raised():
                self._pump.interrupted(reply)
        self._cancel()

    def unclaimed(self, reply: Reply[Any]) -> None:
        """Do nothing: the failure of all parts is one, and told of once."""

    def interrupted(self, reply: Reply[Any]) -> None:
        """A waiting thread was interrupted (Ctrl-C)."""
        self._pump.interrupted(reply)


def _nothing() -> None:
    """Send nothing."""
