"""What the campaign does, drawn from its seed before it begins: the same seed, the same actions.

A scene is one fault at one phase of one device's work, with messages of many families in that
phase. Which combinations mean something is said here, with the reason where one does not.
"""

import hashlib
import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

# What only a context that stands at a gate can be told to do; the others are messages, too.
ORDERED = ("corrupt up", "wedge", "segment lost")
ENDINGS = ("kill", "segfault", "exit", "poison", "trap", "hang", "corrupt up", "wedge")
INSIDE = (*ENDINGS, "library", "out of memory", "segment lost")
OUTSIDE = (
    "signal",
    "freeze",
    "failing start",
    "corrupt down",
    "replace",
    "interrupt",
    "cancel",
    "drop",
    "arena full",
    "journal away",
)
FAULTS = (*INSIDE, *OUTSIDE)
LOSSES = (*ENDINGS, "signal", "freeze", "failing start", "corrupt down", "replace")
NEIGHBOUR = "loss of another"
PHASES = (
    "queued",
    "enqueued",
    "running",
    "completing",
    "uploading",
    "downloading",
    "restarting",
    "closing",
)
FAMILIES = ("put", "get", "array", "blas", "fft", "rng", "jit", "run", "ping", "tell")
CLOSE = "close"
VARIANTS = 6


class Message(NamedTuple):
    """One message to send.

    Attributes:
        seed: of all choices but the next.
        turn: its place among those of its family that its fault meets: each takes the next way.
    """

    family: str
    seed: int
    turn: int


class Turns:
    """Deals the messages of a family in turn to a fault, so that it meets every way to send one.

    Those that stand at a gate are dealt apart. They are few, so faults begin at different ways.
    """

    def __init__(self) -> None:
        self._next: dict[tuple[str, str, bool], Iterator[int]] = {}

    def take(self, fault: str, family: str, *, gated: bool) -> int:
        """Return the next turn."""
        first = 2 * FAULTS.index(fault) if fault in FAULTS else 0
        return next(self._next.setdefault((fault, family, gated), itertools.count(first)))


class Scene(NamedTuple):
    """One fault at one phase of one device's work.

    Attributes:
        family: whose message stands at the gate, where only one can.
        messages: what else is sent.
        variant: which of several ways the fault takes.
    """

    fault: str
    phase: str
    family: str
    messages: tuple[Message, ...]
    variant: int


Round = tuple[tuple[int, Scene], ...]
Cell = tuple[str, str, str]
"""A fault, a phase, a family."""


def plan(
    seed: int,
    devices: int,
    *,
    times: int = 5,
    families: tuple[str, ...] = FAMILIES,
    share: float = 1.0,
    turns: Turns | None = None,
) -> list[Round]:
    """Return rounds of scenes, one a device in each, with every combination `times` times.

    Parameters:
        share: how much of it all to keep, drawn at random.
        turns: of the plan that this one follows: it goes on with the ways that come next.
    """
    dice, turns = random.Random(seed), Turns() if turns is None else turns
    deck: list[Scene] = []
    for fault, phase in itertools.product(FAULTS, PHASES[:-1]):
        # A device may be up again, or a deadline pass, before the fault strikes: allow for that.
        spare = 2 if phase == "restarting" else int(fault == "hang")
        for _ in range(times + spare):
            heads = families if phase == "running" else [""]
            deck += [_scene(fault, phase, head, families, dice, turns) for head in heads]
    dice.shuffle(deck)
    return _deal(deck[: round(len(deck) * share)], devices, dice)


def supplement(seed: int, devices: int, lacking: Mapping[Cell, int]) -> list[Round]:
    """Return rounds with what came too late: a device was up again before the fault struck."""
    dice, turns = random.Random(seed), Turns()
    deck = [_scene(*head, FAMILIES, dice, turns) for head in _heads(lacking) for _ in range(2)]
    return _deal(deck, devices, dice)


def groups(seed: int, devices: int, lacking: Mapping[Cell, int]) -> list[Round]:
    """Return rounds for devices that share state: one is lost, each other is at some phase.

    Parameters:
        lacking: how often each phase and family is to be met by `NEIGHBOUR`.
    """
    dice, turns = random.Random(seed), Turns()
    rounds: list[Round] = []
    for restarting in (False, True):  # a device that restarts has all others restart
        heads = [head for head in _heads(lacking) if (head[1] == "restarting") == restarting]
        dice.shuffle(heads)
        while heads:
            striker, *others = dice.sample(range(devices), devices)
            phase = "restarting" if restarting else dice.choice(PHASES[:-2])
            head = dice.choice(FAMILIES) if phase == "running" else ""
            strike = _scene(dice.choice(LOSSES), phase, head, FAMILIES, dice, turns)
            met = [
                (one, _scene(*heads.pop(), FAMILIES, dice, turns)) for one in others[: len(heads)]
            ]
            rounds.append(((striker, strike), *met))
    return rounds


