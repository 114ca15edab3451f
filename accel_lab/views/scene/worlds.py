"""What was seen of the worlds of a system: the newest look, the healing and the operations."""

from collections import deque
from collections.abc import Iterator
from copy import copy

import msgspec

from accel_lab.actor.events import Event
from accel_lab.compute.events.collectives import (
    CollectiveEnded,
    WorldBroken,
    WorldFormed,
    WorldGivenUp,
)
from accel_lab.compute.events.samples import WorldLook, WorldsSampled

ENDED = 128
HEALINGS = 32
KEPT = 8
"""So many worlds stay once they are no longer in use."""

Healing = WorldFormed | WorldBroken | WorldGivenUp
"""What becomes of the communicator of a world."""
WorldFact = Healing | CollectiveEnded | WorldsSampled

HEALING_TYPES: tuple[type[Event], ...] = Healing.__args__
WORLD_TYPES: tuple[type[Event], ...] = WorldFact.__args__


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

    def __init__(self) -> None:
        self.look: WorldLook | None = None
        self.in_use = False
        self.healings: deque[Healing] = deque(maxlen=HEALINGS)
        self.ended: deque[CollectiveEnded] = deque(maxlen=ENDED)
        self.done = self.failed = 0

    def copy(self) -> "WorldPast":
        """Return one that goes on by itself."""
        twin = WorldPast()
        vars(twin).update({name: copy(value) for name, value in vars(self).items()})
        return twin

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


class Worlds:
    """What was seen of all worlds, by their names; made in one thread at a time."""

    def __init__(self) -> None:
        self._pasts: dict[str, WorldPast] = {}

    def take(self, fact: WorldFact) -> None:
        """Take one fact."""
        if isinstance(fact, WorldsSampled):
            self._sample(fact)
            return
        past = self._past(fact.world)
        if not isinstance(fact, CollectiveEnded):
            past.healings.append(fact)
            return
        past.ended.append(fact)
        if fact.failure:
            past.failed += 1
        else:
            past.done += 1

    def shown(self) -> dict[str, WorldPast]:
        """Return those that are in use; where none is, the one that was last."""
        in_use = {name: past for name, past in self._pasts.items() if past.in_use}
        seen = [(name, past) for name, past in self._pasts.items() if past.look is not None]
        return in_use or dict(seen[-1:])

    def facts(self, at: float) -> Iterator[WorldFact]:
        """Yield facts that make of nothing what is shown of these."""
        for past in self._pasts.values():
            yield from past.healings
            yield from past.ended
        looks = [past.look for past in self.shown().values() if past.look is not None]
        if looks:
            yield WorldsSampled(at=at, worlds=tuple(looks))
            if not self.in_use:
                yield WorldsSampled(at=at, worlds=())

    @property
    def in_use(self) -> bool:
        """Whether the newest sample has any."""
        return any(past.in_use for past in self._pasts.values())

    def end(self) -> None:
        """Take it that nothing is under way any more."""
        for past in self._pasts.values():
            if past.look is not None:
                past.look = msgspec.structs.replace(past.look, flights=(), unlisted=0, nbytes=0)

    def until(self, moment: float, sample: WorldsSampled | None) -> "Worlds":
        """Return what was known then; `sample` is the look of then, None where nobody looked."""
        looks = {} if sample is None else {look.name: look for look in sample.worlds}
        twin = Worlds()
        twin._pasts = {
            name: past.until(moment, looks.get(name)) for name, past in self._pasts.items()
        }
        return twin

    def copy(self) -> "Worlds":
        """Return one that goes on by itself."""
        twin = Worlds()
        twin._pasts = {name: past.copy() for name, past in self._pasts.items()}
        return twin

    def _sample(self, sample: WorldsSampled) -> None:
        for past in self._pasts.values():
            past.in_use = False
        for look in sample.worlds:
            past = self._past(look.name)
            past.look, past.in_use = look, True

    def _past(self, name: str) -> WorldPast:
        """Return what is known of a world; a new one may cost the oldest that is not in use."""
        if name not in self._pasts:
            gone = [one for one, past in self._pasts.items() if not past.in_use]
            for one in gone[: len(gone) - KEPT + 1]:
                del self._pasts[one]
        return self._pasts.setdefault(name, WorldPast())
