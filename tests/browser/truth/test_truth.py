"""What a person sees in JupyterLab is true: counts, the past, labels, footers and advice."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from tests.browser.jupyter import Notebook

    OpenNotebook = Callable[[list[str]], Notebook]

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

SHOW = """
import time
import numpy as np
from accel_lab import System, blas, views
lab = System("host", name="lab").ready()
cpu = lab.devices[0]
a = cpu.put(np.ones((256, 256), np.float32))
views.lab(lab)
"""
WORK = """
for _ in range(40):
    c = blas.gemm(a, a)
    c.result()
    time.sleep(0.05)
lab.flush()
"""
QUEUE = "slow = [cpu.run(time.sleep, 0.4) for _ in range(64)]"
DROP = "cpu.stop(); slow.clear()"
REPLACE = "cpu.replace(); cpu.ping().result()"
CONTENTS = """
for _ in range(60):
    big = cpu.put(np.random.default_rng(0).standard_normal((512, 512)))
    b = blas.gemm(a, a)
big.result(); lab.flush()
try:
    lab.inject("kill").result()
except Exception:
    pass
print(lab.explain())
"""
GPU = """%load_ext accel_lab"""
CELL = """%%gpu cpu
x = xp.ones((1024, 1024))
"""
OTHER = """
other = System("host", name="other").ready()
theirs = other.devices[0]
hung = theirs.run(time.sleep, 60)
theirs.replace()
try:
    hung.result()
except Exception as error:
    print(error)
"""


@pytest.fixture
def notebook(open_notebook: "OpenNotebook") -> "Notebook":
    """Open a notebook that shows the lab of a system which has worked for two seconds."""
    notebook = open_notebook([SHOW, WORK, QUEUE, DROP, REPLACE, CONTENTS, GPU, CELL, OTHER])
    notebook.page.set_viewport_size({"width": 1900, "height": 1000})
    run(notebook, 0)
    notebook.expect(".al-lab-bar .al-badge").to_have_text("live")
    run(notebook, 1)
    return notebook


def run(notebook: "Notebook", cell: int) -> None:
    notebook.run(cell)
    notebook.wait(cell, 60)


def row(path: str, cell: str = "") -> str:
    """Return the selector of an actor's row, or of a cell in it."""
    return f'.al-lab-tree tr[data-path="lab{path}"] {cell}'.strip()


def number(found: "Locator") -> int:
    return int(re.sub(r"\D", "", found.inner_text()) or 0)


def test_the_past_is_what_was_seen_then_or_not_recorded(notebook: "Notebook") -> None:
    notebook.expect(".al-lab-timeline .al-chips, .al-lab-timeline .al-title").not_to_have_count(0)
    slider = notebook.view.locator(".al-lab-foot [role=slider]")
    slider.focus()
    notebook.page.keyboard.press("End")
    for _ in range(3):  # three pages back are in the midst of the work
        notebook.page.keyboard.press("PageDown")
    notebook.expect(".al-lab-bar").to_contain_text("REPLAY")
    last = int(slider.get_attribute("aria-valuemax") or "")  # which grows while more is told
    assert 0 < int(slider.get_attribute("aria-valuenow") or "") < last
    timeline = notebook.view.locator(".al-lab-timeline")
    timeline.get_by_text(re.compile(r"\b[1-9]\d* done|not recorded")).first.wait_for()
    states = notebook.view.locator(row("/cpu0", ".al-state")).inner_text()
    assert "starting" not in states, "it had run for seconds"
    notebook.page.keyboard.press("Home")
    notebook.expect(".al-lab-bar").to_contain_text("REPLAY entry 0 of")
    assert not re.search(r"\b0 done", timeline.inner_text())
    notebook.view.locator(".al-lab-bar").get_by_role("button", name="Back to live").click()
    notebook.expect(".al-lab-bar .al-badge").to_have_text("live")


def test_what_waits_is_told_from_what_runs_and_a_replace_is_no_fault(
    notebook: "Notebook",
) -> None:
    run(notebook, 2)
    notebook.expect(row("/cpu0", ".al-mailbox")).to_have_text(re.compile(r"^[3-6]\d$"))
    for path in ("/cpu0/context/run", "/cpu0/context", "/cpu0", ""):
        notebook.expect(row(path, ".al-flight")).to_have_text("1")
    waiting = [number(notebook.view.locator(row(path, ".al-mailbox"))) for path in ("", "/cpu0")]
    assert waiting[0] >= waiting[1] - 1, "a parent is not below its children"
    run(notebook, 3)
    run(notebook, 4)
    notebook.expect(row("/cpu0", ".al-tag")).to_have_text("g2")
    notebook.expect(".al-lab-supervision .al-chips").to_have_text("no faults")
    replaced = notebook.view.locator(".al-lab-supervision tbody tr", has_text="replaced")
    replaced.first.wait_for()
    assert not notebook.view.locator("tr.al-supervision-fault").count()


def test_contents_push_no_messages_out_and_the_loss_is_explained(notebook: "Notebook") -> None:
    run(notebook, 5)
    assert "SIGKILL" in notebook.printed(5)
    notebook.view.get_by_role("tab", name="Journal").click()
    notebook.view.locator(".al-lab-foot [role=slider]").focus()
    notebook.page.keyboard.press("End")
    entries = notebook.view.locator(".al-lab-journal .al-title").inner_text()
    shown = int(re.sub(r"\D", "", entries.split("entries")[0]) or 0)
    assert shown > 200, "the messages of all cells are still there"


def test_footers_say_what_they_count_and_advice_works_as_it_is_typed(
    notebook: "Notebook",
) -> None:
    run(notebook, 6)
    run(notebook, 7)
    footer = notebook.page.locator(".jp-Cell").nth(7).locator(".jp-OutputArea")
    footer.get_by_text(re.compile(r"8 MiB kept for recovery")).wait_for()
    run(notebook, 8)
    said = notebook.printed(8)
    assert re.search(r"cpu0 of (lab|other)", said), "two systems have a cpu0"
