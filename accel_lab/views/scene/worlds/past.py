"""What was seen of one world: its newest look, its healing and its operations."""

from collections import deque
from dataclasses import dataclass, field, replace

from accel_lab.actor.events import Event
from accel_lab.compute.events.collectives import (
    CollectiveEnded,
    WorldBroken,
    WorldFormed,
    WorldGivenUp,
)
from accel_lab.compute.events.samples import WorldLook

ENDED = 128
HEALINGS = 32
"""So many facts are kept of each world."""

Healing = WorldFormed | WorldBroken | WorldGivenUp
"""What becomes of the communicator of a world."""

HEALING_TYPES: tuple[type[Event], ...] = Healing.__args__


@dataclass(slots=True)
class WorldPast:
    """What was seen of one world.

    Attributes:
        look: the newest; None before the first.
        in_use: whether the newest sample has it.
        healings: the newest facts of its communicator, the oldest first.
        ended: the newest operations that ended, the oldest first.
        done: how many ended well.
        failed: how many did not.
    """

    look: WorldLook | None = None
    in_use: bool = False
    healings: deque[Healing] = field(default_factory=lambda: deque(maxlen=HEALINGS))
    ended: deque[CollectiveEnded] = field(default_factory=lambda: deque(maxlen=ENDED))
    done: int = 0
    failed: int = 0

    def copy(self) -> "WorldPast":
        """Return one that goes on by itself."""
        return replace(self, healings=self.healings.copy(), ended=self.ended.copy())

    def until(self, moment: float, look: WorldLook | None) -> "WorldPast":
        """Return what was known of it then, as far as it is not forgotten."""
        twin = WorldPast()
        twin.look, twin.in_use = look, look is not None
        twin.healings.extend(one for one in self.healings if one.at <= moment)
        twin.ended.extend(one for one in self.ended if one.at <= moment)
        later = [one for one in self.ended if one.at > moment]
        failed = sum(bool(one.failure) for one in later)
        twin.done, twin.failed = self.done - len(later) + failed, self.failed - failed
        return twin
