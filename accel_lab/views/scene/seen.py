"""What was seen of a system that runs, moment by moment, for whoever looks back at it.

A scene has the newest look alone, but for slices and facts. Here looks stay, within bounds; what is
equal in two of them is kept once.
"""

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from accel_lab.actor.events import Event
from accel_lab.compute.events.patterns import PatternLook, PatternsSampled
from accel_lab.compute.events.samples import (
    HealthSampled,
    MemorySampled,
    PeersSampled,
    Slice,
    TreeSampled,
    WorkTraced,
    WorldsSampled,
)
from accel_lab.compute.events.tree import Node
from accel_lab.views.scene.sample_changes import repeats
from accel_lab.views.scene.scene import READINGS, Scene

HOLE_S = 2.5
"""A look tells of the time up to the next one, or up to so much later."""
NODES = 100_000
BLOCKS = 100_000
RANKS = 100_000
PARTS = 100_000
LINKS = 100_000
SAMPLES = 3_600
"""How much is kept: rows of trees, blocks of memory, ranks of worlds and of what is under way in
them, parts and decisions of patterns, links between devices, and samples of the health of each
source."""
T = TypeVar("T")


@dataclass(slots=True)
class Span(Generic[T]):
    """What was so from one moment to another, and what it takes to keep it."""

    since: float
    until: float
    what: T
    weight: int


