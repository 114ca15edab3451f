"""Which messages made the buffers of a device, so that they can be made again.

A lineage follows the record of one device. It keeps the bytes as they come and reads them only
when somebody asks, or when there are many. What it keeps is then cut down to the messages that
buffers in use depend on.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import zip_longest
from typing import Any, NamedTuple, Self

from accel_lab.compute.contents import Contents
from accel_lab.compute.markers import Arrays, Checkpoint, Content, Failed, Result, marker_of
from accel_lab.compute.step import FREE, Effects, Step, Steps, decode, entries_of
from accel_lab.compute.storages import Storages
from accel_lab.compute.wire import batch
from accel_lab.errors import Interrupted, UserCodeError

UNREAD_LIMIT = 50_000
READ_AT_ONCE = 1000
LONG_HISTORY = 20_000
MOST_STEPS = 500_000
_DEPENDS = "it depends on buffer"
_BEYOND = "the record does not reach back to the message that made it"
_CHANGED = "a function that failed may have changed it"
_IN_USER_CODE = frozenset((Interrupted.__name__, UserCodeError.__name__))
_NOT_RUN = frozenset(("Cancelled", "CircuitOpen", "DependencyFailed", "StaleRef"))
CHANGED_NOTHING = _NOT_RUN | {"ContextLost", "ContextReplaced", "DeadlineExceeded"}
"""The failures after which no buffer holds what a message may have written."""


class Restore(NamedTuple):
    """A buffer whose contents were kept: it is made of those, with no message run again."""

    checkpoint: Checkpoint


class Slice(NamedTuple):
    """What has to be done to have some buffers again, in order, and which cannot be had.

    Attributes:
        steps: messages to run again and contents to restore.
        lost: why a buffer cannot be had, by its id.
    """

    steps: list[Step | Restore]
    lost: dict[int, str]


class Durability(str):  # noqa: SLOT000 - a str has no slots beside it that a reason could take
    """What a fault would do to a buffer: `replayable`, `checkpointed` or `lost on fault`.

    Attributes:
        why: the reason, for people.
    """

    why: str

    def __new__(cls, word: str, why: str) -> Self:
        """Make one of a word and its reason."""
        made = super().__new__(cls, word)
        made.why = why
        return made


class Lineage:
    """The history of the buffers of one device; any thread.

    Attributes:
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
        self._unread: list[bytes] = []
        self._steps: list[Step] = []
        self._made = Steps()
        self._newest = 0  # the number of the last message that was read
        self._forgotten = 0  # that of the last one when all were given up
        self._live: set[int] = set()
        self._failed: set[int] = set()
        self._half_done: set[int] = set()
        self._early: dict[int, Failed] = {}  # those told of before their messages
        self._contents: dict[int, Content] = {}
        self._digests: dict[int, str] = {}  # of what a request made or changed
        self._checkpoints: dict[int, Checkpoint] = {}
        self._opaque: dict[int, str] = {}
        self._storages = Storages()
        self._shares: dict[int, int] = {}  # what the context has told of results
        self.checkpoint: Callable[[int, tuple[int, ...], str], None] | None = None
        self._tidied = 0  # how many there were when it was tidied last
        self._kept_after_cut = 0
        self._has_lost_needs = False  # since the last cut something was freed or kept elsewhere

    def follow(self, parts: list[bytes]) -> None:
        """Take in what was recorded; quick."""
        self._unread.extend(parts)

    def shares(self, made: int, operand: int) -> None:
        """Learn of which operand a function's result is a part, 0 for none; any thread, quick."""
        self._shares[made] = operand

    # Reading.

    def read(self, limit: int | None = None) -> int:
        """Read what has come, at most `limit` parts; returns how many are left."""
        with self._lock:
            count = len(self._unread) if limit is None else min(limit, len(self._unread))
            parts = self._unread[:count]
            del self._unread[:count]
            step_of, enter = self._made.step, self._steps.append
            for entry, data in zip(entries_of(batch(parts)), parts, strict=True):
                if entry.seq < 0:
                    self._note(marker_of(decode(data)))
                elif entry.seq == 0:
                    freed: Any = decode(entry.message)
                    if freed[0] == FREE:
                        self._live.difference_update(freed[1])
                        self._has_lost_needs = True
                else:
                    step = step_of(entry, data)
                    enter(step)
                    self._newest = step.seq
                    if self._early and (early := self._early.pop(step.seq, None)) is not None:
                        self._note_failure(early)
                    if step.made:
                        self._live.add(step.made)
                        self._storages.enter(step.made, step.shares, self._live)
                        if step.made in self._shares:
                            self._learn(step.made)
            for id_ in [one for one in list(self._shares) if one in self._storages]:
                self._learn(id_)
            return len(self._unread)

    def _learn(self, id_: int) -> None:
        """Believe what was told of a result, unless something else may be a part of it by now."""
        shared = self._shares.pop(id_)
        for step in reversed(self._steps):
            if step.made == id_:
                break
            if step.made and id_ in step.operands:
                return
        if shared:
            self._storages.enter(id_, (shared,), self._live)
        else:
            self._storages.renew(id_)

    def _note(self, marker: Any) -> None:
        if isinstance(marker, Failed):
            self._failed.add(marker.seq)
            if marker.seq > self._newest:
                # Sent first and recorded then: the answer may have come between.
                self._early[marker.seq] = marker
            else:
                self._note_failure(marker)
        elif isinstance(marker, Content):
            self._contents[marker.seq] = marker
        elif isinstance(marker, Result):
            self._digests[marker.seq] = marker.digest
        elif isinstance(marker, Checkpoint):
            # One that was still on its way may be older than a write that is forgotten by now.
            if marker.key and marker.seq >= self._forgotten:
                self._checkpoints[marker.id] = marker
                self._has_lost_needs = True
        elif isinstance(marker, Arrays):
            for id_, shared in zip_longest(marker.ids, marker.shares, fillvalue=0):
                self._live.add(id_)
                self._storages.enter(id_, (shared,) if shared else (), self._live)
                self._opaque[id_] = "your own code made it, and no copy of it is kept"

    def _note_failure(self, marker: Failed) -> None:
        """Note what code of the user's may have changed before it failed."""
        if marker.kind in CHANGED_NOTHING:
            return
        for step in reversed(self._steps):
            if step.seq <= marker.seq:
                of_user = step.opaque or marker.kind in _IN_USER_CODE
                if step.seq == marker.seq and step.writes and of_user:
                    self._half_done.add(step.seq)
                return

    # Asking.

    @property
    def live(self) -> set[int]:
        """The ids of the buffers that are in use, as far as the record tells."""
        with self._lock:
            self.read()
            return self._live - self._failures()

    def content_key(self, seq: int) -> str:
        """Return the key of the bytes that a request took from the arena."""
        content = self._contents.get(seq)
        return content.key if content is not None else ""

    def steps_of(self, seqs: Collection[int]) -> list[Step]:
        """Return the messages of these numbers, in order."""
        with self._lock:
            self.read()
            return [step for step in self._steps if step.seq in seqs]

    def slice(self, wanted: Iterable[int], without: Collection[int] = ()) -> Slice:
        """Return what has to be done to have these buffers as they were last.

        Parameters:
            without: requests that do not count, as those that were never answered.
        """
        with self._lock:
            self.read()
            wanted = set(wanted)
            steps = self._needed(wanted, without)
            lost = self._lost(steps, wanted)
            if lost and self._checkpoints:
                # What cannot be had in any case is no reason not to use a checkpoint.
                hopeless = self._hopeless(lost, without)
                others = wanted - hopeless.keys()
                lost = hopeless | self._lost(self._needed(others, without), others)
            if lost:
                # What only the lost ones need is not run.
                steps = self._needed(wanted - lost.keys(), without)
            return Slice(steps, lost)

    def _hopeless(self, wanted: Iterable[int], without: Collection[int] = ()) -> dict[int, str]:
        """Return why which of these could not be had even if each checkpoint could be used."""
        undone = self._failed - self._half_done
        undone.update(without)

        def history() -> Iterator[Step | Restore]:
            points = deque(self._points())
            for step in self._steps:
                while points and points[0].seq < step.seq:
                    yield Restore(points.popleft())
                if step.seq not in undone:
                    yield step
            yield from map(Restore, points)

        return self._lost(history(), wanted)

    def _points(self) -> list[Checkpoint]:
        """Return the checkpoints of what is known, in order."""
        known = (point for point in self._checkpoints.values() if point.id in self._storages)
        return sorted(known, key=lambda point: point.seq)

    def _needed(self, wanted: set[int], without: Collection[int]) -> list[Step | Restore]:
        """Walk back from the last message: what changes something needed is needed too."""
        storages = self._storages
        ids = set(wanted)
        memory = storages.of_all(ids)
        found: list[Step | Restore] = []
        points = self._points()

        def restore(since: int) -> None:
            while points and points[-1].seq >= since:
                point = points.pop()
                # Where views of it are wanted too they must share its memory, as they did.
                if storages.sharing(point.id, ids) == {point.id}:
                    found.append(Restore(point))
                    ids.discard(point.id)
                    memory.intersection_update(storages.of_all(ids))

        written = _Written(storages)
        undone = self._failed - self._half_done
        again: set[int] = set()  # the effects that are needed wherever they stand
        for step in reversed(self._steps):
            seq, made, effects = step.seq, step.made, step.effects
            if points and points[-1].seq >= seq:
                restore(seq)
                again.clear()
            if seq in undone or seq in without:
                continue
            if id(effects) in again and not made:
                found.append(step)
            elif made in ids or not memory.isdisjoint(written(effects)):
                found.append(step)
                ids.discard(made)
                ids.update(effects.operands)
                memory.update(storages.of_all(effects.operands))
                if not made:
                    again.add(id(effects))
        restore(0)
        found.reverse()
        return found

    def _lost(self, steps: Iterable[Step | Restore], wanted: Iterable[int]) -> dict[int, str]:
        """Walk forward: what cannot be run again takes along whatever it wrote."""
        roots_of = self._storages.of
        why: dict[int, str] = {}
        spoilt: dict[int, tuple[int, str]] = {}  # memory: where it was spoilt last, and why
        made: dict[int, int] = {}  # buffers: where they were made or restored
        restored: set[int] = set()

        def gone(id_: int) -> str:
            opaque = "" if id_ in restored else self._opaque.get(id_)
            if opaque or id_ not in made:
                return opaque or why.get(id_, _BEYOND)
            marks = (spoilt[root] for root in roots_of(id_) if root in spoilt)
            return next((text for position, text in marks if position > made[id_]), "")

        for position, step in enumerate(steps):
            if isinstance(step, Restore):
                made[step.checkpoint.id] = position
                restored.add(step.checkpoint.id)
                continue
            half_done = _CHANGED if step.seq in self._half_done else ""
            reason = half_done or step.opaque or self._unkept(step)
            for id_ in step.operands:
                if not reason and (text := gone(id_)):
                    # What a long chain depends on is what its first link depends on.
                    reason = text if text.startswith(_DEPENDS) else f"{_DEPENDS} {id_}: {text}"
            if not reason:
                if step.made:
                    made[step.made] = position
                continue
            why[step.made] = reason
            for id_ in step.writes:
                text = gone(id_) or reason
                spoilt.update((root, (position, text)) for root in roots_of(id_))
        return {id_: text for id_ in wanted if (text := gone(id_))}

    def _unkept(self, step: Step) -> str:
        if not step.in_arena:
            return ""
        content = self._contents.get(step.seq)
        if content is None:
            return "the bytes that it was made of were not kept"
        return "" if content.key else content.why

    def sharing(self, ids: Iterable[int], there: set[int]) -> dict[int, set[int]]:
        """Return which buffers that are `there` share, or may share, the memory of those not."""
        with self._lock:
            self.read()
            return {id_: self._storages.sharing(id_, there) for id_ in ids if id_ not in there}

    def digests(self, wanted: Iterable[int], without: Collection[int] = ()) -> dict[int, str]:
        """Return the digests of what these buffers held, of those where that was recorded.

        Parameters:
            without: requests that do not count.
        """
        with self._lock:
            self.read()
            ids, found = set(wanted), dict[int, str]()
            changed: set[int] = set()  # memory that a later message has written to
            for step in reversed(self._steps):
                if step.seq in self._failed or step.seq in without:
                    continue
                subject = step.made or (step.writes[0] if len(step.writes) == 1 else 0)
                digest = self._digests.get(step.seq)
                is_old = not changed.isdisjoint(self._storages.of(subject))
                if subject in ids and digest and not is_old:
                    found[subject] = digest
                ids.discard(subject)
                changed.update(self._storages.of_all(step.writes))
            return found

    def durability(self, id_: int) -> Durability:
        """Return what a fault would do to a buffer, and why."""
        with self._lock:
            self.read()
            found = self.slice([id_])
            reason = found.lost.get(id_) or self._parted(id_, found)
        if reason:
            return Durability("lost on fault", reason)
        restored = sum(isinstance(step, Restore) for step in found.steps)
        messages = len(found.steps) - restored
        if restored and not messages:
            return Durability("checkpointed", "its contents are kept")
        plural = "" if messages == 1 else "s"
        return Durability("replayable", f"{messages} message{plural} would make it again")

    def _parted(self, id_: int, found: Slice) -> str:
        """Return why a checkpoint does not help a buffer, though it is all that could."""
        if not any(isinstance(step, Restore) for step in found.steps):
            return ""
        live = self.live
        reason = self.slice(live | {id_}).lost.get(id_)
        others = sorted(self._storages.sharing(id_, live) - {id_} - self._hopeless(live).keys())
        if not reason or not others:
            return reason or ""
        return (
            f"{reason}; its checkpoint cannot be used while buffer {others[0]} is in use, which "
            "may share its memory"
        )

    # Staying small.

    def tidy(self, *, at_once: bool = False) -> Iterator[None]:
        """Read and cut a large history down, a little at a time: yields between the pieces.

        Parameters:
            at_once: also one that is not large, for the sake of what it keeps.
        """
        if len(self) - self._tidied < UNREAD_LIMIT and not at_once:
            return
        for _ in range(0, len(self._unread), READ_AT_ONCE):  # more may come as fast as it is read
            self.read(READ_AT_ONCE)
            yield
        if self._has_lost_needs or at_once or len(self._steps) > 2 * self._kept_after_cut:
            self.cut()
        yield
        self._bound()
        self._tidied = len(self._steps)

    def _bound(self) -> None:
        """Have buffers with long histories checkpointed; give up what grows beyond all bounds."""
        if len(self._steps) > MOST_STEPS:
            with self._lock:
                self._forget()
        elif len(self._steps) > LONG_HISTORY and self.checkpoint is not None:
            for worn in self.worn():
                self.checkpoint(*worn)

    def _forget(self) -> None:
        """Forget all messages, and the checkpoints of what they have changed since."""
        self._forgotten = self._newest
        written: dict[int, int] = {}
        for step in self._steps:
            written.update(dict.fromkeys(self._storages.of_all(step.writes), step.seq))
        self._steps.clear()
        self._checkpoints = {
            i: c
            for i, c in self._checkpoints.items()
            if c.seq >= max(written.get(root, 0) for root in self._storages.of(i))
        }

    def worn(self) -> list[tuple[int, tuple[int, ...], str]]:
        """Return (id, shape, dtype) of the buffers that were overwritten most often."""
        with self._lock:
            effects = {id(step.effects): step.effects for step in self._steps}
            writes: Counter[int] = Counter()
            for one, times in Counter(id(step.effects) for step in self._steps).items():
                for root in self._storages.of_all(effects[one].writes):
                    writes[root] += times
            found = {}
            for step in self._steps:
                if step.made in self._live and (spec := decode(step.data)[4]) is not None:
                    found[step.made] = tuple(spec[0]), spec[1]
            for point in self._checkpoints.values():
                found[point.id] = point.shape, point.dtype
            return [
                (id_, *spec)
                for id_, spec in found.items()
                if max(writes[root] for root in self._storages.of(id_)) > LONG_HISTORY // 100
                # With views a checkpoint could not stand for the memory that they share.
                and self._storages.sharing(id_, self._live) == {id_}
            ]

    def cut(self) -> None:
        """Forget the messages on which no buffer in use depends."""
        with self._lock:
            pending = self._unanswered()
            recent = [s for s in self._steps if pending is not None and s.seq >= pending]
            wanted = self._live - self._failures()
            for step in recent:
                wanted.update(step.operands)
            needed = self._needed(wanted, ())
            kept = {s.seq for s in needed if type(s) is Step}
            kept.update(step.seq for step in recent)
            restored = {s.checkpoint.id for s in needed if type(s) is Restore}
            self._steps = [step for step in self._steps if step.seq in kept]
            self._early = {s: early for s, early in self._early.items() if s > self._newest}
            self._failed.intersection_update(kept | self._early.keys())
            self._half_done.intersection_update(kept)
            self._contents = {s: c for s, c in self._contents.items() if s in kept}
            self._digests = {s: d for s, d in self._digests.items() if s in kept}
            effects = {id(step.effects): step.effects for step in self._steps}
            named = {id_ for one in effects.values() for id_ in one.operands} | wanted | restored
            named.update(step.made for step in self._steps)
            pointed = wanted | restored
            self._checkpoints = {i: c for i, c in self._checkpoints.items() if i in pointed}
            self._opaque = {i: why for i, why in self._opaque.items() if i in self._live}
            self._live &= named | self._opaque.keys()
            self._storages.keep(named.union(self._unwritten()))
            self._shares.clear()  # of what is gone; without its word a result may be a part of any
            self._kept_after_cut = len(self._steps)
            self._has_lost_needs = False

    @property
    def keys(self) -> set[str]:
        """The keys of the contents that this history needs."""
        with self._lock:
            self.read()
            found = {content.key for content in self._contents.values()}
            return found | {point.key for point in self._checkpoints.values()}

    def __len__(self) -> int:
        """How many messages are remembered, read or not."""
        return len(self._steps) + len(self._unread)

    def _failures(self) -> set[int]:
        return {step.made for step in self._steps if step.seq in self._failed and step.made}


class _Written:
    """The memory that messages write; found once for all that say the same."""

    def __init__(self, storages: Storages) -> None:
        self._storages = storages
        self._found: dict[int, set[int]] = {}

    def __call__(self, effects: Effects) -> set[int]:
        """Return the roots of what it writes."""
        found = self._found.get(id(effects))
        if found is None:
            found = self._found[id(effects)] = self._storages.of_all(effects.writes)
        return found


class Tidying:
    """Keeps the histories of several devices small, a little with each call."""

    def __init__(self, lineages: list[Lineage], contents: Contents) -> None:
        self._lineages = lineages
        self._contents = contents
        self._work: Iterator[None] = iter(())

    def __call__(self) -> None:
        """Do a millisecond's work; the scribe's thread."""
        for _ in self._work:
            return
        self._work = self._tidy()

    def _tidy(self) -> Iterator[None]:
        crowded = self._contents.crowded
        for lineage in self._lineages:
            yield from lineage.tidy(at_once=crowded)
        if crowded:
            self._contents.retain({key for lineage in self._lineages for key in lineage.keys})
