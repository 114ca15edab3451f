"""A message on its way, with the reply that somebody may be waiting for."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from accel_lab.actor.event_loop import EventLoop
from accel_lab.actor.message import Message
from accel_lab.actor.reply import Reply
from accel_lab.errors import AccelError, Cancelled

R = TypeVar("R")


class Letter:
    """One message in a mailbox, or being answered."""

    __slots__ = ("_promise", "_unclaimed", "_withdrawn", "message", "reply")

    def __init__(self, message: Message[Any], reply: Reply[Any] | None) -> None:
        self.message = message
        self.reply = reply
        self._unclaimed = [self]
        self._promise: Promise[Any] | None = None
        self._withdrawn = False

    def claim(self) -> bool:
        """Whether who calls this is the first: to handle it, or to take it back. Any thread."""
        try:
            self._unclaimed.pop()
        except IndexError:
            return False
        return True

    def follow(self, promise: "Promise[Any]") -> None:
        """Have it answered by a promise, which is taken back if this is withdrawn."""
        self._promise = promise
        if self._withdrawn:  # meanwhile: one of the two sees the other
            promise.cancel()

    def withdraw(self) -> None:
        """Take back what the handler has promised; any thread."""
        self._withdrawn = True
        if self._promise is not None:
            self._promise.cancel()

    def resolve(self, value: object) -> None:
        """Answer the asker, if there is one."""
        if self.reply is not None:
            self.reply.resolve(value)

    def reject(self, error: AccelError) -> None:
        """Fail the asker, if there is one."""
        if self.reply is not None:
            self.reply.reject(error)


class Promise(Reply[R]):
    """What a handler returns to answer later, with `resolve` or `reject`.

    Where the ask is cancelled, `withdraw(promise)` is called on the event loop: the actor lets go
    of the request and rejects the promise, or goes on.
    """

    __slots__ = ("_event_loop", "_withdraw")

    def __init__(self, event_loop: EventLoop, withdraw: Callable[[Any], object]) -> None:
        super().__init__()
        self._event_loop = event_loop
        self._withdraw = withdraw

    def cancel(self) -> None:
        """Have the actor take the request back; any thread."""
        if not self.done:
            self._event_loop.call_soon(self._called_back)

    def _called_back(self) -> None:
        if not self.done:
            self._withdraw(self)


class AskPump:
    """How to wait for an actor: it answers from the event loop, so nothing is read here."""

    def __init__(self, event_loop: EventLoop) -> None:
        self._event_loop = event_loop

    def wait(self, reply: Reply[Any], timeout_s: float | None) -> None:
        """Block until the reply is done.

        Raises:
            RuntimeError: called on the event loop, which would wait for itself.
        """
        if self._event_loop.is_current():
            msg = "a handler cannot wait for a reply; return the reply, and the asker gets it"
            raise RuntimeError(msg)
        reply.block(timeout_s)

    def cancel(self, reply: Reply[Any]) -> None:
        """Answer `Cancelled`, or take back what the handler has promised; else do nothing."""
        letter = reply.origin
        if not isinstance(letter, Letter):
            return
        if not letter.claim():
            letter.withdraw()
        else:
            msg = f"{type(letter.message).__name__} was cancelled before it was handled"
            reply.reject(Cancelled(msg))

    def abandon(self, reply: Reply[Any]) -> None:
        """Take the message back, as `cancel` does."""
        self.cancel(reply)

    def attend(self, loop: asyncio.AbstractEventLoop, reply: Reply[Any]) -> bool:  # noqa: ARG002
        """Do nothing: the event loop completes the reply."""
        return False

    def leave(self, loop: asyncio.AbstractEventLoop, reply: Reply[Any]) -> None:
        """Do nothing."""

    def taken(self, reply: Reply[Any]) -> None:
        """Do nothing."""

    def unclaimed(self, reply: Reply[Any]) -> None:
        """Do nothing: an asker may come for it later."""

    def interrupted(self, reply: Reply[Any]) -> None:
        """Do nothing: the message is handled anyway."""
