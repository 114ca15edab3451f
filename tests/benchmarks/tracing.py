"""What it costs a message to be seen from outside: off, NVTX, CUPTI, OTLP, Prometheus.

    python -m tests.benchmarks.tracing --backend cuda --json tracing.json

Small messages in a row, whose last is waited for, in alternating rounds of systems that are open at
the same time. Off is measured twice: what lies between the two is what the machine cannot tell
apart. `otlp` sends to a collector in this process, and `prometheus` is scraped each second. To
compare with another commit, run it there with `--only off`.
"""

import argparse
import json
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

import numpy as np

from accel_lab import AccelRef, System, blas, telemetry
from accel_lab.compute.tracing.asked import Trace

WAIT_S = 60.0
SCRAPED_S = 1.0
MODES: dict[str, tuple[Trace, ...]] = {
    "off": (),
    "off again": (),
    "nvtx": ("nvtx",),
    "cupti": ("cupti",),
    "cupti-calls": ("cupti-calls",),
    "nvtx and cupti": ("nvtx", "cupti"),
    "otlp": (),
    "prometheus": (),
}
NEEDS = {"otlp": "opentelemetry", "prometheus": "prometheus_client", "cupti-calls": "cupti"}
"""The packages of those that are not named for theirs."""


class Side(NamedTuple):
    """A system, and its operands."""

    lab: System
    x: AccelRef
    y: AccelRef


def modes(backend: str, only: Iterable[str] = ()) -> dict[str, tuple[Trace, ...]]:
    """Return those that can be here: of `host` there is no CUPTI."""
    wanted = set(only) or set(MODES)
    return {
        name: trace
        for name, trace in MODES.items()
        if name in wanted
        and all(find_spec(NEEDS.get(one, one)) for one in (*trace, *({name} & NEEDS.keys())))
        and (backend == "cuda" or not {"cupti", "cupti-calls"}.intersection(trace))
    }


def open_side(backend: str, name: str, trace: tuple[Trace, ...], stack: ExitStack) -> Side:
    """Open a system; its journal is off, so that the message is most of what is measured."""
    lab = System(backend, 1, journal=None, fuse=False, trace=trace).ready()
    stack.callback(lab.close)
    if name == "otlp":
        from tests.telemetry.collector import collecting

        stack.callback(telemetry.otlp(lab, stack.enter_context(collecting()).endpoint).close)
    if name == "prometheus":
        stack.enter_context(scraped(lab))
    x, y = (lab.devices[0].put(np.ones((64, 64), np.float32)) for _ in range(2))
    return Side(lab, x, y)


@contextmanager
def scraped(lab: System) -> Iterator[None]:
    """Have a system's metrics read each second, as a dashboard gives them."""
    from accel_lab.views.dashboard.metrics import exposition
    from accel_lab.views.dashboard.watched import Onlooker

    onlooker, ended = Onlooker(lab, lab.name), threading.Event()
    onlooker.want(ended, ("work", "health"))

    def scrape() -> None:
        while not ended.wait(SCRAPED_S):
            with onlooker.lock:
                onlooker.look()
            exposition([onlooker])

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def seconds(side: Side, messages: int) -> float:
    """Return how long a message takes in a row of them; each has a result, which none repeats."""
    begin = time.perf_counter()
    for _ in range(messages):
        last = blas.axpy(side.x, side.y, alpha=2.0)
    last.result(WAIT_S)
    took = (time.perf_counter() - begin) / messages
    if "cupti" in side.lab.trace:
        side.lab.profile()  # between the rounds
    return took


def measure(
    backend: str, *, rounds: int, messages: int, only: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """Return a row for each mode; times in microseconds."""
    with ExitStack() as stack:
        wanted = modes(backend, only).items()
        sides = {name: open_side(backend, name, trace, stack) for name, trace in wanted}
        for side in sides.values():
            seconds(side, messages)
        found: dict[str, list[float]] = {name: [] for name in sides}
        for turn in range(rounds):
            for name in sorted(sides, reverse=bool(turn % 2)):
                found[name].append(1e6 * seconds(sides[name], messages))
        device = next(iter(sides.values())).lab.tree().children[0].detail
    base = found.get("off")
    rows = []
    for name, took in found.items():
        low, _, high = quantiles(took, n=4)
        row = {
            "trace": name,
            "us": round(median(took), 3),
            "quartiles": [round(low, 3), round(high, 3)],
        }
        if base is not None:
            row["ratio"] = round(median(a / b for a, b in zip(took, base, strict=True)), 4)
        rows.append({**row, "messages": messages, "rounds": rounds, "device": device})
    return rows


def main() -> None:
    """Print a line a mode, and write them as JSON where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=["host", "cuda"], default="host")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--messages", type=int, default=5_000)
    parser.add_argument("--only", action="append", choices=list(MODES), default=[])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = measure(given.backend, rounds=given.rounds, messages=given.messages, only=given.only)
    for row in rows:
        print(row)  # noqa: T201 - a script
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