def _heads(lacking: Mapping[Cell, int]) -> list[tuple[str, str, str]]:
    """Return fault, phase and who is at the gate, as often as needed; most phases take all."""
    needed: Counter[tuple[str, str, str]] = Counter()
    for (fault, phase, family), times in lacking.items():
        head = fault, phase, family if phase == "running" else ""
        needed[head] = max(needed[head], times)
    return sorted(needed.elements())


def _deal(deck: list[Scene], devices: int, dice: random.Random) -> list[Round]:
    """Give some of the devices, or all, a scene each in every round."""
    rounds: list[Round] = []
    while deck:
        chosen = dice.sample(range(devices), dice.randint(2, devices) if devices > 1 else 1)
        rounds.append(tuple((device, deck.pop()) for device in chosen if deck))
    return rounds


def closings(
    seed: int, devices: int, *, times: int = 5, families: tuple[str, ...] = FAMILIES
) -> list[Round]:
    """Return one round a system: each device in some phase, with a fault, when all is closed.

    A system that is closed has no context left for a fault to strike: it comes just before, or
    while it closes. `close` itself is a fault that meets every other phase.
    """
    dice, turns = random.Random(seed), Turns()
    phases = [phase for phase in PHASES[:-1] if phase != "running"] * times
    heads = [("running", family) for family in families] * times
    stages = [(phase, "") for phase in phases] + heads
    faults = [*FAULTS, CLOSE] * times
    dice.shuffle(stages)
    dice.shuffle(faults)
    pairs = list(zip(faults, itertools.cycle(stages), strict=False))
    scenes = [
        _scene(fault, phase, head, families, dice, turns, 10) for fault, (phase, head) in pairs
    ]
    return [
        tuple(enumerate(scenes[first : first + devices]))
        for first in range(0, len(scenes), devices)
    ]


def _scene(
    fault: str,
    phase: str,
    head: str,
    families: tuple[str, ...],
    dice: random.Random,
    turns: Turns,
    company: int = 2,
) -> Scene:
    others = list(families)
    dice.shuffle(others)
    if head:
        others = others[: dice.randint(0, 2) if company == 2 else company]
    first = [(head, True)] if head else []
    messages = tuple(
        Message(family, dice.randrange(1 << 30), turns.take(fault, family, gated=gated))
        for family, gated in [*first, *((other, False) for other in others)]
    )
    return Scene(fault, phase, head, messages, dice.randrange(VARIANTS))


def digest(rounds: Iterable[Round]) -> str:
    """Name a plan: two runs with the same name have done the same."""
    return hashlib.blake2b(repr(list(rounds)).encode(), digest_size=6).hexdigest()


class Coverage:
    """How often each fault met each family in each phase."""

    def __init__(self) -> None:
        self.counts: Counter[Cell] = Counter()

    def add(self, fault: str, phase: str, families: Iterable[str]) -> None:
        """Count what was in the phase when the fault struck."""
        self.counts.update((fault, phase, family) for family in set(families))

    def least(self, fault: str, phase: str, families: Iterable[str] = FAMILIES) -> int:
        """Return the count of the family that was met least."""
        return min(self.counts[fault, phase, family] for family in families)

    def lacking(self, faults: Iterable[str], phases: Iterable[str], times: int) -> dict[Cell, int]:
        """Return what was met less often than this, and how much less often."""
        every = itertools.product(faults, phases, FAMILIES)
        return {one: times - self.counts[one] for one in every if self.counts[one] < times}

    def table(self, faults: Iterable[str], phases: Iterable[str]) -> str:
        """Return a table of fault by phase: the least and the most of the ten families."""
        phases = list(phases)
        lines = ["| fault | " + " | ".join(phases) + " |", "|---" * (len(phases) + 1) + "|"]
        for fault in faults:
            cells = []
            for phase in phases:
                found = [self.counts[fault, phase, family] for family in FAMILIES]
                cells.append(f"{min(found)}-{max(found)}")
            lines.append(f"| {fault} | " + " | ".join(cells) + " |")
        return "\n".join(lines)
