"""What supervision did, one incident at a time: a fault with the decisions that followed it.

A loss of a context is told by many facts: its process ended, the generation changed, the context
was lost, its actor was restarted, a context started, buffers were rebuilt. Here they are one row.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from accel_lab.actor.events import ActorRestarted, ActorStarted, ActorStopped, Event
from accel_lab.compute.events.lifecycle import (
    BuffersRebuilt,
    CircuitClosed,
    CircuitOpened,
    ContextExited,
    ContextLost,
    ContextStarted,
    DeviceResumed,
    DeviceSuspended,
    GenerationChanged,
    LibraryRestarted,
    RequestFailed,
    SuspensionFailed,
)
from accel_lab.display.counts import counted
from accel_lab.display.sizes import size
from accel_lab.views.scene.scene import Fact

Level = Literal["fault", "note"]
Outcome = Literal[
    "recovering",
    "recovered",
    "circuit open",
    "restarted",
    "failed",
    "started",
    "suspended",
    "stopped",
    "ended",
]
RECENT = 6
NAMED_REQUESTS = 4
SOON_S = 5.0  # within this a request's failure belongs to the library's restart before it
_SECOND = 0.9995  # below, milliseconds
_WHOLE = 9.95  # from here on, no digit after the point
_REASON = re.compile(
    r"lost its context of generation \d+: (?P<why>.*); (the device is now at|it had not started)",
    re.DOTALL,
)


@dataclass(eq=False)
class Incident:
    """A fault or a note, with everything that belongs to it.

    Attributes:
        number: of its first fact.
        at: when that happened, wall seconds.
        path: whom it concerns, below the system, as "gpu0/context/blas".
        device: which device's it is; empty for an actor of the user's.
        what: what happened, in words.
        cause: why, in one line; empty for what needs no reason.
        code, name: the driver's code, its name or a signal's; 0 and empty where there is none.
        decisions: what supervision did, in order.
        before, after: the generation that was lost and the one that follows.
        lost_at, back_at: when the context was lost, and when the device was whole again.
        outcome: how it stands.
        steps: every fact in words, `(at, text)`.
    """

    number: int
    at: float
    path: str
    device: str
    what: str
    outcome: Outcome
    level: Level = "fault"
    cause: str = ""
    code: int = 0
    name: str = ""
    decisions: list[str] = field(default_factory=list)
    before: int | None = None
    after: int | None = None
    lost_at: float | None = None
    back_at: float | None = None
    steps: list[tuple[float, str]] = field(default_factory=list)
    told: str = ""  # the text that a request which failed of it quotes

    @property
    def recovery_s(self) -> float | None:
        """Seconds from the loss until the device was whole again; None while it is not."""
        if self.lost_at is None or self.back_at is None or self.is_open:
            return None
        return self.back_at - self.lost_at

    @property
    def is_open(self) -> bool:
        """Whether more is to come of it."""
        return self.outcome in ("recovering", "circuit open")


def incidents(facts: Iterable[tuple[int, Fact]], devices: Iterable[str] = ()) -> list[Incident]:
    """Pair facts, the oldest first, into incidents, by their first fact.

    Parameters:
        facts: with their numbers, as a scene has them.
        devices: the names of those that are known; others are known by the facts about them.
    """
    listed = list(facts)
    known = {*devices, *(fact.device for _, fact in listed if hasattr(fact, "device"))}
    pairing = _Pairing(known)
    for number, fact in listed:
        pairing.add(number, fact)
    return pairing.finish()


class _Pairing:
    """The incidents so far, and what waits for the one that it belongs to."""

    def __init__(self, devices: set[str]) -> None:
        self.all: list[Incident] = []
        self._devices = devices
        self._last: dict[str, Incident] = {}
        self._exits: dict[str, list[tuple[int, ContextExited]]] = {}
        self._births: dict[str, list[tuple[float, str]]] = {}
        self._takes: dict[type[Event], Callable[[int, Any], None]] = {
            ContextExited: self._exited,
            GenerationChanged: self._changed,
            ContextLost: self._lost,
            ContextStarted: self._context_started,
            BuffersRebuilt: self._rebuilt,
            DeviceSuspended: self._suspended,
            DeviceResumed: self._resumed,
            SuspensionFailed: self._unsuspended,
            CircuitOpened: self._opened,
            CircuitClosed: self._closed,
            LibraryRestarted: self._library,
            RequestFailed: self._request,
        }

    def finish(self) -> list[Incident]:
        """Return them in order; a process whose end nothing explains is a note of its own."""
        for device, exits in self._exits.items():
            for number, fact in exits:
                end = Incident(
                    number, fact.at, device, device, "process ended", "ended", level="note"
                )
                end.steps.append((fact.at, _ended(fact)))
                self.all.append(end)
        return sorted(self.all, key=lambda incident: incident.number)

    def add(self, number: int, fact: Fact) -> None:
        """Take the next fact."""
        if not isinstance(fact, ActorStarted | ActorRestarted | ActorStopped):
            take = self._takes.get(type(fact))
            if take is not None:
                take(number, fact)
        elif device := self._device_of(fact.path):
            self._supervised(number, fact, device)
        else:
            self._own_actor(number, fact)

    # Losing a context and having another.

    def _exited(self, number: int, fact: ContextExited) -> None:
        last = self._last.get(fact.device)
        if last is not None and (last.is_open or last.before == fact.generation):
            last.steps.append((fact.at, _ended(fact)))
        else:  # the loss of a process that ended by itself is told after its end
            self._exits.setdefault(fact.device, []).append((number, fact))

    def _changed(self, number: int, fact: GenerationChanged) -> None:
        loss = self._loss(number, fact.at, fact.device, fact.before)
        loss.after = fact.after
        loss.steps.append((fact.at, f"generation {fact.before} → {fact.after}"))

    def _lost(self, number: int, fact: ContextLost) -> None:
        loss = self._loss(number, fact.at, fact.device, fact.generation)
        again = loss.lost_at is not None
        reason = reason_of(fact.cause)
        if not again:
            if fact.asked:
                loss.what, loss.level = "context replaced", "note"
                loss.decisions.append("asked for")
            loss.lost_at = fact.at
            loss.cause, loss.told = reason, fact.cause
            loss.code, loss.name = fact.code, fact.name
        text = f"{loss.what}, {counted(fact.in_flight, 'request')} in flight"
        loss.steps.append((fact.at, f"{text}: {reason}" if again else text))
        if fact.recent:
            last = ", ".join(reversed(fact.recent[-RECENT:]))
            loss.steps.append((fact.at, f"it ran last, the newest first: {last}"))

    def _loss(self, number: int, at: float, device: str, generation: int) -> Incident:
        """Return the device's open incident, or a new one."""
        last = self._last.get(device)
        if last is not None and last.is_open:
            if last.before is None:  # its circuit opened first, because of another device
                last.what, last.before = "context lost", generation
            return last
        loss = self._begin(number, at, device, "context lost", "recovering")
        loss.before = generation
        waiting = self._exits.pop(device, [])
        for earlier, fact in waiting:
            if fact.generation == generation:
                loss.number, loss.at = earlier, fact.at
                loss.steps.append((fact.at, _ended(fact)))
            else:
                self._exits.setdefault(device, []).append((earlier, fact))
        return loss

    def _context_started(self, number: int, fact: ContextStarted) -> None:
        last = self._last.get(fact.device)
        took = f"context of generation {fact.generation} started as process {fact.pid}"
        step = (fact.at, f"{took} in {duration(fact.seconds)}")
        if last is None or not last.is_open:
            last = self._begin(number, fact.at, fact.device, "context started", "started", "note")
            last.after = fact.generation
        else:
            last.back_at = fact.at
            if last.outcome == "recovering":
                last.outcome = "recovered"
        last.steps.append(step)

    def _rebuilt(self, number: int, fact: BuffersRebuilt) -> None:
        last = self._last.get(fact.device)
        if last is None:
            last = self._begin(number, fact.at, fact.device, "buffers rebuilt", "recovered", "note")
        rebuilt = f"rebuilt {counted(fact.buffers, 'buffer')}"
        lost = f", lost {fact.lost}" if fact.lost else ""
        last.decisions.append(rebuilt + lost)
        if fact.requests:
            last.decisions.append(f"{_requests(fact.requests)} run again")
        last.back_at = max(fact.at, last.back_at or 0.0)
        messages, took = counted(fact.messages, "message"), duration(fact.seconds)
        text = f"{rebuilt}{lost}; ran {messages} again in {took}"
        if fact.requests:
            text += f", and {_requests(fact.requests)} that had been in flight"
        last.steps.append((fact.at, text))

    # Giving a device back.

    def _suspended(self, number: int, fact: DeviceSuspended) -> None:
        one = self._begin(number, fact.at, fact.device, "suspended", "suspended", "note")
        one.before = fact.generation  # whose process ends now
        dropped = f", dropped {', '.join(fact.lost)}" if fact.lost else ""
        one.decisions.append(f"kept {_kept(fact)}{dropped}")
        one.steps.append((fact.at, f"{_kept(fact)} kept on the host in {duration(fact.seconds)}"))

    def _resumed(self, number: int, fact: DeviceResumed) -> None:
        last = self._last.get(fact.device)
        if last is None:
            last = self._begin(number, fact.at, fact.device, "resumed", "started", "note")
        last.back_at = max(fact.at, last.back_at or 0.0)
        text = f"{_kept(fact)} back on the device in {duration(fact.seconds)}"
        last.decisions.append(f"resumed with {_kept(fact)}")
        last.steps.append((fact.at, "; ".join((text, *fact.lost))))

    def _unsuspended(self, number: int, fact: SuspensionFailed) -> None:
        one = Incident(number, fact.at, fact.device, fact.device, "not suspended", "failed")
        one.cause = fact.cause
        one.steps.append((fact.at, fact.cause))
        self.all.append(one)

    def _opened(self, number: int, fact: CircuitOpened) -> None:
        last = self._last.get(fact.device)
        if last is None or not last.is_open:
            last = self._begin(number, fact.at, fact.device, "cannot start", "circuit open")
            last.cause, last.told = reason_of(fact.cause), fact.cause
        last.outcome = "circuit open"
        last.back_at = None
        last.decisions.append("circuit opened")
        last.steps.append((fact.at, "circuit opened: requests fail until it is reset"))

    def _closed(self, number: int, fact: CircuitClosed) -> None:
        last = self._last.get(fact.device)
        if last is None or not last.is_open:
            last = self._begin(number, fact.at, fact.device, "circuit closed", "recovered", "note")
        last.outcome = "recovered"
        last.back_at = fact.at
        last.decisions.append("circuit closed")
        last.steps.append((fact.at, "circuit closed: the device takes requests again"))

    # What costs no context.

    def _library(self, number: int, fact: LibraryRestarted) -> None:
        path = f"{fact.device}/context/{fact.library}"
        one = Incident(number, fact.at, path, fact.device, "library failed", "restarted")
        one.cause, one.told = fact.cause, f"LibraryError: {fact.cause}"
        one.decisions.append("restart")
        one.steps.append((fact.at, f"its actor was restarted, {_nth(fact.restarts)}: {fact.cause}"))
        self.all.append(one)

    def _request(self, number: int, fact: RequestFailed) -> None:
        cell = "" if fact.cell is None else f" of cell {fact.cell}"
        text = f"nobody waited for its answer{cell}: {fact.message}: {fact.error}"
        root = self._root_of(fact)
        if root is not None:
            root.steps.append((fact.at, text))
            return
        path = fact.device
        one = Incident(number, fact.at, path, fact.device, "request failed", "failed")
        one.name, _, one.cause = fact.error.partition(": ")
        one.decisions.append("resume")
        one.steps.append((fact.at, text))
        self.all.append(one)

    def _root_of(self, fact: RequestFailed) -> Incident | None:
        """Return the incident whose cause a request's failure repeats."""
        for one in reversed(self.all):
            if one.device != fact.device or not one.told:
                continue
            if one.what == "library failed":
                if one.told == fact.error and fact.at - one.at <= SOON_S:
                    return one
            elif one.told in fact.error or fact.error.startswith(f"DeadlineExceeded: {one.cause}"):
                return one
        return None

    # Actors.

    def _supervised(
        self, number: int, fact: ActorStarted | ActorRestarted | ActorStopped, device: str
    ) -> None:
        """Take what an actor that looks after a device did."""
        last = self._last.get(device)
        who = fact.path.rpartition("/")[2]
        if isinstance(fact, ActorStarted):
            step = (fact.at, f"actor {fact.path} started")
            if last is not None and last.is_open:
                last.steps.append(step)
            else:
                self._births.setdefault(device, []).append(step)
        elif isinstance(fact, ActorRestarted):
            if last is None or not last.is_open:
                last = self._begin(number, fact.at, device, f"{who} failed", "restarted")
                last.cause, last.name = str(fact.cause), type(fact.cause).__name__
            last.decisions.append(_restart(fact.delay_s))
            last.steps.append((fact.at, f"decision: {_decided(fact)}"))
        elif fact.cause is not None:
            if last is None or not last.is_open:
                last = self._begin(number, fact.at, device, f"{who} failed", "stopped")
                last.cause, last.name = str(fact.cause), type(fact.cause).__name__
            last.decisions.append("stop")
            last.steps.append((fact.at, f"decision: stop {fact.path}, restart it no more"))
        else:
            if last is None or not (last.is_open or last.outcome == "stopped"):
                last = self._begin(number, fact.at, device, "stopped", "stopped", "note")
            last.steps.append((fact.at, f"actor {fact.path} stopped"))

    def _own_actor(self, number: int, fact: ActorStarted | ActorRestarted | ActorStopped) -> None:
        """Take what became of an actor of the user's: always an incident of its own."""
        path = fact.path.strip("/")
        if isinstance(fact, ActorStarted):
            one = Incident(number, fact.at, path, "", "actor started", "started", "note")
            text = "its first instance started"
        elif isinstance(fact, ActorRestarted):
            one = Incident(number, fact.at, path, "", "actor failed", "restarted")
            one.cause, one.name = str(fact.cause), type(fact.cause).__name__
            one.decisions.append(_restart(fact.delay_s))
            text = f"decision: {_decided(fact)}"
        elif fact.cause is not None:
            one = Incident(number, fact.at, path, "", "actor failed", "stopped")
            one.cause, one.name = str(fact.cause), type(fact.cause).__name__
            one.decisions.append("stop")
            text = "decision: stop, restart it no more"
        else:
            one = Incident(number, fact.at, path, "", "actor stopped", "stopped", "note")
            text = "it was asked to stop"
        one.code = getattr(getattr(fact, "cause", None), "code", 0)
        one.steps.append((fact.at, text))
        self.all.append(one)

    def _device_of(self, path: str) -> str:
        """Return whose actor it is: of "/gpu0", "/gpu0/context", "/devices-0-1/gpu0"; or ""."""
        first, *rest = path.strip("/").split("/")
        if first in self._devices:
            return first
        if first.startswith("devices") and rest and rest[0] in self._devices:
            return rest[0]
        return ""

    def _begin(
        self,
        number: int,
        at: float,
        device: str,
        what: str,
        outcome: Outcome,
        level: Level = "fault",
    ) -> Incident:
        one = self._last[device] = Incident(number, at, device, device, what, outcome, level)
        one.steps.extend(self._births.pop(device, ()))
        self.all.append(one)
        return one


