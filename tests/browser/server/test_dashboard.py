"""The dashboard in a real browser, over real processes."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
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

    from tests.browser.jupyter import Tab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def url(browser: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the dashboard over feeds of this module's own; yield its address."""
    if find_spec("panel") is None:
        pytest.skip("panel comes with the lab extra")
    from tests.browser.jupyter import answers, wait_until

    folder = tmp_path_factory.mktemp("dashboard")
    with pytest.MonkeyPatch.context() as patch, (folder / "log").open("w") as log:
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        patch.setenv("TMPDIR", str(folder))
        port = free_port()
        process = subprocess.Popen(
            with_parent(sys.executable, "-m", "accel_lab.cli", "dashboard", f"--port={port}"),
            env=os.environ | {"ACCEL_LAB_FEED": "1", "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        address = f"http://127.0.0.1:{port}/"
        try:
            wait_until(lambda: answers(address), "the dashboard answers", 60)
            yield address
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
    assert "Traceback" not in (folder / "log").read_text()


WORK = """
import threading
import numpy as np
from accel_lab import errors, fft, rng
cpu = lab.devices[0]
weights = cpu.put(np.ones((512, 512), np.float32))
def work():
    while True:
        try:
            a = blas.gemm(weights, weights, alpha=1 / 512)
            fft.r2c(rng.normal(cpu, (1 << 18,), seed=1)).result()
            cpu.get(a).result()
        except errors.AccelError:
            pass
        time.sleep(0.1)
threading.Thread(target=work, daemon=True).start()
"""
LEFT = "(all) => all.map((one) => one.getBoundingClientRect().left)"


@pytest.fixture
def page(tab: "Tab", url: str) -> "Iterator[Page]":
    tab.page.goto(url)
    yield tab.page
    tab.check()


def row(page: "Page", name: str, pid: int) -> Any:
    """Return the row of a system in the list."""
    return page.locator(".al-dashboard-row", has_text=f"pid {pid}").filter(has_text=name)


def test_two_kernels_are_watched_one_is_killed_and_comes_back(page: "Page", tmp_path: Path) -> None:
    from playwright.sync_api import expect

    expect(page.locator(".al-dashboard-none")).to_contain_text("No system runs")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with Program(tmp_path / "a", "train") as one, Program(tmp_path / "b", "serve") as two:
        for name, program in (("train", one), ("serve", two)):
            expect(row(page, name, program.pid).locator(".al-badge")).to_have_text("live")
            expect(row(page, name, program.pid)).to_contain_text("train.py")
        row(page, "train", one.pid).click()
        expect(row(page, "train", one.pid)).to_have_attribute("aria-current", "true")
        tree = page.locator("tr[data-path='train/cpu0']")
        expect(tree.locator(".al-state")).to_have_text("idle")
        one.run("lab.inject('kill'); time.sleep(1)")
        expect(tree.locator(".al-tag")).to_have_text("g2")

        one.kill()
        killed = time.monotonic()
        expect(row(page, "train", one.pid).locator(".al-badge")).to_contain_text("ended")
        assert time.monotonic() - killed < 10.0
        expect(tree.locator(".al-state")).to_have_text("stopped")
        expect(row(page, "serve", two.pid).locator(".al-badge")).to_have_text("live")
        names = page.locator(".al-dashboard-name").evaluate_all(LEFT)
        assert len(set(names)) == 1 < len(names), "the rows have the same columns"

        with Program(tmp_path / "a", "train") as again:
            begun = time.monotonic()
            expect(row(page, "train", again.pid).locator(".al-badge")).to_have_text("live")
            assert time.monotonic() - begun < 10.0
            expect(row(page, "train", again.pid)).to_have_attribute("aria-current", "true")
            expect(tree.locator(".al-tag")).to_have_text("g1")
            expect(tree.locator(".al-state")).to_have_text("idle")
            again.end()
            expect(row(page, "train", again.pid).locator(".al-badge")).to_have_text("ended")


def test_a_stopped_process_is_called_stale_until_it_goes_on(
    page: "Page", url: str, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    from tests.browser.jupyter import SCREENSHOTS

    with Program(tmp_path, "other", "other.py") as other, Program(tmp_path, "quiet") as quiet:
        shown = row(page, "quiet", quiet.pid)
        expect(shown.locator(".al-badge")).to_have_text("live")
        os.kill(quiet.pid, signal.SIGSTOP)
        expect(shown.locator(".al-badge")).to_contain_text(re.compile(r"stale \d+ s"))
        expect(row(page, "other", other.pid).locator(".al-badge")).to_have_text("live")
        SCREENSHOTS.mkdir(exist_ok=True)
        for theme in ("light", "dark"):
            page.goto(f"{url}?theme={'default' if theme == 'light' else 'dark'}")
            expect(shown).to_have_attribute("aria-current", "true")  # the newest
            expect(page.locator(".accel-lab").first).to_have_attribute("data-theme", theme)
            for _ in range(page.locator(".al-dashboard-row").count()):
                page.keyboard.press("Tab")  # those that were killed stand before it
                if shown.evaluate("(row) => row.matches(':focus')"):
                    break
            expect(shown).to_be_focused()
            assert doubts(page) == []
            page.screenshot(path=SCREENSHOTS / f"dashboard-{theme}.png", full_page=True)
        os.kill(quiet.pid, signal.SIGCONT)
        expect(shown.locator(".al-badge")).to_have_text("live")
        row(page, "other", other.pid).press("Enter")
        expect(page.locator("tr[data-path='other']")).to_have_count(1)


def test_real_work_and_a_real_loss_are_seen_in_every_view(
    page: "Page", url: str, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    from tests.browser.jupyter import PATIENCE_S, SCREENSHOTS

    patience: Any = {"timeout": 1000 * PATIENCE_S}
    with (
        Program(tmp_path, "serve", "serve.py"),
        Program(tmp_path, "climate", "climate.py") as climate,
    ):
        row(page, "climate", climate.pid).click()
        expect(row(page, "climate", climate.pid)).to_have_attribute("aria-current", "true")
        climate.run(f"exec({WORK!r})")
        device = page.locator("tr[data-path='climate/cpu0']")
        done = page.locator(".al-lab-timeline .timeline-done")
        expect(done).to_have_text(re.compile(r"^[1-9][\d,]* done$"), **patience)
        expect(page.locator(".al-lab-kernels .al-kernels-row").first).to_be_visible(**patience)
        before = done.inner_text()
        expect(done).not_to_have_text(before, **patience)

        climate.run("world = lab.world(name='all').ready()")
        expect(page.get_by_role("tab", name="Collectives")).to_be_visible(**patience)
        climate.run("lab.inject('kill')")
        lost = page.locator(".al-lab-supervision tbody tr").filter(has_text="context lost")
        expect(lost.first).to_contain_text("cpu0", **patience)
        expect(device.locator(".al-tag")).to_have_text("g2", **patience)
        expect(device.locator(".al-state")).to_have_text("busy", **patience)
        before = done.inner_text()
        expect(done).not_to_have_text(before, **patience)
        SCREENSHOTS.mkdir(exist_ok=True)
        for theme in ("light", "dark"):
            page.goto(f"{url}?theme={'default' if theme == 'light' else 'dark'}")
            row(page, "climate", climate.pid).click()
            expect(page.locator(".al-lab")).to_have_attribute("data-theme", theme)
            expect(device.locator(".al-tag")).to_have_text("g2", **patience)
            expect(done).to_have_text(re.compile(r"^[1-9][\d,]* done$"), **patience)
            expect(lost.first).to_be_visible()
            expect(page.locator(".al-lab-vram .vram-block").first).to_be_visible(**patience)
            expect(page.locator(".al-lab-vram")).to_contain_text("1 MiB")
            page.get_by_role("tab", name="Health").click()
            used = page.locator(".al-health-tile[data-reading='process CPU'] strong").first
            expect(used).to_have_text(re.compile(r"^(?!0(\.0)? )\d+(\.\d)? %$"), **patience)
            page.get_by_role("tab", name="Supervision").click()
            page.get_by_role("tab", name="Collectives").click()
            world = page.locator(".al-collectives-world[data-world='all']")
            expect(world.locator(".al-collectives-name")).to_contain_text("epoch 2", **patience)
            expect(world.locator(".al-collectives-healing")).to_contain_text("broken")
            assert page.evaluate(FITS), "the lab ends where the window does"
            page.screenshot(path=SCREENSHOTS / f"dashboard-work-{theme}.png", full_page=True)
            assert doubts(page) == []


SERVING = "from tests.views.patterns.serving import serve; serving = serve(lab)"


def test_what_another_process_serves_is_seen(page: "Page", url: str, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    from tests.browser.jupyter import PATIENCE_S

    patience: Any = {"timeout": 1000 * PATIENCE_S}
    with Program(tmp_path, "server") as program:
        row(page, "server", program.pid).click()
        program.run(SERVING)
        tab = page.get_by_role("tab", name="Patterns")
        expect(tab).to_be_visible(**patience)
        tab.click()
        tenant = page.locator("[data-pattern='shared model'] tr[data-part='research']")
        expect(tenant).to_have_class("al-patterns-at", **patience)
        page.get_by_role("tab", name="Agents").click()
        expect(page.locator(".al-agents-running")).to_have_attribute("data-node", "check")
        program.run("serving.gate.set()")
        check = page.locator(".al-agents-node[data-node='check'] .al-agents-words")
        expect(check).to_have_text("4 done", **patience)


FITS = """() => document.documentElement.scrollHeight <= window.innerHeight + 1"""

LOSS = """
import numpy as np
from accel_lab import errors
x = lab.devices[0].put(np.ones((64, 64), np.float32))
for _ in range(8):
    blas.gemm(x, x).result()
try:
    lab.inject('kill').result()
except errors.AccelError:
    pass
lab.ready()
for _ in range(4):
    blas.gemm(x, x).result()
lab.flush()
"""


def test_a_page_goes_back_in_time_while_another_stays_live(
    page: "Page", url: str, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    from tests.browser.jupyter import PATIENCE_S, SCREENSHOTS

    patience: Any = {"timeout": 1000 * PATIENCE_S}
    with Program(tmp_path, "orbit", "orbit.py") as orbit:
        orbit.run(f"exec({LOSS!r})")
        row(page, "orbit", orbit.pid).click()
        device = page.locator("tr[data-path='orbit/cpu0']")
        expect(device.locator(".al-tag")).to_have_text("g2", **patience)
        journal = page.locator(".al-lab-journal")
        expect(journal.locator(".al-chips")).to_contain_text("1 loss of a context", **patience)
        other = page.context.new_page()
        other.goto(url)
        row(other, "orbit", orbit.pid).click()
        expect(other.locator(".al-lab-fresh")).to_contain_text("live", **patience)

        foot = page.locator(".al-lab-foot")
        foot.get_by_role("button", name="To the start").click()
        bar = page.locator(".al-lab-bar")
        expect(bar).to_contain_text("REPLAY entry 0 of", **patience)
        for _ in range(3):
            foot.locator(".al-journal-slider").press("ArrowRight")
        expect(bar).to_contain_text("REPLAY entry 3 of", **patience)
        expect(device.locator(".al-tag")).to_have_text("g1")
        expect(foot).to_contain_text("3 of")
        happened = page.locator(".al-lab-supervision tbody")
        expect(happened).not_to_contain_text("context lost")
        foot.get_by_role("button", name="Next fault").click()
        expect(happened).to_contain_text("context lost", **patience)
        here = journal.locator(".al-journal-here")
        expect(here).to_have_attribute("class", re.compile("al-journal-is-fault"))
        expect(other.locator(".al-lab-fresh")).to_contain_text("live")
        SCREENSHOTS.mkdir(exist_ok=True)
        for theme in ("light", "dark"):
            other.goto(f"{url}?theme={'default' if theme == 'light' else 'dark'}")
            row(other, "orbit", orbit.pid).click()
            expect(other.locator(".al-lab")).to_have_attribute("data-theme", theme)
            other.locator(".al-lab-foot").get_by_role("button", name="Next fault").click()
            expect(other.locator(".al-lab-bar")).to_contain_text("REPLAY", **patience)
            assert doubts(other) == []
            other.screenshot(path=SCREENSHOTS / f"dashboard-replay-{theme}.png", full_page=True)
        other.close()
        page.locator(".al-lab-bar").get_by_role("button", name="Back to live").click()
        expect(bar).not_to_contain_text("REPLAY", **patience)
        expect(device.locator(".al-tag")).to_have_text("g2")
        foot.get_by_role("button", name="To the start").click()
        foot.locator("select[data-do=speed]").select_option("16")
        foot.get_by_role("button", name="Play").click()
        expect(device.locator(".al-tag")).to_have_text("g2", **patience)
        expect(bar).to_contain_text("REPLAY")


def doubts(page: "Page") -> list[dict[str, str]]:
    """Return what axe has against the page, or cannot tell, in all of its shadow roots."""
    from tests.browser.jupyter import axe

    said, _ = axe(page.locator(":root"))
    # Of one digit, of what a row cuts after its second line, and of a drawing it cannot tell.
    unknown = ("partially obscured", "partially overlaps", "too short", "contains an image node")
    return [one for one in said if not any(words in one["message"] for words in unknown)]
