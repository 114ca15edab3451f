"""A state that lies on a device, for many readers or one writer at a time.

Who wants it waits in one line, so that nobody is passed. A lease ends by itself when its holder is
gone; what that holder commits later is refused by its number.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from accel_lab.actor.actor import handles
from accel_lab.actor.event_loop import Timer
from accel_lab.actor.message import Message
from accel_lab.actor.reply import Reply
from accel_lab.blueprints.agents.errors import LeaseLost
from accel_lab.blueprints.patterns.base.pattern import Limits, PatternActor, Place, Service
from accel_lab.blueprints.patterns.base.record import Record
from accel_lab.blueprints.patterns.base.request import Entry
from accel_lab.compute.device import Device, device_of
from accel_lab.compute.events.patterns import Part
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.validation import require_seconds, require_word
from accel_lab.errors import InvalidArgument
from accel_lab.pipeline.stage import require_count

Use = Literal["read", "write"]
State = Mapping[str, AccelRef]


class Snapshot(NamedTuple):
    """The state as a commit left it; the first generation is 1."""

    generation: int
    state: State


class Lease(NamedTuple):
    """A right to read or to write, until it is released or its time is over."""

    number: int
    use: Use
    generation: int
    state: State


class Wanted(NamedTuple):
    """What is asked for."""

    use: Use
    lease_s: float


class Release(Message[bool], frozen=True):
    """Give a lease back; the answer is whether it was there."""

    number: int


class Renew(Message[None], frozen=True):
    """Have a lease end so many seconds from now."""

    number: int
    lease_s: float


class Commit(Message[int], frozen=True):
    """Make this the state, and give the lease back; the answer is its generation."""

    number: int
    state: Any


class Shelf:
    """The newest generations, which outlive the actor's restarts; any thread."""

    def __init__(self, state: State, keep: int) -> None:
        self._kept = {1: MappingProxyType(dict(state))}
        self._keep, self._leases = keep, 0
        self._lock = threading.Lock()

    def commit(self, state: State) -> int:
        """Add a generation; the oldest one goes."""
        with self._lock:
            generation = max(self._kept) + 1
            self._kept[generation] = MappingProxyType(dict(state))
            self._kept.pop(generation - self._keep, None)
            return generation

    def number(self) -> int:
        """Return the number of another lease: none is given twice."""
        self._leases += 1
        return self._leases

    def get(self, generation: int | None) -> Snapshot:
        """Return a generation, or the newest.

        Raises:
            InvalidArgument: it is not kept.
        """
        with self._lock:
            first, last = min(self._kept), max(self._kept)
            found = last if generation is None else generation
            if found not in self._kept:
                text = f"generation {generation!r} is not kept; those from {first} to {last} are"
                raise InvalidArgument(text)
            return Snapshot(found, self._kept[found])


