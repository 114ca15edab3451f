"""Cells and waits of the notebook: what is recorded of them, and what that costs."""

import asyncio
import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from accel_lab.actor.reply import Reply
from accel_lab.compute.events import cell_log
from accel_lab.compute.events.cell_log import CellLog
from accel_lab.compute.events.notebook_news import NotebookNews
from accel_lab.compute.events.samples import CellRun, HostWait, NotebookSampled
from accel_lab.host_waits import HOST_WAITS, KEPT, LEAST_S, HostWaits
from accel_lab.views.scene.fact_lines import decode, encode
from accel_lab.views.scene.recap import recap
from accel_lab.views.scene.scene import CELLS, WAITS, Scene
from tests.project import ROOT


class Clock:
    """Seconds that pass when a test says so, in place of the module `time`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in ("accel_lab.host_waits", "accel_lab.compute.events.cell_log"):
        monkeypatch.setattr(f"{module}.time", clock)
    monkeypatch.setattr("accel_lab.compute.events.notebook_news.time", clock)
    return clock


def wait(waits: HostWaits, clock: Clock, seconds: float) -> None:
    assert waits.begin()
    clock.now += seconds
    waits.end()


def test_a_wait_is_kept_from_a_few_milliseconds_on(clock: Clock) -> None:
    waits = HostWaits()
    wait(waits, clock, LEAST_S / 2)
    wait(waits, clock, 0.5)
    assert waits.after(0) == [(1000.0 + LEAST_S / 2, 1000.5 + LEAST_S / 2)]
    assert waits.since == 0.0


def test_waits_that_overlap_are_one(clock: Clock) -> None:
    waits = HostWaits()
    waits.begin()
    clock.now += 1
    waits.begin()
    clock.now += 1
    waits.end()
    assert waits.since == 1000.0
    clock.now += 1
    waits.end()
    assert waits.after(0) == [(1000.0, 1003.0)]


def test_another_thread_than_the_notebooks_waits_unseen() -> None:
    waits = HostWaits()
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(waits.begin()))
    thread.start()
    thread.join()
    assert found == [False]
    assert waits.since == 0.0


def test_the_oldest_waits_go(clock: Clock) -> None:
    waits = HostWaits()
    for _ in range(KEPT + 5):
        wait(waits, clock, 1)
    assert len(waits.after(0)) == KEPT
    assert waits.after(clock.now - 2.5) == [(clock.now - n - 1, clock.now - n) for n in (2, 1, 0)]


def answered_after(seconds: float) -> Reply[int]:
    reply: Reply[int] = Reply()
    threading.Timer(seconds, reply.resolve, (7,)).start()
    return reply


def test_result_and_await_are_waits_of_the_main_thread() -> None:
    mark = time.time()
    assert answered_after(0.02).result(20) == 7
    ((began, ended),) = HOST_WAITS.after(mark)
    assert mark <= began < ended
    assert ended - began >= LEAST_S

    async def both() -> list[int]:
        return list(await asyncio.gather(answered_after(0.02), answered_after(0.04)))

    assert asyncio.run(both()) == [7, 7]
    ((_, second_end),) = HOST_WAITS.after(ended)
    assert second_end > ended
    with pytest.raises(TimeoutError):
        Reply().result(0.01)
    assert HOST_WAITS.since == 0.0
    assert len(HOST_WAITS.after(second_end)) == 1


def test_a_short_wait_costs_no_more_than_a_few_looks_at_the_clock() -> None:
    """Well below a microsecond; to the clock beside it, for machines differ and are shared."""
    waits, clock = HostWaits(), time.time
    ratios = []
    for _ in range(60):
        began = time.perf_counter()
        for _ in range(500):
            waits.begin()
            waits.end()
        between = time.perf_counter()
        for _ in range(500):
            clock()
            clock()
        ratios.append((between - began) / (time.perf_counter() - between))
    assert statistics.median(ratios) < 5


def test_a_cell_has_its_number_its_first_line_and_how_it_ended(clock: Clock) -> None:
    log = CellLog()
    for number, source, error in (
        (3, "\n  a = 1\nb = 2", None),
        (4, "%%gpu\nx", ValueError("no")),
        (5, "spin()", KeyboardInterrupt()),
    ):
        log.begin(number, source)
        clock.now += 1
        log.end(error)
    log.begin(6, "z" * 500)
    assert log.after(0) == [
        CellRun(3, "a = 1", 1000.0, 1001.0, "done"),
        CellRun(4, "%%gpu", 1001.0, 1002.0, "failed"),
        CellRun(5, "spin()", 1002.0, 1003.0, "cancelled"),
        CellRun(6, "z" * cell_log.LINE, 1003.0, None),
    ]
    assert [one.number for one in log.after(1002.5)] == [5, 6]


def test_a_cell_inside_a_cell_is_no_other(clock: Clock) -> None:
    log = CellLog()
    log.begin(1, "%%capture")
    log.begin(1, "inner")
    clock.now += 1
    log.end(None)
    clock.now += 1
    log.end(ValueError())
    assert log.after(0) == [CellRun(1, "%%capture", 1000.0, 1002.0, "failed")]
    log.end(None)  # of a cell that nobody saw begin
    assert len(log.after(0)) == 1


def test_one_that_was_running_already_gives_way_to_the_first_that_was_seen(clock: Clock) -> None:
    log = CellLog()
    log.begin(1, "%load_ext accel_lab", seen=False)
    clock.now += 5
    log.begin(1, "x = 1")
    clock.now += 1
    log.end(None)
    assert log.after(0) == [CellRun(1, "x = 1", 1005.0, 1006.0, "done")]


def test_the_oldest_cells_go(clock: Clock) -> None:
    log = CellLog()
    for number in range(cell_log.KEPT + 3):
        log.begin(number, "x")
        clock.now += 1
        log.end(None)
    numbers = [one.number for one in log.after(0)]
    assert (numbers[0], len(numbers)) == (3, cell_log.KEPT)


def test_news_are_told_once_and_again_when_they_have_ended(clock: Clock) -> None:
    cells, waits = CellLog(), HostWaits()
    news = NotebookNews(cells, waits)
    assert news.look() is None
    cells.begin(1, "x")
    waits.begin()
    clock.now += 1
    told = news.look()
    assert told is not None
    assert told.cells == (CellRun(1, "x", 1000.0, None),)
    assert told.waits == (HostWait(1000.0, None),)
    assert news.look() is None
    waits.end()
    cells.end(None)
    told = news.look()
    assert told is not None
    assert told.cells == (CellRun(1, "x", 1000.0, 1001.0, "done"),)
    assert told.waits == (HostWait(1000.0, 1001.0),)
    assert news.look() is None


def sampled(start: float, end: float | None) -> NotebookSampled:
    cell = CellRun(int(start), "x", start, end, "" if end is None else "done")
    return NotebookSampled(cells=(cell,), waits=(HostWait(start, end),))


def test_a_scene_has_each_once_within_bounds_and_tells_it_on() -> None:
    scene = Scene()
    scene.add(sampled(1.0, None))
    scene.add(decode(encode(sampled(1.0, 2.0))))
    assert list(scene.cells.values()) == [CellRun(1, "x", 1.0, 2.0, "done")]
    assert list(scene.waits.values()) == [HostWait(1.0, 2.0)]
    twin = scene.copy()
    for start in range(2, CELLS + WAITS):
        scene.add(sampled(float(start), start + 0.5))
    assert (len(scene.cells), len(scene.waits), len(twin.cells)) == (CELLS, WAITS, 1)
    (told,) = [fact for fact in recap(twin) if isinstance(fact, NotebookSampled)]
    assert told.cells == tuple(twin.cells.values())
    assert told.waits == tuple(twin.waits.values())


NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
cells = [
    "from accel_lab.compute.output import cell_origin as o; o.follow_notebook()",
    "# two\\n2",
    "%%capture\\nprint(3)",
    "1 / 0",
]
for cell in cells:
    shell.run_cell(cell, store_history=True)
from accel_lab.compute.events.cell_log import CELLS
for one in CELLS.after(0):
    print("told", one.number, one.ended, one.line)
"""


def test_the_cells_of_a_notebook_are_noted(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=os.environ | {"IPYTHONDIR": str(tmp_path)},
        timeout=60,
    )
    assert [line[5:] for line in done.stdout.splitlines() if line.startswith("told ")] == [
        "1 done from accel_lab.compute.output import cell_origin as o; o.follow_notebook()",
        "2 done # two",
        "3 done %%capture",
        "4 failed 1 / 0",
    ]
