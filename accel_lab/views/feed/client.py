"""The other end of the feeds: finds every process of this user that has one, and reads them all."""

import errno
import os
import selectors
import socket
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from accel_lab.actor.events import Event, warn_of
from accel_lab.compute.events.lifecycle import ContextLost
from accel_lab.compute.events.samples import SystemEnded, TreeSampled
from accel_lab.display.sizes import size
from accel_lab.errors import JournalError, RecordingError
from accel_lab.journal.stores.memory import MemoryStore
from accel_lab.uncopied import Uncopied
from accel_lab.views.feed import folder as feed_folder
from accel_lab.views.feed.folder import Name
from accel_lab.views.feed.journal import TOLD_BYTES, Passage
from accel_lab.views.feed.lines import SCHEMA, Loss, Speaker, Topic
from accel_lab.views.feed.uptime import Uptime
from accel_lab.views.past.journal import JournalPast
from accel_lab.views.past.replayable import Replayable
from accel_lab.views.scene.fact_lines import decode
from accel_lab.views.scene.observer import Lab, Want, stopped
from accel_lab.views.scene.scene import NEWS_TYPES, Scene
from accel_lab.views.scene.seen import Seen

LOOK_EVERY_S = 0.25  # for processes that are new
STALE_AFTER_S = 1.8  # as `widgets/shared/freshness.js`
ENDED_KEPT = 8
ENDED_KEPT_S = 3600.0
JOURNAL_SINCE = 2  # of the feed's schema
BOUND = f"the dashboard keeps {size(TOLD_BYTES)} of a journal; views.journal(lab) shows all of it"
SETTLED_S = 1.0  # after which what a process has not said will not come
_SCARCE = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}  # says nothing of what was asked for
_CHUNK = 256 << 10
_LINE_LIMIT = 64 << 20


class FeedSource(Uncopied):
    """One system of another process: a source for views.

    Whoever looks, and whoever reads the scene, holds `lock`.

    Attributes:
        key: unique among the systems of this machine.
        speaker: the process.
        name: of the system.
        opened: when it was opened, wall seconds.
        heard: when its process last said something, monotonic seconds.
        heard_at: the same, wall seconds.
        ended_at: when nothing more came of it, monotonic seconds; None while it runs.
        killed: whether its process ended without a word.
        version: changes with the scene.
        lost: how many samples of its process were lost on the way here.
        losses: how often each device lost its context, as far as that was seen.
        seen: what was heard, moment by moment.
        unkept: why it cannot be looked back at, as a sentence; empty when it can.
        unread: why its journal ends before the system did; empty while it does not.
        drawn: what its dashboard has drawn last; here, so that it goes when the source does.
    """

    lab: Lab | None = None
    recorded = False
    drawn: object = None

    def __init__(self, key: str, speaker: Speaker, topic: Topic) -> None:
        self.lock = threading.RLock()
        self.key, self.speaker = key, speaker
        self.name, self.opened = topic.name, topic.opened
        self._up = Uptime(topic.opened)
        self.ended_at: float | None = None
        self.killed = False
        self.version = 0
        self.lost = 0
        self.unkept = _unkept(speaker, topic)
        self.unread = ""
        self._journal = MemoryStore()
        self._missed = self._entries = 0  # of the journal: untold, and all
        self._pasts: weakref.WeakSet[_Past] = weakref.WeakSet()
        self.heard, self.heard_at = time.monotonic(), time.time()
        self._callbacks: list[Callable[[], None]] = []
        self.begin()

    def begin(self) -> None:
        """Forget the scene: it is told anew."""
        with self.lock:
            self._scene = Scene()
            self.seen = Seen(self._scene)
            self.losses: Counter[str] = Counter()
            self.version += 1

    @property
    def ended(self) -> bool:
        """Whether nothing more comes."""
        return self.ended_at is not None

    @property
    def up_s(self) -> float:
        """For how long it has been open, in seconds."""
        return self._up.seconds

    @property
    def silent_s(self) -> float:
        """How long its process has said nothing; 0 once it has ended."""
        return 0.0 if self.ended else time.monotonic() - self.heard

    @property
    def is_stale(self) -> bool:
        """Whether that is too long: the process is stopped, or does not let other threads run."""
        return self.silent_s > STALE_AFTER_S

    def look(self) -> Scene:
        """Return the scene as far as it was heard; who holds `lock`. Does not block."""
        return self._scene

    def want(self, holder: object, wants: Iterable[Want]) -> None:
        """Do nothing: a feed tells everything."""

    def on_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when supervision said something; in the reading thread."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    def hear(self, fact: Event) -> None:
        """Take a fact; the reading thread."""
        with self.lock:
            self._scene.add(fact)
            self.seen.take(fact)
            self.version += 1
            if isinstance(fact, ContextLost) and not fact.asked:
                self.losses[fact.device] += 1
            if isinstance(fact, SystemEnded) and self.ended_at is None:
                self.ended_at = time.monotonic()
        if isinstance(fact, NEWS_TYPES):
            for callback in list(self._callbacks):
                callback()

    def read(self, passage: Passage) -> None:
        """Take a piece of its journal; the reading thread."""
        with self.lock:
            missed = max(0, passage.first - self._entries)
            self._missed += missed
            for past in self._pasts:
                past.dropped += missed
            self._entries = max(self._entries, passage.first + passage.group.entries)
            self._journal.append([passage.group], {})
            self._journal.keep_within(TOLD_BYTES)
            self.version += 1

    def end_journal(self, why: str) -> None:
        """Take it that nothing more of its journal comes, though there is more; reading thread."""
        with self.lock:
            self.unread = why
            for past in self._pasts:
                past.unread = past.unread or why
            self.version += 1

    def replayable(self) -> Replayable | None:
        """Return a look of its own at the past, live at first; None where nothing is told of that.

        Blocks while what was told is read. Once it looks back it stays at what there is then.
        """
        if self.unkept:
            return None
        missed = self._missed
        past = _Past(self._journal, dropped=missed + self._journal.dropped, bound=BOUND)
        with self.lock:
            past.dropped += self._missed - missed
            past.unread = past.unread or self.unread
            self._pasts.add(past)
        return Replayable(past, self, stays=True)

    def vanish(self) -> None:
        """Say that its process is gone without a word."""
        if self.ended:
            return
        self.killed = True
        if self._scene.tree is not None:
            self.hear(TreeSampled(root=stopped(self._scene.tree)))
        self.hear(SystemEnded(name=self.name))


