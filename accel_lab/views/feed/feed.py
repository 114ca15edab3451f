"""The feed: what happens to the systems of this process, for dashboards of the same user.

It begins with the first system that is open and ends with the last. While nobody is connected its
one thread sleeps and nothing is sampled. `lines.py` has the wire, `offered.py` the systems
and `reader.py` those who read.
"""

import atexit
import contextlib
import os
import select
import socket
import threading
import time
import weakref

from accel_lab import open_systems
from accel_lab.actor.events import warn_of
from accel_lab.uncopied import Uncopied
from accel_lab.views.feed import folder
from accel_lab.views.feed.folder import Name
from accel_lab.views.feed.offered import Shown
from accel_lab.views.feed.reader import Reader, Told
from accel_lab.views.scene.fact_lines import encode
from accel_lab.views.scene.observer import Lab

HZ = 10.0
READERS = 16
FAREWELL_S = 0.3
"""How long the end of a system waits for its journal's store, for the sake of those who read; and
the end of the feed for those who read themselves."""


class Feed(Uncopied):
    """The feed of this process."""

    def __init__(self) -> None:
        self._opened: weakref.WeakKeyDictionary[Lab, float] = weakref.WeakKeyDictionary()
        self._start_over()

    def _start_over(self) -> None:
        # Re-entrant because a finalizer may wake the thread at any allocation.
        self.lock = threading.RLock()
        self._shown: list[Shown] = []
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
                self._shown.append(Shown(next(self._numbers), lab, opened, self.wake))
        except (OSError, RuntimeError) as error:
            warn_of(error, "no dashboard can watch the systems of this process")
        else:
            self.wake()

    def opened_at(self, lab: Lab) -> float | None:
        """Return when a system was opened, wall seconds; None if that is unknown."""
        return self._opened.get(lab)

    def remove(self, lab: Lab) -> None:
        """Tell whoever reads that a system has ended.

        After the last it waits for the feed's end, twice `FAREWELL_S` at most.
        """
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

    def shown(self) -> list[Shown]:
        """Return the systems that are offered."""
        with self.lock:
            return list(self._shown)

    def forget(self, ended: list[Shown]) -> bool:
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


class _Server:
    """The socket, its file, and the thread that serves it."""

    def __init__(self, feed: Feed) -> None:
        name = Name.of(os.getpid())
        if name is None:  # this process lives, so nothing of it can be told
            raise OSError("/proc is not there")
        self._feed, self._name = feed, name
        self._folder = folder.make()
        try:
            self._listening = self._listen()
        except OSError:
            os.close(self._folder)
            raise
        self._woken = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._descriptors = [self._folder, self._woken]
        self._readers: list[Reader] = []
        self._due = 0.0
        self._welcoming = 0.0  # from when on, monotonic seconds
        self.is_open = True
        self._thread = threading.Thread(target=self._run, name="accel_lab feed", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self.retire()
            self.drop()
            raise

    def _listen(self) -> socket.socket:
        folder.remove(self._folder, self._name)  # as a crashed feed of this process left it
        folder.sweep(self._folder)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            os.fchmod(listening.fileno(), 0o600)  # the file gets this mode as it is made
            listening.bind(folder.path(self._folder, self._name))
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
        folder.remove(self._folder, self._name)

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
        poll.register(self._woken, select.POLLIN)
        now, waits = time.monotonic(), []
        if now >= self._welcoming:
            poll.register(self._listening, select.POLLIN)
        else:
            waits.append(self._welcoming - now)
        for reader in self._readers:
            poll.register(reader.socket, select.POLLIN | (select.POLLOUT if reader.unread else 0))
        if self._readers:
            waits.append(max(0.0, self._due - now))
        # Nobody reads: sleep until somebody comes.
        ready = {fd for fd, _ in poll.poll(min(waits) * 1000 if waits else None)}
        if self._woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._woken)
        return ready

    def _welcome(self, ready: set[int]) -> list[Reader]:
        """Take in who came, if it is this user and there is room."""
        new: list[Reader] = []
        if self._listening.fileno() not in ready:
            return new
        try:
            while True:
                connection, _ = self._listening.accept()
                if (reader := self._let_in(connection, len(new))) is not None:
                    new.append(reader)
        except BlockingIOError:
            pass
        except OSError:  # no descriptor is left; who asks still asks then
            self._welcoming = time.monotonic() + 1 / HZ
        self._readers += new
        return new

    def _let_in(self, connection: socket.socket, new: int) -> Reader | None:
        """Return who came as a reader, beside so many new ones; None for who is turned away."""
        try:
            if len(self._readers) + new < READERS and folder.is_mine(connection):
                connection.settimeout(0)
                return Reader(connection)
        except Exception as error:  # noqa: BLE001 - one reader's trouble is not the others'
            warn_of(error, "a dashboard was turned away and may come again")
        connection.close()
        return None

    def _tell(self, new: list[Reader]) -> None:
        """Look at every system and queue what is new, and all that was for who is new."""
        offered = self._feed.shown()
        until = time.monotonic() + FAREWELL_S
        for shown in offered:  # first: all stores are waited for at once
            if shown.ended:
                for reader in self._readers:
                    reader.hurry(shown)
        for shown in offered:
            self._tell_of(shown, new, until)

    def _tell_of(self, shown: Shown, new: list[Reader], until: float) -> None:
        begins = shown.begin()
        news, so_far = shown.look(anew=begins or bool(new))
        late = self._readers if begins else new
        if shown.ended:  # the last fact says that nothing more comes
            self._tell_journal(shown, until)
        for fact in so_far:
            line = encode(fact)
            for reader in late:
                reader.tell(shown, line)
        # One line at a time: what no reader has room for is not even made.
        for told in map(Told, news):
            for reader in self._readers:
                if reader not in late:
                    reader.take(shown, told)
        if not shown.ended:
            self._tell_journal(shown, until)

    def _tell_journal(self, shown: Shown, until: float) -> None:
        for reader in self._readers:
            if shown.ended:
                reader.tell_rest(shown, until)
            else:
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


FEED = Feed()
open_systems.opened.append(FEED.add)
open_systems.ended.append(FEED.remove)
os.register_at_fork(after_in_child=FEED.forked)
atexit.register(FEED.close)
