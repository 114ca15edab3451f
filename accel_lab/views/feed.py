"""The feed: what happens to the systems of this process, for dashboards of the same user.

It begins with the first system that is open and ends with the last. While nobody is connected its
one thread sleeps and nothing is sampled. The wire is lines of JSON: first who speaks (`Speaker`),
then `Topic` lines, each of which says whose the lines after it are: facts, as `tape.py` writes
them, and pieces of the journal, as `feed_journal.py` takes them. A reader that is slow loses
samples, which `Loss` lines count; it never loses what supervision says and does: one that leaves
too much of that unread is hung up on, and may come again.
"""

import atexit
import contextlib
import os
import select
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from accel_lab import system
from accel_lab.actor.events import Event, warn_of
from accel_lab.compute.samples import SystemEnded, TreeSampled, WorkTraced
from accel_lab.compute.tree import Node
from accel_lab.views import feed_folder
from accel_lab.views.feed_folder import Name
from accel_lab.views.feed_journal import Telling, journal_of
from accel_lab.views.observer import EVERY_S, Lab, Observer, observer_of, stopped
from accel_lab.views.recap import recap
from accel_lab.views.scene import FACT_TYPES
from accel_lab.views.tape import encode

SCHEMA = 2
"""The version of the lines; since 2 they tell the journal. A reader refuses a later one by name."""
HZ = 10.0
BEAT_S = 1.0  # how often a tree that does not change is sent, as a sign of life
UNREAD_BYTES = 512 << 10  # of a reader that loses samples from there on
JOURNAL_BYTES = 32 << 10  # of a reader that is told no more of a journal from there on
HANG_UP_BYTES = 8 << 20
READERS = 16
FAREWELL_S = 0.3


class Speaker(msgspec.Struct, frozen=True, kw_only=True):
    """The first line: which process speaks.

    Attributes:
        feed: the schema of what follows.
        pid: of the process.
        version: of accel_lab.
        program: the notebook, or the script.
        folder: the process's working directory.
    """

    feed: int
    pid: int
    version: str
    program: str
    folder: str


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """A line that says of which system the facts after it tell.

    Attributes:
        system: its number in this process.
        name: what it is called.
        opened: when, wall seconds.
        journal: whether it keeps one.
    """

    system: int
    name: str
    opened: float
    journal: bool = False


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """A line that says how many samples this reader has lost so far."""

    lost: int


class Feed:
    """The feed of this process."""

    def __init__(self) -> None:
        self._opened: weakref.WeakKeyDictionary[Lab, float] = weakref.WeakKeyDictionary()
        self._start_over()

    def _start_over(self) -> None:
        # Re-entrant because a finalizer may wake the thread at any allocation.
        self.lock = threading.RLock()
        self._shown: list[_Shown] = []
        self._numbers = iter(range(1, 1 << 62))
        self._server: _Server | None = None  # the last there was

    def add(self, lab: Lab) -> None:
        """Offer a system; any thread, does not block. A feed that cannot be is a warning."""
        opened = self._opened[lab] = time.time()
        if os.environ.get("ACCEL_LAB_FEED") == "0":
            return
        try:
            with self.lock:
                if self._server is None or not self._server.is_open:
                    self._server = _Server(self)
                self._shown.append(_Shown(next(self._numbers), lab, opened, self.wake))
        except (OSError, RuntimeError) as error:
            warn_of(error, "no dashboard can watch the systems of this process")
        else:
            self.wake()

    def opened_at(self, lab: Lab) -> float | None:
        """Return when a system was opened, wall seconds; None if that is unknown."""
        return self._opened.get(lab)

    def remove(self, lab: Lab) -> None:
        """Tell whoever reads that a system has ended; waits for the feed's end after the last."""
        with self.lock:
            for one in self._shown:
                one.ended |= one.lab() is lab
        self._settle()

    def close(self) -> None:
        """End the feed, and remove its file."""
        with self.lock:
            for one in self._shown:
                one.ended = True
        self._settle()

    def _settle(self) -> None:
        """Have the thread look at once, and wait for it if it has nothing left to do."""
        self.wake()
        server = self._server
        if server is not None and all(one.ended for one in self._shown):
            server.join(2 * FAREWELL_S)

    def wake(self) -> None:
        """Have the thread look at once; any thread, a finalizer included."""
        with self.lock:
            if self._server is not None:
                self._server.wake()

    def shown(self) -> "list[_Shown]":
        """Return the systems that are offered."""
        with self.lock:
            return list(self._shown)

    def forget(self, ended: "list[_Shown]") -> bool:
        """Offer these no more; return whether none is left, and take the file away then."""
        with self.lock:
            self._shown = [one for one in self._shown if one not in ended]
            if self._shown or self._server is None:
                return False
            self._server.retire()
            return True

    def forked(self) -> None:
        """Let go of what belongs to the parent; in the child of a fork."""
        server = self._server
        self._start_over()  # first: another thread may have held the lock
        if server is not None:
            server.drop()


