"""What was sent to a device, and which of it must be rerun to restore its buffers.

It has no thread and no lock of its own; `Lineage` follows the record and keeps one of these.

The messages are a list, and no graph is kept. To send costs an append then, and edges would change
with every write. What is needed is found by two walks:

- `_needed` goes back from the last message with a set of what is wanted. A message is needed if it
  makes one of these, or writes to memory that one of them has; its operands are wanted from there
  on. A checkpoint ends the want of its buffer, unless views of it are wanted, which have to share
  its memory as they did.
- `_lost` goes forward through what was found, as a dry run, and tells what cannot be had. Only that
  way is it known that a buffer is lost by what was lost before it.

A buffer is told apart from its memory throughout (`Aliasing`): a write to a view changes the whole.
Where it is not known what shares memory, it counts as shared: a message too many is run again, and
none too few.

What cannot be had keeps its reason, without its messages (`give_up`), or a long history that ends
in a loss would be kept and walked for nothing. Twice in a row, for a checkpoint that would help may
be on its way.
"""

import math
import time
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator
from itertools import takewhile, zip_longest
from typing import Any, NamedTuple, TypeVar

from accel_lab.compute.lineage.aliasing import Aliasing
from accel_lab.compute.lineage.dry_run import BEYOND, DryRun, GivenUp
from accel_lab.compute.lineage.markers import Arrays, Checkpoint, Content, Failed, Result
from accel_lab.compute.lineage.recorded_message import UPLOAD, Effects, Step, decode, size_of
from accel_lab.display.buffer_number import short
from accel_lab.errors import Interrupted, UserCodeError

_CHANGED = "a function that failed may have changed it"
_PARTED = "its checkpoint cannot be used while buffer {} is in use, which may share its memory"
_IN_USER_CODE = frozenset((Interrupted.__name__, UserCodeError.__name__))
_NOT_RUN = frozenset(("Cancelled", "CircuitOpen", "DependencyFailed", "StaleRef"))
CHANGED_NOTHING = _NOT_RUN | {"ContextLost", "ContextReplaced", "DeadlineExceeded"}
"""The failures after which no buffer holds what a message may have written."""
_CLOCK_EVERY = 256
"""After how many steps a walk reads the clock: seldom enough not to be felt, and often enough to
end a fraction of a millisecond after its time. Judged, not measured."""
_Any = TypeVar("_Any")


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


