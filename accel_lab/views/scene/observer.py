"""What looks at a system for all of its views: one for each system that is watched."""

import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from accel_lab.actor.events import Event, EventStream, Subscription
from accel_lab.compute.device import Device
from accel_lab.compute.events.card_alarms import Alarms
from accel_lab.compute.events.collectives import CollectiveEnded
from accel_lab.compute.events.notebook_news import NotebookNews
from accel_lab.compute.events.patterns import PatternsSampled, looks
from accel_lab.compute.events.samples import (
    LevelsSampled,
    MemorySampled,
    NotebookSampled,
    SystemEnded,
    TreeSampled,
    ValuesSeen,
    WorkTraced,
    WorldsSampled,
)
from accel_lab.compute.events.training import StepTrained
from accel_lab.compute.events.tree import Node
from accel_lab.compute.residency.notebook_names import Held
from accel_lab.errors import InvalidArgument, SystemClosed
from accel_lab.journal.journal import Journal
from accel_lab.uncopied import Uncopied
from accel_lab.views.scene.fact_queue import Arrivals
from accel_lab.views.scene.gauges import Gauges
from accel_lab.views.scene.names import Names
from accel_lab.views.scene.scene import FACT_TYPES, NEWS_TYPES, Scene
from accel_lab.views.scene.seen import Seen
from accel_lab.views.scene.worlds import HEALING_TYPES

Want = Literal["memory", "work", "health", "patterns", "peers"]
"""What is sampled only while a view needs it; the tree always is."""

EVERY_S: dict[Want, float] = {
    "memory": 0.5,
    "work": 0.1,
    "health": 1.0,
    "patterns": 0.0,
    "peers": 0.0,
}


ANSWER_S = 1.0
"""How long what is drawn once waits for a device's memory; one that is very busy is not awaited."""
POLL_S = 0.005


