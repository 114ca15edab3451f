"""Which of several devices takes a message: rules over their figures alone.

A policy is called with the figures of those that may be chosen, at least one, and the hints, and
returns one of them. A function of your own is one, too. Nothing here knows a device or a clock.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from accel_lab.compute.events.placement import Figures
from accel_lab.display.sizes import compared
from accel_lab.errors import InvalidArgument, NoDevice

ONCE_NONE_RUNS = ("starting", "restarting", "half-open")
"""States in which a message waits for a context that comes by itself."""


class Hints(NamedTuple):
    """What a caller says of a message.

    Attributes:
        nbytes: the memory that it will take.
        capability: the least compute capability that it needs.
        priority: above 0 it goes where it begins soonest, whatever the policy.
        near: the name of the device that it should be close to.
    """

    nbytes: int = 0
    capability: float = 0.0
    priority: int = 0
    near: str | None = None


ANYWHERE = Hints()[:3]
Policy: TypeAlias = Callable[[Sequence[Figures], Hints], Figures]


class RoundRobin:
    """Takes the devices in turn."""

    def __call__(self, candidates: Sequence[Figures], hints: Hints) -> Figures:
        """Return the device whose last message was placed before those of all others."""
        del hints
        return min(candidates, key=lambda one: one.last_placed)


class LeastLoaded:
    """Takes the device that will be done first, as fast as each has been until now."""

    def __call__(self, candidates: Sequence[Figures], hints: Hints) -> Figures:
        """Return the device with the earliest expected end of one message more."""
        del hints
        # Who was never seen at work is taken to be as fast as the fastest, and so is soon seen.
        usual = min([one.seconds for one in candidates if one.seconds], default=1.0)
        ends = [
            ((one.outstanding + 1) * (one.seconds or usual), one.last_placed) for one in candidates
        ]
        return candidates[ends.index(min(ends))]


class MemoryAware:
    """Takes the device with the most free memory; among equals the one that is done first."""

    def __call__(self, candidates: Sequence[Figures], hints: Hints) -> Figures:
        """Return the device with the most free bytes."""
        most = max(one.free_bytes or 0 for one in candidates)
        return LeastLoaded()([one for one in candidates if (one.free_bytes or 0) == most], hints)


def same_or_other(a: str, b: str) -> float:
    """Return 0 for a device and itself, and 1 for any other."""
    return float(a != b)


class Affinity:
    """Takes a device closest to the one that a message should be near.

    Parameters:
        distance: how far it is between two devices, by their names.
        among: chooses among those equally close, and for messages near none.
    """

    def __init__(
        self,
        distance: Callable[[str, str], float] = same_or_other,
        among: Policy | None = None,
    ) -> None:
        self.distance = distance
        self.among: Policy = among or LeastLoaded()

    def __call__(self, candidates: Sequence[Figures], hints: Hints) -> Figures:
        """Return one of the closest."""
        if hints.near is not None:
            far = {one.device: self.distance(hints.near, one.device) for one in candidates}
            least = min(far.values())
            candidates = [one for one in candidates if far[one.device] == least]
        return self.among(candidates, hints)


class Choice(NamedTuple):
    """What was chosen, and why.

    Attributes:
        chosen: the figures of the device; None while all that may be have no room.
        reason: in words.
        refused: those that could not be chosen, and why.
    """

    chosen: Figures | None
    reason: str
    refused: Mapping[str, str]


def choose(policy: Policy, figures: Sequence[Figures], hints: Hints, depth: int) -> Choice:
    """Return the device for a message.

    A device that is lost, suspended or rests is taken only if none runs, and one whose circuit is
    open or that lacks what the message needs never.

    Parameters:
        depth: how many messages a device may have outstanding, those with priority apart.

    Raises:
        NoDevice: none may take it; says of each why.
        InvalidArgument: the policy chose what is not among those that may.
    """
    room = [one for one in figures if one.state == "running" and one.outstanding < depth]
    if len(room) == len(figures) and hints[:3] == ANYWHERE:
        return _chosen(policy, figures, hints, {})  # the usual case, and the quickest
    refused = {one.device: why for one in figures if (why := _unfit(one, hints))}
    fit = [one for one in figures if one.device not in refused]
    if not fit:
        told = "; ".join(f"{name}: {why}" for name, why in refused.items())
        raise NoDevice(f"no device can take this message: {told}", why=dict(refused))
    best = min(_rank(one) for one in fit)
    for one in fit:
        if _rank(one) > best:
            refused[one.device] = f"it is {one.state}"
    fit = [one for one in fit if _rank(one) == best]
    if hints.priority > 0:
        return Choice(LeastLoaded()(fit, hints), "it has priority: begun soonest", refused)
    room = [one for one in fit if one.outstanding < depth]
    if not room:
        return Choice(None, f"each has {depth} messages outstanding", refused)
    refused |= {one.device: "its queue is full" for one in fit if one not in room}
    return _chosen(policy, room, hints, refused)


def _chosen(
    policy: Policy, room: Sequence[Figures], hints: Hints, refused: Mapping[str, str]
) -> Choice:
    """Return what the policy takes of those with room.

    Raises:
        InvalidArgument: it took another.
    """
    near = hints.near is not None and not isinstance(policy, Affinity)
    by = Affinity(among=policy) if near else policy
    name = getattr(policy, "__name__", type(policy).__name__)
    reason = f"{name}, near {hints.near}" if hints.near is not None else name
    chosen = by(room, hints)
    if chosen not in room:
        text = f"the policy returned {chosen!r}; return one of the figures that it was given"
        raise InvalidArgument(text)
    return Choice(chosen, reason, refused)


def _rank(one: Figures) -> int:
    """Return 0 for a device that runs; what comes by itself is before what has to be woken."""
    if one.state == "running":
        return 0
    return 1 if one.state in ONCE_NONE_RUNS else 2


def _unfit(one: Figures, hints: Hints) -> str:
    """Say why a device cannot take a message; empty where it can."""
    if one.state == "circuit open":
        return "its circuit is open; call device.reset()"
    if one.state not in ("running", "suspended", *ONCE_NONE_RUNS):
        return f"it is {one.state}"
    if one.capability < hints.capability:
        return f"its compute capability is {one.capability}, not {hints.capability}"
    if hints.nbytes and one.free_bytes is not None and one.free_bytes < hints.nbytes:
        free = max(0, one.free_bytes)
        told = compared(free, hints.nbytes)
        return f"{told(free)} are free, not {told(hints.nbytes)}"
    return ""