class SharedGpuStateCoordinator(Service):
    """Lets many read a state on a device, or one write it, in the order in which they asked.

    A writer gets copies and may write to them in place. Its commit makes a new generation; without
    one nothing has changed. Readers, and snapshots, share one generation: do not write to it.

    A request that is cancelled, or has waited for its `timeout_s`, leaves the line. A lease whose
    holder is gone ends after `lease_s`, and its commit is then refused with LeaseLost.

    Parameters:
        place: the system in which it lives, and in whose tree it stands.
        device: where the state is.
        state: the first generation, arrays or handles by name. Names stay the same.
        keep: how many generations are kept for `snapshot`.
        lease_s: how long a lease lasts that says nothing itself.
        durable: whether the host keeps a copy of each generation, so that a lost context costs
            nothing of it. False where the system has `recover="stale"`.
        capacity: how many may wait.
        timeout_s: how long one may wait that says nothing itself; None for ever.
        name: in the tree.

    Raises:
        InvalidArgument: an option does not fit.
    """

    kind: ClassVar[str] = "shared state"
    policy: ClassVar[str] = (
        "A holder that is gone loses its lease after its time. An error of the coordinator itself "
        "ends all leases, fails who waits and restarts it; the generations stay. A durable state "
        "is rebuilt on a new context."
    )

    def __init__(
        self,
        place: Place,
        device: Device,
        state: Mapping[str, Any],
        *,
        keep: int = 4,
        lease_s: float = 30.0,
        durable: bool = True,
        capacity: int = 1024,
        timeout_s: float | None = None,
        name: str = "state",
    ) -> None:
        require_count(keep, "keep", 1)
        limits = Limits(capacity=capacity, timeout_s=timeout_s)
        self._lease_s = require_seconds(lease_s, "lease_s")
        self.device, self._durable, self._names = device, durable, set(state)
        self._shelf = Shelf(self._settled(state), keep)
        super().__init__(place, name, partial(StateActor, limits=limits, shelf=self._shelf))

    def acquire(
        self, use: Use, *, lease_s: float | None = None, timeout_s: float | None = None
    ) -> Reply[Lease]:
        """Ask for a lease; its reply comes when nobody is in the way.

        Raises:
            InvalidArgument: an option does not fit.
        """
        require_word(use, "use", get_args(Use))
        seconds = self._lease_s if lease_s is None else require_seconds(lease_s, "lease_s")
        return self.ask(Wanted(use, seconds), timeout_s=timeout_s)

    def release(self, lease: Lease) -> Reply[bool]:
        """Give a lease back without a commit; the reply says whether it was still there."""
        reply: Reply[bool] = self._send(Release(lease.number))
        return reply

    def renew(self, lease: Lease, *, lease_s: float | None = None) -> Reply[None]:
        """Have a lease last so long from now; the reply fails with LeaseLost if it is over."""
        seconds = self._lease_s if lease_s is None else require_seconds(lease_s, "lease_s")
        reply: Reply[None] = self._send(Renew(lease.number, seconds))
        return reply

    def commit(self, lease: Lease, state: Mapping[str, Any]) -> Reply[int]:
        """Make this the state and give the lease back; the reply has the generation.

        It blocks until the arrays are computed. The reply fails with LeaseLost if the lease is
        over.

        Raises:
            InvalidArgument: the lease is no writer's, the names differ, or an array lies elsewhere.
            AccelError: an array could not be computed. The lease and the old state stay.
        """
        if lease.use != "write":
            raise InvalidArgument(f"lease {lease.number} is to read; acquire('write') to commit")
        if set(state) != self._names:
            text = f"a commit has {sorted(self._names)}, and not {sorted(state)}"
            raise InvalidArgument(text)
        reply: Reply[int] = self._send(Commit(lease.number, self._settled(state)))
        return reply

    def snapshot(self, generation: int | None = None) -> Snapshot:
        """Return the newest state, or that of a generation, without a lease; it does not wait.

        Raises:
            InvalidArgument: that generation is not kept.
        """
        return self._shelf.get(generation)

    @contextmanager
    def reading(
        self, *, lease_s: float | None = None, timeout_s: float | None = None
    ) -> Iterator[State]:
        """Read in a `with` block; it blocks until there is a lease."""
        with self._leased("read", lease_s, timeout_s) as lease:
            yield lease.state

    @contextmanager
    def writing(
        self, *, lease_s: float | None = None, timeout_s: float | None = None
    ) -> Iterator[dict[str, Any]]:
        """Write in a `with` block, to copies; its end commits them, an exception does not.

        Raises:
            LeaseLost: the block took longer than its lease; nothing was committed.
        """
        with self._leased("write", lease_s, timeout_s) as lease:
            state: dict[str, Any] = {name: ref.copy() for name, ref in lease.state.items()}
            yield state
            self.commit(lease, state).result()

    @contextmanager
    def _leased(self, use: Use, lease_s: float | None, timeout_s: float | None) -> Iterator[Lease]:
        reply = self.acquire(use, lease_s=lease_s, timeout_s=timeout_s)
        try:
            lease = reply.result()
        except BaseException:
            reply.cancel()  # by Ctrl-C, say
            raise
        try:
            yield lease
        finally:
            self.release(lease).add_waiter(lambda: None)  # a stopped coordinator has no leases

    def _settled(self, state: Mapping[str, Any]) -> dict[str, AccelRef]:
        """Return the arrays on the device, when all are computed and kept."""
        refs: dict[str, AccelRef] = {}
        for name, value in state.items():
            if isinstance(value, AccelRef) and device_of(value) is not self.device:
                where = f"{self.device.name}, and not on {device_of(value).name}"
                raise InvalidArgument(f"array {name!r} of a state is on {where}")
            refs[name] = value if isinstance(value, AccelRef) else self.device.put(value)
        if self._durable:
            kept = [self.device.checkpoint(ref) for ref in refs.values()]
            for reply in kept:
                reply.add_waiter(lambda: None)  # the first failure is raised, the others are heard
            for reply in kept:
                reply.result()
        for ref in refs.values():
            ref.result()
        return refs