class _Past(JournalPast):
    """The journal of another process, up to what cannot be read in this one."""

    def read(self) -> None:
        """Take in what was told since."""
        try:
            super().read()
        except JournalError as error:
            self.unread = str(error)


class _Place(NamedTuple):
    """Where a process has its feed."""

    folder: Path
    name: Name

    @property
    def lives(self) -> bool:
        """Whether the process still runs; it does while nobody may or can tell."""
        try:
            return self.name.lives
        except OSError:
            return True


class _Connection:
    """What one process has said, as far as it was read."""

    def __init__(self, connected: socket.socket, place: _Place) -> None:
        self.socket = connected
        self.place = place
        self.speaker: Speaker | None = None
        self.since = self.heard = time.monotonic()
        self.said = bytearray()
        self.topic: FeedSource | None = None
        self.sources: dict[str, FeedSource] = {}


class Watch:
    """The systems of all processes of this user, read by one thread until it is closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sources: dict[str, FeedSource] = {}
        self._connections: dict[_Place, _Connection] = {}
        self._adrift: dict[_Place, list[FeedSource]] = {}  # whose connection broke
        self._refused: set[_Place] = set()
        self._selector = selectors.DefaultSelector()
        self._woken = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="accel_lab watch", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # no thread can be had
            self._selector.close()
            os.close(self._woken)
            raise

    def sources(self) -> list[FeedSource]:
        """Return the systems, those that run first, the newest first; any thread.

        The last 8 that ended within the last hour are among them.
        """
        with self._lock:
            sources = list(self._sources.values())
        return sorted(sources, key=lambda one: (one.ended, -one.opened))

    def close(self) -> None:
        """Hang up everywhere and wait for the thread to end."""
        with self._lock:
            closed, self._closed = self._closed, True
        if closed:
            return
        os.eventfd_write(self._woken, 1)
        self._thread.join()
        os.close(self._woken)

    def _run(self) -> None:
        looked = -float("inf")
        try:
            while not self._closed:
                now = time.monotonic()
                if now - looked >= LOOK_EVERY_S:
                    looked = now
                    with suppress(OSError):  # as where no descriptor is left; the next look is soon
                        self._settle(self._look())
                    self._forget(now)
                wait_s = max(0.0, looked + LOOK_EVERY_S - time.monotonic())
                for key, _ in self._selector.select(wait_s):
                    if key.data is not None:
                        self._read(key.data)
        finally:
            for connection in self._connections.values():
                connection.socket.close()
            self._selector.close()

    def _look(self) -> set[_Place]:
        """Find new processes, and clean up after dead ones; return where there are feeds."""
        there: set[_Place] = set()
        for folder in feed_folder.folders():
            try:
                entered = feed_folder.enter(folder)
            except OSError as error:
                if error.errno in _SCARCE:
                    raise
                continue  # not there, or not safe
            try:
                for name in feed_folder.names(entered):
                    place = _Place(folder, name)
                    there.add(place)
                    if place not in self._connections and place not in self._refused:
                        self._connect(place, entered)
            finally:
                os.close(entered)
        self._refused &= there
        return there

    def _settle(self, there: set[_Place]) -> None:
        """Tell the end of what has ended without a word."""
        now = time.monotonic()
        for place, connection in list(self._connections.items()):
            # Somebody else, as a child that C code forked, holds the other end of a dead process.
            if now - connection.heard > SETTLED_S and not place.lives:
                self._hear_out(connection)
        for place, sources in list(self._adrift.items()):
            again = self._connections.get(place)
            if again is None and place.lives and place in there:
                continue  # it may let us in again
            if again is not None and now - again.since < SETTLED_S:
                continue  # it has not told of all of its systems yet
            del self._adrift[place]
            for source in sources:
                if again is None or source.key not in again.sources:
                    source.vanish()

    def _hear_out(self, connection: _Connection) -> None:
        """Read the last words of a dead process, and hang up."""
        while self._connections.get(connection.place) is connection:
            if not self._read(connection):
                self._end(connection)

    def _connect(self, place: _Place, entered: int) -> None:
        """Connect to a process; one that does not let us in is asked again with the next look."""
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        connection = _Connection(connected, place)
        try:
            connected.connect(feed_folder.path(entered, place.name))
            if not feed_folder.is_mine(connected):
                raise PermissionError
            self._selector.register(connected, selectors.EVENT_READ, connection)
        except OSError as error:
            connected.close()
            # A process in another namespace seems dead, but answers: only who does not is.
            if isinstance(error, ConnectionRefusedError) and not place.lives:
                with suppress(OSError):
                    feed_folder.remove(entered, place.name)
            return
        self._connections[place] = connection

    def _read(self, connection: _Connection) -> bool:
        """Take what there is; return whether there was anything, an end included."""
        try:
            heard = connection.socket.recv(_CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            heard = b""
        connection.said += heard
        connection.heard = time.monotonic()
        *lines, rest = connection.said.split(b"\n")
        connection.said = rest
        try:
            for line in lines:
                self._take(connection, bytes(line))
        except Exception as error:  # noqa: BLE001 - one process's mistake is not the others'
            warn_of(error, f"the feed of process {connection.place.name.pid} cannot be read")
            self._refused.add(connection.place)
            heard = b""
        if not heard or len(rest) > _LINE_LIMIT:
            self._end(connection)
            return True
        for source in connection.sources.values():
            source.heard, source.heard_at = connection.heard, time.time()
        return True

    def _take(self, connection: _Connection, line: bytes) -> None:
        if connection.speaker is None:
            connection.speaker = msgspec.json.decode(line, type=Speaker)
            if connection.speaker.feed > SCHEMA:
                raise RecordingError(
                    f"it is of schema {connection.speaker.feed}; accel_lab "
                    f"{connection.speaker.version} wrote it, and this one reads up to {SCHEMA}"
                )
        elif line.startswith(b'{"type"'):
            assert connection.topic is not None, "a fact follows its topic"
            connection.topic.hear(decode(line))
        elif line.startswith(b'{"group"'):
            assert connection.topic is not None, "a piece of a journal follows its topic"
            connection.topic.read(msgspec.json.decode(line, type=Passage))
        elif line.startswith(b'{"lost"'):
            for source in connection.sources.values():
                source.lost = msgspec.json.decode(line, type=Loss).lost
        else:
            topic = msgspec.json.decode(line, type=Topic)
            connection.topic = self._source(connection, topic)
            if topic.unread:
                connection.topic.end_journal(topic.unread)

    def _source(self, connection: _Connection, topic: Topic) -> FeedSource:
        """Return a system of a process; one that was known from an earlier connection, too."""
        assert connection.speaker is not None
        name = connection.place.name
        key = f"{name.pid}-{name.began}-{topic.system}"
        if key not in connection.sources:
            with self._lock:
                known = self._sources.get(key)
                if known is None:
                    known = self._sources[key] = FeedSource(key, connection.speaker, topic)
                else:
                    known.begin()
            connection.sources[key] = known
        return connection.sources[key]

    def _end(self, connection: _Connection) -> None:
        """Hang up; whether its systems have ended shows when we look for it again."""
        del self._connections[connection.place]
        self._selector.unregister(connection.socket)
        connection.socket.close()
        self._adrift.setdefault(connection.place, []).extend(connection.sources.values())

    def _forget(self, now: float) -> None:
        with self._lock:
            ended = sorted(
                ((one.ended_at, key) for key, one in self._sources.items() if one.ended_at),
                reverse=True,
            )
            for position, (at, key) in enumerate(ended):
                if position >= ENDED_KEPT or now - at > ENDED_KEPT_S:
                    del self._sources[key]
                    for connection in self._connections.values():
                        connection.sources.pop(key, None)


def _unkept(speaker: Speaker, topic: Topic) -> str:
    """Say why there is nothing to look back at."""
    if speaker.feed < JOURNAL_SINCE:
        return (
            f"accel_lab {speaker.version} of its process tells nothing of its journal; a later one "
            "does"
        )
    return "" if topic.journal else "it keeps no journal"