class Lab(Protocol):
    """What a view needs of a system."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def events(self) -> EventStream:
        """The stream of facts."""

    def tree(self) -> Node:
        """Return a snapshot; any thread, does not block."""

    def look(
        self, *, memory: bool, work: bool
    ) -> Iterable[MemorySampled | WorkTraced | WorldsSampled]:
        """Return what has been seen of the devices and worlds, and have them looked at again.

        Any thread, does not block: what is asked for now comes with a later call.
        """


class Observer(Uncopied):
    """The scene of a lab, which it does not keep alive.

    Whoever looks, and whoever reads the scene, holds `lock`.
    """

    def __init__(self, lab: Lab) -> None:
        self.lock = threading.RLock()
        self.scene = Scene()
        self.followers: list[Callable[[Event], None]] = []
        """Called with each fact, in order, after the scene has it."""
        self._seen: Seen | None = None
        self._lab = weakref.ref(lab)
        self._name = lab.name
        self._arrived = Arrivals()
        self._wanted: dict[Want, int] = {}
        self._sampled: dict[Want, float] = {}
        self._answered: dict[Want, dict[str, float]] = {"memory": {}, "work": {}}
        """When each device answered last, wall seconds."""
        self._names = Names()
        self._gauges = Gauges()
        self._alarms = Alarms()
        self._notebook = NotebookNews()
        before, forgotten, self._following = lab.events.follow(self._arrived.put, *FACT_TYPES)
        self._arrived.precede(before, forgotten)
        weakref.finalize(self, self._following.close).atexit = False
        # Of their own, for thousands of operations would push out what supervision says.
        self._of_worlds = Arrivals()
        types: tuple[type[Event], ...] = (
            *HEALING_TYPES,
            CollectiveEnded,
            StepTrained,
            ValuesSeen,
        )
        told, _, self._following_worlds = lab.events.follow(self._of_worlds.put, *types)
        self._of_worlds.precede(told, 0)
        weakref.finalize(self, self._following_worlds.close).atexit = False

    @property
    def lab(self) -> Lab | None:
        """The system; None once it is gone."""
        return self._lab()

    @property
    def ended(self) -> bool:
        """Whether nothing more comes."""
        return self.scene.closed

    @property
    def seen(self) -> Seen:
        """The looks so far, from when this is first asked for; who holds `lock`."""
        if self._seen is None:
            self._seen = Seen(self.scene)
            self.followers.append(self._seen.take)
        return self._seen

    def held(self) -> Held:
        """Return which names of the notebook hold buffers, half a second old at most."""
        return self._names.held(getattr(self.lab, "devices", ()))

    def on_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when something happened that is worth a look at once.

        It runs in the publishing thread, so it must be quick. Returns what ends that.
        """
        lab = self.lab
        if lab is None:
            return lambda: None
        subscription: Subscription = lab.events.subscribe(lambda _: callback(), *NEWS_TYPES)
        return subscription.close

    def want(self, holder: object, wants: Iterable[Want]) -> None:
        """Sample this as long as `holder` lives."""
        for one in wants:
            self._wanted[one] = self._wanted.get(one, 0) + 1
            weakref.finalize(holder, self._unwant, one).atexit = False

    def _unwant(self, one: Want) -> None:
        self._wanted[one] -= 1

    def look(self) -> Scene:
        """Return the scene with what has happened since, and a new look at what is wanted.

        Any thread that holds `lock`; does not wait for a device.
        """
        if self.ended:
            return self.scene
        now = time.monotonic()
        dropped, facts = self._arrived.take()
        self.scene.counted += dropped
        for fact in (*facts, *self._of_worlds.take()[1]):
            self._take(fact)
        lab = self._lab()
        try:
            tree = lab.tree() if lab is not None else None
        except SystemClosed:
            tree = None
        if lab is None or tree is None or tree.state == "stopped":
            self._end(tree)
            return self.scene
        self._take(TreeSampled(root=tree))
        self._sample(lab, tree, now)
        return self.scene

    def _sample(self, lab: Lab, tree: Node, now: float) -> None:
        """Take what the devices and the worlds tell, and what is seen beside them."""
        memory, work = self._is_due("memory", now), self._is_due("work", now)
        worlds = WorldsSampled(worlds=())
        for sample in lab.look(memory=memory, work=work):
            if isinstance(sample, WorldsSampled):
                worlds = sample
                continue
            if isinstance(sample, MemorySampled):
                sample = self._names.put(sample, getattr(lab, "devices", ()))  # noqa: PLW2901
            answered = self._answered["memory" if isinstance(sample, MemorySampled) else "work"]
            answered[sample.device] = sample.at
            self._take(sample)
        if worlds.worlds or self.scene.worlds.in_use:
            self._take(worlds)
        if self._is_due("patterns", now):
            self._see_patterns(lab)
        self._see_peers(lab, tree, now)
        for news in self._beside_work(tree):
            self._take(news)
        if self._is_due("health", now):
            for reading in self._gauges.look(tree, getattr(lab, "backend", "")):
                self._take(reading)
                for alarm in self._alarms.look(reading):
                    lab.events.publish(alarm)

    def _see_patterns(self, lab: Lab) -> None:
        looked = looks(lab.events)
        if looked or self.scene.patterns:
            self._take(PatternsSampled(patterns=looked))

    def _see_peers(self, lab: Lab, tree: Node, now: float) -> None:
        """Take the links between devices where they are wanted, and there are several."""
        several = sum(node.kind == "device" for node in tree.children) > 1
        if several and self._is_due("peers", now) and hasattr(lab, "topology"):
            self._take(lab.topology.look())

    def _beside_work(self, tree: Node) -> Iterator[LevelsSampled | NotebookSampled]:
        """Yield what is new of the notebook, and of how much memory is used."""
        if self._wanted.get("work") and (news := self._notebook.look()) is not None:
            yield news
        if not (self._wanted.get("work") or self._wanted.get("memory")):
            return
        for node in tree.children:
            if node.kind == "device" and node.used_bytes is not None:
                levels = self.scene.levels.get(node.name)
                if not levels or levels[-1][1] != node.used_bytes:
                    level = time.time(), node.used_bytes
                    yield LevelsSampled(device=node.name, levels=(level,))

    def see(self) -> None:
        """Have all that is wanted looked at now, and wait up to a second for the answers.

        Any thread that does not hold `lock`.
        """
        wanted = [one for one in self._answered if self._wanted.get(one)]
        if not wanted:
            return
        asked_at = time.time()
        until = time.monotonic() + ANSWER_S
        with self.lock:
            for one in wanted:
                self._sampled.pop(one, None)
            self.look()
        while not self.ended and not self._has_answered(wanted, asked_at):
            if time.monotonic() >= until:
                return
            time.sleep(POLL_S)
            with self.lock:
                self.look()

    def _has_answered(self, wanted: Iterable[Want], asked_at: float) -> bool:
        """Whether each device that runs has told of all this since."""
        tree = self.scene.tree
        running = [
            node.name
            for node in (() if tree is None else tree.children)
            if node.kind == "device" and node.state == "running"
        ]
        return all(
            self._answered[one].get(name, 0.0) >= asked_at for one in wanted for name in running
        )

    def _is_due(self, one: Want, now: float) -> bool:
        due = (
            self._wanted.get(one, 0) > 0
            and now - self._sampled.get(one, -float("inf")) >= EVERY_S[one]
        )
        if due:
            self._sampled[one] = now
        return due

    def _end(self, tree: Node | None) -> None:
        """Keep the last tree that was seen alive, with every actor stopped."""
        # A tree taken while all is torn down tells of the tearing, not of the work.
        last = self.scene.tree or tree
        if last is not None:
            self._take(TreeSampled(root=stopped(last)))
        lab = self._lab()
        if lab is not None and self._wanted.get("patterns"):
            self._see_patterns(lab)  # what became of the last requests
        self._take(SystemEnded(name=self._name))
        self._following.close()
        self._following_worlds.close()

    def _take(self, fact: Event) -> None:
        self.scene.add(fact)
        for follower in list(self.followers):
            follower(fact)


