"""Replicas of one model over devices: who gets a request, who is avoided, and how many."""

import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, get_args

from accel_lab.actor.actor import handles
from accel_lab.actor.message import Message
from accel_lab.actor.reply import Reply
from accel_lab.blueprints.patterns.base.calls import Call
from accel_lab.blueprints.patterns.base.errors import NoReplica, cause_of, stage_failed
from accel_lab.blueprints.patterns.base.pattern import (
    Limits,
    Overflow,
    PatternActor,
    Place,
    Service,
)
from accel_lab.blueprints.patterns.base.record import Record
from accel_lab.blueprints.patterns.base.replica import Chooser, Policy, Replica, head_of
from accel_lab.blueprints.patterns.base.request import Entry
from accel_lab.blueprints.patterns.base.stage import Stage, as_stage
from accel_lab.compute.device import Device
from accel_lab.compute.events.patterns import Part
from accel_lab.compute.message.validation import require_seconds, require_timeout, require_word
from accel_lab.errors import InvalidArgument
from accel_lab.pipeline.faults import is_fault
from accel_lab.pipeline.stage import NO_WORK, require_count

KNOWN = 3
"""After so many completions the speed of a replica is known."""
SLOW = 3.0
"""So many times the others' time is slow."""
REST_S = 1.0


class Scale(Message[int], frozen=True):
    """Have so many replicas; the answer is how many there were."""

    count: int


class ModelReplicaPool(Service):
    """Sends each request to one of several replicas of a model.

    A replica whose device rests is not chosen. One that met a fault a moment ago, or takes three
    times as long as the others, is avoided while there are others, and tried again now and then. A
    request that a fault has hit, or that runs for longer than `patience_s`, is sent once more, to
    another replica, if the stage is `repeatable`; the first answer counts.

    Parameters:
        place: the system in which it lives, and in whose tree it stands.
        model: a `@stage` with devices, whose devices get the replicas in turn; or a list of stages,
            each a replica of its own. A class is made once for each replica.
        replicas: how many; one for each device, or stage, when not given.
        policy: `least_loaded` takes the one that will be done first, by the time of its completions
            so far; `round_robin` the one that was not chosen for longest; `two_choices` the better
            one of two drawn at random; `prefix` always the same for one prefix, as long as it has
            room.
        prefix: returns the key of a value for `prefix`; its first 16 items when not given.
        max_running: how many requests a replica has at a time.
        patience_s: how long a request may run before another replica gets it, too; None for ever.
        rest_s: for how long a replica is avoided.
        seed: of `two_choices`.
        capacity, overflow, wait_s, timeout_s: see `Limits`.
        name: in the tree; as the model's when not given.

    Raises:
        InvalidArgument: an option does not fit.
    """

    kind: ClassVar[str] = "replica pool"
    policy: ClassVar[str] = (
        "A request that met a fault, or takes too long, is sent once more, to another replica, if "
        "its stage is repeatable. A replica that met a fault is built again and avoided for a "
        "while. An error of the function fails its request alone."
    )

    def __init__(
        self,
        place: Place,
        model: Stage | Callable[..., Any] | Sequence[Stage],
        *,
        replicas: int | None = None,
        policy: Policy = "least_loaded",
        prefix: Callable[[Any], Any] | None = None,
        max_running: int = 1,
        patience_s: float | None = None,
        rest_s: float = REST_S,
        seed: int | None = None,
        capacity: int = 1024,
        overflow: Overflow = "reject",
        wait_s: float = 10.0,
        timeout_s: float | None = None,
        name: str | None = None,
    ) -> None:
        stages = (
            [as_stage(one) for one in model] if isinstance(model, Sequence) else [as_stage(model)]
        )
        if not stages:
            raise InvalidArgument("a pool has one model at least, and the list is empty")
        spots: list[tuple[Stage, Device | None]] = [
            (one, device) for one in stages for device in one.devices or (None,)
        ]
        count = len(spots) if replicas is None else replicas
        require_count(count, "replicas", 1)
        require_count(max_running, "max_running", 1)
        require_word(policy, "policy", get_args(Policy))
        limits = Limits(capacity=capacity, overflow=overflow, wait_s=wait_s, timeout_s=timeout_s)
        make = partial(
            PoolActor,
            limits=limits,
            spots=spots,
            count=[count],
            choose=Chooser(policy, prefix or head_of, seed),
            max_running=max_running,
            patience_s=require_timeout(patience_s, "patience_s"),
            rest_s=require_seconds(rest_s, "rest_s"),
        )
        super().__init__(place, name or stages[0].name, make)

    def scale(self, count: int) -> Reply[int]:
        """Have so many replicas from now on; those that go finish what they have.

        Returns the reply of how many there were.

        Raises:
            InvalidArgument: the count is no whole number from 1.
        """
        require_count(count, "count", 1)
        reply: Reply[int] = self._send(Scale(count))
        return reply


