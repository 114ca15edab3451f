"""A system as a feed offers it: looked at while somebody reads, and by whoever reads at once."""

import weakref
from collections.abc import Callable, Iterable, Iterator

from accel_lab.actor.events import Event
from accel_lab.compute.events.samples import SystemEnded, TreeSampled
from accel_lab.views.feed.journal import Telling, journal_of
from accel_lab.views.feed.lines import Topic, line_of
from accel_lab.views.scene.observer import EVERY_S, Lab, Observer, observer_of, stopped
from accel_lab.views.scene.recap import recap
from accel_lab.views.scene.sample_changes import REPEATING, repeats, subject

BEAT_S = 1.0  # how often what does not change is sent, as a sign of life


class Shown:
    """A system that is offered, which this does not keep alive."""

    def __init__(self, number: int, lab: Lab, opened: float, gone: Callable[[], None]) -> None:
        kept = journal_of(lab) is not None
        self.topic = Topic(system=number, name=lab.name, opened=opened, journal=kept)
        self.line = line_of(self.topic)
        self.lab = weakref.ref(lab, lambda _: self._gone(gone))
        self.ended = False
        self._observer: Observer | None = None
        self._wants: _Wants | None = None
        self._arrived: list[Event] = []
        self._told: dict[tuple[type[Event], str], Event] = {}  # of each kind and device, the last

    def _gone(self, gone: Callable[[], None]) -> None:
        self.ended = True
        gone()

    def begin(self) -> bool:
        """Begin to look at the system; return whether that had not begun."""
        lab = self.lab()
        if self._observer is not None or lab is None:
            return False
        observer = observer_of(lab)
        with observer.lock:
            self._observer, self._wants = observer, _Wants()
            observer.want(self._wants, EVERY_S)
            observer.followers.append(self._arrived.append)
        return True

    def rest(self) -> None:
        """Look no more, and have nothing sampled."""
        if self._observer is not None:
            with self._observer.lock:
                self._observer.followers.remove(self._arrived.append)
            self._observer = self._wants = None
            self._arrived.clear()
            self._told.clear()

    def look(self, *, anew: bool) -> tuple[list[Event], list[Event]]:
        """Return the facts since the last look, and those of the scene so far if asked `anew`."""
        if self._observer is None:
            return [], []
        with self._observer.lock:
            scene = self._observer.look()
            arrived = _but_the_end(self._arrived)
            so_far = _but_the_end(recap(scene)) if anew else []
            self._arrived.clear()
            # A journal goes on until the system is closed, which takes longer than to look closed.
            self.ended |= scene.closed and not self.topic.journal
            if self.ended:
                if not scene.closed and scene.tree is not None:  # the process ends before it does
                    arrived.append(TreeSampled(root=stopped(scene.tree)))
                end = SystemEnded(name=self.topic.name)
                arrived.append(end)
                so_far.append(end)
        return list(self._news(arrived)), so_far

    def telling(self) -> Telling | None:
        """Return what tells a new reader of the journal; None without one."""
        lab = self.lab()
        journal = None if lab is None else journal_of(lab)
        return None if journal is None else Telling(journal)

    def _news(self, arrived: list[Event]) -> Iterator[Event]:
        """Leave out the trees that another follows, and samples that say nothing new."""
        last = max((i for i, one in enumerate(arrived) if isinstance(one, TreeSampled)), default=-1)
        for i, fact in enumerate(arrived):
            if isinstance(fact, TreeSampled) and i < last:
                continue
            if isinstance(fact, REPEATING):
                key = subject(fact)
                before = self._told.get(key)
                if before and fact.at - before.at < BEAT_S and repeats(fact, before):
                    continue
                self._told[key] = fact
            yield fact


class _Wants:
    """What lives as long as somebody reads."""


def _but_the_end(facts: Iterable[Event]) -> list[Event]:
    return [fact for fact in facts if not isinstance(fact, SystemEnded)]
