"""The dashboard behind Jupyter's own login: through jupyter-server-proxy, in a real browser."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.ports import free_port
from tests.project import ROOT
from tests.views.feed.processes import Program
from tests.with_parent import with_parent

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.jupyter import JupyterLab, Tab

    Serve = Callable[..., AbstractContextManager[str]]

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

WORK = """
import threading
import numpy as np
weights = lab.devices[0].put(np.ones((128, 128), np.float32))
def work():
    while True:
        blas.gemm(weights, weights).result()
        time.sleep(0.1)
threading.Thread(target=work, daemon=True).start()
"""


@pytest.fixture
def serve(jupyter: "JupyterLab", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Serve":
    """Return what serves a dashboard of this test's processes; it yields where Jupyter has it."""
    missing = [name for name in ("panel", "jupyter_server_proxy") if find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    from tests.browser.jupyter import answers, wait_until

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))

    @contextmanager
    def serves(*options: str) -> Iterator[str]:
        port = free_port()
        with (tmp_path / "log").open("w") as log:
            process = subprocess.Popen(
                with_parent(
                    sys.executable, "-m", "accel_lab.cli", "dashboard", f"--port={port}", *options
                ),
                env=os.environ | {"ACCEL_LAB_FEED": "1", "PYTHONPATH": str(ROOT)},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            try:
                wait_until(lambda: answers(f"http://127.0.0.1:{port}/"), "it answers", 60)
                yield f"http://127.0.0.1:{jupyter.port}/proxy/{port}/"
            finally:
                process.send_signal(signal.SIGINT)
                process.wait(20)

    return serves


@pytest.fixture
def page(tab: "Tab", jupyter: "JupyterLab") -> Iterator["Page"]:
    """Yield a page of somebody who is logged in to Jupyter."""
    tab.page.goto(f"http://127.0.0.1:{jupyter.port}/login?token={jupyter.token}&next=/api")
    yield tab.page
    tab.page.goto("about:blank")
    tab.check()


def test_the_dashboard_is_live_behind_jupyters_login(
    page: "Page", jupyter: "JupyterLab", serve: "Serve", tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    from tests.browser.jupyter import PATIENCE_S, SCREENSHOTS

    patience: Any = {"timeout": 1000 * PATIENCE_S}
    sockets: list[str] = []
    page.on("websocket", lambda one: sockets.append(one.url))
    told = f"--allow-websocket-origin=127.0.0.1:{jupyter.port}"
    with serve(told) as address, Program(tmp_path, "train") as train:
        train.run(f"exec({WORK!r})")
        page.goto(address)
        row = page.locator(".al-dashboard-row", has_text=f"pid {train.pid}")
        expect(row.locator(".al-badge")).to_have_text("live", **patience)
        device = page.locator("tr[data-path='train/cpu0']")
        expect(device.locator(".al-state")).to_have_text("busy", **patience)
        done = page.locator(".al-lab-timeline .timeline-done")
        expect(done).to_have_text(re.compile(r"^[1-9][\d,]* done$"), **patience)
        before = done.inner_text()
        expect(done).not_to_have_text(before, **patience)
        train.run("lab.inject('kill')")
        expect(device.locator(".al-tag")).to_have_text("g2", **patience)
        assert sockets == [f"{address}ws".replace("http", "ws", 1)]
        SCREENSHOTS.mkdir(exist_ok=True)
        page.screenshot(path=SCREENSHOTS / "proxy.png", full_page=True)
        metrics = page.request.get(f"{address}metrics")
        assert 'accel_lab_generation{device="cpu0"' in metrics.text()
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_a_dashboard_that_was_not_told_of_jupyters_host_says_what_to_do(
    page: "Page", serve: "Serve"
) -> None:
    with serve() as address:
        answer = page.request.get(address)
        assert answer.status == 403
        assert "--allow-websocket-origin" in answer.text()


def test_who_is_not_logged_in_sees_no_dashboard(
    browser: Any, jupyter: "JupyterLab", serve: "Serve"
) -> None:
    with serve(f"--allow-websocket-origin=127.0.0.1:{jupyter.port}") as address:
        stranger = browser.new_context()
        seen = stranger.new_page()
        seen.goto(address)
        assert "/login" in seen.url
        stranger.close()
