"""A running system's past: what its journal tells, with what was seen then.

A journal has every message, and neither times of work nor readings; what was seen has these, as
long as somebody looked. What neither has is said to be unrecorded, for a zero would be a lie.
"""

from collections import deque
from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from accel_lab.compute.events.lifecycle import (
    CircuitClosed,
    CircuitOpened,
    ContextLost,
    ContextStarted,
    DeviceResumed,
    DeviceSuspended,
    GenerationChanged,
)
from accel_lab.compute.events.samples import CellRun, HostWait, Slice
from accel_lab.compute.events.tree import Node, State
from accel_lab.display.clock import time_of_day
from accel_lab.views.scene.observer import Source
from accel_lab.views.scene.scene import Fact, Scene, Topic
from accel_lab.views.scene.seen import Seen, while_it_ran

_AFTER: dict[type[Fact], State] = {
    CircuitClosed: "running",
    CircuitOpened: "circuit open",
    ContextLost: "restarting",
    ContextStarted: "running",
    DeviceResumed: "running",
    DeviceSuspended: "suspended",
    GenerationChanged: "restarting",
}
"""What a device does after a fact about it."""


class Watched(Source, Protocol):
    """A source that keeps what it has seen."""

    @property
    def seen(self) -> Seen:
        """The looks so far; who holds its lock."""


class Rewound:
    """The scene of a live source at moments of its past; who uses it holds the source's lock."""

    def __init__(self, live: Watched) -> None:
        self._live = live
        self._seen = live.seen
        self._begin(Scene())

    def _begin(self, scene: Scene) -> None:
        self._scene = scene
        self._at = -float("inf")
        self._base: Scene | None = None
        self._taken = 0  # so many of the source's slices were looked at
        self._later: list[tuple[str, Slice]] = []  # those that were not done yet

    def at(self, moment: float, base: Scene) -> Scene:
        """Return the scene of a moment, where `base` is what the journal tells of it."""
        live = self._live.look()
        if moment < self._at or base is not self._base:
            self._begin(Scene())
        scene, self._base = self._scene, base
        scene.unrecorded = dict(base.unrecorded)
        self._facts(moment, base, live)
        self._tree(moment, base)
        self._memory(moment, base)
        self._work(moment, live)
        self._notebook(moment, live)
        scene.worlds = live.worlds.until(moment, self._seen.worlds(moment))
        scene.trainings = live.trainings.until(moment)
        scene.observations = live.observations.until(moment)
        scene.patterns = self._seen.patterns(moment)
        scene.peers = self._seen.peers(moment)
        scene.health = self._seen.health(moment)
        if scene.health:
            scene.unrecorded.pop("health", None)
        else:
            scene.unrecorded["health"] = "nothing was read then"
        scene.at = self._at = moment
        return scene

    def _facts(self, moment: float, base: Scene, live: Scene) -> None:
        """Take the facts up to then; the journal's where they are forgotten."""
        known = [(number, fact) for number, fact in live.facts if fact.at <= moment]
        if not known and live.counted > len(live.facts):
            known = list(base.facts)
        self._scene.facts = deque(known, maxlen=live.facts.maxlen)
        self._scene.counted = known[-1][0] + 1 if known else 0

    def _tree(self, moment: float, base: Scene) -> None:
        scene = self._scene
        found = self._seen.tree(moment)
        if found is None:
            scene.tree = base.tree and _told(base.tree, (fact for _, fact in scene.facts))
            return
        tree, at = found
        since = [fact for _, fact in scene.facts if fact.at > at and type(fact) in _AFTER]
        scene.tree = _told(tree, since, seen=True) if since else tree
        for topic in ("restarts",) if since else _OF_TREE:
            scene.unrecorded.pop(topic, None)

    def _memory(self, moment: float, base: Scene) -> None:
        """Take the journal's memory where that is whole, for it tells each step."""
        scene = self._scene
        scene.memory, scene.lost = dict(base.memory), dict(base.lost)
        if "memory" not in base.unrecorded:
            return
        found = {device: self._seen.memory(device, moment) for device in base.memory}
        scene.memory |= {device: sample for device, sample in found.items() if sample is not None}
        if found and None not in found.values():
            del scene.unrecorded["memory"], scene.unrecorded["addresses"]

    def _work(self, moment: float, live: Scene) -> None:
        """Take the slices that were done by then, and those that ran."""
        scene = self._scene
        for number, device, one in live.slices:
            if number >= self._taken:
                self._later.append((device, one))
        forgotten = live.traced - len(live.slices)
        self._taken = live.traced
        done: list[tuple[str, Slice]] = []
        later: list[tuple[str, Slice]] = []
        for pair in self._later:
            end = pair[1].end
            (done if end is not None and end <= moment else later).append(pair)
        self._later = later
        running: dict[str, list[Slice]] = {device: [] for device in live.running}
        for device, one in later:
            if one.start <= moment:
                running.setdefault(device, []).append(while_it_ran(one))
        for device, ones in live.running.items():
            running[device] += [one for one in ones if one.start <= moment]
        if not scene.traced and (done or any(running.values())):
            scene.traced = forgotten
        scene.slices.extend((scene.traced + n, device, one) for n, (device, one) in enumerate(done))
        scene.traced += len(done)
        scene.running = {device: tuple(ones) for device, ones in running.items()}
        scene.senders = live.senders
        scene.untraced = self._seen.untraced(moment)
        since = self._since(live, forgotten)
        if moment >= since:
            scene.unrecorded.pop("work", None)
        elif since < float("inf"):
            scene.unrecorded["work"] = f"work was first looked at {time_of_day(since)}"
        else:
            scene.unrecorded["work"] = "nobody has looked at the work"

    def _notebook(self, moment: float, live: Scene) -> None:
        """Take the cells and the waits as they were, and the levels of memory up to then."""
        scene = self._scene
        scene.cells = {
            at: _cell_then(one, moment) for at, one in live.cells.items() if at <= moment
        }
        scene.waits = {
            at: _wait_then(one, moment) for at, one in live.waits.items() if at <= moment
        }
        scene.levels = {
            device: deque((one for one in levels if one[0] <= moment), maxlen=levels.maxlen)
            for device, levels in live.levels.items()
        }
        if live.cells:
            scene.unrecorded.pop("cells", None)

    def _since(self, live: Scene, forgotten: int) -> float:
        """Return since when work is known: older slices than a scene holds are forgotten."""
        if forgotten and live.slices:
            return live.slices[0][2].start
        return self._seen.since


