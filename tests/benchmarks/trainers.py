"""A `DataParallelTrainer` beside torchrun with DistributedDataParallel, on one device and on more.

    python -m tests.benchmarks.trainers --backend cuda --devices 4 --json trainers.json

Both train the same GPT in float32 with AdamW, with as many rows for each device, and read the loss
of every step. They take turns, each with all devices to itself. What is compared is how many tokens
a second there are, and how many times those of one device.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from accel_lab import System
from accel_lab.blueprints import train

LETTERS = len(train.Text(train.sonnets(), length=1, size=1).alphabet)
SIZES = {
    "small": (train.GPT(LETTERS, length=16, width=16, heads=2, blocks=1), 2),
    "large": (train.GPT(LETTERS, length=512, width=1024, heads=16, blocks=8), 16),
}
"""A model, and the rows of each device."""
WARM = 3


def ours(backend: str, devices: int, size: str, steps: int) -> float:
    """Return the seconds of a step of our trainer."""
    model, rows = SIZES[size]
    text = train.Text(train.sonnets(), length=model.length, size=rows * devices)
    with System(backend, devices) as lab:
        trainer = train.DataParallelTrainer(
            lab.world(), model.loss, model.parameters(), train.AdamW(1e-4), text
        )
        trainer.run(WARM)
        begin = time.perf_counter()
        trainer.run(WARM + steps)
        return (time.perf_counter() - begin) / steps


def theirs(devices: int, size: str, steps: int) -> float:
    """Return the seconds of a step of PyTorch's, begun by torchrun."""
    model, rows = SIZES[size]
    command = ["torch.distributed.run", "--standalone", f"--nproc-per-node={devices}"]
    command += ["-m", "tests.benchmarks.peers.gpt_by_ddp", json.dumps(list(model))]
    done = subprocess.run(
        [sys.executable, "-m", *command, str(rows), str(WARM), str(steps)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    told: float = json.loads(done.stdout.splitlines()[-1])["seconds"]
    return told


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.trainers")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--devices", type=int, default=4)
    parser.add_argument("--size", choices=list(SIZES), default="large")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    model, rows = SIZES[options.size]
    counts = sorted({1, options.devices})
    seconds: dict[tuple[str, int], list[float]] = {}
    for _ in range(options.rounds):
        for count in counts:
            found = ours(options.backend, count, options.size, options.steps)
            seconds.setdefault(("ours", count), []).append(found)
            found = theirs(count, options.size, options.steps)
            seconds.setdefault(("DDP", count), []).append(found)
    table: list[dict[str, float]] = []
    for count in counts:
        row: dict[str, float] = {"devices": count}
        for who in ("ours", "DDP"):
            rates = [count * rows * model.length / one for one in seconds[who, count]]
            row[f"{who}, tokens/s"] = statistics.median(rates)
            row[f"{who}, times one"] = (
                row[f"{who}, tokens/s"] / (table or [row])[0][f"{who}, tokens/s"]
            )
        row["rate by DDP's"] = row["ours, tokens/s"] / row["DDP, tokens/s"]
        row["scaling by DDP's"] = row["ours, times one"] / row["DDP, times one"]
        table.append(row)
    sys.stdout.write(f"| {' | '.join(table[0])} |\n|{'---|' * len(table[0])}\n")
    for row in table:
        sys.stdout.write(f"| {' | '.join(f'{one:.3g}' for one in row.values())} |\n")
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
