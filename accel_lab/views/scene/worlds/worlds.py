"""What was seen of the worlds of a system, by their names."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from accel_lab.actor.events import Event
from accel_lab.compute.events.collectives import CollectiveEnded
from accel_lab.compute.events.samples import WorldsSampled
from accel_lab.views.scene.worlds.past import Healing, WorldPast

KEPT = 64
"""So many worlds stay once they are no longer in use."""

WorldFact = Healing | CollectiveEnded | WorldsSampled

WORLD_TYPES: tuple[type[Event], ...] = WorldFact.__args__


@dataclass
class Worlds:
    """What was seen of all worlds; made in one thread at a time."""

    _pasts: dict[str, WorldPast] = field(default_factory=dict)

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
        looks = []
        for past in self.shown().values():
            yield from past.healings
            yield from past.ended
            if past.look is not None:
                counts = {"done": past.done, "failed": past.failed}
                looks.append(msgspec.structs.replace(past.look, **counts))
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
        pasts = self._pasts.items()
        return Worlds({name: past.until(moment, looks.get(name)) for name, past in pasts})

    def copy(self) -> "Worlds":
        """Return one that goes on by itself."""
        return Worlds({name: past.copy() for name, past in self._pasts.items()})

    def _sample(self, sample: WorldsSampled) -> None:
        names = {look.name for look in sample.worlds}
        for name, past in self._pasts.items():
            past.in_use = name in names
        for look in sample.worlds:
            past = self._past(look.name)
            past.look, past.in_use = look, True
            past.done, past.failed = max(past.done, look.done), max(past.failed, look.failed)

    def _past(self, name: str) -> WorldPast:
        """Return what is known of a world; a new one may cost the oldest that is not in use."""
        if name not in self._pasts:
            gone = [one for one, past in self._pasts.items() if not past.in_use]
            for one in gone[: len(gone) - KEPT + 1]:
                del self._pasts[one]
        return self._pasts.setdefault(name, WorldPast())
