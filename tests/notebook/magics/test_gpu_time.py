"""`%%gputime`: cells that are run again and again in a real context."""

import _thread
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.compute.cells.cell_execution import Timed
from accel_lab.compute.execution.cost_meter import Span
from accel_lab.errors import ContextLost, InvalidArgument, UserCodeError
from accel_lab.notebook.gpu_cell import GpuCells
from accel_lab.notebook.timing import REPEAT, Timing, parse
from tests.interactive import Shell, shell
from tests.shown import gathered
from tests.views.test_tree import Table

STALL_S = 30.0
ONES = np.ones(3)


class Notebook:
    """A namespace, and what its cells have shown."""

    def __init__(self, lab: System) -> None:
        self.names: dict[str, Any] = {"np": np, "time": time}
        self.shown = gathered()
        self.gpu = lab.devices[0]
        self.cells = GpuCells(self.names, lambda _: self.gpu)

    def time(self, source: str, line: str = "-n1 -r1") -> Timing:
        return self.cells.time(line, source)

    def run(self, source: str) -> Any:
        """Run a cell; return what its last line shows."""
        self.cells.run("", source)
        return self.shown.pop()["text/plain"] if self.shown else None


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host") as lab:
        yield lab


@pytest.fixture
def notebook(lab: System) -> Notebook:
    return Notebook(lab)


def test_the_times_are_those_of_one_repetition(notebook: Notebook) -> None:
    timing = notebook.time("time.sleep(0.05)", "-n 3 -r 4")
    assert (timing.device, timing.number, timing.repeat) == ("cpu0", 3, 4)
    assert len(timing.device_s) == len(timing.wall_s) == 4
    assert 0.05 <= min(timing.device_s) <= timing.median_s <= max(timing.device_s) < STALL_S
    assert 0.05 <= timing.wall_median_s < STALL_S


def test_it_is_run_once_and_then_as_often_as_was_asked(notebook: Notebook) -> None:
    runs = notebook.names["runs"] = notebook.gpu.put(np.zeros(1))
    notebook.time("runs += 1", "-n 3 -r 2")
    assert notebook.gpu.get(runs).result().tolist() == [1 + 3 * 2]


def test_the_number_is_chosen_so_that_a_run_is_long_enough(notebook: Notebook) -> None:
    timing = notebook.time("time.sleep(0.15)", "")
    assert (timing.number, timing.repeat) == (1, REPEAT)
    assert notebook.time("time.sleep(0.03)", "-r 1").number in (1, 2, 5)
    assert notebook.time("pass", "-r 1").number in {
        scale * step for scale in (1, 2, 5) for step in (10**n for n in range(9))
    }


def test_its_names_do_not_leak_and_each_run_begins_with_those_there_are(
    notebook: Notebook,
) -> None:
    notebook.run("x = 1\nseen = []")
    notebook.time("seen.append(x)\nx += 1\ny = x\ndel x\nx = y", "-n 2 -r 2")
    assert notebook.run("seen") == "[1, 1, 2, 1, 2]"
    assert notebook.run("x") == "1"
    assert notebook.run("'y' in globals()") == "False"
    assert "y" not in notebook.names


def test_a_function_of_the_cell_finds_the_others_and_what_the_notebook_gave(
    notebook: Notebook,
) -> None:
    notebook.names["k"] = 3
    notebook.run("out = []")
    source = "def a():\n    return k\ndef b():\n    return a() + 1\nout.append(b())"
    notebook.time(source)
    assert notebook.run("out") == "[4, 4]"


def test_what_it_displays_is_dropped(notebook: Notebook) -> None:
    notebook.time("display('shown')\n'value'")
    assert notebook.shown == []
    notebook.run("1")
    assert notebook.shown == []


@pytest.mark.parametrize(
    ("source", "why"), [("1\n\n1 / 0", "line 3"), ("x = 1\nbreak", "'break' outside loop")]
)
def test_what_it_raises_is_the_cells(notebook: Notebook, source: str, why: str) -> None:
    with pytest.raises(UserCodeError, match=why):
        notebook.time(source)
    assert notebook.run("2") == "2"


