"""The extension in Notebook 7, which has another shell: no docks, no launcher, no status bar."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import require

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.browser.jupyter import JupyterLab, Tab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

FIRST_MINUTE = Path(__file__).parents[3] / "notebooks" / "00-first-minute.ipynb"
VIEW = """
from accel_lab import System, views
lab = System("host", devices=2, name="mine").ready()
views.tree(lab)"""
OWN_ERRORS = "reading 'schema'", "Cannot convert undefined or null to object"
"""What Notebook 7.6 says of itself, without any extension, too."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[JupyterLab]":
    require("browser")
    require("notebook7")
    from tests.browser.jupyter import JupyterLab

    class Notebook7(JupyterLab):
        module, app, page = "notebook.app", "JupyterNotebookApp", "notebooks"

    running = Notebook7(tmp_path_factory.mktemp("notebook7"))
    yield running
    running.close()


@pytest.fixture
def tab(server: "JupyterLab", browser: "Browser") -> "Iterator[Tab]":
    from tests.browser.jupyter import Tab

    opened = Tab(browser)
    yield opened
    opened.errors = [one for one in opened.errors if not any(own in one for own in OWN_ERRORS)]
    opened.check()
    opened.context.close()
    server.end_kernels()


def activate(page: "Page") -> None:
    page.evaluate("() => void window.jupyterapp.commands.execute('accel-lab:sidebar')")


def test_the_list_of_files_has_the_extension_and_no_fault(server: "JupyterLab", tab: "Tab") -> None:
    tab.page.goto(f"http://127.0.0.1:{server.port}/tree?token={server.token}")
    tab.page.wait_for_function(
        "() => window.jupyterapp?.commands.hasCommand('accel-lab:dock')", timeout=60_000
    )
    assert (
        tab.page.evaluate("() => window.jupyterapp.commands.isEnabled('accel-lab:dock')") is False
    )


def test_a_notebook_has_the_sidebar_and_a_view_beside_it(server: "JupyterLab", tab: "Tab") -> None:
    from playwright.sync_api import expect

    from tests.browser.jupyter import Notebook

    shutil.copy(FIRST_MINUTE, server.notebooks)
    notebook = Notebook.at(server, tab, FIRST_MINUTE.name)
    lab = tab.page.locator(".al-ext-panel")
    expect(lab).to_contain_text("Run the first cell")
    open_, make, *_ = notebook.code()
    for cell in (open_, make):
        notebook.run(cell)
        notebook.wait(cell, 60)
    lab.get_by_role("button", name="Crash it").click()
    expect(lab.locator(".al-lab-crash-said")).to_contain_text("3 arrays rebuilt")
    activate(tab.page)
    device = tab.page.locator("#accel-lab-sidebar").locator('[data-device="cpu0"]')
    expect(device.get_by_text("idle")).to_be_visible()


def test_views_are_widgets_there_too(server: "JupyterLab", tab: "Tab") -> None:
    from playwright.sync_api import expect

    from tests.browser.jupyter import Notebook, document, write_json

    write_json(server.notebooks / "view.ipynb", document([VIEW]))
    notebook = Notebook.at(server, tab, "view.ipynb")
    notebook.run(0)
    notebook.wait(0, 60)
    expect(notebook.view.locator('tr[data-path="mine/cpu1"]')).to_be_visible()
    expect(tab.page.locator(".al-ext-panel")).to_have_count(0)  # nobody asked
