"""What recording costs the work that is recorded: the journal, and buffers that are rebuilt."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from accel_lab.bench import own_loop
from accel_lab.bench.effort import Effort
from accel_lab.bench.operands import SMALL
from accel_lab.bench.rounds import compare, percentile
from accel_lab.bench.row import Budget, Row
from accel_lab.bench.rows.pipelined import Ask, axpy_of, rate_of
from accel_lab.system import System

TICK_S = 0.001
PER_TICK = 50


def journal(backend: str, effort: Effort) -> list[Row]:
    """Send small messages to systems that record, and to one that does not."""
    kinds = {
        "journal-memory": ("journal in memory", {"journal": "memory"}),
        "journal-sqlite": ("journal in SQLite", {"journal": "file"}),
        "journal-replay": (
            "buffers come back",
            {"journal": "memory", "recover": "replay"},
        ),
    }
    rows = []
    with _sender(backend, {"journal": None}) as plain:
        for name, (title, options) in kinds.items():
            with _sender(backend, options) as recorded:
                found = compare(
                    lambda: rate_of(plain, effort.watched_s),
                    lambda ask=recorded: rate_of(ask, effort.watched_s),  # type: ignore[misc]
                    effort.rounds,
                )
            row = Row(
                name=name,
                group="journal",
                title=f"Axpy, {title}",
                unit="messages/s",
                peer="without a journal",
                budget=Budget(0.9, "at least"),
                **found._asdict(),
            )
            rows.append(row)
    with _sender(backend, {"journal": "file"}) as ask:
        late = own_loop.run(_lateness(ask, effort.watched_s * effort.rounds))
    rows.append(
        Row(
            name="journal-loop-p99",
            group="journal",
            title="event loop late by, p99",
            unit="s",
            ours=percentile(late, 99),
            budget=Budget(0.005, "at most", "ours"),
            rounds=len(late),
        )
    )
    return rows


@contextmanager
def _sender(backend: str, options: dict[str, Any]) -> Iterator[Ask]:
    """Open a system and return what sends it a small message."""
    with TemporaryDirectory(prefix="accel_lab-bench-") as folder:
        if options["journal"] == "file":
            options = options | {"journal": Path(folder) / "journal.sqlite"}
        chosen: dict[str, Any] = {"recover": "stale"} | options
        with System(backend, devices=1, **chosen) as lab:
            yield axpy_of(lab.devices[0], SMALL)


async def _lateness(ask: Ask, for_s: float) -> list[float]:
    """Send a little with each turn of a loop, and return by how much its timer was late."""
    late: list[float] = []
    begin = perf_counter()
    while perf_counter() - begin < for_s:
        for _ in range(PER_TICK):
            last = ask()
        await last
        asleep = perf_counter()
        await asyncio.sleep(TICK_S)
        late.append(perf_counter() - asleep - TICK_S)
    return late
