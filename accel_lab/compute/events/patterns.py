"""What patterns and agents look like at a moment, and where those of a system are found."""

import weakref
from typing import Protocol

import msgspec

from accel_lab.actor.events import Event, EventStream


class Part(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One of what a pattern has several of: a tenant, a replica, a stage, a node of a graph.

    Attributes:
        word: what it does now, where that is known.
        detail: one line for people.
        waiting, running: requests that are its own now.
        done, failed: those that are over, as far as it counts them.
    """

    name: str
    word: str = ""
    detail: str = ""
    waiting: int = 0
    running: int = 0
    done: int = 0
    failed: int = 0


class Passage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An edge of an agent's graph: from all of `sources` to `targets`.

    Attributes:
        is_chosen: whether a function chooses among the targets.
        taken: how often runs went there, by target.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    is_chosen: bool
    taken: tuple[int, ...]


class Decision(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a pattern decided about requests, as `PatternDecided` says it; of many the first."""

    at: float
    decision: str
    requests: tuple[int, ...]
    more: int
    why: str


class PatternLook(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A pattern at a moment; counts and times as its `Statistics` have them.

    Attributes:
        more: what only this kind of pattern counts, as text.
        noun: what its parts are.
        ways: the edges between them, if it is an agent's graph.
        decisions: the newest, the newest first.
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
    more: tuple[tuple[str, str], ...] = ()
    noun: str = ""
    parts: tuple[Part, ...] = ()
    ways: tuple[Passage, ...] = ()
    decisions: tuple[Decision, ...] = ()


class PatternsSampled(Event, frozen=True):
    """The patterns of a system at a moment, in the order in which they began."""

    patterns: tuple[PatternLook, ...]


class Looked(Protocol):
    """What tells how a pattern is."""

    def look(self) -> PatternLook:
        """Return how it is now; any thread, does not block."""


_Found = weakref.WeakValueDictionary[str, Looked]
_offered: weakref.WeakKeyDictionary[EventStream, _Found] = weakref.WeakKeyDictionary()


def offer(events: EventStream, name: str, what: Looked) -> None:
    """Have a pattern found by the events of its system, as long as somebody holds `what`."""
    _offered.setdefault(events, weakref.WeakValueDictionary())[name] = what


def looks(events: EventStream) -> tuple[PatternLook, ...]:
    """Return how the patterns of a system are; any thread, does not block."""
    found = [ref() for ref in _offered.get(events, _Found()).valuerefs()]
    return tuple(one.look() for one in found if one is not None)