class Spans(Generic[T]):
    """What was so, one thing after the other, the oldest forgotten beyond a weight."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._weight = 0
        self._spans: list[Span[T]] = []

    @property
    def last(self) -> T | None:
        """The newest."""
        return self._spans[-1].what if self._spans else None

    def add(self, at: float, what: T, weight: int, *, is_new: bool) -> None:
        """Take what was seen; `is_new` when it is other than what was seen before."""
        last = self._spans[-1] if self._spans else None
        if last is not None and not is_new and at - last.until <= HOLE_S:
            last.until = max(last.until, at)
            return
        self._spans.append(Span(at, at, what, weight))
        self._weight += weight
        if self._weight > self._most:
            self._forget()

    def at(self, moment: float) -> Span[T] | None:
        """Return what was so then; None where nobody looked."""
        number = bisect_right(self._spans, moment, key=lambda span: span.since) - 1
        if number < 0 or moment > self._spans[number].until + HOLE_S:
            return None
        return self._spans[number]

    def _forget(self) -> None:
        """Let an eighth go at once, so that this is rare."""
        number = 0
        while self._weight > self._most - self._most // 8 and number < len(self._spans) - 1:
            self._weight -= self._spans[number].weight
            number += 1
        del self._spans[:number]


class Seen:
    """The looks at one system; who adds to it or reads it holds the lock of the source.

    Attributes:
        since: since when work was looked at, wall seconds; infinite while it was not.
    """

    def __init__(self, scene: Scene) -> None:
        self.since = min((one.start for _, _, one in scene.slices), default=float("inf"))
        self._trees: Spans[Node] = Spans(NODES)
        self._memory: dict[str, Spans[MemorySampled]] = {}
        self._worlds: Spans[WorldsSampled] = Spans(RANKS)
        self._patterns: Spans[PatternsSampled] = Spans(PARTS)
        self._peers: Spans[PeersSampled] = Spans(LINKS)
        self._health: dict[str, deque[HealthSampled]] = {}
        self._untraced: dict[str, list[tuple[float, int]]] = {}
        if scene.tree is not None:
            self._see_tree(scene.tree, scene.at)
        for sample in scene.memory.values():
            self.take(sample)
        for samples in scene.health.values():
            for one in samples:
                self.take(one)
        for device, dropped in scene.untraced.items():
            self._untraced[device] = [(scene.at, dropped)]

    def take(self, fact: Event) -> None:
        """Take what was seen."""
        if isinstance(fact, TreeSampled):
            self._see_tree(fact.root, fact.at)
        elif isinstance(fact, MemorySampled):
            spans = self._memory.setdefault(fact.device, Spans(BLOCKS))
            weight = 1 + len(fact.blocks) + len(fact.objects)
            spans.add(fact.at, fact, weight, is_new=not repeats(fact, spans.last))
        elif isinstance(fact, WorldsSampled):
            ranks = (len(one.devices) * (1 + len(one.flights)) for one in fact.worlds)
            new = not repeats(fact, self._worlds.last)
            self._worlds.add(fact.at, fact, 1 + sum(ranks), is_new=new)
        elif isinstance(fact, PatternsSampled):
            parts = (1 + len(one.parts) + len(one.decisions) for one in fact.patterns)
            new = not repeats(fact, self._patterns.last)
            self._patterns.add(fact.at, fact, 1 + sum(parts), is_new=new)
        elif isinstance(fact, PeersSampled):
            new = not repeats(fact, self._peers.last)
            self._peers.add(fact.at, fact, 1 + len(fact.links), is_new=new)
        elif isinstance(fact, HealthSampled):
            kept = self._health.setdefault(fact.source, deque(maxlen=SAMPLES))
            kept.append(fact)
        elif isinstance(fact, WorkTraced):
            self.since = min(self.since, fact.at)
            if fact.dropped:
                told = self._untraced.setdefault(fact.device, [])
                told.append((fact.at, fact.dropped + (told[-1][1] if told else 0)))
                del told[:-SAMPLES]

    def _see_tree(self, root: Node, at: float) -> None:
        root, fresh = _shared(root, self._trees.last)
        self._trees.add(at, root, fresh, is_new=fresh > 0)

    def tree(self, at: float) -> tuple[Node, float] | None:
        """Return the actors, and when they were seen so last; None where nobody looked."""
        span = self._trees.at(at)
        return None if span is None else (span.what, min(span.until, at))

    def memory(self, device: str, at: float) -> MemorySampled | None:
        """Return the memory of a device as it was; None where nobody looked."""
        span = self._memory[device].at(at) if device in self._memory else None
        return None if span is None else span.what

    def worlds(self, at: float) -> WorldsSampled | None:
        """Return the worlds as they were; None where nobody looked."""
        span = self._worlds.at(at)
        return None if span is None else span.what

    def patterns(self, at: float) -> tuple[PatternLook, ...]:
        """Return the patterns as they were; none where nobody looked."""
        span = self._patterns.at(at)
        return () if span is None else span.what.patterns

    def peers(self, at: float) -> PeersSampled | None:
        """Return the links as they were; None where nobody looked."""
        span = self._peers.at(at)
        return None if span is None else span.what

    def health(self, at: float) -> dict[str, deque[HealthSampled]]:
        """Return the readings of the sources that were read then, up to then."""
        found: dict[str, deque[HealthSampled]] = {}
        for source, samples in self._health.items():
            known = deque((one for one in samples if one.at <= at), maxlen=READINGS)
            if known and at - known[-1].at <= HOLE_S:
                found[source] = known
        return found

    def untraced(self, at: float) -> dict[str, int]:
        """Return how many slices of each device had not been seen by then."""
        found: dict[str, int] = {}
        for device, told in self._untraced.items():
            number = bisect_right(told, at, key=lambda one: one[0])
            if number:
                found[device] = told[number - 1][1]
        return found


def _shared(new: Node, old: Node | None) -> tuple[Node, int]:
    """Return a tree that has what is as before from the tree before, and how much is new of it."""
    if old is None:
        return new, sum(1 for _ in new.walk())
    if new == old:
        return old, 0
    before = {child.name: child for child in old.children}
    pairs = [_shared(child, before.get(child.name)) for child in new.children]
    children = tuple(child for child, _ in pairs)
    return msgspec.structs.replace(new, children=children), 1 + sum(fresh for _, fresh in pairs)


def while_it_ran(one: Slice) -> Slice:
    """Return a slice as it was while it ran."""
    return one if one.end is None else msgspec.structs.replace(one, end=None, lost=False)
