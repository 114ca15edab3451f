"""What the devices of one system share."""

from typing import Self

import msgspec

from accel_lab.actor.dispatcher import Dispatcher
from accel_lab.actor.events import EventStream
from accel_lab.compute.arena import Arena
from accel_lab.compute.background import Background
from accel_lab.compute.outputs import Outputs
from accel_lab.compute.process import Spawner


class Plant(msgspec.Struct, frozen=True):
    """What a device's contexts are started and kept with."""

    backend: str
    dispatcher: Dispatcher
    events: EventStream
    spawner: Spawner
    outputs: Outputs
    arena: Arena
    background: Background
    limit_bytes: int | None
    spill_bytes: int
    spin_s: float

    def telling(self, events: EventStream) -> Self:
        """Return the same for a device of which the system's own events do not tell."""
        background = Background(self.dispatcher, events)
        return msgspec.structs.replace(self, events=events, background=background)
