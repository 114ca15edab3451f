"""The scrubber in a real JupyterLab, over a real system that loses its context."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from tests.browser.jupyter import Notebook

    OpenNotebook = Callable[[list[str]], Notebook]

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

SESSION = """
import numpy as np
from accel_lab import System, views
from accel_lab.errors import AccelError
from accel_lab import blas
lab = System("host", name="lab")
recording = views.record(lab, "session.jsonl")
device = lab.devices[0]
x = device.put(np.ones((8, 8), np.float32))
kept = []  # what is let go of is one entry more, some time later
def work(n):
    for _ in range(n):
        kept.append(device.ask(blas.Gemm(x, x)).result())
work(40)
try:
    lab.inject("kill").result()
except AccelError:
    pass
lab.ready()
y = device.put(np.ones((4, 4), np.float32))
lab.flush()
view = views.journal(lab)
view"""
RUNS = """
import numpy as np
from accel_lab import System, views
from accel_lab import blas
def run(size):
    with System("host", name=f"run{size}", journal=f"run{size}.db", results="digests") as lab:
        device = lab.devices[0]
        x = device.put(np.ones((4, 4), np.float32))
        device.ask(blas.Gemm(x, x)).result()
        y = device.put(np.full((4, 4), size, np.float32))
        device.ask(blas.Gemm(x, y)).result()
        lab.flush()
