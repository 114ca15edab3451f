"""What was seen of a system up to a moment: the fold of facts, in their order.

Views draw from a scene alone. It is the same whether the facts come from a system that runs, from
a feed, from a recording or from a journal; so a recorded session is drawn as it was.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from copy import copy
from itertools import count, repeat
from typing import Any, Literal, cast

import msgspec

from accel_lab.actor.events import ActorRestarted, ActorStarted, ActorStopped, Event
from accel_lab.compute.events.collectives import CollectiveEnded
from accel_lab.compute.events.lifecycle import (
    BuffersRebuilt,
    CircuitClosed,
    CircuitOpened,
    ContextExited,
    ContextLost,
    ContextStarted,
    DeviceResumed,
    DeviceSuspended,
    GenerationChanged,
    LibraryRestarted,
    RequestFailed,
    SuspensionFailed,
)
from accel_lab.compute.events.patterns import PatternLook, PatternsSampled
from accel_lab.compute.events.samples import (
    Block,
    CellRun,
    HealthSampled,
    HostWait,
    LevelsSampled,
    MemorySampled,
    NotebookSampled,
    PeersSampled,
    Slice,
    SystemEnded,
    TreeSampled,
    ValuesSeen,
    WorkTraced,
    WorldsSampled,
)
from accel_lab.compute.events.training import StepTrained
from accel_lab.compute.events.tree import Node
from accel_lab.compute.lineage.senders import Begins, Senders
from accel_lab.views.scene.observations import Observations
from accel_lab.views.scene.trainings import Trainings
from accel_lab.views.scene.worlds import HEALING_TYPES, WORLD_TYPES, WorldFact, Worlds

SLICES = 100_000
FACTS = 1_000
READINGS = 120
CELLS = 1_000
WAITS = 4_000
LEVELS = 4_000

Fact = (
    ActorRestarted
    | ActorStarted
    | ActorStopped
    | BuffersRebuilt
    | CircuitClosed
    | CircuitOpened
    | ContextExited
    | ContextLost
    | ContextStarted
    | DeviceResumed
    | DeviceSuspended
    | GenerationChanged
    | LibraryRestarted
    | RequestFailed
    | SuspensionFailed
)
"""What the supervision of a system says and does."""

Sample = (
    TreeSampled
    | MemorySampled
    | LevelsSampled
    | WorkTraced
    | HealthSampled
    | NotebookSampled
    | WorldsSampled
    | PatternsSampled
    | PeersSampled
    | CollectiveEnded
    | StepTrained
    | ValuesSeen
    | SystemEnded
)
"""What a system looks like, and what happens so often that a slow reader may lose some."""

Beside = NotebookSampled | LevelsSampled | PatternsSampled | PeersSampled | StepTrained | ValuesSeen
"""What is drawn beside the work."""

Topic = Literal[
    "memory", "addresses", "work", "health", "cells", "mailbox", "in flight", "restarts"
]
"""What a moment in the past may lack."""

FACT_TYPES: tuple[type[Event], ...] = Fact.__args__
NEWS_TYPES: tuple[type[Event], ...] = (*FACT_TYPES, *HEALING_TYPES)
"""What is worth a look at once, and what nobody loses."""
SAMPLE_TYPES: tuple[type[Event], ...] = Sample.__args__


class Scene:
    """What was seen of one system; made in one thread at a time.

    Attributes:
        at: when the newest fact happened, wall seconds; 0 before the first.
        tree: the actors; None before they were seen.
        closed: whether nothing more comes.
        memory: the newest sample of each device.
        lost: each device's generation before this one, and the blocks that it had; `kept_by` is
            who holds the handle of a buffer that is gone, and empty for those that are not.
        slices: finished work, the oldest first: (number, device, slice). Numbers ascend from 0.
            What was running when a context was lost is in it, too, up to then.
        traced: how many slices there ever were; older ones than `slices` holds are forgotten.
        untraced: how many slices were never seen, by device.
        running: what each device works at.
        senders: which notebook cells have sent each device's requests, as far as that is known.
        began: in which generation what is running was first seen.
        facts: of supervision, the oldest first: (number, fact). Numbers ascend from 0.
        counted: how many facts there ever were; older ones than `facts` holds are forgotten. What
            an observer never had is counted, too, as far as the system's history tells.
        health: the last samples of each source, the oldest first.
        cells: the newest cells of the notebook by their begin, the oldest first.
        waits: the newest waits of the notebook's thread by their begin, the oldest first.
        levels: the used memory of each device, in bytes, from when on: what changed alone.
        worlds: the worlds, and the collective operations in them.
        patterns: the patterns and agents, as they were last seen.
        peers: the links between the devices; None before they were seen.
        trainings: the trainers, and the curves of their steps.
        observations: what chosen arrays held, look by look.
        unrecorded: of a moment in the past, what nothing tells of it, each with the reason.
    """

    def __init__(self) -> None:
        self.at = 0.0
        self.tree: Node | None = None
        self.closed = False
        self.memory: dict[str, MemorySampled] = {}
        self.lost: dict[str, tuple[int, tuple[Block, ...]]] = {}
        self.slices: deque[tuple[int, str, Slice]] = deque(maxlen=SLICES)
        self.traced = 0
        self.untraced: dict[str, int] = {}
        self.running: dict[str, tuple[Slice, ...]] = {}
        self.senders: dict[str, Senders] = {}
        self.began: dict[str, dict[tuple[str, int], int]] = {}
        self.facts: deque[tuple[int, Fact]] = deque(maxlen=FACTS)
        self.counted = 0
        self.health: dict[str, deque[HealthSampled]] = {}
        self.cells: dict[float, CellRun] = {}
        self.waits: dict[float, HostWait] = {}
        self.levels: dict[str, deque[tuple[float, int]]] = {}
        self.worlds = Worlds()
        self.patterns: tuple[PatternLook, ...] = ()
        self.peers: PeersSampled | None = None
        self.trainings = Trainings()
        self.observations = Observations()
        self.unrecorded: dict[Topic, str] = {}

    def add(self, fact: Event) -> None:
        """Take one fact; those that no view draws are passed over."""
        if isinstance(fact, TreeSampled):
            self.tree = fact.root
        elif isinstance(fact, MemorySampled):
            self._remember(fact)
        elif isinstance(fact, WorkTraced):
            self._work(fact)
        elif isinstance(fact, HealthSampled):
            self.health.setdefault(fact.source, deque(maxlen=READINGS)).append(fact)
        elif isinstance(fact, Beside):
            self._beside(fact)
        elif isinstance(fact, WORLD_TYPES):
            self.worlds.take(cast("WorldFact", fact))
        elif isinstance(fact, SystemEnded):
            self.closed = True
            self.worlds.end()
            self.running.clear()
            self.began.clear()
        elif isinstance(fact, FACT_TYPES):
            self.facts.append((self.counted, fact))  # type: ignore[arg-type]
            self.counted += 1
        else:
            return
        self.at = max(self.at, fact.at)

    def generation_of_work(self, device: str) -> int:
        """Return in which generation a device began what it works at; 0 where that is not known."""
        return min(self.began.get(device, {}).values(), default=0)

    def cells_of(self, device: str, slices: Iterable[Slice]) -> Begins:
        """Return which cells have sent these, as `WorkTraced` tells it."""
        senders = self.senders.get(device)
        first = min((one.seq for one in slices if one.kind != "untraced"), default=None)
        return () if senders is None or first is None else senders.since(first)

    def copy(self) -> "Scene":
        """Return a scene that goes on by itself from what this one has."""
        twin = Scene()
        vars(twin).update({name: copy(value) for name, value in vars(self).items()})
        twin.worlds, twin.trainings = self.worlds.copy(), self.trainings.copy()
        twin.observations = self.observations.copy()
        twin.senders = {device: one.copy() for device, one in self.senders.items()}
        twin.health = {source: samples.copy() for source, samples in self.health.items()}
        twin.levels = {device: levels.copy() for device, levels in self.levels.items()}
        return twin

    def _beside(self, sample: Beside) -> None:
        if isinstance(sample, ValuesSeen):
            self.observations.take(sample)
        elif isinstance(sample, StepTrained):
            self.trainings.take(sample)
        elif isinstance(sample, PatternsSampled):
            self.patterns = sample.patterns
        elif isinstance(sample, PeersSampled):
            self.peers = sample
        elif isinstance(sample, LevelsSampled):
            self.levels.setdefault(sample.device, deque(maxlen=LEVELS)).extend(sample.levels)
        else:
            self._notebook(sample)

    def _notebook(self, sample: NotebookSampled) -> None:
        self.cells.update((one.start, one) for one in sample.cells)
        self.waits.update((one.start, one) for one in sample.waits)
        _forget(self.cells, CELLS)
        _forget(self.waits, WAITS)

    def _remember(self, sample: MemorySampled) -> None:
        before = self.memory.get(sample.device)
        if before is not None and before.generation < sample.generation:
            self.lost[sample.device] = before.generation, before.blocks
        if sample.device in self.lost:
            generation, blocks = self.lost[sample.device]
            self.lost[sample.device] = generation, _kept(blocks, dict(sample.stale))
        self.memory[sample.device] = sample

    def _work(self, traced: WorkTraced) -> None:
        if traced.cells:
            self.senders.setdefault(traced.device, Senders()).learn(traced.cells)
        done = (*traced.done, *self._lost(traced))
        self.slices.extend(zip(count(self.traced), repeat(traced.device), done, strict=False))
        self.traced += len(done)
        self.running[traced.device] = traced.running
        began = self.began.get(traced.device, {})
        self.began[traced.device] = {
            key: began.get(key, traced.generation) for key in map(_key, traced.running)
        }
        if traced.dropped:
            self.untraced[traced.device] = self.untraced.get(traced.device, 0) + traced.dropped

    def _lost(self, traced: WorkTraced) -> Iterator[Slice]:
        """Yield what was running in an earlier generation, and neither is nor came to its end."""
        running = self.running.get(traced.device)
        if not running:
            return
        told = {_key(one) for one in (*traced.done, *traced.running)}
        began = self.began[traced.device]
        for one in running:
            if one.kind == "untraced":
                continue
            if _key(one) not in told and 0 < began[_key(one)] < traced.generation:
                yield msgspec.structs.replace(one, end=max(one.start, traced.at), lost=True)


def _forget(kept: dict[float, Any], most: int) -> None:
    """Let the oldest go, down to so many."""
    while len(kept) > most:
        del kept[next(iter(kept))]


def _key(one: Slice) -> tuple[str, int]:
    return one.stream, one.seq


def _kept(blocks: tuple[Block, ...], stale: dict[int, tuple[str, ...]]) -> tuple[Block, ...]:
    """Say of lost blocks who keeps them now."""
    names = [tuple(name for id_ in block.ids for name in stale.get(id_, ())) for block in blocks]
    return tuple(
        block if block.kept_by == kept_by else msgspec.structs.replace(block, kept_by=kept_by)
        for block, kept_by in zip(blocks, names, strict=True)
    )
