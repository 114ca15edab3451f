"""What the devices of one system share."""

from collections.abc import Callable
from typing import Self

import msgspec

from accel_lab.actor.event_loop import EventLoop
from accel_lab.actor.events import EventStream
from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.output.output_queue import OutputQueue
from accel_lab.compute.process.bound_process import ProcessSource
from accel_lab.compute.streams import Allocator, Strategy
from accel_lab.compute.supervision.unclaimed_failures import UnclaimedFailures


class SharedServices(msgspec.Struct, frozen=True):
    """What a device's contexts are started and kept with.

    Attributes:
        event_loop: the system thread, which supervises and waits for nobody.
        patient: the thread that writes for the front end and frees garbage, which may take long.
        trace: what follows the messages of contexts: `nvtx`, `cupti`, `cupti-calls`.
        fallback: the backend that computes what this one lacks; empty for none.
        busy: say whether the calling thread is in the middle of what others wait for.
    """

    backend: str
    event_loop: EventLoop
    patient: EventLoop
    events: EventStream
    spawner: ProcessSource
    outputs: OutputQueue
    arena: Arena
    background: UnclaimedFailures
    limit_bytes: int | None
    spill_bytes: int
    spin_s: float
    fuse: bool
    allocator: Allocator
    strategy: Strategy
    trace: tuple[str, ...] = ()
    fallback: str = ""
    busy: list[Callable[[], bool]] = []

    def telling(self, events: EventStream) -> Self:
        """Return the same for a device of which the system's own events do not tell."""
        background = UnclaimedFailures(self.patient, events)
        return msgspec.structs.replace(self, events=events, background=background)
