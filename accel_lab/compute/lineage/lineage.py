"""Which messages made the buffers of a device, so that they can be rebuilt.

A lineage follows the record of one device. It keeps the bytes as they come and reads them only
when somebody asks, or when there are many. What it keeps is then cut down to the messages that
buffers in use depend on.
"""

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from accel_lab.compute.lineage.content_store import Contents
from accel_lab.compute.lineage.dry_run import BEYOND
from accel_lab.compute.lineage.history import History, Restore, Slice
from accel_lab.compute.lineage.markers import marker_of
from accel_lab.compute.lineage.recorded_message import (
    FREE,
    Step,
    Steps,
    decode,
    entries_of,
    size_of,
)
from accel_lab.compute.message.durability import Durability
from accel_lab.compute.wire.codec import batch

UNREAD_LIMIT = 50_000
READ_AT_ONCE = 1000
LONG_HISTORY = 20_000
MOST_STEPS = 500_000
RESTS = 9
"""How many times as long as it took the next tidying is put off that could wait."""


class Elsewhere(Protocol):
    """Returns the messages of whose results other devices have the bytes."""

    def __call__(self, *, quickly: bool = False) -> Collection[int] | None:
        """Return their numbers; None where it was to be quick and could not."""


def _nowhere(*, quickly: bool = False) -> Collection[int] | None:
    del quickly
    return frozenset()


