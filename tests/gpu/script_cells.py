"""How fast a script runs cell by cell, as it is and with `%%gpu` as the first line of each cell.

    python -m tests.gpu.script_cells cuda 3 4 path/to/kmeans.py …

A cell is some statements of the script in a row, those of its main block too; the arguments that
it would read are its defaults. The two ways run in processes of their own, by turns, here four
times after one that warms up; and that in three pairs of processes, for what one computes on the
processor may take it a tenth longer than another for as long as both live.
"""

import ast
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from statistics import median
from typing import Any

LINES = 12  # of a cell, at least
SEEDED = "import random, numpy\nrandom.seed(0)\nnumpy.random.seed(0)"
"""The cell before the script's, in either way: else the two may have different work to do."""


def cells(script: Path) -> list[str]:
    """Cut a script."""
    text = script.read_text().replace("parser.parse_args()", "parser.parse_args([])")
    text = re.sub(r"^from __future__ import .*$", "", text, flags=re.MULTILINE)
    text = text.replace("sys.exit(main())", "main()")
    found, cell = list[str](), list[str]()
    for part in _statements(text):
        cell.append(part)
        if sum(len(one.splitlines()) for one in cell) >= LINES:
            found.append("\n".join(cell))
            cell = []
    return found + (["\n".join(cell)] if cell else [])


def _statements(text: str) -> list[str]:
    lines = text.splitlines()
    found: list[str] = []
    for node in ast.parse(text).body:
        is_main = isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
        for one in node.body if isinstance(node, ast.If) and is_main else [node]:
            first = min([one.lineno, *(d.lineno for d in getattr(one, "decorator_list", ()))])
            found.append(textwrap.dedent("\n".join(lines[first - 1 : one.end_lineno])))
    return found


def work(backend: str) -> None:
    """Run the scripts that standard input names; answer with seconds, or what went wrong."""
    from accel_lab import System
    from tests.interactive import shell as opened

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    with opened() as shell, contextlib.ExitStack() as stack:
        if backend:
            lab = stack.enter_context(System(backend, devices=1))
            shell.ipython.user_ns["lab"] = lab
            shell("%load_ext accel_lab")
        for line in sys.stdin:
            script = Path(line.strip())
            sys.path.insert(0, str(script.parent))
            with contextlib.redirect_stdout(io.StringIO()) as said:
                shell(SEEDED)
                began = time.perf_counter()
                for source in cells(script):
                    shell(f"%%gpu\n{source}" if backend else source)
                    if shell.error is not None:
                        break
                took = time.perf_counter() - began
            wrong = "" if shell.error is None else f"{shell.error!r} after {said.getvalue()[-400:]}"
            answers.write(f"{json.dumps([took, wrong])}\n")
            sys.path.remove(str(script.parent))


def compare(backend: str, pairs: int, rounds: int, scripts: list[str]) -> None:
    """Print what each script takes in either way, the ratio, and those of the pairs."""
    for script in scripts:
        took: dict[str, list[float]] = {"": [], backend: []}
        ratios = []
        for number in range(pairs):
            pair = _compare_once(backend, rounds, script)
            ratios.append(median(pair[""]) / median(pair[backend]))
            sys.stdout.write(f"{Path(script).name}, pair {number + 1}: {ratios[-1]:.3f}\n")
            sys.stdout.flush()
            for way, seconds in pair.items():
                took[way] += seconds
        plain, ours = median(took[""]), median(took[backend])
        found = f"{ours:.3f} s, as it is {plain:.3f} s, {plain / ours:.3f}"
        of_pairs = " ".join(f"{ratio:.3f}" for ratio in ratios)
        sys.stdout.write(f"{Path(script).name}: {found} (by pair {of_pairs})\n")


def _compare_once(backend: str, rounds: int, script: str) -> dict[str, list[float]]:
    took: dict[str, list[float]] = {"": [], backend: []}
    with contextlib.ExitStack() as stack:
        ways = {way: stack.enter_context(_worker(way)) for way in took}
        for number in range(rounds + 1):
            for way in sorted(ways, reverse=number % 2 == 1):
                seconds = _ask(ways[way], script)
                if number:
                    took[way].append(seconds)
        for worker in ways.values():
            worker.stdin.close()
    return took


def _worker(way: str) -> Any:
    command = [sys.executable, "-m", "tests.gpu.script_cells", "--work", way]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _ask(worker: Any, script: str) -> float:
    worker.stdin.write(f"{script}\n")
    worker.stdin.flush()
    seconds, wrong = json.loads(worker.stdout.readline())
    if wrong:
        raise RuntimeError(wrong)
    return float(seconds)


if __name__ == "__main__":
    if sys.argv[1] == "--work":
        work(sys.argv[2])
    else:
        here = [str(Path(one).resolve()) for one in sys.argv[4:]]
        compare(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), here)
