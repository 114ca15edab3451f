"""Whether a sample says anything new."""

import msgspec

from accel_lab.actor.events import Event
from accel_lab.compute.events.patterns import PatternsSampled
from accel_lab.compute.events.samples import (
    MemorySampled,
    PeersSampled,
    TreeSampled,
    WorkTraced,
    WorldsSampled,
)

REPEATING = (
    TreeSampled | MemorySampled | WorkTraced | WorldsSampled | PatternsSampled | PeersSampled
)
"""What is sampled many times a second, also while nothing happens."""


def subject(fact: Event) -> tuple[type[Event], str]:
    """Return what a sample is of: its kind, and the device if it is of one."""
    return type(fact), getattr(fact, "device", "")


def repeats(fact: Event, before: Event | None) -> bool:
    """Whether a sample says what the one before it of the same subject has said, but for when."""
    if isinstance(fact, WorkTraced) and isinstance(before, WorkTraced):
        same = (fact.generation, fact.running) == (before.generation, before.running)
        return same and not fact.done and not fact.dropped
    return before is not None and msgspec.structs.replace(fact, at=before.at) == before