class Lineage:
    """The history of the buffers of one device; any thread.

    Attributes:
        elsewhere: returns the messages to several devices of whose results other devices have the
            bytes; None where it was to be quick and could not. Not called with a lock held.
        checkpoint: keeps the contents of a buffer, by its id, shape and dtype; must not block.

    Parameters:
        unanswered: returns the smallest number of a request that has no answer yet, or None.
        unwritten: returns buffers whose memory is of interest when they are no more.
    """

    def __init__(
        self,
        unanswered: Callable[[], int | None] = lambda: None,
        unwritten: Callable[[], Iterable[int]] = tuple,
    ) -> None:
        self._unanswered = unanswered
        self._unwritten = unwritten
        self._lock = threading.RLock()
        self._is_still = False
        self._unread: list[bytes] = []
        self._made = Steps()
        self._history = History()
        self._told: dict[int, tuple[tuple[int, ...], str, int]] = {}
        self.checkpoint: Callable[[int, tuple[int, ...], str], None] | None = None
        self.elsewhere: Elsewhere = _nowhere
        self._newest_made = 0  # of the buffers that were read of
        self._grown = 0  # by how much since it was tidied last
        self._kept_after_cut = 0

    def follow(self, parts: list[bytes]) -> None:
        """Take in what was recorded; quick."""
        self._unread.extend(parts)
        self._grown += size_of(parts)

    def tell(self, made: int, shape: tuple[int, ...], dtype: str, shares: int) -> None:
        """Learn of a result what only the context could tell; any thread, quick.

        Parameters:
            shares: the buffer that it is a part of, 0 for none and -1 where that is not known.
        """
        if shares >= 0 or made not in self._told:  # messages that write to it tell it, too
            self._told[made] = shape, dtype, shares

    # Reading.

    def read(self, limit: int | None = None) -> int:
        """Read what has come, at most `limit` parts; returns how many are left."""
        with self._lock:
            if self._is_still:
                return len(self._unread)
            count = len(self._unread) if limit is None else min(limit, len(self._unread))
            parts = self._unread[:count]
            del self._unread[:count]
            history, step_of = self._history, self._made.step
            for entry, data in zip(entries_of(batch(parts)), parts, strict=True):
                if entry.seq < 0:
                    history.note(marker_of(decode(data)))
                elif entry.seq == 0:
                    freed: Any = decode(entry.message)
                    if freed[0] == FREE:
                        history.free(freed[1])
                else:
                    step = step_of(entry, data)
                    history.add(step)
                    for id_ in step.makes:
                        self._newest_made = max(id_, self._newest_made)
                        if id_ in self._told:
                            history.learn(id_, *self._told.pop(id_))
            for id_ in [one for one in list(self._told) if one in history.aliasing]:
                history.learn(id_, *self._told.pop(id_))
            return len(self._unread)

    @contextmanager
    def still(self) -> Iterator[None]:
        """Read what has come, and nothing more while this lasts."""
        with self._lock:
            self.read()
            self._is_still = True
            try:
                yield
            finally:
                self._is_still = False

    # Asking.

    @property
    def live(self) -> set[int]:
        """The ids of the buffers that are in use, as far as the record tells."""
        with self._lock:
            self.read()
            return self._history.live - self._history.failures

    def content_key(self, seq: int) -> str:
        """Return the key of the bytes that a request took from the arena."""
        content = self._history.contents.get(seq)
        return content.key if content is not None else ""

    def later_than(self, seq: int) -> set[int]:
        """Return the numbers of the messages that were sent after this one."""
        with self._lock:
            self.read()
            return {step.seq for step in self._history.steps if step.seq > seq}

    def steps_of(self, seqs: Collection[int]) -> list[Step]:
        """Return the messages of these numbers, in order."""
        with self._lock:
            self.read()
            return [step for step in self._history.steps if step.seq in seqs]

    def slice(self, wanted: Iterable[int], without: Collection[int] = ()) -> Slice:
        """Return what has to be done to have these buffers as they were last.

        Parameters:
            without: requests that do not count, as those that were never answered.
        """
        with self._lock:
            self.read()
            return self._history.slice(wanted, without)

    def parts(self, named: Iterable[int], without: Collection[int] = ()) -> list[int]:
        """Return the parts of messages to several devices that buffers in use depend on.

        Of those whose bytes other devices have, and that are not kept here; the numbers.

        Parameters:
            named: further buffers that are needed.
            without: requests that do not count.
        """
        elsewhere = self.elsewhere()
        if not elsewhere:
            return []
        with self._lock, self._with(elsewhere):
            self.read()
            wanted = self.live | set(named)
            steps = self._history.slice(wanted, without).steps
            parts = (step.seq for step in steps if isinstance(step, Step) and step.is_part)
            return [seq for seq in parts if seq not in self._history.contents]

    def unwritten(self, held: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
        """Return which of these buffers are in use, and as they were behind a message's number."""
        with self._lock:
            self.read()
            return self._history.unwritten(held)

    @contextmanager
    def _with(self, elsewhere: Collection[int]) -> Iterator[None]:
        """Count what other devices have as had; the lock is held."""
        before, self._history.elsewhere = self._history.elsewhere, elsewhere
        try:
            yield
        finally:
            self._history.elsewhere = before

    def sharing(self, ids: Iterable[int], there: set[int]) -> dict[int, set[int]]:
        """Return which buffers that are `there` share, or may share, the memory of those not."""
        with self._lock:
            self.read()
            missing = [id_ for id_ in ids if id_ not in there]
            return self._history.aliasing.sharing_each(missing, there)

    @property
    def newest(self) -> int:
        """The number of the last message that was read."""
        with self._lock:
            self.read()
            return self._history.newest

    def families(self, ids: Collection[int]) -> list[set[int]]:
        """Return these buffers in sets of which no two may share memory."""
        with self._lock:
            self.read()
            each = self._history.aliasing.sharing_each(ids, ids)
        found: list[set[int]] = []
        for id_, sharing in each.items():
            joined = {id_}.union(sharing, *(one for one in found if not one.isdisjoint(sharing)))
            found = [one for one in found if one.isdisjoint(joined)]
            found.append(joined)
        return found

    def digests(self, wanted: Iterable[int], without: Collection[int] = ()) -> dict[int, str]:
        """Return the digests of what these buffers held, of those where that was recorded.

        Parameters:
            without: requests that do not count.
        """
        with self._lock:
            self.read()
            return self._history.digests(wanted, without)

    def durability(self, id_: int) -> Durability:
        """Return what a fault would do to a buffer, and why."""
        return self._durability(id_, self.elsewhere() or frozenset())

    def _durability(self, id_: int, elsewhere: Collection[int]) -> Durability:
        with self._lock, self._with(elsewhere):
            self.read()
            found = self.slice([id_])
            reason = found.lost.get(id_)
            if not reason and any(isinstance(step, Restore) for step in found.steps):
                # With what else is in use its checkpoint may be of no use.
                reason = self._history.slice(self.live | {id_}).lost.get(id_)
        if reason:
            return Durability("lost on fault", reason)
        restored = sum(isinstance(step, Restore) for step in found.steps)
        messages = len(found.steps) - restored
        if restored and not messages:
            return Durability("checkpointed", "its contents are kept")
        plural = "" if messages == 1 else "s"
        how = f"{messages} message{plural} would make it again"
        if any(isinstance(step, Step) and step.is_part for step in found.steps):
            how += "; other ranks have what collective operations gave"
        return Durability("replayable", how)

    def durability_by(self, id_: int, until: float) -> Durability | None:
        """Return what a fault would do to a buffer; None where that takes longer than until then.

        `until` is of `time.monotonic`. What has been read by then stays read.
        """
        elsewhere = self.elsewhere(quickly=True)
        if elsewhere is None:
            return None
        if not self._lock.acquire(timeout=max(0.0, until - time.monotonic())):
            return None
        try:
            while self.read(READ_AT_ONCE):
                if time.monotonic() > until:
                    return None
            self._history.until = until
            return self._durability(id_, elsewhere)
        except TimeoutError:
            return None
        finally:
            self._history.until = math.inf
            self._lock.release()

    # Staying small.

    def tidy(self, *, at_once: bool = False) -> Iterator[None]:
        """Read and cut a large history down, a little at a time: yields between the pieces.

        Parameters:
            at_once: also one that is not large, for the sake of what it keeps.
        """
        if self._grown < UNREAD_LIMIT and not at_once:
            return
        self._grown = 0
        for _ in range(0, len(self._unread), READ_AT_ONCE):  # more may come as fast as it is read
            self.read(READ_AT_ONCE)
            yield
        history = self._history
        if history.has_lost_needs or at_once or history.size > 2 * self._kept_after_cut:
            self.cut()
        yield
        self._bound()

    def cut(self) -> None:
        """Forget the messages on which no buffer in use depends."""
        elsewhere = self.elsewhere() or frozenset()
        with self._lock, self._with(elsewhere):
            self._cut()

    def _cut(self) -> None:
        with self._lock:
            self._history.cut(self._unanswered(), self._unwritten(), long=LONG_HISTORY)
            # Of what is gone; without its word a result may be a part of any.
            for id_ in [one for one in list(self._told) if one <= self._newest_made]:
                del self._told[id_]
            self._kept_after_cut = self._history.size

    def _bound(self) -> None:
        """Have buffers with long histories checkpointed; give up what grows beyond all bounds."""
        history = self._history
        elsewhere = self.elsewhere() or frozenset()
        with self._lock, self._with(elsewhere):
            if history.size > MOST_STEPS:
                worn = dict.fromkeys(history.overwritten(MOST_STEPS // 100), BEYOND)
                history.give_up(worn, self._unanswered())
                self._cut()
            if history.size > MOST_STEPS:
                history.forget()
            long = history.size > LONG_HISTORY
            helped = history.worn(LONG_HISTORY // 100) if long else []
        if self.checkpoint is not None:
            for one in helped:
                self.checkpoint(*one)

    @property
    def keys(self) -> set[str]:
        """The keys of the contents that this history needs."""
        with self._lock:
            self.read()
            found = {content.key for content in self._history.contents.values()}
            return found | {point.key for point in self._history.checkpoints}

    def __len__(self) -> int:
        """How many messages are remembered, read or not."""
        return len(self._history.steps) + len(self._unread)


class Tidying:
    """Keeps the histories of several devices small, a little with each call."""

    def __init__(self, lineages: list[Lineage], contents: Contents) -> None:
        self._lineages = lineages
        self._contents = contents
        self._work: Iterator[None] = iter(())
        self._rests_until = 0.0

    def __call__(self) -> None:
        """Do a millisecond's work; the record thread's thread."""
        for _ in self._work:
            return
        self._work = self._tidy()

    def _tidy(self) -> Iterator[None]:
        began = time.thread_time()  # between its parts others have their turn
        grown = self._contents.has_grown and time.monotonic() > self._rests_until
        at_once = self._contents.crowded or grown
        for lineage in self._lineages:
            yield from lineage.tidy(at_once=at_once)
        if at_once:
            self._contents.retain({key for lineage in self._lineages for key in lineage.keys})
            took = max(0.0, time.thread_time() - began)
            self._rests_until = time.monotonic() + RESTS * took
