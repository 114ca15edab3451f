"""Requests that wait for others of their bucket, and the calls for those that went together."""

import itertools
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from accel_lab.actor.event_loop import Timer
from accel_lab.blueprints.patterns.base.calls import Call, Calls
from accel_lab.blueprints.patterns.base.errors import stage_failed, wrong_answer
from accel_lab.blueprints.patterns.base.form import Form
from accel_lab.blueprints.patterns.base.pattern import PatternActor
from accel_lab.blueprints.patterns.base.request import Entry
from accel_lab.compute.message.validation import require_timeout
from accel_lab.errors import InvalidArgument

MAX_BATCH = 32
MAX_WAIT_S = 0.005
EARLY_S = 1e-9
"""Times are sums of floats: what is due within this is due."""


class Member:
    """A request in a batcher.

    Attributes:
        value: as it goes into the batch.
        due: when it begins at the latest, where a call may begin.
        call: the one that it is in.
    """

    __slots__ = ("call", "due", "entry", "key", "value")

    def __init__(self, entry: Entry, key: Hashable, value: Any, due: float) -> None:
        self.entry, self.key, self.value, self.due = entry, key, value, due
        self.call: Call | None = None


class Lane:
    """The requests of one bucket: those of higher priority first, and else as they came.

    Attributes:
        flushing: how many are to go without waiting.
    """

    def __init__(self) -> None:
        self._levels: dict[int, dict[int, Member]] = {}
        self.count = self.flushing = 0

    def add(self, member: Member) -> None:
        """Put one behind those of its priority."""
        level = self._levels.setdefault(member.entry.ask.priority, {})
        level[member.entry.number] = member
        self.count += 1

    def remove(self, member: Member) -> None:
        """Take one out."""
        priority = member.entry.ask.priority
        del self._levels[priority][member.entry.number]
        if not self._levels[priority]:
            del self._levels[priority]
        self.count -= 1
        self.flushing = min(self.flushing, self.count)

    def take(self, most: int) -> list[Member]:
        """Take out the first ones."""
        ordered = (self._levels[priority].values() for priority in sorted(self._levels)[::-1])
        taken = list(itertools.islice(itertools.chain.from_iterable(ordered), most))
        flushing = max(0, self.flushing - len(taken))
        for one in taken:
            self.remove(one)
        self.flushing = flushing
        return taken

    @property
    def top(self) -> int:
        """The highest priority of them."""
        return max(self._levels)

    @property
    def due(self) -> float:
        """When the first of them has waited for long enough."""
        return min(one.due for level in self._levels.values() for one in level.values())


