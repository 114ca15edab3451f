"""What a million events leave behind in the browser: no more than the first of them did."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.views.scene import million

if TYPE_CHECKING:
    from tests.browser.jupyter import Notebook

    OpenNotebook = Callable[[list[str]], Notebook]

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.whole, pytest.mark.timeout(900)]

FIRST = 200_000
"""Events after which all that a view keeps is complete."""
PATIENCE_S = 240.0
GROWTH = {"MiB": 4, "nodes": 500, "listeners": 500}
"""From there to a million, of some 45 MiB, 11 000 nodes and 17 000 listeners of the whole tab.

JupyterLab's own come and go by a hundred or two, whatever a view does.
"""

SHOW = """
import os, time
from accel_lab import views
from tests.views.scene import million

system = million.lab(devices=1)

slices = million.BATCH - million.FACTS

def feed(first, last):
    for number in range(first, last, million.BATCH):
        for fact in million.facts(number // million.BATCH + 1):
            system.events.publish(million.told(fact))
        seen = [million.told(one) for one in million.samples(number, slices)]
        with shown.source.lock:  # the publisher takes them
            system.seen += seen
        while len(system.seen) >= million.PUBLISHED_EVERY * len(seen):
            time.sleep(0.005)

shown = views.lab(system, rate_hz=30)
shown
"""
# One cell, because JupyterLab keeps something of each that runs.
FEED = """
def wait_for(gate):
    while not os.path.exists(f"{folder}/{{gate}}"):
        time.sleep(0.05)

feed(0, {first})
wait_for("half")
feed({first}, {all})
wait_for("end")
"""


def test_a_million_events_hold_the_browsers_memory_flat(
    open_notebook: "OpenNotebook", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed = FEED.format(first=FIRST, all=million.EVENTS, folder=tmp_path)
    notebook = open_notebook([SHOW, feed])
    notebook.page.set_viewport_size({"width": 1700, "height": 1400})
    notebook.run(0)
    notebook.wait(0)
    notebook.expect(".al-lab-bar .al-badge").to_have_text("live")
    notebook.run(1)
    early = held_after(notebook, FIRST)
    (tmp_path / "half").touch()
    late = held_after(notebook, million.EVENTS)
    (tmp_path / "end").touch()
    notebook.wait(1)
    with capsys.disabled():
        sys.stdout.write(f"\n{early} after {FIRST:,} events, {late} after {million.EVENTS:,}\n")
    grown = {what: late[what] - early[what] for what in GROWTH}
    assert all(grown[what] < most for what, most in GROWTH.items()), grown


def held_after(notebook: "Notebook", events: int) -> dict[str, float]:
    """Wait until so many events are drawn; return what the tab holds without its garbage."""
    slices = f"{events * (million.BATCH - million.FACTS) // million.BATCH:,}"
    done = notebook.expect(".timeline-done", timeout_s=PATIENCE_S)
    done.to_have_text(re.compile(f"^{slices.replace(',', '.')} done$"))
    devtools = notebook.page.context.new_cdp_session(notebook.page)
    devtools.send("Performance.enable")
    looks = []
    for _ in range(4):  # what one collection lets go of may hold more, and JupyterLab goes on
        notebook.page.wait_for_timeout(500)
        devtools.send("HeapProfiler.collectGarbage")
        heap: dict[str, float] = devtools.send("Runtime.getHeapUsage")
        told: list[dict[str, Any]] = devtools.send("Performance.getMetrics")["metrics"]
        metrics = {one["name"]: one["value"] for one in told}
        looks.append(
            {
                "MiB": round((heap["usedSize"] + heap["backingStorageSize"]) / 2**20, 1),
                "nodes": metrics["Nodes"],
                "listeners": metrics["JSEventListeners"],
            }
        )
    devtools.detach()
    return {what: min(look[what] for look in looks[1:]) for what in GROWTH}
