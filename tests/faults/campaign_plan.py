"""What the campaign does, drawn from its seed before it begins: the same seed, the same actions.

A scene is one fault at one phase of one device's work, with messages of many families in that
phase. Which combinations mean something is said here, with the reason where one does not.
"""

import hashlib
import itertools
import random
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

ENDINGS = ("kill", "segfault", "exit", "poison", "trap", "hang", "corrupt up")
INSIDE = (*ENDINGS, "library", "out of memory")
OUTSIDE = (
    "signal",
    "corrupt down",
    "replace",
    "interrupt",
    "cancel",
    "drop",
    "arena full",
)
FAULTS = (*INSIDE, *OUTSIDE)
LOSSES = frozenset((*ENDINGS, "signal", "corrupt down", "replace"))
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
    """One message to send: its family, and the seed of all other choices."""

    family: str
    seed: int


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


def plan(
    seed: int,
    devices: int,
    *,
    times: int = 5,
    families: tuple[str, ...] = FAMILIES,
    share: float = 1.0,
) -> list[Round]:
    """Return rounds of scenes, one a device in each, with every combination `times` times.

    Parameters:
        share: how much of it all to keep, drawn at random.
    """
    dice = random.Random(seed)
    deck: list[Scene] = []
    for fault, phase in itertools.product(FAULTS, PHASES[:-1]):
        # A device may be up again, or a deadline pass, before the fault strikes: allow for that.
        spare = 2 if phase == "restarting" else int(fault == "hang")
        for _ in range(times + spare):
            heads = families if phase == "running" else [""]
            deck += [_scene(fault, phase, head, families, dice) for head in heads]
    dice.shuffle(deck)
    deck = deck[: round(len(deck) * share)]
    rounds: list[Round] = []
    while deck:
        chosen = dice.sample(range(devices), dice.randint(2, devices) if devices > 1 else 1)
        rounds.append(tuple((device, deck.pop()) for device in chosen if deck))
    return rounds


def closings(seed: int, devices: int, *, families: tuple[str, ...] = FAMILIES) -> list[Round]:
    """Return one round a system: each device in some phase, with a fault, when all is closed.

    A system that is closed has no context left for a fault to strike: it comes just before, or
    while it closes. `close` itself is a fault that meets every other phase.
    """
    dice = random.Random(seed)
    phases = [phase for phase in PHASES[:-1] if phase != "running"] * 5
    heads = [("running", family) for family in families] * 5
    stages = [(phase, "") for phase in phases] + heads
    faults = [*FAULTS, CLOSE] * 5
    dice.shuffle(stages)
    dice.shuffle(faults)
    pairs = list(zip(faults, itertools.cycle(stages), strict=False))
    scenes = [_scene(fault, phase, head, families, dice, 10) for fault, (phase, head) in pairs]
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
    company: int = 2,
) -> Scene:
    others = list(families)
    dice.shuffle(others)
    if head:
        others = others[: dice.randint(0, 2) if company == 2 else company]
    messages = tuple(
        Message(family, dice.randrange(1 << 30)) for family in [head, *others] if family
    )
    return Scene(fault, phase, head, messages, dice.randrange(VARIANTS))


def digest(rounds: Iterable[Round]) -> str:
    """Name a plan: two runs with the same name have done the same."""
    return hashlib.blake2b(repr(list(rounds)).encode(), digest_size=6).hexdigest()


class Coverage:
    """How often each fault met each family in each phase."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, str]] = Counter()

    def add(self, fault: str, phase: str, families: Iterable[str]) -> None:
        """Count what was in the phase when the fault struck."""
        self.counts.update((fault, phase, family) for family in set(families))

    def least(self, fault: str, phase: str, families: Iterable[str] = FAMILIES) -> int:
        """Return the count of the family that was met least."""
        return min(self.counts[fault, phase, family] for family in families)

    def missing(self, faults: Iterable[str], phases: Iterable[str], times: int) -> list[str]:
        """Name what was met less often than this."""
        every = itertools.product(faults, phases, FAMILIES)
        return [f"{one}: {self.counts[one]}" for one in every if self.counts[one] < times]

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
