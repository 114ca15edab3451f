"""What a pattern has done: counts that add up, times, and a journal of its decisions."""

from collections import Counter, deque
from collections.abc import Callable, Sized
from typing import Any, NamedTuple

from accel_lab.actor.events import Event, EventStream
from accel_lab.compute.events.patterns import Decision, Part, Passage, PatternLook
from accel_lab.display.table import as_html, as_text

KEPT = 1_000
"""So many decisions, and times of answers, are kept."""
SHOWN = 8
"""So many decisions, and requests of one, are in a look."""
COLUMNS = ("what", "value")


class PatternDecided(Event, frozen=True):
    """A pattern decided about requests, by their numbers: to begin a batch, say, and why."""

    is_frequent = True

    pattern: str
    decision: str
    requests: tuple[int, ...]
    why: str


class Statistics(NamedTuple):
    """A pattern at one moment; all counts since it was made.

    `asked` is the sum of what is over (answered, failed, expired, cancelled, refused), of what
    waits and of what runs.

    Attributes:
        refused: requests that found no room, or had to give it to others.
        calls: how often the function was called for requests, reruns apart.
        members: the sum of the requests of these calls.
        reruns: how often a call was run again after a fault.
        p50_s, p99_s: how long the newest thousand answers took.
        more: what only this kind of pattern counts.
    """

    name: str
    kind: str
    asked: int = 0
    answered: int = 0
    failed: int = 0
    expired: int = 0
    cancelled: int = 0
    refused: int = 0
    waiting: int = 0
    running: int = 0
    calls: int = 0
    members: int = 0
    reruns: int = 0
    p50_s: float = 0.0
    p99_s: float = 0.0
    more: dict[str, Any] = {}  # noqa: RUF012 - a NamedTuple's default, never written to

    @property
    def mean_size(self) -> float:
        """How many requests a call had, on average."""
        return self.members / self.calls if self.calls else 0.0

    def line(self) -> str:
        """Return it in one line, as the tree shows it."""
        told = [f"{self.answered:,} answered"]
        told += [
            f"{count:,} {what}"
            for what in ("failed", "expired", "cancelled", "refused", "reruns")
            if (count := getattr(self, what))
        ]
        if self.calls:
            told.append(f"{self.mean_size:.1f} a call")
        if self.answered:
            told.append(f"p50 {_time(self.p50_s)}, p99 {_time(self.p99_s)}")
        return ", ".join(told + [f"{what} {_text(one)}" for what, one in self.more.items()])

    def _rows(self) -> list[tuple[str, str]]:
        rows = [(what, f"{getattr(self, what):,}") for what in self._fields[2:13]]
        rows.append(("a call", f"{self.mean_size:.2f}"))
        rows += [("p50", _time(self.p50_s)), ("p99", _time(self.p99_s))]
        return rows + [(what, _text(one)) for what, one in self.more.items()]

    def __repr__(self) -> str:
        title = f"{self.name}: {self.kind}"
        return "\n".join((title, *as_text(COLUMNS, self._rows(), COLUMNS[1:])))

    def _repr_html_(self) -> str:
        return as_html(f"{self.name}: {self.kind}", COLUMNS, self._rows())


class Record:
    """Counts for one pattern, which outlive its actor's restarts; any thread may read."""

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind
        self.asked = self.answered = self.failed = self.expired = 0
        self.cancelled = self.refused = self.calls = self.members = self.reruns = 0
        self.held: Sized = ()
        """What is not answered; `queued` and `line` of it wait."""
        self.queued: Sized = ()
        self.line: Sized = ()
        self.more: dict[str, Any] = {}
        self.events: EventStream | None = None
        self.decisions: deque[PatternDecided] = deque(maxlen=KEPT)
        self.taken_s: deque[float] = deque(maxlen=KEPT)
        self.done: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        """By part of the pattern: what is answered, and what has failed."""
        self.noun = ""
        self.parts: Callable[[], tuple[Part, ...]] = tuple
        self.ways: Callable[[], tuple[Passage, ...]] = tuple

    def decide(self, decision: str, requests: tuple[int, ...], why: str) -> None:
        """Note a decision, and publish it."""
        fact = PatternDecided(pattern=self.name, decision=decision, requests=requests, why=why)
        self.decisions.append(fact)
        if self.events is not None:
            self.events.publish(fact)

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self.queued) + len(self.line)

    def statistics(self) -> Statistics:
        """Return all of it as it is now."""
        taken = sorted(self.taken_s)
        waiting = self.waiting
        return Statistics(
            self.name,
            self.kind,
            self.asked,
            self.answered,
            self.failed,
            self.expired,
            self.cancelled,
            self.refused,
            waiting,
            max(0, len(self.held) - waiting),
            self.calls,
            self.members,
            self.reruns,
            taken[len(taken) // 2] if taken else 0.0,
            taken[len(taken) * 99 // 100] if taken else 0.0,
            dict(self.more),
        )

    def look(self) -> PatternLook:
        """Return all of it with its parts and its newest decisions, as views have it."""
        found = self.statistics()._asdict()
        newest = list(self.decisions)[: -SHOWN - 1 : -1]
        found["more"] = tuple((what, _text(one)) for what, one in found["more"].items())
        return PatternLook(
            **found,
            noun=self.noun,
            parts=self.parts(),
            ways=self.ways(),
            decisions=tuple(map(_decision, newest)),
        )


def _decision(fact: PatternDecided) -> Decision:
    shown = fact.requests[:SHOWN]
    more = len(fact.requests) - len(shown)
    return Decision(fact.at, fact.decision, shown, more, fact.why)


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _text(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
