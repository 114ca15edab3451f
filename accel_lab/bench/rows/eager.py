"""Expressions of fresh results, as people write them, against the array library and PyTorch."""

from collections.abc import Iterator
from typing import Any

from accel_lab.backends.eager import EXPRESSIONS
from accel_lab.bench.effort import Effort
from accel_lab.bench.operands import SMALL, squares
from accel_lab.bench.peer import Peer
from accel_lab.bench.rounds import compare
from accel_lab.bench.row import Budget, Row
from accel_lab.bench.rows.pipelined import Ask, seconds_of
from accel_lab.libraries.array import library as array
from accel_lab.libraries.fft import library as fft

TITLES = {"add": "a + b", "chain": "chain of 8 functions", "loop": "loop of 17 operations"}
SIZES = {"host": (SMALL, 512), "cuda": (SMALL, 512, 4096)}
WORTH, FEWEST = 8, 16
"""To how many messages an expression comes up, roughly; and how often it is evaluated in a row."""
LIMITS = {("loop", 64): 1.0, ("loop", 512): 1.0, ("add", 64): 1.2, ("chain", 4096): 0.4}
"""The budgets of `cuda`, of our time to CuPy's."""


class Ours:
    """The functions that are not operators."""

    exp = staticmethod(array.exp)
    maximum = staticmethod(array.maximum)
    where = staticmethod(array.where)
    rfft = staticmethod(fft.rfft)


def eager(peer: Peer, effort: Effort) -> Iterator[Row]:
    """Evaluate each expression again and again, without waiting in between."""
    for name in EXPRESSIONS:
        for size in SIZES[peer.backend]:
            for library in ("eager", "torch"):
                yield from _rows(peer, effort, name, size, library)


def _rows(peer: Peer, effort: Effort, name: str, size: int, library: str) -> list[Row]:
    what, arguments = f"{library}.expression", (name, size)
    label = peer.label(what, *arguments) if (library, peer.backend) != ("torch", "host") else ""
    if not label:
        return []
    evaluate = _expression(peer, name, size)
    megabytes = max(1, size * size * 4 >> 20)
    count = max(FEWEST, effort.messages[peer.backend] // (WORTH * megabytes))
    found = compare(
        lambda: peer.many(what, arguments, count) / count * 1e6,
        lambda: seconds_of(evaluate, count) / count * 1e6,
        effort.rounds,
    )
    limit = LIMITS.get((name, size)) if (library, peer.backend) == ("eager", "cuda") else None
    suffix = "-torch" if library == "torch" else ""
    return [
        Row(
            name=f"eager-{name}-{size}{suffix}",
            group="eager",
            title=f"{TITLES[name]}, {size}x{size}",
            unit="µs",
            peer=label,
            budget=None if limit is None else Budget(limit, "at most"),
            **found._asdict(),
        )
    ]


def _expression(peer: Peer, name: str, size: int) -> Ask:
    a, b, _ = squares(peer.device, size)
    ours: Any = Ours()
    evaluate = EXPRESSIONS[name]
    return lambda: evaluate(ours, a, b)
