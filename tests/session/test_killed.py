"""A notebook's process is killed at any moment, and the next one goes on as if it had not been."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import require
from tests.project import ROOT
from tests.session.twenty_cells import CELLS

KILLS, MANY = 2, 50
WITHIN_S = 120


class Run(NamedTuple):
    """What a process has said.

    Attributes:
        committed: the last cell that was, by its place; -1 for none.
        trace: the numbers of all cells, in a process that came to the end; else empty.
        said: all of it.
    """

    committed: int
    trace: str
    said: str


class Notebook:
    """A process that runs what is left of the twenty cells in a folder."""

    def __init__(self, folder: Path) -> None:
        self._errors = folder.with_suffix(".errors").open("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.session.twenty_cells", str(folder)],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            text=True,
        )
        assert self._process.stdout is not None
        self._out = self._process.stdout
        self._lines: list[str] = []

    def until(self, cell: int) -> None:
        """Wait until this many cells were committed, or the process has ended."""
        while self._committed < cell and (line := self._out.readline()):
            self._lines.append(line)

    @property
    def _committed(self) -> int:
        told = [line.split()[1] for line in self._lines if line.startswith("committed")]
        return int(told[-1]) if told else -1

    def end(self, *, kill: bool) -> Run:
        """Kill it, or wait for its end."""
        with self._process, self._errors:
            if kill:
                os.kill(self._process.pid, signal.SIGKILL)
            self._lines += self._out.readlines()
            code = self._process.wait(WITHIN_S)
            self._errors.seek(0)
            said = "".join(self._lines) + self._errors.read()
        assert code in (0, -signal.SIGKILL), said
        traces = [line for line in self._lines if line.startswith("trace")]
        return Run(self._committed, "".join(traces), said)


def kill_and_go_on(folder: Path, seed: int, kills: int, undisturbed: str) -> None:
    """Kill so many processes, each somewhere in its cells; the last one runs to the end."""
    dice = random.Random(f"kill {seed}")
    committed, killed, round_ = -1, 0, 0
    while True:
        notebook = Notebook(folder / f"{round_}.lab")
        if killed < kills:
            span = max((len(CELLS) - committed) // 2, 1)
            notebook.until(committed + dice.randrange(span))
            time.sleep(dice.uniform(0, 0.05))
        run = notebook.end(kill=killed < kills)
        killed += 1
        # Nothing that was said to be committed is run again.
        first = next((line for line in run.said.splitlines() if line.startswith("committed")), None)
        assert first is None or int(first.split()[1]) > committed, run.said
        committed = max(committed, run.committed)
        if run.trace:
            assert run.trace == undisturbed, run.said
            committed, round_ = -1, round_ + 1
            if killed >= kills:
                return


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the trace of a notebook that nobody kills."""
    require("compiler")
    run = Notebook(tmp_path_factory.mktemp("whole") / "run.lab").end(kill=False)
    assert run.trace.count(",") == sum("note(" in cell for cell in CELLS) - 1, run.said
    return run.trace


def test_the_next_process_goes_on_as_if_none_had_been_killed(
    undisturbed: str, tmp_path: Path
) -> None:
    kill_and_go_on(tmp_path, 1, KILLS, undisturbed)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_killed_processes_lose_nothing_that_was_committed(
    undisturbed: str, tmp_path: Path
) -> None:
    kill_and_go_on(tmp_path, 2, MANY, undisturbed)
