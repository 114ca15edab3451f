"""A message on its way, with the reply that somebody may be waiting for."""

import asyncio
from typing import Any

from accel_lab.actor.event_loop import EventLoop
from accel_lab.actor.message import Message
from accel_lab.actor.reply import Reply
from accel_lab.errors import AccelError, Cancelled


class Letter:
    """One message in a mailbox, or being answered."""

    __slots__ = ("_unclaimed", "message", "reply")

    def __init__(self, message: Message[Any], reply: Reply[Any] | None) -> None:
        self.message = message
        self.reply = reply
        self._unclaimed = [self]

    def claim(self) -> bool:
        """Whether who calls this is the first: to handle it, or to take it back. Any thread."""
        try:
            self._unclaimed.pop()
        except IndexError:
            return False
        return True

    def resolve(self, value: object) -> None:
        """Answer the asker, if there is one."""
        if self.reply is not None:
            self.reply.resolve(value)

    def reject(self, error: AccelError) -> None:
        """Fail the asker, if there is one."""
        if self.reply is not None:
            self.reply.reject(error)


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
        """Answer `Cancelled` unless the message is already being handled."""
        letter = reply.origin
        if isinstance(letter, Letter) and letter.claim():
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
