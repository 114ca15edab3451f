"""The thread that commits what devices were sent, so that no sender waits for a store."""

import contextlib
import random
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable

from accel_lab.actor.events import EventStream, warn_of
from accel_lab.compute.lineage.content_store import Contents
from accel_lab.compute.lineage.recorder import Follow
from accel_lab.errors import AccelError, JournalDamaged, JournalUnavailable
from accel_lab.journal.entries.damage import with_damage
from accel_lab.journal.events import JournalDropped, JournalFailed, JournalResumed
from accel_lab.journal.stores.group import FACTS_BYTES, Group
from accel_lab.journal.stores.store import Store
from accel_lab.journal.writing.facts import Facts
from accel_lab.journal.writing.gatherer import Gatherer
from accel_lab.journal.writing.grants import CONTENTS_BYTES, Grants
from accel_lab.journal.writing.written import Written

BACKLOG_BYTES = 64 << 20
COMMIT_BYTES = 8 << 20
COMMIT_GROUPS = 64
RETRY_S = 0.1
RETRY_MOST_S = 5.0
CLOSE_LIMIT_S = 5.0
TOLD_EVERY_S = 1.0
_JITTER = random.Random()  # noqa: S311 - no secret, and not the user's sequence


class Writer:
    """Commits groups in order; what its store does not take waits in memory, within bounds.

    Give `follow(device)` to each recorder's followers and the writer itself to
    `RecordThread.after`, before whatever lets contents go.

    Attributes:
        session: names what this writer writes, in the store.
        dropped: how many entries were lost because too much waited, or their store is gone.
        trimmed: how many entries the store has let go to stay within its limit.
        committed: how many groups the store has taken.
        written: tells whether this process wrote a group.

    Parameters:
        contents: has the bytes of the keys in the record.
        facts: returns what is true of the session; called once, when something is first written,
            on the record thread's thread. It must not keep the system alive.
        contents_bytes: how many bytes of uploads and results a session keeps; beyond it the
            record says that they are not kept.
        backlog_bytes: how much may wait for a store that is away; beyond it the oldest go.
        limit_bytes: how much the store keeps, of all sessions; the oldest go. None for everything.
    """

    def __init__(
        self,
        store: Store,
        contents: Contents,
        events: EventStream,
        facts: Callable[[], Facts],
        *,
        contents_bytes: int = CONTENTS_BYTES,
        backlog_bytes: int = BACKLOG_BYTES,
        limit_bytes: int | None = None,
    ) -> None:
        self.store = store
        self.session = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"
        self.dropped = 0
        self.trimmed = 0
        self.committed = 0
        self.written = Written()
        self.limit_bytes = limit_bytes
        self.backlog_bytes = backlog_bytes
        self._events = events
        self._facts: Callable[[], Facts] | None = facts
        self._header: Group | None = None
        self._damages: set[str] = set()
        self._stored = 0
        self._last = 0
        self._mine: tuple[int, int] | None = None
        self._grants = Grants(contents, contents_bytes, limit_bytes)
        self._gatherer = Gatherer(self.session, self._grants)
        self.follow: Callable[[str], Follow] = self._gatherer.follow
        self._changed = threading.Condition()
        self._waiting: deque[Group] = deque()
        self._waiting_bytes = 0
        self._taken: list[Group] = []
        self._settled = self._gathered = 0
        self._attempts = 0
        self._hurry = self._stopping = False
        self._failure: Exception | None = None
        self._failed_at = 0.0
        self._untold = self._dropped_before = 0
        self._told_at = float("-inf")
        self._used_bytes: int | None = None
        self._thread: threading.Thread | None = None

    def __call__(self) -> None:
        """Gather what the recorders have handed over; blocks for no store."""
        at = time.time()
        with self._changed:
            groups = list(self._gatherer.gather(at))
            if not groups or self._stopping:
                return
            if self._header is None and self._facts is not None:
                self._header = self._facts().group(self.session, at)
                self._facts = None
            for group in groups:
                self._queue(group)
            dropped = self._bound()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name=f"accel_lab journal {self.store.name}", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()
        self._tell(dropped)

    def flush(self, timeout_s: float = 30.0) -> None:
        """Block until the store has what was gathered before this call.

        Raises:
            JournalUnavailable: the store has just refused it, or took too long.
        """
        with self._changed:
            goal, attempts = self._gathered, self._attempts
            self._hurry = True
            self._changed.notify_all()

            def done() -> bool:
                refused = self._failure is not None and self._attempts > attempts
                ended = self._stopping and not (self._thread and self._thread.is_alive())
                return self._settled >= goal or refused or ended

            in_time = self._changed.wait_for(done, timeout_s)
            if self._settled >= goal:
                return
            failure = self._failure if in_time else None
        if isinstance(failure, AccelError):
            raise failure.copy()
        text = f"{self.store.name} took longer than {timeout_s:g} s" if failure is None else failure
        raise JournalUnavailable(str(text)) from failure

    @property
    def failure(self) -> AccelError | None:
        """Why the store takes nothing now; None while it does."""
        failure = self._failure
        if failure is None or isinstance(failure, AccelError):
            return failure
        error = JournalUnavailable(f"{self.store.name}: {type(failure).__name__}: {failure}")
        error.__cause__ = failure
        return error

    @property
    def unwritten(self) -> str:
        """What is not in the store that should be, and why; empty while it takes everything."""
        failure = self.failure
        if failure is None:
            return ""
        with self._changed:
            count = sum(group.entries for group in (*self._taken, *self._waiting))
        return f"not written: {failure}; {count} entries wait in memory"

    def close(self, timeout_s: float = CLOSE_LIMIT_S) -> None:
        """Commit what was gathered and end the thread; an event says what was lost. Blocks."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(timeout_s)
        with self._changed:
            left = [*self._taken, *self._waiting]
            self._waiting.clear()
        if left:
            count = sum(group.entries for group in left)
            self._tell(count, now=True)
            error = self.failure or JournalUnavailable(f"{self.store.name} took too long")
            warn_of(error, f"{count} entries of the journal are lost")
        with contextlib.suppress(AccelError):
            self.store.close()

    def _bound(self) -> int:
        """Let the oldest that wait go when it is too much; returns how many entries they had."""
        gone: list[Group] = []
        while self._waiting_bytes > self.backlog_bytes and len(self._waiting) > 1:
            group = self._waiting.popleft()
            self._waiting_bytes -= group.nbytes
            gone.append(group)
        if not gone:
            return 0
        named = self._named()
        for group in gone:
            self._grants.unnamed(group.keys, named)
        self._settled += len(gone)
        return sum(group.entries for group in gone)

    def _named(self) -> set[str]:
        """Return the contents that are named by what the store has not got."""
        return {key for group in (*self._taken, *self._waiting) for key in group.keys}

    def _tell(self, dropped: int, *, now: bool = False) -> None:
        """Say what was lost, once a second at most."""
        if not dropped:
            return
        if self._failure is not None and self.dropped == self._dropped_before and not now:
            what = "the journal cannot keep up: its oldest entries are lost"
            warn_of(self._failure, what)
        self.dropped += dropped
        self._untold += dropped
        if now or time.monotonic() > self._told_at + TOLD_EVERY_S:
            self._told_at = time.monotonic()
            untold, self._untold = self._untold, 0
            self._events.publish(JournalDropped(store=self.store.name, entries=untold))

    # The thread.

    def _run(self) -> None:
        delay = RETRY_S
        while True:
            stopping = self._wait(delay)
            if not self._taken and self._failure is None:
                if stopping:
                    return
                continue
            try:
                self._commit()
                self._trim()
            except Exception as error:  # noqa: BLE001 - whatever a store does, nobody else fails
                delay = RETRY_S if self._failure is None else min(2 * delay, RETRY_MOST_S)
                self._refused(error)
                if stopping:
                    return
            else:
                self._accepted()

    def _wait(self, delay_s: float) -> bool:
        """Wait for something to commit, or for the time to try again; True when it is the last."""
        with self._changed:
            if self._failure is not None:
                jitter = _JITTER.uniform(0.75, 1.25)
                self._changed.wait_for(lambda: self._hurry or self._stopping, delay_s * jitter)
            else:
                self._changed.wait_for(lambda: self._waiting or self._stopping)
            self._hurry = False
            size = sum(group.nbytes for group in self._taken)
            while self._waiting and len(self._taken) < COMMIT_GROUPS and size < COMMIT_BYTES:
                group = self._waiting.popleft()
                self._waiting_bytes -= group.nbytes
                self._taken.append(group)
                size += group.nbytes + self._grants.nbytes(group.keys)
            return self._stopping

    def _commit(self) -> None:
        with self._changed:
            groups = list(self._taken)
            contents = self._grants.waiting(key for group in groups for key in group.keys)
            # The store may be another than before it failed, so its session has to begin again.
            begins = self._header is not None and (not self.committed or self._failure is not None)
        if begins:
            assert self._header is not None
            groups.insert(0, self._header)
        for group in groups:
            self.written.note(group)
        last = self.store.append(groups, contents)
        self._look_for_what_was_stored(last, begun=begins)
        with self._changed:
            self._stored += sum(group.entries for group in self._taken)
            self._last = last
            # A commit that was repeated may have been one before, and the last group another's.
            self._mine = (last, groups[-1].position) if self._failure is None else None
            self._grants.stored(contents)
            self._settled += len(self._taken)
            self.committed += len(self._taken)
            self._taken.clear()
            if self._used_bytes is not None:
                self._used_bytes += sum(group.weight for group in groups)
                self._used_bytes += sum(len(data) + FACTS_BYTES for data in contents.values())

    def _look_for_what_was_stored(self, last: int, *, begun: bool) -> None:
        """Count what was stored as lost, if the store is another, or empty, now."""
        if last >= self._last and not self._is_another():
            return
        with self._changed:
            gone, self._stored = self._stored, 0
            if not begun and self._header is not None:
                self._queue(self._gatherer.facts(self._header.data, self._header.at))
        self._tell(gone, now=True)

    def _is_another(self) -> bool:
        """Whether a store that was away has another group than ours by our last number."""
        if self._failure is None or self._mine is None:
            return False
        number, position = self._mine
        with contextlib.suppress(AccelError):
            there = next(self.store.groups(number - 1), None)
            if there is not None and there.number == number:
                return (there.session, there.position) != (self.session, position)
        return False

    def found_damage(self, error: JournalDamaged) -> None:
        """Put on record, once, that the journal was found damaged; any thread."""
        text = str(error)
        with self._changed:
            if self._header is None or self._stopping or text in self._damages:
                return
            self._damages.add(text)
            facts = with_damage(self._header.data, text)
            self._queue(self._gatherer.facts(facts, time.time()))
            self._changed.notify_all()

    def _queue(self, group: Group) -> None:
        self._gathered += 1
        self._waiting.append(group)
        self._waiting_bytes += group.nbytes

    def _trim(self) -> None:
        """Keep the store within its limit; a little more goes than must, so that this is rare."""
        limit, used = self.limit_bytes, self._used_bytes
        if limit is None or (used is not None and used <= limit):
            return
        trimmed = self.store.trim(limit if used is None else limit - limit // 8)
        with self._changed:
            self._grants.trimmed(trimmed.keys, self._named())
            self.trimmed += trimmed.entries
            self._stored = max(self._stored - trimmed.entries, 0)
            self._used_bytes = trimmed.kept_bytes

    def _refused(self, error: Exception) -> None:
        if isinstance(error, JournalDamaged):
            self.found_damage(error)
        first = self._failure is None
        with self._changed:
            self._failure = error
            self._attempts += 1
            self._changed.notify_all()
        if first:
            self._failed_at, self._dropped_before = time.monotonic(), self.dropped
            text = f"{type(error).__name__}: {error}"
            self._events.publish(JournalFailed(store=self.store.name, error=text))
            warn_of(error, "the journal is not written, and what is sent waits in memory")

    def _accepted(self) -> None:
        with self._changed:
            resumed = self._failure is not None
            self._failure = None
            self._attempts += 1
            self._changed.notify_all()
        if resumed:
            seconds = time.monotonic() - self._failed_at
            dropped = self.dropped - self._dropped_before
            self._untold = 0
            self._events.publish(
                JournalResumed(store=self.store.name, seconds=seconds, dropped=dropped)
            )
