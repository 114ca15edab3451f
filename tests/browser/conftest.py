"""A JupyterLab for the session, a Chromium and a tab for each module, a kernel for each test."""

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


@pytest.fixture(scope="module")  # Playwright keeps an event loop; the async tests need theirs
def browser() -> "Iterator[Browser]":
    require("browser")
    from playwright.sync_api import sync_playwright

    from tests.browser.jupyter import chromium

    with sync_playwright() as playwright:
        program = chromium(playwright)
        yield program
        program.close()


@pytest.fixture(scope="module")
def tab(browser: "Browser") -> "Iterator[Tab]":
    from tests.browser.jupyter import Tab

    page = Tab(browser)
    yield page
    page.context.close()


@pytest.fixture
def open_notebook(
    jupyter: "JupyterLab", tab: "Tab"
) -> "Iterator[Callable[[Path | list[str]], Notebook]]":
    from tests.browser.jupyter import Notebook

    opened: list[Notebook] = []

    def opens(source: Path | list[str]) -> Notebook:
        opened.append(Notebook(jupyter, tab, source))
        return opened[-1]

    tab.page.emulate_media()
    yield opens
    tab.check()
    for notebook in opened:
        notebook.close()
    tab.check()