class History:
    """The messages of one device as far as buffers depend on them; for one thread at a time.

    Attributes:
        steps: the messages.
        live: the ids of buffers that were made and not freed.
        contents: the bytes that requests took from the arena.
        checkpoints: the contents of buffers.
        aliasing: which buffers share memory.
        has_lost_needs: since the last cut something was freed, or kept elsewhere.
        elsewhere: the parts of messages to several devices whose bytes another device has.
        newest: the number of the last message.
        until: when a walk along the messages ends with TimeoutError, as `time.monotonic` tells.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.live: set[int] = set()
        self.contents: dict[int, Content] = {}
        self.checkpoints: list[Checkpoint] = []
        self.aliasing = Aliasing()
        self.has_lost_needs = False
        self.elsewhere: Collection[int] = frozenset()
        self.until = math.inf
        self.newest = 0
        self._failed: dict[int, str] = {}  # how, for people
        self._half_done: set[int] = set()
        self._early: dict[int, Failed] = {}  # those told of before their messages
        self._digests: dict[int, dict[int, str]] = {}  # of what a request made, by buffer
        self._specs: dict[int, tuple[tuple[int, ...], str]] = {}
        self._opaque: dict[int, str] = {}  # why no message makes these again
        self._hopeless_once: set[int] = set()  # when it was cut last
        self._given_up: dict[int, GivenUp] = {}

    # What happens.

    def add(self, step: Step) -> None:
        """Enter the next message."""
        self.steps.append(step)
        self.newest = step.seq
        if self._early and (early := self._early.pop(step.seq, None)) is not None:
            self._note_failure(early)
        for id_ in step.makes:
            self.live.add(id_)
            self.aliasing.enter(id_, step.shares, self.live)

    def free(self, ids: Iterable[int]) -> None:
        """Nobody holds these buffers any more."""
        self.live.difference_update(ids)
        self.has_lost_needs = True

    def note(self, marker: Any) -> None:
        """Take in a fact of the record."""
        if isinstance(marker, Failed):
            self._failed[marker.seq] = f"its message failed: {marker.kind}: {marker.text}"
            if marker.seq > self.newest:
                # Sent first and recorded then: the answer may have come between.
                self._early[marker.seq] = marker
            else:
                self._note_failure(marker)
        elif isinstance(marker, Content):
            self.contents[marker.seq] = marker
        elif isinstance(marker, Result):
            self._digests.setdefault(marker.seq, {})[marker.id] = marker.digest
        elif isinstance(marker, Checkpoint):
            # One that was still on its way may be older than a write that is forgotten by now.
            given_up = self._given_up.get(marker.id)
            if marker.key and (given_up is None or given_up.is_had_by(marker)):
                self.checkpoints.append(marker)
                self.has_lost_needs = True
        elif isinstance(marker, Arrays):
            for id_, shared in zip_longest(marker.ids, marker.shares, fillvalue=0):
                self.live.add(id_)
                self.aliasing.enter(id_, (shared,) if shared else (), self.live)
                self._opaque[id_] = "your own code made it, and no copy of it is kept"

    def learn(self, id_: int, shape: tuple[int, ...], dtype: str, shares: int) -> None:
        """Take in what the context told of a message's result.

        Of which buffer it is a part, 0 for none and -1 where that is not known, is believed unless
        something else may be a part of it by now; then both may be a part of that one, too.
        """
        self._specs[id_] = shape, dtype
        if shares < 0:
            return
        for step in reversed(self.steps):
            if id_ in step.makes:
                break
            if step.made and id_ in step.shares:
                if shares:
                    self.aliasing.join(id_, shares)
                return
        if shares:
            self.aliasing.enter(id_, (shares,), self.live)
        else:
            self.aliasing.renew(id_)

    def _note_failure(self, marker: Failed) -> None:
        """Note what is not made, or may have been changed, though its own message is no failure."""
        step = next((step for step in reversed(self.steps) if step.seq <= marker.seq), None)
        if step is None or step.seq != marker.seq:
            return
        if step.tag == UPLOAD:
            self._note_unfilled(step)
        elif marker.kind in CHANGED_NOTHING or not step.writes:
            return
        elif step.opaque or marker.kind in _IN_USER_CODE:
            self._half_done.add(step.seq)

    def _note_unfilled(self, upload: Step) -> None:
        """Count the message as failed that made the buffer: without its bytes it is none."""
        for step in reversed(self.steps):
            if step.made in upload.writes:
                self._failed[step.seq] = self._failed[upload.seq]
                return

    # What is to be done.

    @property
    def failures(self) -> set[int]:
        """The buffers that their messages have not made."""
        return set(self._never_made())

    def _never_made(self) -> dict[int, str]:
        """Return the buffers that their messages have not made, and why."""
        failed = self._failed
        return {
            id_: failed[step.seq]
            for step in (self.steps if failed else ())
            if step.seq in failed
            for id_ in step.makes
        }

    def slice(self, wanted: Iterable[int], without: Collection[int] = ()) -> Slice:
        """Return what has to be done to have these buffers as they were last.

        Parameters:
            without: requests that do not count, as those that were never answered.
        """
        wanted = set(wanted)
        steps = self._needed(wanted, without)
        lost = self._lost(steps, wanted)
        if lost and self.checkpoints:
            lost = self._reconciled(wanted, lost, without)
        if lost:
            # What only the lost ones need is not run.
            steps = self._needed(wanted - lost.keys(), without)
        return Slice(steps, lost)

    def _reconciled(
        self, wanted: set[int], lost: Iterable[int], without: Collection[int]
    ) -> dict[int, str]:
        """Return why which are lost when checkpoints are used in spite of others.

        What cannot be had in any case keeps none from use, and of two that keep each other from it
        that of the buffer made first is used.
        """
        found = self.hopeless(lost, without)
        pointed, aliasing = self._last_points().keys(), self.aliasing
        while True:
            others = wanted - found.keys()
            stuck = self._lost(self._needed(others, without), others)
            parted: dict[int, str] = {}
            memory: set[int] = set()
            for id_ in sorted(stuck.keys() & pointed, reverse=True):
                beside = aliasing.sharing(id_, others) - {id_}
                if beside and memory.isdisjoint(aliasing.of(id_)):
                    parted[id_] = f"{stuck[id_]}; {_PARTED.format(short(min(beside)))}"
                memory.update(aliasing.of(id_))
            found |= parted or stuck
            if not parted:
                return found

    def hopeless(self, wanted: Iterable[int], without: Collection[int] = ()) -> dict[int, str]:
        """Return why which of these could not be had even if each checkpoint could be used."""
        undone = self._failed.keys() - self._half_done
        undone.update(without)

        def history() -> Iterator[Step | Restore]:
            points = deque(self._points())
            for step in self.steps:
                while points and points[0].seq < step.seq:
                    yield Restore(points.popleft())
                if step.seq not in undone:
                    yield step
            yield from map(Restore, points)

        return self._lost(history(), wanted)

    def digests(self, wanted: Iterable[int], without: Collection[int] = ()) -> dict[int, str]:
        """Return the digests of what these buffers held, of those where that was recorded."""
        ids, found = set(wanted), dict[int, str]()
        changed: set[int] = set()  # memory that a later message has written to
        for step in reversed(self.steps):
            if step.seq in self._failed or step.seq in without:
                continue
            subjects, told = step.makes or step.writes, self._digests.get(step.seq, {})
            sole = told.get(0) if len(subjects) == 1 else None
            for subject in subjects:
                digest = told.get(subject, sole)
                is_old = not changed.isdisjoint(self.aliasing.of(subject))
                if subject in ids and digest and not is_old:
                    found[subject] = digest
                ids.discard(subject)
            changed.update(self.aliasing.of_all(step.writes))
        return found

    def _points(self) -> list[Checkpoint]:
        """Return the checkpoints of what is known, in order."""
        known = [point for point in self.checkpoints if point.id in self.aliasing]
        return sorted(known, key=lambda point: point.seq)

    def _needed(self, wanted: set[int], without: Collection[int] = ()) -> list[Step | Restore]:
        """Walk back from the last message: what changes something needed is needed too."""
        aliasing = self.aliasing
        ids = set(wanted)
        memory = aliasing.of_all(ids)
        found: list[Step | Restore] = []
        points = self._points()

        def restore(since: int) -> None:
            while points and points[-1].seq >= since:
                point = points.pop()
                # Where views of it are wanted too they must share its memory, as they did.
                if aliasing.sharing(point.id, ids) == {point.id}:
                    found.append(Restore(point))
                    ids.discard(point.id)
                    memory.intersection_update(aliasing.of_all(ids))

        written = _Written(aliasing)
        undone = self._failed.keys() - self._half_done
        again: set[int] = set()  # the effects that are needed wherever they stand
        # Before all that is needed was made nothing is.
        for step in takewhile(lambda _: ids, self._in_time(reversed(self.steps))):
            seq, made, effects = step.seq, step.made, step.effects
            if points and points[-1].seq >= seq:
                restore(seq)
                again.clear()
            if seq in undone or seq in without:
                continue
            if id(effects) in again and not made:
                found.append(step)
            elif (
                made in ids
                or not memory.isdisjoint(written(effects))
                or (len(effects.results) > 1 and not ids.isdisjoint(step.makes))
            ):
                found.append(step)
                ids.difference_update(step.makes)
                ids.update(step.needs)
                memory.update(aliasing.of_all(step.needs))
                if not made:
                    again.add(id(effects))
        restore(0)
        found.reverse()
        return found

    def _lost(self, steps: Iterable[Step | Restore], wanted: Iterable[int]) -> dict[int, str]:
        """Walk forward: return why which of these cannot be had if all of this is done."""
        trial = DryRun(self.aliasing, self._opaque, self._given_up, self._never_made())
        settled, half_done = trial.settled, self._half_done
        for position, step in enumerate(self._in_time(steps)):
            if isinstance(step, Restore):
                trial.restore(position, step.checkpoint)
            elif id(step.effects) not in settled or step.seq in half_done or step.is_part:
                trial.run(position, step, self._never(step))
        return trial.gone(wanted)

    def _in_time(self, steps: Iterable[_Any]) -> Iterator[_Any]:
        for position, step in enumerate(steps):
            if not position % _CLOCK_EVERY and time.monotonic() > self.until:
                raise TimeoutError
            yield step

    def _may_lack_some(self) -> bool:
        """Whether there is anything that cannot be run again; quick."""
        if self._opaque or self._given_up or self._half_done:
            return True
        effects = {id(step.effects): step for step in self.steps}.values()
        if any(step.opaque for step in effects):
            return True
        arena = {id(step.effects) for step in effects if step.in_arena}
        return any(id(step.effects) in arena and self._never(step) for step in self.steps)

    def _never(self, step: Step) -> str:
        """Return why a message cannot be run again; "" if it can."""
        if step.seq in self._half_done:
            return _CHANGED
        if step.is_part:
            is_kept = step.seq in self.contents or step.seq in self.elsewhere
            return "" if is_kept else step.opaque
        if step.opaque or not step.in_arena:
            return step.opaque
        content = self.contents.get(step.seq)
        if content is None:
            return "the bytes that it was made of were not kept"
        return "" if content.key else content.why

    def unwritten(self, held: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
        """Return which of these buffers are in use, and as they were behind a message's number."""
        last: dict[int, int] = {}
        for step in self.steps:
            if step.writes and step.seq not in self._failed:
                last.update(dict.fromkeys(self.aliasing.of_all(step.writes), step.seq))
        found = set()
        for id_, seq in held:
            if id_ not in self.live or id_ not in self.aliasing:
                continue
            given_up = self._given_up.get(id_)
            changed = max(last.get(root, 0) for root in self.aliasing.of(id_))
            if max(changed, 0 if given_up is None else given_up.changed) <= seq:
                found.add((id_, seq))
        return found

    # Staying small.

    @property
    def size(self) -> int:
        """How many messages it has; those of many bytes count for more."""
        return size_of([step.data for step in self.steps])

    def cut(self, pending: int | None, of_interest: Iterable[int], *, long: int) -> None:
        """Forget the messages on which no buffer in use depends.

        Parameters:
            pending: the first request that has no answer yet.
            of_interest: further buffers whose memory is still to be told apart.
            long: with more messages than this it is asked which buffers cannot be had in any case.
        """
        recent = self._recent(pending)
        wanted = self.live - self.failures
        for step in recent:
            wanted.update(step.operands)
        self.give_up({}, pending)
        wanted -= self._given_up_for_good().keys()
        needed = self._needed(wanted)
        sent = [step.data for step in needed if isinstance(step, Step)]
        if (self.checkpoints or size_of(sent) > long) and self._may_lack_some():
            hopeless = self.hopeless(wanted)
            # Twice, for what would help may still be on its way to be kept.
            twice = hopeless.keys() & self._hopeless_once
            self.give_up({id_: hopeless[id_] for id_ in twice}, pending)
            self._hopeless_once = set(hopeless)
            wanted -= self._given_up_for_good().keys()
            needed = self._needed(wanted) + self.slice(wanted).steps
        points = [step.checkpoint for step in needed if isinstance(step, Restore)]
        points += [point for point in self._last_points().values() if point.id in wanted]
        self.checkpoints = list(dict.fromkeys(points))
        kept = {step.seq for step in needed if isinstance(step, Step)}
        kept.update(step.seq for step in recent)
        self._keep(kept, wanted, of_interest)
        self.has_lost_needs = False

    def give_up(self, lost: dict[int, str], pending: int | None) -> None:
        """Need no messages for these any more; what is kept of their contents counts alone.

        Not for those that a request without an answer names: it may have to be run again.

        Parameters:
            lost: why, by their ids.
            pending: the first request that has no answer yet.
        """
        old = self._given_up_for_good()
        if not old and not lost:
            return
        recent = self._recent(pending)
        named = {id_ for step in recent for id_ in (*step.makes, *step.operands)}
        done = [step for step in self.steps if step.seq not in self._failed]
        changed: dict[int, int] = {}
        for step in {id(step.effects): step for step in done}.values():
            for root in self.aliasing.of_all(step.writes):
                changed[root] = max(step.seq, changed.get(root, 0))
        for id_, why in (lost | old).items():
            at = max(changed.get(root, 0) for root in self.aliasing.of(id_))
            if id_ in old:
                before = self._given_up[id_]
                self._given_up[id_] = before._replace(changed=max(at, before.changed))
            elif id_ not in named:
                self._given_up[id_] = GivenUp(self.newest, why, at)

    def forget(self) -> None:
        """Forget all messages."""
        self.give_up(dict.fromkeys(self.live, BEYOND), None)
        self.steps.clear()

    def overwritten(self, times: int) -> set[int]:
        """Return the buffers in use that messages have written to more often than that."""
        effects = {id(step.effects): step.effects for step in self.steps}
        writes: Counter[int] = Counter()
        for one, count in Counter(id(step.effects) for step in self.steps).items():
            for root in self.aliasing.of_all(effects[one].writes):
                writes[root] += count
        of = self.aliasing.of
        return {id_ for id_ in self.live if max(writes[root] for root in of(id_)) > times}

    def worn(self, times: int) -> list[tuple[int, tuple[int, ...], str]]:
        """Return (id, shape, dtype) of those that are overwritten, and that a checkpoint helps."""
        specs = dict(self._specs)
        for step in self.steps:
            spec = decode(step.data)[4] if step.made in self.live else None  # of one result
            if spec is not None and spec[1]:  # the notebook could infer it
                specs[step.made] = tuple(spec[0]), spec[1]
        for point in self.checkpoints:
            specs[point.id] = point.shape, point.dtype
        return [
            (id_, *specs[id_])
            for id_ in sorted(self.overwritten(times) & specs.keys())
            # With views a checkpoint could not stand for the memory that they share.
            if self.aliasing.sharing(id_, self.live) == {id_}
        ]

    def _recent(self, pending: int | None) -> list[Step]:
        return [step for step in self.steps if pending is not None and step.seq >= pending]

    def _last_points(self) -> dict[int, Checkpoint]:
        return {point.id: point for point in self._points()}

    def _given_up_for_good(self) -> dict[int, str]:
        """Return why no message makes which of the given up ones, of which no checkpoint is."""
        if not self._given_up:
            return {}
        last, given_up = self._last_points(), self._given_up.items()
        return {id_: one.why for id_, one in given_up if not one.is_had_by(last.get(id_))}

    def _keep(self, kept: set[int], wanted: set[int], of_interest: Iterable[int]) -> None:
        """Forget all messages but these, and all that nobody asks for without them."""
        self.steps = [step for step in self.steps if step.seq in kept]
        self._early = {s: early for s, early in self._early.items() if s > self.newest}
        for seq in self._failed.keys() - kept - self._early.keys():
            del self._failed[seq]
        self._half_done.intersection_update(kept)
        self.contents = {s: c for s, c in self.contents.items() if s in kept}
        self._digests = {s: d for s, d in self._digests.items() if s in kept}
        self._opaque = {i: why for i, why in self._opaque.items() if i in self.live}
        self._specs = {i: spec for i, spec in self._specs.items() if i in self.live}
        effects = {id(step.effects): step.effects for step in self.steps}
        named = {id_ for one in effects.values() for id_ in one.operands}
        named.update(id_ for step in self.steps for id_ in step.makes)
        named.update(point.id for point in self.checkpoints)
        named.update(self._opaque, self.live & self._given_up.keys())
        self._given_up = {i: one for i, one in self._given_up.items() if i in named}
        named.update(wanted)
        self.live &= named
        self.aliasing.keep(named.union(of_interest))


class _Written:
    """The memory that messages write; found once for all that say the same."""

    def __init__(self, aliasing: Aliasing) -> None:
        self._aliasing = aliasing
        self._found: dict[int, set[int]] = {}

    def __call__(self, effects: Effects) -> set[int]:
        """Return the roots of what it writes."""
        found = self._found.get(id(effects))
        if found is None:
            found = self._found[id(effects)] = self._aliasing.of_all(effects.writes)
        return found