class Flight:
    """What a pool knows of a request.

    Attributes:
        key: of its prefix.
        calls: all that were made for it; those that are over ignore an end.
        under_way: how many are not over.
        tried: the replicas that had it.
        moved: whether it was sent once more, or may not be any more.
        speaks: which of the calls has told parts of its answer.
    """

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.calls: list[Call] = []
        self.tried: list[Replica] = []
        self.under_way = 0
        self.moved = False
        self.speaks: int | None = None


class PoolActor(PatternActor):
    """Has the replicas; a request's note is its `Flight`."""

    noun = "replica"

    def __init__(
        self,
        record: Record,
        limits: Limits,
        spots: list[tuple[Stage, Device | None]],
        count: list[int],
        choose: Chooser,
        max_running: int,
        patience_s: float | None,
        rest_s: float,
    ) -> None:
        super().__init__(record, limits)
        self._spots, self._count, self._choose = spots, count, choose
        self._max_running, self._patience_s, self._rest_s = max_running, patience_s, rest_s
        self._replicas: list[Replica] = []
        self._made = self._choices = 0

    def started(self) -> None:
        """Make the replicas, as many as there were before a restart."""
        super().started()
        self._scale()

    def parts(self) -> tuple[Part, ...]:
        """Return the replicas."""
        return tuple(map(self._look, list(self._replicas)))

    def _look(self, one: Replica) -> Part:
        where = "" if one.device is None else f"on {one.device.name}"
        speed = f"{one.seconds * 1e3:.3g} ms each" if one.completed else ""
        detail = ", ".join(filter(None, (where, speed)))
        failed = self.record.missed[one.name]
        return Part(one.name, self._word(one), detail, 0, one.running, one.completed, failed)

    def _word(self, one: Replica) -> str:
        if one.device is not None and one.device.state in NO_WORK:
            return "lost"
        if one.drains:
            return "drains"
        return "avoided" if self._is_avoided(one) else "serves"

    @handles(Scale)
    def scale(self, message: Scale) -> int:
        """Add replicas, or have some drain."""
        before, self._count[0] = self._count[0], message.count
        self._scale()
        self.record.decide("scaled", (), f"from {before} to {message.count} replicas")
        self.turn()
        return before

    def enqueue(self, entry: Entry) -> None:
        """Note that it has been nowhere, if it is new."""
        if entry.note is None:
            entry.note = Flight(self._choose.key(entry.ask.value))

    def dequeue(self, entry: Entry) -> None:
        """End its call, if it waits to be sent once more."""
        self.left(entry)

    def left(self, entry: Entry) -> None:
        """End its calls."""
        for call in entry.note.calls:
            call.cancel()

    def advance(self) -> None:
        """Send what waits to replicas that have room."""
        while self.queued:
            entry = self.first
            usable = [one for one in self._replicas if not one.drains and not one.is_dead]
            if not usable:
                why = {
                    one.name: "it drains" if one.drains else "its device takes no work"
                    for one in self._replicas
                }
                text = f"no replica of {self.record.name} may take a request"
                self.fail(entry, NoReplica(text, why=why))
                continue
            elsewhere = [one for one in usable if one not in entry.note.tried] or usable
            preferred = [one for one in elsewhere if not self._is_avoided(one)] or elsewhere
            able = [one for one in preferred if one.calls.has_room]
            if not able:
                break
            self._begin(entry, self._choose(able, entry.note.key))

    def _is_avoided(self, one: Replica) -> bool:
        """Whether others are better, by what is known; a slow one is tried now and then."""
        if self.now < one.rests_until:
            return True
        others = [
            other.seconds
            for other in self._replicas
            if other is not one and not other.drains and other.completed >= KNOWN
        ]
        if one.completed < KNOWN or not others or self.now - one.begun_at >= self._rest_s:
            return False
        return one.seconds > SLOW * statistics.median(others)

    def _begin(self, entry: Entry, replica: Replica) -> None:
        flight: Flight = entry.note
        self.begin(entry)
        self._choices += 1
        replica.running += 1
        replica.chosen_at, replica.begun_at = self._choices, self.now
        self.record.calls += 1
        self.record.members += 1
        again = " again" if flight.tried else ""
        self.record.decide("sent", (entry.number,), f"to {replica.name}{again}")
        flight.tried.append(replica)
        flight.under_way += 1
        place = len(flight.calls)
        done = partial(self._done, entry, replica, place, self.now)
        part = partial(self._part, entry, place)
        call = replica.calls.begin(entry.ask.value, done, part=part)
        flight.calls.append(call)
        if self._patience_s is not None and not flight.moved:
            self.later(self._patience_s, self._lose_patience, entry, replica)

    def _part(self, entry: Entry, place: int, part: Any) -> None:
        """Stream the parts of one call; from the first on, there is no other one."""
        flight: Flight = entry.note
        if flight.speaks is None:
            flight.speaks, flight.moved = place, True
            if entry.state == "queued":  # for another replica, which it needs no more
                self.begin(entry)
            for other, call in enumerate(flight.calls):
                if other != place:
                    call.cancel()
        if flight.speaks == place:
            self.push(entry, part)

    def _lose_patience(self, entry: Entry, replica: Replica) -> None:
        """Send a request once more that takes too long."""
        others = (one for one in self._replicas if one is not replica and not one.drains)
        if entry.state != "running" or not self._may_move(entry, replica):
            return
        if all(one.is_dead for one in others):
            return
        replica.rests_until = self.now + self._rest_s
        self._move(entry, replica, f"{replica.name} takes longer than {self._patience_s:g} s")

    def _may_move(self, entry: Entry, replica: Replica) -> bool:
        return not entry.note.moved and replica.calls.stage.repeatable

    def _move(self, entry: Entry, replica: Replica, why: str) -> None:
        entry.note.moved = True
        self.record.reruns += 1
        self.record.decide("moved", (entry.number,), f"off {replica.name}: {why}")
        self.again(entry)
        self.turn()

    def _done(
        self,
        entry: Entry,
        replica: Replica,
        place: int,
        begun_at: float,
        answer: Any,
        error: BaseException | None,
        runs: int,
    ) -> None:
        """Take in what came of one of a request's calls."""
        del runs  # a replica's calls are not run again by themselves
        flight: Flight = entry.note
        replica.running -= 1
        flight.under_way -= 1
        fault = error is not None and is_fault(cause_of(error), has_another=True)
        self.record.missed[replica.name] += error is not None
        if error is None:
            replica.complete(self.now - begun_at)
            told = f"{replica.completed} done, {replica.seconds * 1e3:.3g} ms each"
            self.record.more[replica.name] = told
        elif fault:
            replica.calls.forget()
            replica.rests_until = self.now + self._rest_s
        if flight.speaks not in (None, place):  # another call's answer counts
            pass
        elif error is None:
            self.answer(entry, answer)
            self.left(entry)
        elif fault:
            self._meet_fault(entry, replica, error)
        else:
            self._fail(entry, replica, error)
        self._tidy()
        self.turn()

    def _meet_fault(self, entry: Entry, replica: Replica, error: BaseException) -> None:
        """Send a request once more, or fail it where that is done and nothing else is under way."""
        if entry.is_over:
            return
        if self._may_move(entry, replica):
            self._move(entry, replica, type(cause_of(error)).__name__)
        elif not entry.note.under_way and entry.state == "running":
            self._fail(entry, replica, error)

    def _fail(self, entry: Entry, replica: Replica, error: BaseException) -> None:
        runs = len(entry.note.tried)
        name = self.record.name
        self.fail(entry, stage_failed(name, replica.name, entry.number, runs, error))
        self.left(entry)

    def _scale(self) -> None:
        """Make replicas, or have the newest ones drain, until there are as many as wanted."""
        serving = [one for one in self._replicas if not one.drains]
        for one in serving[self._count[0] :]:
            one.drains = True
        for _ in range(self._count[0] - len(serving)):
            stage, device = self._spots[self._made % len(self._spots)]
            name = f"replica {self._made}"
            self._made += 1
            placed = stage.placed(device, parallelism=self._max_running, name=name)
            self._replicas.append(Replica(name, self.calls_of(placed)))
        self._tidy()
        self.record.more["replicas"] = self._count[0]

    def _tidy(self) -> None:
        """End the replicas that have drained."""
        for one in [one for one in self._replicas if one.drains and not one.running]:
            self._replicas.remove(one)
            self.drop_calls(one.calls)
            self.record.more.pop(one.name, None)
