"""A reader of a feed: what it has not read yet, and what it lost because it is slow.

It loses samples only, and is told how many; never what supervision says and does: one that leaves
too much of that unread is hung up on, and may come again.
"""

import socket
from functools import cached_property

import msgspec

from accel_lab.actor.events import Event
from accel_lab.compute.events.samples import WorkTraced
from accel_lab.views.feed.journal import Telling
from accel_lab.views.feed.lines import Loss, Topic, line_of, speaker
from accel_lab.views.feed.offered import Shown
from accel_lab.views.scene.fact_lines import encode
from accel_lab.views.scene.scene import NEWS_TYPES

UNREAD_BYTES = 512 << 10  # from there on it loses samples
JOURNAL_BYTES = 32 << 10  # from there on it is told no more of a journal
HANG_UP_BYTES = 8 << 20
SLOW = "whoever reads it here was too slow for the rest"


class Reader:
    """One connection: what it has not read yet, and what it lost."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.unread = bytearray(line_of(speaker()))
        self.lost = 0
        self._said = 0
        self._topic: Topic | None = None
        self._untold: dict[tuple[int, str], int] = {}  # slices, by system and device
        self._tellings: dict[int, Telling | None] = {}  # of journals, by system
        self.gone = False

    def take(self, shown: Shown, told: "Told") -> None:
        """Queue what is new of a system: samples only while there is room."""
        self.gone |= len(self.unread) > HANG_UP_BYTES
        kept = shown.ended or isinstance(told.fact, NEWS_TYPES)
        if not kept and len(self.unread) > UNREAD_BYTES:
            self._lose(shown, told.fact)
            return
        if self.lost > self._said:
            self._said = self.lost
            self.unread += line_of(Loss(lost=self.lost))
        self.tell(shown, self._counted(shown, told.fact) or told.line)

    def tell(self, shown: Shown, line: bytes) -> None:
        """Queue a line of a system, however much is unread."""
        if self._topic is not shown.topic:
            self._topic = shown.topic
            self.unread += shown.line
        self.unread += line

    def tell_journal(self, shown: Shown) -> None:
        """Queue what is new of a journal while there is room."""
        telling = self._telling(shown)
        if telling is None or len(self.unread) > JOURNAL_BYTES:
            return
        for passage in telling.take():
            self.tell(shown, passage.line)

    def hurry(self, shown: Shown) -> None:
        """Have all that is left of a journal looked for; does not wait for it."""
        if (telling := self._telling(shown)) is not None:
            telling.hurry()

    def tell_rest(self, shown: Shown, until: float) -> None:
        """Queue what is left of a journal that has ended, and say so when that is not all.

        Parameters:
            until: how long this may wait for its store, monotonic seconds.
        """
        telling = self._telling(shown)
        if telling is None:
            return
        self._tellings[shown.topic.system] = None
        found, why = telling.rest(until)
        for passage in found:
            if len(self.unread) > HANG_UP_BYTES // 2:
                why = SLOW
                break
            self.tell(shown, passage.line)
        if why:
            self.tell(shown, line_of(msgspec.structs.replace(shown.topic, unread=why)))

    def _telling(self, shown: Shown) -> Telling | None:
        """Return what tells of a journal; None without one, and after its end."""
        number = shown.topic.system
        if number not in self._tellings:
            self._tellings[number] = shown.telling()
        return self._tellings[number]

    def _lose(self, shown: Shown, fact: Event) -> None:
        self.lost += 1
        if isinstance(fact, WorkTraced):
            key = shown.topic.system, fact.device
            self._untold[key] = self._untold.get(key, 0) + len(fact.done) + fact.dropped

    def _counted(self, shown: Shown, fact: Event) -> bytes | None:
        """Return a line of work that counts the work in lines that were lost before it."""
        if not self._untold or not isinstance(fact, WorkTraced):
            return None
        lost = self._untold.pop((shown.topic.system, fact.device), 0)
        return encode(msgspec.structs.replace(fact, dropped=fact.dropped + lost)) if lost else None

    def send(self) -> None:
        """Write as much as the other end takes; does not wait."""
        try:
            while self.unread and not self.gone:
                sent = self.socket.send(self.unread[: 256 << 10])
                del self.unread[:sent]
        except BlockingIOError:
            return
        except OSError:
            self.gone = True

    def hear(self) -> None:
        """Take it as the end if anything came: a reader has nothing to say."""
        try:
            self.socket.recv(1)
        except BlockingIOError:
            return
        except OSError:
            pass
        self.gone = True


class Told:
    """A fact, and its line once a reader wants that."""

    def __init__(self, fact: Event) -> None:
        self.fact = fact

    @cached_property
    def line(self) -> bytes:
        """It as it is sent."""
        return encode(self.fact)