run(1); run(2)
views.journal("run1.db", compare="run2.db")"""


def test_the_past_of_a_live_system_is_scrubbed(open_notebook: "OpenNotebook") -> None:
    cells = [SESSION, "views.tree(view.source)", "work(1); lab.flush()", "lab.close()"]
    notebook = open_notebook(cells)
    notebook.run(0)
    notebook.wait(0, 60)
    notebook.run(1)
    notebook.wait(1)
    tree = notebook.page.locator(".jp-Notebook .accel-lab").nth(1)
    notebook.expect(".al-badge").to_have_text("live")
    notebook.expect(".al-chips").to_contain_text("1 failed request")
    notebook.expect(".al-chips").to_contain_text("1 loss of a context")
    tree.locator("tr.al-kind-device .al-tag", has_text="g2").wait_for()
    notebook.run(2)
    notebook.wait(2)
    row = "tr:has(code:text-is('kept[40] = Gemm(x, x)'))"
    notebook.expect(f"{row} .al-journal-cell").to_have_text(re.compile(r"^cell \d+$"))
    notebook.expect(".al-journal-details").to_have_count(0)
    notebook.view.locator(f"{row} .al-journal-fold").focus()
    notebook.page.keyboard.press("Enter")
    notebook.expect(".al-journal-details").to_contain_text("kind message, Gemm")
    notebook.expect(".al-journal-details").to_contain_text("float32[8, 8], buffer 44 (44)")
    notebook.expect(".al-journal-banner").to_have_count(0)
    notebook.page.keyboard.press("Space")
    notebook.expect(".al-journal-details").to_have_count(0)
    notebook.view.get_by_role("button", name="Next fault").click()
    notebook.expect(".al-journal-banner").to_contain_text("REPLAY")
    notebook.expect(".al-journal-here").to_contain_text("Inject #42 failed")
    tree.locator(".al-badge", has_text="REPLAY entry ").wait_for()
    by_keys(notebook, tree)
    by_pointer(notebook)
    play(notebook)
    notebook.run(3)
    notebook.wait(3)
    notebook.view.get_by_role("button", name="Back to the last state").click()
    notebook.expect(".al-journal-banner").to_have_count(0)
    notebook.expect(".al-badge").to_have_text("closed · last state")
    tree.locator(".al-badge", has_text="closed · last state").wait_for()
    notebook.view.get_by_role("slider").focus()
    notebook.page.keyboard.press("Home")  # the past of what is closed can be seen, too
    notebook.expect(".al-journal-banner").to_be_visible()


def by_keys(notebook: "Notebook", tree: "Locator") -> None:
    """Move by each key; JupyterLab hears none of them."""
    before = notebook.active_cell()
    slider = notebook.view.get_by_role("slider")
    slider.focus()
    press = notebook.page.keyboard.press
    press("Home")
    notebook.expect("[role=slider]").to_have_attribute("aria-valuenow", "0")
    press("n")
    notebook.expect(".al-journal-here").to_contain_text("was lost")
    tree.locator("tr.al-kind-device .al-tag", has_text="g2").wait_for()
    fault = int(slider.get_attribute("aria-valuenow") or "")
    press("PageDown")
    notebook.expect("[role=slider]").to_have_attribute("aria-valuenow", str(fault - 15))
    tree.locator("tr.al-kind-device .al-tag", has_text="g1").wait_for()
    press("End")
    count = int(slider.get_attribute("aria-valuemax") or "")
    notebook.expect("[role=slider]").to_have_attribute("aria-valuenow", str(count))
    press("ArrowLeft")
    notebook.expect("[role=slider]").to_have_attribute("aria-valuenow", str(count - 1))
    press("ArrowRight")
    notebook.expect("[role=slider]").to_have_attribute("aria-valuenow", str(count))
    for key in ("d", "d", "a", "b", "x", "m", "y", "Enter"):
        press(key)
    assert notebook.active_cell() == before


def by_pointer(notebook: "Notebook") -> None:
    """Choose a row, then drag the cursor to the first moment."""
    notebook.view.locator("tbody tr").first.click()
    notebook.expect("[role=slider]").to_be_focused()
    notebook.expect("tbody tr:nth-child(8).al-journal-here").to_have_count(1)
    box = notebook.view.locator(".al-journal-slider").bounding_box()
    assert box is not None
    mouse = notebook.page.mouse
    mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 30)
    mouse.down()
    mouse.move(box["x"], box["y"] + 30, steps=8)
    mouse.up()
    notebook.expect("tbody tr:first-child").to_contain_text("session of lab")
    notebook.expect(".al-journal-here").to_have_count(1)


def play(notebook: "Notebook") -> None:
    """Play from there to the end."""
    notebook.view.get_by_label("Speed").select_option("16")
    notebook.view.get_by_role("button", name="Play").click()
    count = notebook.view.get_by_role("slider").get_attribute("aria-valuemax") or ""
    notebook.expect("[role=slider]", 60).to_have_attribute("aria-valuenow", count)
    notebook.expect(".al-journal-play").to_have_text("Play")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_journal_is_accessible(open_notebook: "OpenNotebook", theme: str) -> None:
    from tests.browser.jupyter import SCREENSHOTS, axe

    notebook = open_notebook([SESSION, "view.do_next_fault()", RUNS, "views.tree(view.source)"])
    notebook.theme(f"JupyterLab {theme.title()}")
    for cell in range(4):
        notebook.run(cell)
        notebook.wait(cell, 60)
    notebook.expect(".al-journal-banner").to_be_visible()
    runs = notebook.page.locator(".jp-Notebook .accel-lab").nth(1)
    runs.get_by_role("button", name="Go to entry").click()
    runs.locator(".al-journal-here", has_text="put(").wait_for()
    assert "another result" in (runs.locator(".al-journal-compared").text_content() or "")
    notebook.page.wait_for_function(
        "(theme) => document.querySelector('.jp-Notebook .accel-lab').dataset.theme === theme",
        arg=theme,
    )
    # JupyterLab's body is 0 high, so axe would take all text for invisible and skip its contrast.
    notebook.page.evaluate("() => { document.body.style.height = '100vh'; }")
    past = notebook.page.locator(".jp-Notebook .accel-lab").nth(2)
    past.locator(".al-replay").wait_for()
    for view in (notebook.view, runs):
        view.locator(".al-journal-fold").first.click()
        view.locator(".al-journal-details").first.wait_for()
    for view, name in (
        (notebook.view, "journal"),
        (runs, "journal-compared"),
        (past, "journal-tree"),
    ):
        view.evaluate("(view) => view.scrollIntoView({ block: 'center' })")
        view.screenshot(path=SCREENSHOTS / f"{name}-{theme}.png")
        said, kept = axe(view)
        assert said == []
        assert {
            "color-contrast",
            *(["aria-input-field-name"] if view is not past else []),
        } <= kept
