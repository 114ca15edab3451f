"""One small message at a time, each waited for, against the library's call and a stream sync."""

import asyncio
from collections.abc import Callable
from itertools import chain
from time import perf_counter

from accel_lab.bench.effort import Effort
from accel_lab.bench.peer import Peer
from accel_lab.bench.pipelined import SMALL, Ask, axpy_of
from accel_lab.bench.rounds import compared, percentile
from accel_lab.bench.row import Budget, Row

MICROSECONDS = 1e6

Sample = Callable[[Ask, int], list[float]]


def ask(peer: Peer, effort: Effort) -> list[Row]:
    """Ask and block in `.result()`."""
    return _rows(peer, effort, "ask", ".result()", _blocking)


def await_(peer: Peer, effort: Effort) -> list[Row]:
    """Ask and `await` in an asyncio loop, as a notebook's cell does."""
    return _rows(peer, effort, "await", "await", _awaiting)


def _blocking(send: Ask, count: int) -> list[float]:
    samples = []
    for _ in range(count):
        begin = perf_counter()
        send().result()
        samples.append(perf_counter() - begin)
    return samples


def _awaiting(send: Ask, count: int) -> list[float]:
    async def sample() -> list[float]:
        samples = []
        for _ in range(count):
            begin = perf_counter()
            await send()
            samples.append(perf_counter() - begin)
        return samples

    return asyncio.run(sample())


def _rows(peer: Peer, effort: Effort, group: str, how: str, sample: Sample) -> list[Row]:
    """Compare medians round by round, and the 99th percentiles of all rounds together."""
    send = axpy_of(peer.device, SMALL)
    theirs: list[list[float]] = []
    ours: list[list[float]] = []
    for _ in range(1 + effort.rounds):
        count = effort.settling + effort.calls
        theirs.append(peer.samples("axpy_calls", SMALL, count)[effort.settling :])
        ours.append(sample(send, count)[effort.settling :])
    del theirs[0], ours[0]  # the first round warms up
    medians = [
        (percentile(other, 50) * MICROSECONDS, percentile(mine, 50) * MICROSECONDS)
        for other, mine in zip(theirs, ours, strict=True)
    ]
    tails = [percentile([*chain(*side)], 99) * MICROSECONDS for side in (theirs, ours)]
    title = f"Axpy {SMALL}x{SMALL} and {how}"
    call = f"{peer('labels')['axpy']} + sync"
    budget = Budget(3.0, "at most") if peer.backend == "cuda" else None
    return [
        Row(
            name=f"{group}-p50",
            group=group,
            title=f"{title}, p50",
            unit="µs",
            peer=call,
            budget=budget,
            **compared(medians)._asdict(),
        ),
        Row(
            name=f"{group}-p99",
            group=group,
            title=f"{title}, p99",
            unit="µs",
            peer=call,
            theirs=tails[0],
            ours=tails[1],
            ratio=tails[1] / tails[0],
            rounds=effort.rounds,
        ),
    ]
