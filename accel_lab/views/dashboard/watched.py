"""Systems as a dashboard and its metrics see them: of other processes, or one of this process."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol, cast

from accel_lab.compute.events.lifecycle import ContextLost
from accel_lab.views.feed.feed import FEED
from accel_lab.views.feed.journal import journal_of
from accel_lab.views.feed.lines import SCHEMA, Speaker, folder
from accel_lab.views.feed.uptime import Uptime
from accel_lab.views.past.journal import JournalPast
from accel_lab.views.past.player import Player
from accel_lab.views.past.recording import Recording
from accel_lab.views.past.replayable import Replayable
from accel_lab.views.scene.observer import Lab, Observer, Source, Want, observer_of
from accel_lab.views.scene.process_gauge import program
from accel_lab.views.scene.scene import Scene
from accel_lab.views.scene.seen import Seen

HZ = 10.0


class Watched(Source, Protocol):
    """A source that also says where its system is, and how fresh what it says is.

    Attributes:
        key: unique among the systems of this machine.
        speaker: the process.
        name: of the system.
        opened: when it was opened, wall seconds.
        lost: how many samples were lost on the way here.
        losses: how often each device lost its context, as far as that was seen.
        recorded: whether there is no system any more, only what was kept of it.
        unkept: why it cannot be looked back at, as a sentence; empty when it can.
        drawn: what its dashboard has drawn last; here, so that it goes when the source does.
    """

    key: str
    speaker: Speaker
    name: str
    opened: float
    lost: int
    losses: Counter[str]
    recorded: bool
    unkept: str
    drawn: object

    @property
    def up_s(self) -> float:
        """For how long it has been open, in seconds."""

    @property
    def version(self) -> int:
        """What changes with the scene."""

    @property
    def heard_at(self) -> float:
        """When it was last heard of, wall seconds."""

    @property
    def killed(self) -> bool:
        """Whether its process ended without a word."""

    @property
    def silent_s(self) -> float:
        """How long its process has said nothing; 0 once it has ended."""

    @property
    def is_stale(self) -> bool:
        """Whether that is too long."""

    def replayable(self) -> Replayable | None:
        """Return a look of its own at the past; None where there is none.

        Blocks while that is read.
        """


class Onlooker:
    """A source of this process, made one that can only be looked at."""

    lab: Lab | None = None
    killed = False
    silent_s = 0.0
    is_stale = False
    lost = 0
    drawn: object = None

    def __init__(self, lab: Lab | Source, name: str) -> None:
        found = lab if hasattr(lab, "want") else observer_of(lab)
        self._source = cast("Source", found)
        self.lock = self._source.lock
        self.key = self.name = name
        self.speaker = Speaker(
            feed=SCHEMA, pid=os.getpid(), version="", program=program(), folder=folder()
        )
        system = self._source.lab
        self.recorded = system is None
        self.opened = (system and FEED.opened_at(system)) or time.time()
        self._up = Uptime(self.opened)
        self.losses: Counter[str] = Counter()
        self._counted = 0
        journal = None if system is None else journal_of(system)
        self._store = None if journal is None else journal.store
        kept = journal is not None or isinstance(found, Recording)
        self.unkept = "" if kept else "it keeps no journal"

    @property
    def version(self) -> int:
        """A number that is another one ten times a second."""
        return int(time.monotonic() * HZ)

    @property
    def heard_at(self) -> float:
        """Now: nothing is between."""
        return time.time()

    @property
    def up_s(self) -> float:
        """For how long it has been open."""
        return self._up.seconds

    @property
    def ended(self) -> bool:
        """Whether nothing more comes."""
        return self._source.ended

    def look(self) -> Scene:
        """Return the scene as it is now; any thread that holds `lock`."""
        scene = self._source.look()
        for number, fact in reversed(scene.facts):
            if number < self._counted:
                break
            if isinstance(fact, ContextLost) and not fact.asked:
                self.losses[fact.device] += 1
        self._counted = scene.counted
        return scene

    @property
    def seen(self) -> Seen:
        """The looks so far; who holds `lock`."""
        return cast("Observer", self._source).seen

    def replayable(self) -> Replayable | None:
        """Return a look of its own at the past; None where there is none.

        Blocks while that is read.
        """
        if isinstance(self._source, Recording):
            return Replayable(self._source, player=Player(self._source, lock=self.lock))
        if self._store is None:
            return None
        lab = self._source.lab
        journal = None if lab is None else journal_of(lab)
        if journal is None:
            past = JournalPast(self._store, own=True)
        else:
            dropped, lost = journal.dropped, journal.lost
            bound = journal.bound
            past = JournalPast(self._store, dropped=dropped, own=True, lost=lost, bound=bound)
        return Replayable(past, self, stays=True)

    def want(self, holder: object, wants: Iterable[Want]) -> None:
        """Sample this as long as `holder` lives."""
        self._source.want(holder, wants)

    def on_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when something is worth a look at once; returns what ends that."""
        return self._source.on_news(callback)
