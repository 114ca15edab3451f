"""A fault or a generation change as it stands on a time line."""

from collections.abc import Callable
from typing import NamedTuple

from accel_lab.actor.events import ActorRestarted, Event
from accel_lab.compute.events.lifecycle import (
    CircuitOpened,
    ContextLost,
    GenerationChanged,
    LibraryRestarted,
    RequestFailed,
)
from accel_lab.errors import ContextReplaced

LONGEST = 160
"""How many characters of its text are kept."""


class Mark(NamedTuple):
    """One moment of a device: `at` in wall seconds, `kind` is "generation" or "fault"."""

    at: float
    device: str
    kind: str
    text: str


def mark_of(fact: Event) -> Mark | None:
    """Return how a fact of supervision stands on the time line, if it does."""
    tell = _TOLD.get(type(fact))
    if tell is None or is_asked(fact):
        return None
    kind, device, text = tell(fact)
    return Mark(fact.at, device, kind, text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")


def is_asked(fact: Event) -> bool:
    """Whether a fact is of a context that somebody had replaced: what that ended is no fault."""
    if isinstance(fact, ContextLost):
        return fact.asked
    if isinstance(fact, ActorRestarted):
        return type(fact.cause).__name__ == ContextReplaced.__name__
    return isinstance(fact, RequestFailed) and fact.error.startswith(f"{ContextReplaced.__name__}:")


_TOLD: dict[type[Event], Callable[..., tuple[str, str, str]]] = {
    GenerationChanged: lambda e: ("generation", e.device, f"g{e.before}→g{e.after}"),
    ContextLost: lambda e: ("fault", e.device, f"context lost: {e.cause}"),
    CircuitOpened: lambda e: ("fault", e.device, f"circuit open: {e.cause}"),
    LibraryRestarted: lambda e: ("fault", e.device, f"{e.library} restarted: {e.cause}"),
    RequestFailed: lambda e: ("fault", e.device, f"{e.message} failed: {e.error}"),
}