class _Shown:
    """A system that is offered, which this does not keep alive."""

    def __init__(self, number: int, lab: Lab, opened: float, gone: Callable[[], None]) -> None:
        kept = journal_of(lab) is not None
        self.topic = Topic(system=number, name=lab.name, opened=opened, journal=kept)
        self.line = _line(self.topic)
        self.lab = weakref.ref(lab, lambda _: self._gone(gone))
        self.ended = False
        self._observer: Observer | None = None
        self._wants: _Wants | None = None
        self._arrived: list[Event] = []
        self._tree: Node | None = None
        self._told_at = 0.0

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
        """Leave out the trees that another follows, or that say nothing new."""
        last = max((i for i, one in enumerate(arrived) if isinstance(one, TreeSampled)), default=-1)
        for i, fact in enumerate(arrived):
            if isinstance(fact, TreeSampled):
                if i < last or (fact.root == self._tree and fact.at - self._told_at < BEAT_S):
                    continue
                self._tree, self._told_at = fact.root, fact.at
            yield fact


class _Wants:
    """What lives as long as somebody reads."""


class _Told:
    """A fact, and its line once a reader wants that."""

    def __init__(self, fact: Event) -> None:
        self.fact = fact

    @cached_property
    def line(self) -> bytes:
        return encode(self.fact)