def stopped(node: Node) -> Node:
    """Return a tree in which nothing runs and nothing waits."""
    return msgspec.structs.replace(
        node,
        state="stopped",
        mailbox=0,
        in_flight=0,
        children=tuple(map(stopped, node.children)),
    )


class Source(Protocol):
    """Where a view's scene comes from: a system that runs, or one that was recorded."""

    lock: threading.RLock

    @property
    def lab(self) -> Lab | None:
        """The system that a view's buttons act upon; None where there is none."""

    @property
    def ended(self) -> bool:
        """Whether nothing more comes."""

    def look(self) -> Scene:
        """Return the scene as it is now; any thread that holds `lock`."""

    def want(self, holder: object, wants: Iterable[Want]) -> None:
        """Sample this as long as `holder` lives."""

    def on_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when something is worth a look at once; returns what ends that."""


_observers: weakref.WeakKeyDictionary[Lab, Observer] = weakref.WeakKeyDictionary()


def observer_of(lab: Lab) -> Observer:
    """Return the observer of a system, which all its views share.

    Raises:
        InvalidArgument: it is no system.
    """
    needed = ("name", "events", "tree", "look")
    if isinstance(lab, type) or not all(hasattr(lab, name) for name in needed):
        raise InvalidArgument(_refusal(lab))
    # Of two threads that come at once one makes an observer in vain: the answers of a device are
    # for a single one.
    return _observers.get(lab) or _observers.setdefault(lab, Observer(lab))


def _refusal(found: object) -> str:
    """Say what a view takes, and of what is close to it, how to see that."""
    if isinstance(found, str | Path):
        this = f"{str(found)!r}; views.journal takes a path, and so does Recording.open"
    elif isinstance(found, type):
        this = f"the class {found.__name__}; make one"
    else:
        hints = {Device: "; give the System it belongs to", Journal: "; views.journal takes one"}
        hint = next((text for kind, text in hints.items() if isinstance(found, kind)), "")
        this = f"of type {type(found).__name__}{hint}"
    return f"a view takes a System or a Recording; this is {this}"
