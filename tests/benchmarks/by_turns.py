"""The rows of `accel-lab bench` by two trees of this project, which take turns.

    git archive OLD accel_lab | tar x -C /tmp/old
    python -m tests.benchmarks.by_turns /tmp/old . --backend cuda --rounds 5

Each turn is a process of its own. What is told of a row is how many times as fast the second tree
is as the first: the median of the turns, with the least and the most. A row whose two medians
differ by less than one tree's turns among themselves says nothing.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

ONLY = "ping,await,gemm,axpy,jit,fft,rng"
RATES = ("messages/s", "TFLOP/s", "GiB/s")


def rows(tree: Path, backend: str, only: str) -> dict[str, tuple[str, float]]:
    """Run a tree's benchmarks once; return unit and figure by name."""
    command = ["-m", "accel_lab.cli", "bench", "--quick", "--json"]
    made = subprocess.run(
        [sys.executable, *command, "--backend", backend, "--only", only],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tree), *_path()])},
        stdout=subprocess.PIPE,
        text=True,
        check=False,  # it says by its exit status, too, that a budget is missed
    )
    return {row["name"]: (row["unit"], row["ours"]) for row in json.loads(made.stdout)["rows"]}


def measured(
    trees: tuple[Path, Path], backend: str, only: str, rounds: int
) -> list[dict[str, Any]]:
    """Let two trees take turns; return a row for each name that both have."""
    found: dict[str, tuple[str, list[float], list[float]]] = {}
    for _ in range(rounds):
        first, second = (rows(tree, backend, only) for tree in trees)
        for name in first.keys() & second.keys():
            unit, old = first[name]
            _, olds, news = found.setdefault(name, (unit, [], []))
            olds.append(old)
            news.append(second[name][1])
    told = []
    for name, (unit, olds, news) in sorted(found.items()):
        faster = [
            new / old if unit in RATES else old / new for old, new in zip(olds, news, strict=True)
        ]
        told.append(
            {
                "name": name,
                "unit": unit,
                "first": statistics.median(olds),
                "second": statistics.median(news),
                "times as fast": statistics.median(faster),
                "least": min(faster),
                "most": max(faster),
            }
        )
    return told


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.by_turns")
    parser.add_argument("trees", type=Path, nargs=2, help="folders that hold `accel_lab`")
    parser.add_argument("--backend", default="host")
    parser.add_argument("--only", default=ONLY)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    first, second = (one.resolve() for one in options.trees)
    table = measured((first, second), options.backend, options.only, options.rounds)
    for row in table:
        told = (f"{one:.4g}" if isinstance(one, float) else str(one) for one in row.values())
        sys.stdout.write(" | ".join(told) + "\n")
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))
    return 0


def _path() -> list[str]:
    """Return what the interpreter was told to look at, the trees left out."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [one for one in given if one and not (Path(one) / "accel_lab").is_dir()]


if __name__ == "__main__":
    raise SystemExit(main())