def duration(seconds: float) -> str:
    """Write a time that something took: 0.7 ms, 33 ms, 1.8 s, 12 s."""
    value, unit = (seconds * 1000, "ms") if seconds < _SECOND else (seconds, "s")
    return f"{value:.1f} {unit}" if value < _WHOLE else f"{value:.0f} {unit}"


def reason_of(cause: str) -> str:
    """Return the reason out of a loss's text; the whole text where it has another form."""
    found = _REASON.search(cause)
    return cause if found is None else found["why"]


def _ended(fact: ContextExited) -> str:
    return f"process {fact.pid} ended with {fact.status}"


def _restart(delay_s: float) -> str:
    return f"restart after {duration(delay_s)}" if delay_s > 0 else "restart"


def _decided(fact: ActorRestarted) -> str:
    counted = f"attempt {fact.attempt}" if fact.attempt else "as it was asked to"
    return f"{_restart(fact.delay_s)}, {counted}"


def _nth(restarts: int) -> str:
    return "for the first time" if restarts == 1 else f"{restarts} times by now"


def _kept(fact: DeviceSuspended | DeviceResumed) -> str:
    objects = f" and {counted(fact.objects, 'object')}" if fact.objects else ""
    return f"{counted(fact.buffers, 'buffer')}{objects}, {size(fact.nbytes)}"


def _requests(numbers: tuple[int, ...]) -> str:
    """Return requests by the numbers that they have in the journal, the first of many."""
    named = [f"#{number}" for number in numbers[:NAMED_REQUESTS]]
    if len(numbers) > NAMED_REQUESTS:
        named.append(f"{len(numbers) - NAMED_REQUESTS} more")
    *most, last = named
    return f"request {last}" if not most else f"requests {', '.join(most)} and {last}"
