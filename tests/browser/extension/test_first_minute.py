"""The first minute as a newcomer has it: four cells beside a lab, a crash, the same number."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.browser.jupyter import JupyterLab, Notebook

    OpenNotebook = Callable[[Path | list[str]], Notebook]

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

FIRST_MINUTE = Path(__file__).parents[3] / "notebooks" / "00-first-minute.ipynb"
RECOVERED = re.compile(r"^recovered in \d+(\.\d+)? m?s, 3 arrays rebuilt$")
CELL_ENDED = """(index) => {
    const { model } = window.jupyterapp.shell.currentWidget.content.widgets[index];
    return model.executionState !== 'running'
        && model.outputs.toJSON().some(({ output_type }) => output_type === 'error');
}"""
CLOSE_PANEL = """() => [...window.jupyterapp.shell.widgets('main')]
    .filter(({ id }) => id.startsWith('accel-lab-')).forEach((panel) => panel.close())"""


@pytest.fixture
def opened(open_notebook: "OpenNotebook") -> "OpenNotebook":
    """Open notebooks, and close the panels beside them before they are closed."""

    def opens(source: Path | list[str]) -> "Notebook":
        notebook = open_notebook(source)
        close = notebook.close

        def close_all() -> None:
            notebook.page.evaluate(CLOSE_PANEL)
            front(notebook)
            close()

        notebook.close = close_all  # type: ignore[method-assign]
        return notebook

    return opens


def docked(page: "Page") -> "Locator":
    return page.locator(".al-ext-panel")


def front(notebook: "Notebook") -> None:
    """Go back to the notebook, as a click into it does."""
    notebook.page.evaluate(
        """() => {
            const { shell } = window.jupyterapp;
            const panel = [...shell.widgets('main')].find(({ context }) => context);
            shell.activateById(panel.id);
        }"""
    )
    notebook.page.wait_for_function("() => window.jupyterapp.shell.currentWidget?.content?.widgets")


def test_a_crash_breaks_the_bar_and_the_next_cell_has_the_same_number(
    opened: "OpenNotebook",
) -> None:
    from playwright.sync_api import expect

    notebook = opened(FIRST_MINUTE)
    page = notebook.page
    open_, make, iterate, work, again, _ = notebook.code()
    lab = docked(page)
    expect(lab.locator(".al-ext-note")).to_contain_text("Run the first cell")
    for cell in (open_, make, iterate):
        notebook.run(cell)
        notebook.wait(cell, 60)
    number = notebook.printed(iterate)
    assert number.startswith("largest eigenvalue: 1.7")
    said = lab.locator(".al-lab-crash").get_by_role("status")
    expect(said).to_have_text("")
    crash = lab.get_by_role("button", name="Crash it")
    notebook.run(work)
    expect(lab.locator(".al-lab-running")).to_contain_text("gpu cell 4")
    crash.click()
    front(notebook)
    page.wait_for_function(CELL_ENDED, arg=work)
    expect(said).to_have_text(RECOVERED)
    timeline = lab.locator(".al-lab-timeline")
    expect(timeline).to_contain_text("ended with its context after")
    notebook.run(again)
    notebook.wait(again)
    assert notebook.printed(again) == number
    for theme in ("light", "dark"):
        check_accessible(notebook, theme)
    notebook.theme("JupyterLab Light")


def check_accessible(notebook: "Notebook", theme: str) -> None:
    """Have axe find nothing in the panel, in a theme of JupyterLab's."""
    from playwright.sync_api import expect

    from tests.browser.jupyter import axe

    notebook.theme(f"JupyterLab {theme.title()}")
    # JupyterLab's body is 0 high, so axe would take all text for invisible and skip its contrast.
    notebook.page.evaluate("() => { document.body.style.height = '100vh'; }")
    shown = docked(notebook.page).locator(".accel-lab")
    expect(shown).to_have_attribute("data-theme", theme)
    said_of_it, kept = axe(shown)
    # Of one digit, and of rows that are scrolled half out of sight, it cannot tell.
    unknown = ("partially obscured", "too short to determine")
    faults = [one for one in said_of_it if not any(words in one["message"] for words in unknown)]
    assert faults == []
    assert "color-contrast" in kept


def test_the_panel_comes_back_with_the_page_and_stays_away_once_it_was_closed(
    opened: "OpenNotebook", jupyter: "JupyterLab"
) -> None:
    from playwright.sync_api import expect

    notebook = opened(FIRST_MINUTE)
    page = notebook.page
    path = page.evaluate("() => window.jupyterapp.shell.currentWidget.context.path")
    expect(docked(page)).to_have_count(1)
    load_anew(notebook, jupyter, path, "accel-lab:first_minute")
    expect(docked(page)).to_have_count(1)
    page.evaluate(CLOSE_PANEL)
    expect(docked(page)).to_have_count(0)
    for _ in "once", "twice":
        # Other tests have closed theirs: this one's is to be noted, and not to be restored.
        load_anew(notebook, jupyter, path, f'"first_minute:{path}"', "accel-lab:first_minute")
        expect(docked(page)).to_have_count(0)
    page.evaluate("() => void window.jupyterapp.commands.execute('accel-lab:dock')")
    expect(docked(page)).to_contain_text("Run the first cell")  # it is the one that was closed


def test_other_notebooks_have_nothing_beside_them(opened: "OpenNotebook") -> None:
    from playwright.sync_api import expect

    notebook = opened(["from accel_lab import gpu\ngpu.put([1.0]).get()"])
    notebook.run(0)
    notebook.wait(0, 60)
    expect(docked(notebook.page)).to_have_count(0)


def load_anew(
    notebook: "Notebook", jupyter: "JupyterLab", path: str, kept: str, gone: str = ""
) -> None:
    """Load the page anew with its layout, once the server has what it is to keep.

    A notebook in the page's address JupyterLab opens a second time, at times after the test has
    closed it: then it stands before that of the next test.
    """
    from tests.browser.jupyter import wait_until

    def is_kept() -> bool:  # asked in the page: while it waits here it sends nothing
        workspace: str = notebook.page.evaluate(
            "async () => (await fetch('/lab/api/workspaces/default')).text()"
        )
        return kept in workspace and not (gone and f"{gone}:{path}" in workspace)

    wait_until(is_kept, f"the workspace has {kept}", 30)
    notebook.page.goto(f"http://127.0.0.1:{jupyter.port}/lab?token={jupyter.token}")
    notebook._wait_for_kernel(path)
