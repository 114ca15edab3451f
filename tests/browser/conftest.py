"""A JupyterLab for the session, and a Chromium with its page for all files that follow each other.

To load that page takes 9 s of the processor's. Each file has a tab of its own beside it, and each
notebook a kernel.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import require

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.browser.jupyter import JupyterLab, Notebook, Tab


pytest.register_assert_rewrite("tests.browser.jupyter")


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[JupyterLab]":
    require("browser")
    from tests.browser.jupyter import JupyterLab

    server = JupyterLab(tmp_path_factory.mktemp("jupyter"))
    yield server
    server.close()


@pytest.fixture(scope="package")  # Playwright keeps an event loop; the async tests need theirs
def browser() -> "Iterator[Browser]":
    require("browser")
    from playwright.sync_api import sync_playwright

    from tests.browser.jupyter import chromium

    with sync_playwright() as playwright:
        program = chromium(playwright)
        yield program
        program.close()


def opened_tab(browser: "Browser") -> "Iterator[Tab]":
    from tests.browser.jupyter import Tab

    page = Tab(browser)
    yield page
    page.context.close()


@pytest.fixture(scope="module")
def tab(browser: "Browser") -> "Iterator[Tab]":
    yield from opened_tab(browser)


@pytest.fixture(scope="package")
def lab_tab(browser: "Browser") -> "Iterator[Tab]":
    """Yield the tab in which every notebook is opened."""
    yield from opened_tab(browser)


@pytest.fixture
def open_notebook(
    jupyter: "JupyterLab", lab_tab: "Tab"
) -> "Iterator[Callable[[Path | list[str]], Notebook]]":
    from tests.browser.jupyter import WINDOW, Notebook

    opened: list[Notebook] = []

    def opens(source: Path | list[str]) -> Notebook:
        opened.append(Notebook(jupyter, lab_tab, source))
        return opened[-1]

    lab_tab.page.emulate_media()
    lab_tab.page.set_viewport_size(WINDOW)
    yield opens
    try:
        lab_tab.check()
    finally:  # else the next tests would find them
        for notebook in opened:
            notebook.close()
    lab_tab.check()
