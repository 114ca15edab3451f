"""One small message at a time, each waited for, against the library's call and a stream sync."""

from collections.abc import Callable
from time import perf_counter

from accel_lab.bench import own_loop
from accel_lab.bench.case import Send
from accel_lab.bench.effort import Effort
from accel_lab.bench.operands import SMALL
from accel_lab.bench.peer import Peer
from accel_lab.bench.rounds import Comparison, latencies
from accel_lab.bench.row import Budget, Row
from accel_lab.bench.rows.pipelined import axpy_of

MICROSECONDS = 1e6


def ask(peer: Peer, effort: Effort) -> list[Row]:
    """Ask and block in `.result()`."""
    return _rows(peer, effort, "ask", ".result()", blocking)


def await_(peer: Peer, effort: Effort) -> list[Row]:
    """Ask and `await` in an asyncio loop, as a notebook's cell does."""
    return _rows(peer, effort, "await", "await", awaiting)


def blocking(send: Send, count: int) -> list[float]:
    """Return the seconds of so many asks, each waited for in the calling thread."""
    samples = []
    for _ in range(count):
        begin = perf_counter()
        send().result()
        samples.append(perf_counter() - begin)
    return samples


def awaiting(send: Send, count: int) -> list[float]:
    """Return the seconds of so many asks, each awaited in one asyncio loop."""

    async def sample() -> list[float]:
        samples = []
        for _ in range(count):
            begin = perf_counter()
            await send()
            samples.append(perf_counter() - begin)
        return samples

    return own_loop.run(sample())


def percentiles(
    name: str,
    found: tuple[Comparison, Comparison],
    *,
    group: str,
    title: str,
    peer: str,
    budget: Budget | None = None,
) -> list[Row]:
    """Make two rows, `name-p50` with the budget and `name-p99`, from comparisons in seconds."""
    return [
        Row(
            name=f"{name}-p{percent}",
            group=group,
            title=f"{title}, p{percent}",
            unit="µs",
            peer=peer,
            budget=limit,
            **one._replace(
                theirs=one.theirs * MICROSECONDS, ours=one.ours * MICROSECONDS
            )._asdict(),
        )
        for percent, one, limit in zip((50, 99), found, (budget, None), strict=True)
    ]


def _rows(
    peer: Peer, effort: Effort, group: str, how: str, sample: Callable[[Send, int], list[float]]
) -> list[Row]:
    send = axpy_of(peer.device, SMALL)
    count = effort.settling + effort.calls
    found = latencies(
        lambda: peer.each("blas.axpy", (SMALL,), count)[effort.settling :],
        lambda: sample(send, count)[effort.settling :],
        effort.rounds,
    )
    return percentiles(
        group,
        found,
        group=group,
        title=f"Axpy {SMALL}x{SMALL} and {how}",
        peer=f"{peer.label('blas.axpy', SMALL)} + sync",
        budget=Budget(1.7, "at most") if peer.backend == "cuda" else None,
    )
