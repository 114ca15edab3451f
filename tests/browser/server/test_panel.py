"""The same module under Panel."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.ports import free_port
from tests.with_parent import with_parent

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.jupyter import Tab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def server(browser: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve `panel_app.py`; yield its address."""
    if find_spec("panel") is None:
        pytest.skip("panel comes with the lab extra")
    from tests.browser.jupyter import answers, wait_until

    port = free_port()
    address = f"http://127.0.0.1:{port}/panel_app"
    app = str(ROOT / "tests/browser/panel_app.py")
    command = with_parent(sys.executable, "-m", "panel", "serve", app)
    log = (tmp_path_factory.mktemp("panel") / "log").open("w")
    process = subprocess.Popen(
        [*command, "--address=127.0.0.1", f"--port={port}"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        wait_until(lambda: answers(address), "Panel answers", 60)
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(10)
        log.close()


@pytest.fixture
def page(tab: "Tab") -> "Iterator[Page]":
    yield tab.page
    tab.check()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_panel_shows_the_tree_and_its_changes(server: str, page: "Page", theme: str) -> None:
    from playwright.sync_api import expect

    from tests.browser.jupyter import SCREENSHOTS

    page.goto(f"{server}?theme={'default' if theme == 'light' else 'dark'}")
    view = page.locator(".accel-lab")
    expect(view.locator(".al-badge")).to_have_text("live")
    expect(view.locator("tbody tr")).to_have_count(9)
    expect(view).to_have_attribute("data-theme", theme)
    page.get_by_role("button", name="Restart").click()
    expect(view.locator('tr[data-path="lab/gpu0"] .al-tag')).to_have_text("g2")
    expect(view.locator('tr[data-path="lab/gpu0"] .al-mark')).to_have_text("restarted")
    view.locator('tr[data-path="lab"]').focus()
    page.keyboard.press("ArrowDown")
    expect(view.locator('tr[data-path="lab/gpu0"]')).to_be_focused()
    SCREENSHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"panel-{theme}.png")
