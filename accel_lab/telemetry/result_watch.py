"""A look at what each message of some devices makes, until it is closed."""

from collections.abc import Sequence
from typing import Any, Protocol, Self

from accel_lab.actor.reply import Reply
from accel_lab.compute.device import Device
from accel_lab.compute.message.operation import Operation
from accel_lab.errors import InvalidArgument
from accel_lab.uncopied import Uncopied


class Look(Protocol):
    """How one device is looked at."""

    device: Device

    def look(self, message: Operation[Any], seq: int, reply: Reply[Any]) -> None:
        """Look at what a message has made or changed; the sender waits."""


class ResultWatch(Uncopied):
    """Looks after each message, on the thread that sends it; a device has one watch at a time.

    Raises:
        InvalidArgument: a device is watched already; none is watched then.
    """

    def __init__(self, looks: Sequence[Look]) -> None:
        self._looks = looks
        for one in looks:
            if one.device.requests.outbox.watch is not None:
                text = f"{one.device.name} is watched already; close that watch first"
                raise InvalidArgument(text)
        for one in looks:
            one.device.requests.outbox.watch = one.look

    def close(self) -> None:
        """Look no more; safe to repeat."""
        for one in self._looks:
            outbox = one.device.requests.outbox
            if outbox.watch == one.look:
                outbox.watch = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