def _cell_then(one: CellRun, moment: float) -> CellRun:
    if one.end is None or one.end <= moment:
        return one
    return msgspec.structs.replace(one, end=None, ended="")


def _wait_then(one: HostWait, moment: float) -> HostWait:
    if one.end is None or one.end <= moment:
        return one
    return msgspec.structs.replace(one, end=None)


_OF_TREE: tuple[Topic, ...] = ("mailbox", "in flight", "restarts")
"""What a tree that was seen tells."""


def _told(root: Node, facts: Iterable[Fact], *, seen: bool = False) -> Node:
    """Return a tree whose devices are in the state that the facts leave them in.

    Parameters:
        seen: whether the tree was seen before these facts; else they are all that is known.
    """
    last: dict[str, tuple[State, Fact]] = {}
    lost: dict[str, int] = {}
    up: dict[str, int] = {}  # the newest generation that was up
    for fact in facts:
        state = _AFTER.get(type(fact))
        if state is None:
            continue
        device: str = getattr(fact, "device", "")
        if isinstance(fact, ContextStarted):
            up[device] = fact.generation
        elif isinstance(fact, ContextLost):
            lost[device] = lost.get(device, 0) + 1
        before = last[device][0] if device in last else "starting"
        # A loss may be told when the next context is up, or behind the circuit that it opened.
        is_over = before in ("circuit open", "suspended") or _after(fact) <= up.get(device, 0)
        if not (state == "restarting" and is_over):
            last[device] = state, fact
    children = tuple(
        _in_state(
            node,
            *last[node.name],
            lost.get(node.name, 0) + node.restarts * seen,
        )
        if node.name in last
        else node
        for node in root.children
    )
    return msgspec.structs.replace(root, children=children)


def _in_state(node: Node, state: State, fact: Fact, restarts: int) -> Node:
    """Return a device, with all below it, in a state."""
    generation = _after(fact)
    fields: dict[str, Any] = {"state": state, "mailbox": 0, "in_flight": 0}
    if node.generation is not None or node.kind in ("device", "context"):
        fields["generation"] = generation or node.generation
        fields["restarts"] = max(node.restarts, restarts)
    if node.kind == "context":
        pid = fact.pid if isinstance(fact, ContextStarted) else node.pid
        fields |= {"pid": pid, "detail": f"process {pid}" if pid else ""}
    children = tuple(_in_state(child, state, fact, restarts) for child in node.children)
    return msgspec.structs.replace(node, children=children, **fields)


def _after(fact: Fact) -> int:
    """Return the generation that follows a fact; 0 where it does not say."""
    if isinstance(fact, ContextLost):
        return fact.generation + 1
    if isinstance(fact, GenerationChanged):
        return fact.after
    generation: int = getattr(fact, "generation", 0)
    return generation
