"""Several tenants share a function by weight: start-time fair queueing.

Each request has a start tag: the virtual time at which it came, or the end of its tenant's last one
where that is later. The least tag goes next and is the virtual time from then on; a tenant's end is
its tag plus cost by weight. So an idle tenant collects no credit, and owes nothing (Goyal, Vin and
Cheng, 1996). Tags are given when a request begins: one that is taken back costs its tenant nothing.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from accel_lab.actor.actor import handles
from accel_lab.actor.letter import Promise
from accel_lab.actor.reply import Reply
from accel_lab.blueprints.patterns.base.calls import Call
from accel_lab.blueprints.patterns.base.errors import stage_failed
from accel_lab.blueprints.patterns.base.pattern import (
    Limits,
    Overflow,
    PatternActor,
    Place,
    Service,
)
from accel_lab.blueprints.patterns.base.record import Record
from accel_lab.blueprints.patterns.base.request import Entry, Infer, Stream
from accel_lab.blueprints.patterns.base.stage import Stage, as_stage
from accel_lab.compute.events.patterns import Part
from accel_lab.compute.message.validation import require_timeout
from accel_lab.errors import InvalidArgument, QueueFull
from accel_lab.pipeline.stage import require_count


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """What one tenant may have.

    Parameters:
        weight: its share, beside those of the tenants that have requests at the same time.
        max_waiting: how many requests of it may wait; as many as find room when not given.
        max_running: how many may run at a time; as many as the stage runs when not given.
    """

    weight: float = 1.0
    max_waiting: int | None = None
    max_running: int | None = None

    def __post_init__(self) -> None:
        require_amount(self.weight, "weight")
        for name in ("max_waiting", "max_running"):
            if getattr(self, name) is not None:
                require_count(getattr(self, name), name, 1)


class InferFor(Infer, frozen=True):
    """Answer a value for a tenant, at a cost."""

    tenant: str = ""
    cost: float = 1.0


class FairShareScheduler(Service):
    """Calls a function for one request at a time and hand, so that tenants share it by weight.

    A tenant that is alone has all of it. One that was idle begins at the others' present, with
    neither credit nor debt. Unknown tenants are refused.

    Parameters:
        place: the system in which it lives, and in whose tree it stands.
        function: a function, a `@stage`, or another pattern; it gets one value.
        tenants: a weight, or a `Tenant`, by name.
        cost: returns a value's cost; each costs 1 when not given.
        parallelism: how many calls run at a time, where the function is no stage of its own.
        capacity, overflow, wait_s, timeout_s: see `Limits`; `capacity` is of all tenants together.
        name: in the tree; as the function's when not given.

    Raises:
        InvalidArgument: an option does not fit.
    """

    kind: ClassVar[str] = "fair share"

    def __init__(
        self,
        place: Place,
        function: Stage | Callable[..., Any] | Service,
        tenants: Mapping[str, float | Tenant],
        *,
        cost: Callable[[Any], float] | None = None,
        parallelism: int | None = None,
        capacity: int = 1024,
        overflow: Overflow = "reject",
        wait_s: float = 10.0,
        timeout_s: float | None = None,
        name: str | None = None,
    ) -> None:
        stage = as_stage(function)
        if parallelism is not None:
            require_count(parallelism, "parallelism", 1)
            stage = stage.with_parallelism(parallelism)
        if not tenants:
            raise InvalidArgument("tenants names one at least, as {'research': 2.0, 'web': 1.0}")
        known = {
            one: what if isinstance(what, Tenant) else Tenant(weight=what)
            for one, what in tenants.items()
        }
        self._cost = cost
        limits = Limits(capacity=capacity, overflow=overflow, wait_s=wait_s, timeout_s=timeout_s)
        make = partial(FairShareActor, limits=limits, stage=stage, tenants=known)
        super().__init__(place, name or stage.name, make)

    def ask(
        self,
        value: Any,
        *,
        priority: int = 0,
        timeout_s: float | None = None,
        tenant: str = "",
        cost: float | None = None,
    ) -> Reply[Any]:
        """Send a value for a tenant.

        Parameters:
            priority: among the requests of this tenant.
            cost: of this request; what the scheduler's `cost` says when not given.

        Raises:
            InvalidArgument: the cost is not above 0. An unknown tenant fails the reply.
        """
        return self._send(self._infer(value, priority, timeout_s, None, tenant, cost))

    def stream(
        self,
        value: Any,
        *,
        priority: int = 0,
        timeout_s: float | None = None,
        tenant: str = "",
        cost: float | None = None,
    ) -> Stream:
        """Send a value for a tenant, and return the parts of its answer as they come."""
        stream = Stream()
        sent = self._send(self._infer(value, priority, timeout_s, stream, tenant, cost))
        stream.follow(sent)
        return stream

    def _infer(
        self,
        value: Any,
        priority: int,
        timeout_s: float | None,
        stream: Stream | None,
        tenant: str,
        cost: float | None,
    ) -> InferFor:
        if cost is None:
            cost = 1.0 if self._cost is None else self._cost(value)
        require_amount(cost, "cost")
        return InferFor(value, priority, require_timeout(timeout_s), stream, tenant, float(cost))


class Account:
    """One tenant's requests, and its virtual time."""

    def __init__(self, name: str, tenant: Tenant) -> None:
        self.name, self.tenant = name, tenant
        self.waiting: dict[int, Entry] = {}
        self.running = 0
        self.end = 0.0

    @property
    def head(self) -> Entry:
        """Which of its requests is next."""
        return min(self.waiting.values(), key=lambda one: (-one.ask.priority, one.number))

    @property
    def may_begin(self) -> bool:
        """Whether one of its requests may begin, as far as its own limit goes."""
        limit = self.tenant.max_running
        return bool(self.waiting) and (limit is None or self.running < limit)