class StateActor(PatternActor):
    """Hands out leases in the order of requests; readers together, a writer alone."""

    noun = "lease"

    def __init__(self, record: Record, limits: Limits, shelf: Shelf) -> None:
        super().__init__(record, limits)
        self._shelf = shelf
        self._leases: dict[int, tuple[Use, Timer]] = {}

    def parts(self) -> tuple[Part, ...]:
        """Return the leases that are out."""
        held = list(self._leases.items())
        return tuple(Part(str(number), f"{use}s", running=1) for number, (use, _) in held)

    def started(self) -> None:
        """Show the generation; there is no lease yet."""
        super().started()
        self.record.more["lost leases"] = self.record.more.get("lost leases", 0)
        self._count()

    def enqueue(self, entry: Entry) -> None:
        """Take what `acquire` sends alone.

        Raises:
            InvalidArgument: it is something else.
        """
        if not isinstance(entry.ask.value, Wanted):
            raise InvalidArgument(f"a state is acquired, and not asked for {entry.ask.value!r}")

    def advance(self) -> None:
        """Hand out leases to the first ones, as long as nobody is in their way."""
        while self.queued:
            entry = self.first
            wanted: Wanted = entry.ask.value
            if self._leases and "write" in (wanted.use, *(use for use, _ in self._leases.values())):
                return
            number, newest = self._shelf.number(), self._shelf.get(None)
            self.begin(entry)
            timer = self.later(wanted.lease_s, self._lose, number)
            self._leases[number] = wanted.use, timer
            self._count()
            self.record.decide("lease", (entry.number,), f"{number} to {wanted.use}")
            self.answer(entry, Lease(number, wanted.use, *newest))

    @handles(Release)
    def release(self, message: Release) -> bool:
        """Take a lease back, if it is there."""
        return self._end(message.number)

    @handles(Renew)
    def renew(self, message: Renew) -> None:
        """Begin a lease's time again."""
        use, timer = self._held(message.number)
        timer.cancel()
        timer = self.later(message.lease_s, self._lose, message.number)
        self._leases[message.number] = use, timer

    @handles(Commit)
    def commit(self, message: Commit) -> int:
        """Make a generation, if its writer's lease is there."""
        self._held(message.number)
        generation = self._shelf.commit(message.state)
        self._end(message.number)
        return generation

    def _held(self, number: int) -> tuple[Use, Timer]:
        if number not in self._leases:
            text = f"lease {number} of {self.record.name} is over; nothing was done"
            raise LeaseLost(text, lease=number)
        return self._leases[number]

    def _lose(self, number: int) -> None:
        self.record.more["lost leases"] += 1
        self.record.decide("lease lost", (), f"{number} was not given back in its time")
        self._end(number)

    def _end(self, number: int) -> bool:
        _, timer = self._leases.pop(number, (None, None))
        if timer is None:
            return False
        timer.cancel()
        self._count()
        self.turn()
        return True

    def _count(self) -> None:
        more = self.record.more
        more["generation"] = self._shelf.get(None).generation
        more["leases"] = len(self._leases)
