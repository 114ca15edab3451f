"""JupyterLab's extension in a real JupyterLab: sidebar, status bar, docked views, commands."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.browser.jupyter import Notebook

    OpenNotebook = Callable[[list[str]], Notebook]

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

OPEN = """
import time
import numpy as np
from accel_lab import System, views
lab = System("host", devices=2, name="mine").ready()
gpu = lab.devices[0]
weights = gpu.put(np.ones((512, 512))).result()
bias = gpu.put(np.ones(512)).result()
views.sidebar(lab)"""
BLOCKED = "gpu.run(time.sleep, 100.0).result()"
SENT = "behind = gpu.run(time.sleep, 100.0); ahead = gpu.run(pow, 2, 3)"
TOLD = "print(behind.failed, ahead.failed, gpu.run(pow, 2, 5).result(), gpu.generation)"
KERNEL = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel"
CELL_ENDED = """(index) => {
    const { model } = window.jupyterapp.shell.currentWidget.content.widgets[index];
    return model.executionState !== 'running'
        && model.outputs.toJSON().some(({ output_type }) => output_type === 'error');
}"""


def sidebar(page: "Page") -> "Locator":
    """Show it; a page that puts its layout in order may hide it once more."""
    page.wait_for_function(
        """() => {
            window.jupyterapp.shell.activateById('accel-lab-sidebar');
            return document.getElementById('accel-lab-sidebar')?.checkVisibility();
        }"""
    )
    return page.locator("#accel-lab-sidebar")


def card(page: "Page", device: str = "cpu0") -> "Locator":
    return sidebar(page).locator(f'[data-device="{device}"]')


def opened(open_notebook: "OpenNotebook", *cells: str) -> "Notebook":
    notebook = open_notebook([OPEN, *cells])
    notebook.run(0)
    notebook.wait(0, 60)
    return notebook


def test_the_sidebar_says_what_runs_and_stops_it_while_the_cell_blocks(
    open_notebook: "OpenNotebook",
) -> None:
    from playwright.sync_api import expect

    from tests.browser.jupyter import SCREENSHOTS, axe

    notebook = opened(open_notebook, BLOCKED)
    page = notebook.page
    expect(card(page).get_by_text("idle")).to_be_visible()
    expect(card(page).locator("th")).to_have_text(["weights", "bias"])  # the largest first
    expect(card(page, "cpu1")).to_be_visible()
    notebook.run(1)
    expect(card(page).locator(".al-side-what")).to_have_text("sleep #4 on run", timeout=15_000)
    expect(page.locator(".al-ext-status")).to_contain_text("cpu0 100 %")
    SCREENSHOTS.mkdir(exist_ok=True)
    # JupyterLab's body is 0 high, so axe would take all text for invisible and skip its contrast.
    page.evaluate("() => { document.body.style.height = '100vh'; }")
    for theme in ("light", "dark"):
        notebook.theme(f"JupyterLab {theme.title()}")
        shown = sidebar(page).locator(".accel-lab")
        for view in (shown, notebook.view):
            expect(view).to_have_attribute("data-theme", theme)
            faults, kept = axe(view)
            assert faults == []
            assert "color-contrast" in kept
        page.screenshot(path=SCREENSHOTS / f"extension-{theme}.png")
    notebook.theme("JupyterLab Light")
    card(page).get_by_role("button", name="Stop").click()
    page.wait_for_function(CELL_ENDED, arg=1)
    expect(card(page).get_by_text("idle")).to_be_visible()


def test_a_stop_reaches_what_a_cell_has_left_behind(open_notebook: "OpenNotebook") -> None:
    from playwright.sync_api import expect

    notebook = opened(open_notebook, SENT, TOLD)
    notebook.run(1)
    notebook.wait(1)
    button = card(notebook.page).get_by_role("button", name="Stop")
    button.click()
    expect(card(notebook.page).get_by_text("idle")).to_be_visible()
    notebook.run(2)
    notebook.wait(2)
    assert notebook.printed(2) == "True True 32 1\n"


def test_a_page_that_is_loaded_anew_finds_a_kernel_at_work_and_a_new_kernel_has_nothing(
    open_notebook: "OpenNotebook",
) -> None:
    from playwright.sync_api import expect

    notebook = opened(open_notebook)
    page = notebook.page
    notebook.reload()
    expect(card(page).get_by_text("idle")).to_be_visible()
    page.evaluate(f"() => {KERNEL}.restart()")
    expect(sidebar(page).locator(".al-ext-note")).to_contain_text("was restarted")
    expect(card(page)).to_have_count(0)
    page.wait_for_function(f"() => {KERNEL}.status === 'idle'")
    notebook.run(0)
    expect(card(page).get_by_text("idle")).to_be_visible()


def test_a_lab_is_docked_beside_the_notebook_and_says_when_it_is_over(
    open_notebook: "OpenNotebook",
) -> None:
    from playwright.sync_api import expect

    notebook = opened(open_notebook, "lab.close()")
    page = notebook.page
    page.evaluate("() => void window.jupyterapp.commands.execute('accel-lab:dock')")
    docked = page.locator(".al-ext-panel")
    expect(docked.locator(".al-lab-part")).to_have_count(7)
    expect(docked.locator(".al-lab-foot [role=slider]")).to_be_in_viewport(ratio=1)
    high = "(panel) => panel.scrollHeight - panel.clientHeight"
    assert docked.evaluate(high) == 0, "the lab is as high as its panel"
    expect(docked.locator('tr[data-path="mine/cpu1"]')).to_be_visible()
    notebook.run(1)  # the notebook is still what one works in
    notebook.wait(1)
    expect(docked.locator(".al-ext-note")).to_have_text("the system is closed")
    expect(docked.locator('tr[data-path="mine/cpu1"]')).to_be_visible()
    page.evaluate("() => void window.jupyterapp.commands.execute('accel-lab:dock')")
    expect(docked).to_have_count(1)  # it is shown, not opened twice
    page.evaluate(
        "() => [...window.jupyterapp.shell.widgets('main')]"
        ".find(({ id }) => id.startsWith('accel-lab-lab')).close()"
    )
    expect(docked).to_have_count(0)


def test_the_launcher_and_the_palette_have_it(open_notebook: "OpenNotebook") -> None:
    notebook = opened(open_notebook)
    found = notebook.page.evaluate(
        """() => {
            const { commands } = window.jupyterapp;
            return commands.listCommands().filter((id) => id.startsWith('accel-lab:'))
                .map((id) => [id, commands.label(id)]);
        }"""
    )
    assert dict(found) == {
        "accel-lab:sidebar": "Show the Devices",
        "accel-lab:dock": "Open Lab Beside the Notebook",
        "accel-lab:stop": "Stop What Runs on the Devices",
        "accel-lab:new": "GPU Notebook with Live Lab",
        "accel-lab:notify": "Notify When a Long Cell Ends",
        "accel-lab:reopen": "Reopen with its session",
    }
