"""The notice at the end of a cell that ran for long, in a real JupyterLab."""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.jupyter import JupyterLab, Notebook, Tab

    OpenNotebook = Callable[[list[str]], Notebook]

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

SETTINGS = "accel-lab:plugin"
AFTER_S = 1.0
"""In place of a minute."""
SLOW = f"import time; time.sleep({AFTER_S + 0.5})"
CELL_ENDED = """(index) => {
    const { model } = window.jupyterapp.shell.currentWidget.content.widgets[index];
    return model.executionState !== 'running'
        && model.outputs.toJSON().some(({ output_type }) => output_type === 'error');
}"""


@pytest.fixture
def page(jupyter: "JupyterLab", lab_tab: "Tab") -> "Iterator[Page]":
    """Load JupyterLab with a short threshold, and put the settings back."""
    yield load(jupyter, lab_tab.page, {"notifyAfter": AFTER_S})
    load(jupyter, lab_tab.page, {})


def load(jupyter: "JupyterLab", page: "Page", settings: dict[str, object]) -> "Page":
    page.goto(f"http://127.0.0.1:{jupyter.port}/lab?reset&token={jupyter.token}")
    page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget")
    page.evaluate(
        """([id, raw]) => window.jupyterapp.serviceManager.settings.save(id, raw)""",
        [SETTINGS, json.dumps(settings)],
    )
    page.goto(f"http://127.0.0.1:{jupyter.port}/lab?reset&token={jupyter.token}")
    page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget")
    return page


def toggle(page: "Page") -> bool:
    """Switch it on or off; return which it is then."""
    on: bool = page.evaluate(
        """async () => {
            const { commands } = window.jupyterapp;
            await commands.execute('accel-lab:notify');
            return commands.isToggled('accel-lab:notify');
        }"""
    )
    return on


def test_a_long_cell_says_that_it_ended_and_how(
    page: "Page", open_notebook: "OpenNotebook"
) -> None:
    from playwright.sync_api import expect

    notebook = open_notebook([SLOW, "from accel_lab import gpu", SLOW, f"{SLOW}; 1 / 0", SLOW])
    name = page.evaluate("() => window.jupyterapp.shell.currentWidget.context.path")
    notices = page.locator(".jp-toastContainer .Toastify__toast")
    for cell in (0, 1):
        notebook.run(cell)
        notebook.wait(cell, 60)
    expect(notices).to_have_count(0)  # accel_lab was not there yet
    notebook.run(2)
    notebook.wait(2)
    expect(notices).to_contain_text(f"{name}: cell [3] done after ")
    notebook.run(3)
    page.wait_for_function(CELL_ENDED, arg=3)
    expect(notices.filter(has_text=f"{name}: cell [4] failed after ")).to_be_visible()
    expect(notices).to_have_count(1)  # in place of the one before
    notices.get_by_role("button", name="Show").click()
    expect(notices).to_have_count(0)
    assert toggle(page) is False
    notebook.run(4)
    notebook.wait(4)
    settings = page.evaluate(f"() => window.jupyterapp.serviceManager.settings.fetch('{SETTINGS}')")
    assert '"notify": false' in settings["raw"]  # remembered; JupyterLab adds comments
    assert toggle(page) is True
    expect(notices).to_have_count(0)
