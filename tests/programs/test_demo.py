"""The tour in the terminal, with a terminal and without one."""

import errno
import os
import pty
import re
import subprocess
import sys
from typing import Any

import pytest
from rich.console import Console

from accel_lab import blas, demo
from accel_lab.compute.message.buffer import AccelRef
from tests.project import ROOT

COMMAND = [sys.executable, "-m", "accel_lab.cli", "demo", "--backend"]
STEADY = {"OPENBLAS_NUM_THREADS": "1", "COLUMNS": "80", "LINES": "24"}


def test_tour_is_plain_lines_where_there_is_no_terminal() -> None:
    done = subprocess.run(
        [*COMMAND, "host"],
        cwd=ROOT,
        env=os.environ | STEADY,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr
    assert "\x1b" not in done.stdout
    said = [
        "cpu0         ○ idle  g1",
        "equal to NumPy's",
        "ContextLost: cpu0 lost its context of generation 1: its process ended with SIGKILL",
        "the same result",
        "GenerationChanged 1 → 2",
        "BuffersRebuilt",
        "first result of the new generation",
        "cpu0         ○ idle  g2",
        "every process has ended",
    ]
    places = [done.stdout.find(words) for words in said]
    assert -1 not in places, done.stdout
    assert places == sorted(places)
    trees = [line for line in done.stdout.splitlines() if "○ idle" in line]
    assert len(trees) >= 8
    assert max(map(len, trees)) <= 80


def test_tree_lives_below_the_lines_on_a_terminal() -> None:
    screen, terminal = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "host"],
        cwd=ROOT,
        env=os.environ | STEADY | {"TERM": "xterm-256color"},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        shown = read_all(screen)
    os.close(screen)
    assert process.returncode == 0, shown
    assert shown.count("Mailbox") > 10  # the tree, drawn again and again
    heads = re.findall(r"Actor +State +Gen +Mailbox +In(?: flight)? +Memory +Restarts", shown)
    assert len(heads) == shown.count("Mailbox")
    assert "…" not in re.findall(r"cpu0\s+\S+ .*idle.*", shown)[-1]
    states = set(re.findall(r"cpu0\s+[^\w\s]+ (?:\x1b\[\d*m)*(\w+)", shown))
    assert {"busy", "idle"} <= states, shown
    assert re.search(r"run\s+\S+ (?:\x1b\[\d*m)*busy(?:\x1b\[\d*m)*\s+0\s+1\b", shown), shown
    assert "first result of the new generation" in shown


def read_all(screen: int) -> str:
    """Read what a terminal shows until nobody holds its other end."""
    parts = []
    while True:
        try:
            parts.append(os.read(screen, 1 << 16))
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            break
    return b"".join(parts).decode()


def test_wrong_result_fails_the_tour_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    right = blas.axpy

    def wrong(x: AccelRef, y: AccelRef, **options: Any) -> AccelRef:
        options["alpha"] = 3.0
        return right(x, y, **options)

    monkeypatch.setattr(blas, "axpy", wrong)
    console = Console(width=100, force_terminal=False)
    with console.capture() as said:
        assert demo.tour("host", console) is False
    assert "the result is not NumPy's" in said.get()
    assert "Everything worked" not in said.get()


def test_backend_that_is_none_is_one_line_and_a_failure() -> None:
    done = subprocess.run(
        [*COMMAND, "abacus"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert re.fullmatch(r"accel-lab: 'abacus' is no backend; there are .*\n", done.stderr)
