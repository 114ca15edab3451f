"""What the devices of one system share."""

from typing import Self

import msgspec

from accel_lab.actor.dispatcher import Dispatcher
from accel_lab.actor.events import EventStream
from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.output.output_queue import Outputs
from accel_lab.compute.process.spawner import Spawner
from accel_lab.compute.supervision.unclaimed_failures import Background


class Plant(msgspec.Struct, frozen=True):
    """What a device's contexts are started and kept with.

    Attributes:
        dispatcher: the system thread, which supervises and waits for nobody.
        patient: the thread that writes for the front end and frees garbage, which may take long.
    """

    backend: str
    dispatcher: Dispatcher
    patient: Dispatcher
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
        background = Background(self.patient, events)
        return msgspec.structs.replace(self, events=events, background=background)
