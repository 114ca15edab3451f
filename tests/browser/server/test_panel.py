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

from tests.conftest import require
from tests.ports import free_port
from tests.with_parent import with_parent

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.jupyter import Tab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def server(browser: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the apps; yield the address of the server."""
    if find_spec("panel") is None:
        pytest.skip("panel comes with the lab extra")
    from tests.browser.jupyter import answers, wait_until

    port = free_port()
    address = f"http://127.0.0.1:{port}"
    apps = [str(ROOT / f"tests/browser/{app}.py") for app in ("panel_app", "canvas/canvas_app")]
    command = with_parent(sys.executable, "-m", "panel", "serve", *apps)
    log = (tmp_path_factory.mktemp("panel") / "log").open("w")
    process = subprocess.Popen(
        [*command, "--address=127.0.0.1", f"--port={port}"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        wait_until(lambda: answers(f"{address}/panel_app"), "Panel answers", 60)
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

    page.goto(f"{server}/panel_app?theme={'default' if theme == 'light' else 'dark'}")
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


def test_panel_shows_a_canvas_whose_slider_acts(server: str, page: "Page") -> None:
    from playwright.sync_api import expect

    require("compiler")
    page.goto(f"{server}/canvas_app")
    view = page.locator(".accel-lab")
    picture = view.locator("canvas.al-canvas-picture[aria-label]")
    picture.wait_for()
    first = picture.get_attribute("aria-label")
    assert first is not None
    expect(picture).not_to_have_attribute("aria-label", first)
    view.get_by_label("lift").fill("25")
    measured = view.locator(".al-canvas-measures div").first
    expect(measured).not_to_contain_text("energy 0")
    expect(view.locator(".al-canvas-control").nth(3)).to_contain_text("25")
    view.get_by_role("button", name="Pause").click()
    expect(view.get_by_role("button", name="Play")).to_be_visible()
