"""Where messages were sent that named no device, and what was known then, as facts."""

from typing import NamedTuple

from accel_lab.actor.events import Event
from accel_lab.compute.events.tree import State


class Figures(NamedTuple):
    """What is known of a device at one moment, without asking its hardware.

    Attributes:
        device: its name.
        state: what it is doing.
        outstanding: messages sent and not answered, those that wait for a context, too.
        seconds: how long it takes for one message, as it was seen to while busy; 0 until then.
        free_bytes: what nobody uses or has reserved; None before its first context.
        capability: as CUDA counts compute capability, 9.0; 0 where there is none.
        last_placed: which of the system's placements was its last; 0 before it had one.
    """

    device: str
    state: State = "running"
    outstanding: int = 0
    seconds: float = 0.0
    free_bytes: int | None = None
    capability: float = 0.0
    last_placed: int = 0


class ShardMoved(Event, frozen=True):
    """A key has another device than when it was asked for last; `reason` says why."""

    key: str
    before: str
    device: str
    reason: str


class MessagePlaced(Event, frozen=True):
    """A message that named no device got one; `candidates` are the figures of all at that moment.

    `refused` says of those that could not be chosen why.
    """

    message: str
    device: str
    reason: str
    candidates: tuple[Figures, ...]
    refused: dict[str, str]