def test_what_it_has_written_survives_a_fault(notebook: Notebook, lab: System) -> None:
    x = notebook.names["x"] = notebook.gpu.put(ONES)
    notebook.time("x += 1", "-n 1 -r 2")
    lab.flush()
    with pytest.raises(ContextLost):
        lab.inject("kill").result()
    assert notebook.gpu.get(x).result().tolist() == (ONES + 3).tolist()


def interrupt_when(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)
    _thread.interrupt_main()


def test_it_can_be_interrupted(notebook: Notebook, tmp_path: Path) -> None:
    notebook.run("before = 'here'")
    generation = notebook.gpu.generation
    started = time.monotonic()
    runs = tmp_path / "runs"
    threading.Thread(target=interrupt_when, args=(runs,)).start()
    with pytest.raises(KeyboardInterrupt):
        notebook.time(f"open({str(runs)!r}, 'w').close()\ntime.sleep(0.01)", "-n 100000")
    assert time.monotonic() - started < STALL_S
    assert notebook.run("before") == "'here'"
    assert notebook.gpu.generation == generation


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("", (None, 0, REPEAT)),
        ("gpu1 -n 5", ("gpu1", 5, REPEAT)),
        ("-r3 -n20 gpu1", ("gpu1", 20, 3)),
    ],
)
def test_options_are_read(line: str, found: tuple[str | None, int, int]) -> None:
    assert parse(line) == found


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("-n", "-n takes a number, from 1, not ''"),
        ("-r 0", "-r takes a number, from 1, not '0'"),
        ("-r -2", "-r takes a number, from 1, not '-2'"),
        ("-q", "'-q' is not understood: %%gputime"),
        ("gpu0 gpu1", "'gpu1' is not understood"),
    ],
)
def test_options_that_do_not_fit_are_refused(line: str, why: str) -> None:
    with pytest.raises(InvalidArgument, match=why):
        parse(line)


def made_up() -> Timing:
    times = [(0.02, 0.03), (0.04, 0.05), (0.06, 0.09), (0.03, 0.04), (0.05, 0.06)]
    return Timing("gpu0", Timed(10, [Span(10 * device, 10 * wall) for device, wall in times]))


def test_the_numbers_are_those_of_the_statistics_module() -> None:
    timing = made_up()
    assert timing.median_s == pytest.approx(statistics.median(timing.device_s))
    lower, _, upper = statistics.quantiles(timing.device_s, n=4, method="inclusive")
    assert timing.quartiles_s == pytest.approx((lower, upper))
    assert timing.wall_median_s == pytest.approx(0.05)
    alone = Timing("gpu0", Timed(1, [Span(2.0, 3.0)]))
    assert alone.quartiles_s == (2.0, 2.0)
    assert repr(alone).startswith("2 s on gpu0: 1 run of 1\n")


def test_it_reads_as_a_table() -> None:
    assert repr(made_up()).splitlines() == [
        "40 ms on gpu0: 5 runs of 10",
        "Clock   Median       Quartiles  Fastest  Slowest",
        "device   40 ms  30 ms to 50 ms    20 ms    60 ms",
        "wall     50 ms  40 ms to 60 ms    30 ms    90 ms",
        "the cell ran at least 51 times: what it writes in place is written as often",
    ]
    markup, _, note = made_up()._repr_html_().partition("<small>")
    table = Table(markup)
    assert table.rows[0][0] == "40 ms on gpu0: 5 runs of 10"
    assert table.rows[-1] == ["wall", "50 ms", "40 ms to 60 ms", "30 ms", "90 ms"]
    assert note.endswith("what it writes in place is written as often</small>")


@pytest.fixture
def interactive() -> Iterator[Shell]:
    with shell() as opened:
        opened("%load_ext accel_lab")
        yield opened


def test_the_magic_returns_the_numbers_and_completes(interactive: Shell, lab: System) -> None:
    interactive.ipython.user_ns["gpu"] = lab.devices[0]
    timing = interactive("%%gputime gpu -n2 -r3\nsum(range(10))")
    assert isinstance(timing, Timing)
    assert (timing.number, timing.repeat) == (2, 3)
    assert {"-n", "-r", "cpu0"} <= interactive.complete("%%gputime ")
    assert "--quiet" not in interactive.complete("%%gputime ")