class _Reader:
    """One connection: what it has not read yet, and what it lost."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.unread = bytearray(_line(_speaker()))
        self.lost = 0
        self._said = 0
        self._topic: Topic | None = None
        self._untold: dict[tuple[int, str], int] = {}  # slices, by system and device
        self._tellings: dict[int, Telling | None] = {}  # of journals, by system
        self.gone = False

    def take(self, shown: _Shown, told: _Told) -> None:
        """Queue what is new of a system: samples only while there is room."""
        self.gone |= len(self.unread) > HANG_UP_BYTES
        kept = shown.ended or isinstance(told.fact, FACT_TYPES)
        if not kept and len(self.unread) > UNREAD_BYTES:
            self._lose(shown, told.fact)
            return
        if self.lost > self._said:
            self._said = self.lost
            self.unread += _line(Loss(lost=self.lost))
        self.tell(shown, self._counted(shown, told.fact) or told.line)

    def tell(self, shown: _Shown, line: bytes) -> None:
        if self._topic is not shown.topic:
            self._topic = shown.topic
            self.unread += shown.line
        self.unread += line

    def tell_journal(self, shown: _Shown) -> None:
        """Queue what is new of a journal while there is room, and what is left at its end."""
        if not shown.topic.journal:
            return
        number = shown.topic.system
        if number not in self._tellings:
            self._tellings[number] = shown.telling()
        telling = self._tellings[number]
        if telling is None or (len(self.unread) > JOURNAL_BYTES and not shown.ended):
            return
        for passage in telling.rest() if shown.ended else telling.take():
            if len(self.unread) > HANG_UP_BYTES // 2:
                return
            self.tell(shown, passage.line)

    def _lose(self, shown: _Shown, fact: Event) -> None:
        self.lost += 1
        if isinstance(fact, WorkTraced):
            key = shown.topic.system, fact.device
            self._untold[key] = self._untold.get(key, 0) + len(fact.done) + fact.dropped

    def _counted(self, shown: _Shown, fact: Event) -> bytes | None:
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


class _Server:
    """The socket, its file, and the thread that serves it."""

    def __init__(self, feed: Feed) -> None:
        name = Name.of(os.getpid())
        assert name is not None  # this process lives
        self._feed, self._name = feed, name
        self._folder = feed_folder.make()
        try:
            self._listening = self._listen()
        except OSError:
            os.close(self._folder)
            raise
        self._woken = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._descriptors = [self._folder, self._woken]
        self._readers: list[_Reader] = []
        self._due = 0.0
        self.is_open = True
        self._thread = threading.Thread(target=self._run, name="accel_lab feed", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self.retire()
            self.drop()
            raise

    def _listen(self) -> socket.socket:
        feed_folder.remove(self._folder, self._name)  # as a crashed feed of this process left it
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            os.fchmod(listening.fileno(), 0o600)  # the file gets this mode as it is made
            listening.bind(feed_folder.path(self._folder, self._name))
            listening.listen(READERS)
        except OSError:
            listening.close()
            raise
        return listening

    def wake(self) -> None:
        """End the thread's sleep; who holds the feed's lock."""
        if self.is_open:
            os.eventfd_write(self._woken, 1)

    def join(self, timeout_s: float) -> None:
        """Wait for the thread to end, unless this is it."""
        if self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def retire(self) -> None:
        """Take the file away and be woken no more; who holds the feed's lock."""
        self.is_open = False
        feed_folder.remove(self._folder, self._name)

    def drop(self) -> None:
        """Close every descriptor; says nothing to anybody, and leaves the file.

        Safe to repeat: a fork does, long after the end, when the numbers are those of other files.
        """
        self.is_open = False
        for reader in self._readers:
            reader.socket.close()
        self._listening.close()
        while self._descriptors:
            os.close(self._descriptors.pop())

    def _run(self) -> None:
        try:
            while self._serve():
                pass
            self._bid_farewell()
        except Exception as error:  # noqa: BLE001 - there is nobody to raise it to
            warn_of(error, "the feed of this process has failed; no dashboard can watch it")
            self._feed.forget(self._feed.shown())
        self.drop()

    def _serve(self) -> bool:
        """Do what is to be done, then; return whether to go on."""
        ready = self._sleep()
        leaving = [one for one in self._feed.shown() if one.ended]
        for reader in self._readers:
            if reader.socket.fileno() in ready:
                reader.hear()
        new = self._welcome(ready)
        is_due = self._woken in ready or time.monotonic() >= self._due
        if self._readers and (is_due or new or leaving):
            self._due = time.monotonic() + 1 / HZ
            self._tell(new)
        for reader in self._readers:
            reader.send()
        self._hang_up()
        return not self._feed.forget(leaving)

    def _sleep(self) -> set[int]:
        """Wait for something to do; return the descriptors that have it."""
        poll = select.poll()
        poll.register(self._listening, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        for reader in self._readers:
            poll.register(reader.socket, select.POLLIN | (select.POLLOUT if reader.unread else 0))
        # Nobody reads: sleep until somebody comes.
        wait_s = max(0.0, self._due - time.monotonic()) if self._readers else None
        ready = {fd for fd, _ in poll.poll(None if wait_s is None else wait_s * 1000)}
        if self._woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._woken)
        return ready

    def _welcome(self, ready: set[int]) -> list[_Reader]:
        """Take in who came, if it is this user and there is room."""
        new: list[_Reader] = []
        if self._listening.fileno() not in ready:
            return new
        with contextlib.suppress(BlockingIOError):
            while True:
                connection, _ = self._listening.accept()
                room = len(self._readers) + len(new) < READERS
                if not room or not feed_folder.is_mine(connection):
                    connection.close()
                    continue
                connection.settimeout(0)
                new.append(_Reader(connection))
        self._readers += new
        return new

    def _tell(self, new: list[_Reader]) -> None:
        """Look at every system and queue what is new, and all that was for who is new."""
        for shown in self._feed.shown():
            begins = shown.begin()
            news, so_far = shown.look(anew=begins or bool(new))
            late = self._readers if begins else new
            if shown.ended:
                # The last fact says that nothing more comes.
                self._tell_journal(shown)
            for fact in so_far:
                line = encode(fact)
                for reader in late:
                    reader.tell(shown, line)
            # One line at a time: what no reader has room for is not even made.
            for told in map(_Told, news):
                for reader in self._readers:
                    if reader not in late:
                        reader.take(shown, told)
            if not shown.ended:
                self._tell_journal(shown)

    def _tell_journal(self, shown: _Shown) -> None:
        for reader in self._readers:
            reader.tell_journal(shown)

    def _hang_up(self) -> None:
        if not any(reader.gone for reader in self._readers):
            return
        for reader in self._readers:
            if reader.gone:
                reader.socket.close()
        self._readers = [reader for reader in self._readers if not reader.gone]
        if not self._readers:
            for shown in self._feed.shown():
                shown.rest()

    def _bid_farewell(self) -> None:
        """Let those who read have the last facts."""
        until = time.monotonic() + FAREWELL_S
        for reader in self._readers:
            while reader.unread and not reader.gone and time.monotonic() < until:
                select.select([], [reader.socket], [], max(0.0, until - time.monotonic()))
                reader.send()


def _but_the_end(facts: Iterable[Event]) -> list[Event]:
    return [fact for fact in facts if not isinstance(fact, SystemEnded)]


def _line(said: msgspec.Struct) -> bytes:
    return msgspec.json.encode(said) + b"\n"


def _speaker() -> Speaker:
    try:
        release = version("accel-lab")
    except PackageNotFoundError:  # a source folder on the path
        release = ""
    try:
        folder = str(Path.cwd())
    except FileNotFoundError:
        folder = ""
    return Speaker(feed=SCHEMA, pid=os.getpid(), version=release, program=program(), folder=folder)


def program() -> str:
    """Return what runs in this process: the notebook's file name, else the script's."""
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive is not None else None
    if hasattr(shell, "kernel"):
        # Jupyter's server sets it. What a notebook starts inherits it, but is no kernel.
        return Path(os.environ.get("JPY_SESSION_NAME", "")).name or "notebook"
    return Path(sys.argv[0]).name if sys.argv[0] not in {"", "-", "-c"} else "python"


FEED = Feed()
system.opened.append(FEED.add)
system.ended.append(FEED.remove)
os.register_at_fork(after_in_child=FEED.forked)
atexit.register(FEED.close)
