"""A source that is live until somebody looks back, and live again when they come forward."""

import threading
import time
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress

from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.journal.journal import Journal
from accel_lab.views.past.differences import Differences
from accel_lab.views.past.journal import JournalPast
from accel_lab.views.past.player import Past, Player
from accel_lab.views.past.rewound import Rewound, Watched
from accel_lab.views.scene.observer import Lab, Want, observer_of
from accel_lab.views.scene.scene import Scene

READ_EVERY_S = 0.5


class Replayable:
    """What the views of a page draw: the system as it is, or its past at the player's position.

    Attributes:
        moving: who holds it moves the views, from the first step to the last; taken before `lock`.

    Parameters:
        past: what can be looked back at.
        live: the system; None for a past that nothing is added to.
        differences: from another past, as they were found.
        stays: whether nothing is added to the past while it is shown, so that it does not grow.
    """

    ended = False  # one can always look back

    def __init__(
        self,
        past: Past,
        live: Watched | None = None,
        differences: Differences | None = None,
        player: Player | None = None,
        *,
        stays: bool = False,
    ) -> None:
        self.past = past
        self.live = live
        self.differences = differences
        self.player = player or Player(past, lock=live.lock if live is not None else None)
        self.lock = self.player.lock
        self.moving = threading.RLock()
        self._stays = stays
        self._replaying = live is None
        self._keeps = self._replaying  # what is looked at does not go
        self._watchers: list[Callable[[], None]] = []
        self._reading: threading.Thread | None = None
        self._read_at = time.monotonic()
        self._read_all = live is None
        self._forgotten = _forgotten(past)
        with self.lock:  # from now on what is seen is kept, to be looked back at
            self._rewound = None if live is None else Rewound(live)

    @property
    def replaying(self) -> bool:
        """Whether the views show the past."""
        return self._replaying

    @property
    def where(self) -> dict[str, str | int | float] | None:
        """Where in the past the views are, as plain values; None while they show the system."""
        count = len(self.past.times)
        if not self._replaying or not count:
            return None
        position, at = self.player.position, self.player.at
        return {"kind": self.past.kind, "position": position, "count": count, "at": at}

    @property
    def lab(self) -> Lab | None:
        """The system that buttons act upon; None while the past is shown."""
        return None if self._replaying or self.live is None else self.live.lab

    def look(self) -> Scene:
        """Return the scene that is shown; any thread that holds `lock`."""
        if not self._replaying and self.live is not None:
            return self.live.look()
        told = self.player.look()
        if self._rewound is None or not self.player.position:
            return told
        return self._rewound.at(self.player.at, told)

    def see(self) -> None:
        """Have the live system looked at now; waits up to a second."""
        see = getattr(self.live, "see", None)
        if not self._replaying and see is not None:
            see()

    def want(self, holder: object, wants: Iterable[Want]) -> None:
        """Sample this of the live system as long as `holder` lives."""
        if self.live is not None:
            self.live.want(holder, wants)

    def on_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when the system has news or the position moved; returns what ends it."""
        self._watchers.append(callback)
        ends = [self.player.on_news(callback)]
        if self.live is not None:
            ends.append(self.live.on_news(callback))

        def end() -> None:
            with suppress(ValueError):
                self._watchers.remove(callback)
            for one in ends:
                one()

        return end

    def replay(self) -> None:
        """Show the past, at first its end; blocks while that is read."""
        if not self._replaying:
            with self.lock:
                self._keeps = True
            self.read()
            if self._forgotten != _forgotten(self.past):
                self.player.begin()  # what it knows is of other numbers
                self._forgotten = _forgotten(self.past)
            self.player.seek(len(self.past.times))
            self._replaying = True
            self._tell()

    def go_live(self) -> None:
        """Show the system as it is, if there is one."""
        self.player.pause()
        with self.lock:
            self._replaying = self._keeps = self.live is None
        self._tell()

    def read(self) -> None:
        """Take in what was written to the past since; may block for a disk or a server.

        A store that is away is tried again with the next call.
        """
        with suppress(AccelError, OSError):
            self.past.read()

    def read_soon(self) -> None:
        """Have the past read in a thread of its own, twice a second while the system lives."""
        now = time.monotonic()
        if self._read_all or now - self._read_at < READ_EVERY_S:
            return
        if self._stays and self._replaying:
            return
        if self._reading is not None and self._reading.is_alive():
            return
        self._read_at = now
        self._read_all = self.live is None or self.live.ended
        self._reading = threading.Thread(
            target=self._read_once, name="accel_lab journal view", daemon=True
        )
        self._reading.start()

    def _read_once(self) -> None:
        before = len(self.past.times)
        with self.lock:
            if isinstance(self.past, JournalPast) and not self._keeps:
                self.past.forget()
        self.read()
        if len(self.past.times) != before:
            self._tell()

    def _tell(self) -> None:
        for callback in list(self._watchers):
            callback()


def _forgotten(past: Past) -> int:
    return past.forgotten if isinstance(past, JournalPast) else 0


_replayables: weakref.WeakKeyDictionary[Lab, Replayable] = weakref.WeakKeyDictionary()


def replayable_of(lab: Lab) -> Replayable:
    """Return what the views of a system share that may look back at its journal.

    Blocks while its journal is read for the first time.

    Raises:
        InvalidArgument: the system keeps no journal, or it is no system.
        JournalError: the journal cannot be read.
    """
    observer = observer_of(lab)
    found = _replayables.get(lab)
    if found is None:
        journal: Journal | None = getattr(lab, "journal", None)
        if journal is None:
            raise InvalidArgument(f"{lab.name} has no journal to look back at")
        made = Replayable(past_of(journal, own=True), observer)
        found = _replayables.setdefault(lab, made)  # another thread may have been faster
    return found


def past_of(journal: Journal, *, own: bool = False) -> JournalPast:
    """Return a journal as it is now; blocks while it is read.

    Parameters:
        own: whether it is that of a system of this process, still written.

    Raises:
        JournalError: it cannot be read.
    """
    len(journal)  # what was sent so far is committed first
    return JournalPast(
        journal.store, dropped=journal.dropped, own=own, lost=journal.lost, bound=journal.bound
    )
