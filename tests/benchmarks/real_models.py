"""silero-vad in batches beside one window at a time, and what a cascade before magika saves.

    python -m tests.benchmarks.real_models --rounds 5 --json rows.json --plot cascade.svg

Both models ship inside packages of the extra `models`, and run by messages. The ways take turns in
each round, in one system. The cascade asks a regression on counts of bytes first; it learns from
one half of some files of the installed packages, and is judged by the other half.
"""

import argparse
import json
import statistics
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from accel_lab import System
from accel_lab.blueprints.patterns import DynamicBatchingServer, InferenceCascade, Step, stage
from tests.benchmarks.models import Bytes, Magika, Silero, known_files, sounds

SIZES = (1, 16, 64)
THRESHOLDS = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
BATCH = 16


def batches(lab: System, requests: int, rounds: int) -> list[dict[str, Any]]:
    """Measure silero-vad's windows a second, in batches of each size."""
    model = stage(devices=lab, parallelism=1)(Silero)
    windows = sounds(requests)
    servers = {
        size: DynamicBatchingServer(lab, model, max_batch=size, name=f"batches of {size}")
        for size in SIZES
    }
    found: dict[int, list[float]] = {size: [] for size in SIZES}
    for round_ in range(rounds + 1):
        for size, server in servers.items():
            begin = time.perf_counter()
            replies = [server.ask(one) for one in windows]
            for reply in replies:
                reply.result()
            if round_:  # the first warms up
                found[size].append(requests / (time.perf_counter() - begin))
    for server in servers.values():
        server.close()
    rows = []
    for size in SIZES:
        times = [one / single for one, single in zip(found[size], found[1], strict=True)]
        rows.append(
            {
                "batches of": size,
                "windows a second": statistics.median(found[size]),
                "times one at a time": statistics.median(times),
                "least": min(times),
                "most": max(times),
            }
        )
    return rows


def cascade(
    lab: System, texts: Sequence[bytes], kinds: Sequence[str], thresholds: Sequence[float]
) -> list[dict[str, Any]]:
    """Measure what each threshold costs, and how many kinds are right."""
    half = len(texts) // 2
    cheap = Bytes(texts[:half], kinds[:half])
    asked, wanted = texts[half:], kinds[half:]
    dear = stage(devices=lab, parallelism=1, name="magika")(Magika)
    cost = _seconds(cheap, asked) / _seconds(Magika(lab.devices[0]), asked[:BATCH])
    rows = []
    for threshold in thresholds:
        steps = [Step(cheap, threshold=threshold, cost=cost), Step(dear)]
        with InferenceCascade(lab, steps, max_batch=BATCH, capacity=len(asked)) as server:
            judged = [reply.result() for reply in [server.ask(one) for one in asked]]
        right = sum(one.value == kind for one, kind in zip(judged, wanted, strict=True))
        rows.append(
            {
                "threshold": threshold,
                "cost": statistics.fmean(one.cost for one in judged),
                "right": right / len(judged),
                "sent on": statistics.fmean(one.stage for one in judged),
                "files": len(judged),
            }
        )
    return rows


def _seconds(model: Callable[[Sequence[bytes]], Any], texts: Sequence[bytes]) -> float:
    """Return what one text takes, in batches as the cascade has them."""
    took = []
    for _ in range(4):
        begin = time.perf_counter()
        for first in range(0, len(texts), BATCH):
            model(texts[first : first + BATCH])
        took.append((time.perf_counter() - begin) / len(texts))
    return statistics.median(took[1:])


def plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the share of right answers over the cost."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot([100 * row["cost"] for row in rows], [100 * row["right"] for row in rows], "o-")
    for row in rows:
        axes.annotate(
            f"{row['threshold']:g}",
            (100 * row["cost"], 100 * row["right"]),
            (4, -11),
            textcoords="offset points",
            fontsize=8,
        )
    axes.set_xlabel("cost, % of asking magika for each file")
    axes.set_ylabel("right kinds, %")
    axes.set_title("A cascade before magika, by its threshold", fontsize=10)
    axes.set_ylim(min(85.0, *(100 * row["right"] for row in rows)), 100)
    axes.grid(alpha=0.3)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "accel_lab"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.real_models")
    parser.add_argument("--backend", default="host")
    parser.add_argument("--requests", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=60, help="of each kind")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args(arguments)
    texts, kinds = known_files(Path(sysconfig.get_path("purelib")), options.files)
    with System(options.backend, 1) as lab:
        rows = batches(lab, options.requests, options.rounds)
        judged = cascade(lab, texts, kinds, THRESHOLDS)
    for row in rows + judged:
        told = (f"{one:.4g}" if isinstance(one, float) else str(one) for one in row.values())
        sys.stdout.write(" | ".join(told) + "\n")
    if options.json:
        options.json.write_text(json.dumps(rows + judged, indent=1))
    if options.plot:
        plot(judged, options.plot)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
