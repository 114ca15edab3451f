"""What answers one part of a message to several devices, until all of them are done."""

from collections.abc import Callable
from typing import Any, Protocol

from accel_lab.actor.reply import Reply
from accel_lab.compute.message.results_reply import ResultsReply
from accel_lab.errors import AccelError


class Joint(Protocol):
    """What the parts of one message share; every call returns at once, from any thread."""

    def began(self, rank: int) -> None:
        """A context executes this part."""

    def ready(self, rank: int) -> None:
        """This part is done."""

    def part_failed(self, rank: int, error: AccelError) -> None:
        """This part has failed, or its context is gone."""

    def cancel(self) -> None:
        """Take all parts back."""

    def orphan(self) -> None:
        """This process is a fork, and nothing here is its own."""


class Part(Reply[Any]):
    """Stands in the table of requests for a handle, which is done only with all the others.

    Attributes:
        handle: what whoever has sent it waits for.
        rank: which part it is.
        seq: its number on its device.
        root: what failed first if it fails, as in a `Refusal`.
    """

    __slots__ = ("_joint", "handle", "rank", "root", "seq")

    def __init__(self, handle: Reply[Any], joint: Joint, rank: int) -> None:
        super().__init__(None, handle.origin)
        self.handle = handle
        self.rank = rank
        self.seq = self.root = 0
        self._joint = joint

    def answers(self, reply: Reply[Any]) -> bool:
        """Whether a handle waits for this."""
        handle = self.handle
        return handle is reply or (isinstance(handle, ResultsReply) and handle.answers(reply))

    def began(self) -> None:
        """A context executes it."""
        self._joint.began(self.rank)

    def resolve(self, value: Any = None) -> None:
        """It is done, and its handle when all others are."""
        del value
        self._joint.ready(self.rank)

    def reject(self, error: AccelError) -> None:
        """It has failed, and so have all others."""
        self._joint.part_failed(self.rank, error)

    def cancel(self) -> None:
        """Take back all parts."""
        self._joint.cancel()

    def take_back(self, error: AccelError) -> Callable[[], object] | None:
        """Fail the handle, and hold its memory until the request that writes it is over."""
        return self.handle.take_back(error)

    def detach(self) -> None:
        """Wait for nothing any more: the devices are another process's."""
        self._joint.orphan()