class Batcher:
    """Has requests wait for others, `max_wait_s` at most, and calls a function for them together.

    Parameters:
        answered: gets each request with its answer.
        name: what it is called in decisions.
    """

    def __init__(
        self,
        owner: PatternActor,
        calls: Calls,
        form: Form,
        max_batch: int,
        max_wait_s: float,
        answered: Callable[[Entry, Any], object],
    ) -> None:
        self.calls = calls
        self._owner, self._form, self._answered = owner, form, answered
        self._max_batch, self._max_wait_s = max_batch, max_wait_s
        self._lanes: dict[Hashable, Lane] = {}
        self._members: dict[int, Member] = {}
        self._timer: Timer | None = None

    @property
    def waiting(self) -> int:
        """How many wait; any thread."""
        return sum(lane.count for lane in list(self._lanes.values()))

    @property
    def running(self) -> int:
        """How many are in calls; any thread."""
        return max(0, len(self._members) - self.waiting)

    def add(self, entry: Entry) -> None:
        """Have a request wait.

        Raises:
            InvalidArgument: its value does not fit.
        """
        key, value = self._form.taken(entry.ask.value)
        patience_s, timeout_s = self._max_wait_s, self._owner.timeout_of(entry.ask)
        if timeout_s is not None:
            patience_s = min(patience_s, timeout_s / 2)  # the rest is for its call
        member = Member(entry, key, value, self._owner.now + patience_s)
        self._lanes.setdefault(key, Lane()).add(member)
        self._members[entry.number] = member

    def remove(self, entry: Entry) -> None:
        """Take out one that waits."""
        member = self._members.pop(entry.number)
        self._lanes[member.key].remove(member)
        self._tidy(member.key)

    def left(self, entry: Entry) -> None:
        """Nobody waits for one that runs: its call ends early if that is true of all in it."""
        call = self._members.pop(entry.number).call
        if call is not None and all(one.call is not call for one in self._members.values()):
            call.cancel()

    def flush(self) -> int:
        """Have all that waits now go without waiting for others; return how many."""
        for lane in self._lanes.values():
            lane.flushing = lane.count
        return sum(lane.count for lane in self._lanes.values())

    def advance(self) -> None:
        """Begin what is due, as far as calls may begin."""
        while self.calls.has_room and (found := self._ready()) is not None:
            self._start(*found)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.calls.has_room and self._lanes:
            due = min(lane.due for lane in self._lanes.values())
            self._timer = self._owner.later(due - self._owner.now, self._owner.turn)

    def _ready(self) -> tuple[Hashable, str] | None:
        """Return the bucket that goes next, and why."""
        now = self._owner.now + EARLY_S
        best: tuple[tuple[int, float], Hashable, str] | None = None
        for key, lane in self._lanes.items():
            due = lane.due
            if lane.count >= self._max_batch:
                why = "full"
            elif lane.flushing:
                why = "flushed"
            elif due <= now:
                why = "waited"
            else:
                continue
            rank = -lane.top, due
            if best is None or rank < best[0]:
                best = rank, key, why
        return None if best is None else best[1:]

    def _start(self, key: Hashable, why: str) -> None:
        members = self._lanes[key].take(self._max_batch)
        self._tidy(key)
        entries = [one.entry for one in members]
        self._owner.begin(*entries)
        record = self._owner.record
        record.calls += 1
        record.members += len(members)
        record.decide("batch", tuple(one.number for one in entries), why)
        value = self._form.joined(key, [one.value for one in members])
        done, part = partial(self._done, members), partial(self._part, members)
        call = self.calls.begin(value, done, part=part)
        for one in members:
            one.call = call

    def _tidy(self, key: Hashable) -> None:
        if not self._lanes[key].count:
            del self._lanes[key]

    def _part(self, members: list[Member], part: Any) -> None:
        """Stream what the function gave: one part for each."""
        parts = self._form.parted(part, [one.value for one in members])
        for one, own in zip(members, parts or (), strict=False):
            if not isinstance(own, BaseException):
                self._owner.push(one.entry, own)

    def _done(
        self, members: list[Member], answer: Any, error: BaseException | None, runs: int
    ) -> None:
        """Answer the requests of a call."""
        stage, name = self.calls.stage.name, self._owner.record.name
        for one in members:
            self._members.pop(one.entry.number, None)
        answers = [error] * len(members) if error is not None else self._parted(members, answer)
        if answers is None:
            expected = f"sequence of {len(members)} answers, one for each request"
            wrong = wrong_answer(name, stage, expected, answer)
            for one in members:
                self._owner.fail(one.entry, wrong)
        else:
            for one, own in zip(members, answers, strict=True):
                if isinstance(own, BaseException):
                    failed = stage_failed(name, stage, one.entry.number, runs, own)
                    self._owner.fail(one.entry, failed)
                elif not one.entry.is_over:
                    self._answered(one.entry, own)
        self._owner.turn()

    def _parted(self, members: list[Member], answer: Any) -> list[Any] | None:
        """Return the answer of each; None where there is not one for each."""
        values, call = [one.value for one in members], members[0].call
        if call is None or not call.is_stream:
            return self._form.parted(answer, values)
        rows = [self._form.parted(part, values) for part in answer]
        if any(row is None for row in rows):
            return None
        return [[row[place] for row in rows if row] for place in range(len(members))]


def require_wait(max_wait_s: float) -> float:
    """Return how long a request waits for others.

    Raises:
        InvalidArgument: it is no number of seconds from 0.
    """
    if max_wait_s == 0 and not isinstance(max_wait_s, bool):
        return 0.0
    found = require_timeout(max_wait_s, "max_wait_s")
    if found is None:
        raise InvalidArgument("max_wait_s is a number of seconds from 0, and not None")
    return found