class Share:
    """What a request's account knows of it.

    Attributes:
        arrived: the virtual time at which it came.
    """

    __slots__ = ("account", "arrived", "call", "cost")

    def __init__(self, account: Account, cost: float) -> None:
        self.account, self.cost = account, cost
        self.arrived = 0.0
        self.call: Call | None = None


class FairShareActor(PatternActor):
    """Has an account for each tenant; a request's note is its `Share`."""

    noun = "tenant"

    def __init__(
        self, record: Record, limits: Limits, stage: Stage, tenants: Mapping[str, Tenant]
    ) -> None:
        super().__init__(record, limits)
        self._stage, self._virtual = stage, 0.0
        self._accounts = {name: Account(name, one) for name, one in tenants.items()}

    def parts(self) -> tuple[Part, ...]:
        """Return the tenants."""
        return tuple(map(self._part, self._accounts.values()))

    def _part(self, one: Account) -> Part:
        record, name = self.record, one.name
        cost = record.more.get(f"cost of {name}", 0.0)
        detail = f"weight {one.tenant.weight:g}, cost {cost:.6g}"
        counts = one.running, record.done[name], record.missed[name]
        return Part(name, "", detail, len(one.waiting), *counts)

    def started(self) -> None:
        """Get ready to call."""
        super().started()
        self._hands = self.calls_of(self._stage)

    @handles(InferFor)
    def infer_for(self, ask: InferFor) -> Promise[Any]:
        """Take a request in.

        Raises:
            InvalidArgument: there is no such tenant.
        """
        if ask.tenant not in self._accounts:
            known = ", ".join(map(repr, self._accounts))
            text = f"{self.record.name} has no tenant {ask.tenant!r}; it has {known}"
            raise InvalidArgument(text)
        return self.take_in(ask, Share(self._accounts[ask.tenant], ask.cost))

    @handles(Infer)
    def infer(self, ask: Infer) -> Promise[Any]:
        """Refuse what names no tenant."""
        return self.infer_for(InferFor(ask.value, ask.priority, ask.timeout_s, ask.stream))

    def enqueue(self, entry: Entry) -> None:
        """Have it wait among its tenant's.

        Raises:
            QueueFull: as many as the tenant may have wait already.
        """
        share: Share = entry.note
        account, most = share.account, share.account.tenant.max_waiting
        if most is not None and len(account.waiting) >= most:
            text = f"tenant {account.name} of {self.record.name} has {most} waiting, its limit"
            raise QueueFull(text)
        share.arrived = self._virtual
        account.waiting[entry.number] = entry

    def dequeue(self, entry: Entry) -> None:
        """Take it out of its tenant's."""
        del entry.note.account.waiting[entry.number]

    def left(self, entry: Entry) -> None:
        """End its call."""
        if entry.note.call is not None:
            entry.note.call.cancel()

    def advance(self) -> None:
        """Begin the requests with the least start tags."""
        while self._hands.has_room:
            able = [one for one in self._accounts.values() if one.may_begin]
            if not able:
                break
            account = min(able, key=_tag)
            self._begin(account, account.head)
        if not self._hands.running and not self.queued:
            self._virtual = max(one.end for one in self._accounts.values())

    def _begin(self, account: Account, entry: Entry) -> None:
        share: Share = entry.note
        self._virtual = start = _tag(account)
        account.end = start + share.cost / account.tenant.weight
        del account.waiting[entry.number]
        account.running += 1
        self.begin(entry)
        record = self.record
        record.calls += 1
        record.members += 1
        record.decide("begun", (entry.number,), f"{account.name} is next, at {start:.6g}")
        count = f"cost of {account.name}"
        record.more[count] = record.more.get(count, 0.0) + share.cost
        done, part = partial(self._done, entry), partial(self.push, entry)
        share.call = self._hands.begin(entry.ask.value, done, part=part)

    def _done(self, entry: Entry, answer: Any, error: BaseException | None, runs: int) -> None:
        account: Account = entry.note.account
        account.running -= 1
        counts = self.record.done if error is None else self.record.missed
        counts[account.name] += not entry.is_over
        if error is None:
            self.answer(entry, answer)
        else:
            name = self.record.name
            self.fail(entry, stage_failed(name, self._stage.name, entry.number, runs, error))
        self.turn()


def _tag(account: Account) -> float:
    """Return the start tag of a tenant's next request."""
    arrived: float = account.head.note.arrived
    return max(account.end, arrived)


def require_amount(value: object, name: str) -> None:
    """Refuse what is no amount.

    Raises:
        InvalidArgument: it is not a finite number above 0.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise InvalidArgument(f"{name} is a finite number above 0, not {value!r}")
