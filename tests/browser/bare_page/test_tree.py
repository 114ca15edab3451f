"""The device tree in a real JupyterLab, over a made-up system."""

import os
import re
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.browser.jupyter import Notebook, Tab

    OpenNotebook = Callable[[list[str]], Notebook]

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

IMPORTS = """
import asyncio, os, time
from accel_lab import views
from tests.views.made_up import GIB, lab as made_up
"""
SHOW = f"{IMPORTS}\nlab = made_up(2)\nviews.tree(lab)"
TROUBLE = f"""{IMPORTS}
lab = made_up(5)
for device, change in zip(lab.devices, [
    dict(in_flight=12, generation=2, restarts=1),
    dict(state="restarting", mailbox=37),
    dict(state="circuit open", used_bytes=None, restarts=4, detail="4 losses in 60 s"),
    dict(state="starting", used_bytes=int(133.4 * GIB)),
    dict(state="half-open", used_bytes=int(119 * GIB)),
]):
    vars(device).update(change)
views.tree(lab)"""

# Work that was traced, as a device answers it, a second long.
BUSY = """
from tests.views.work import work
from accel_lab.compute.events.samples import Slice
now = time.time()
done = [Slice(n, "Gemm", "blas", "kernel", now + n / 20, now + n / 20 + 0.02) for n in range(60)]
lab.seen = [work("gpu0", done)]
"""
FITS = """(one) => {
    const { left, right, width } = one.getBoundingClientRect();
    const box = one.closest(".al-scroll").getBoundingClientRect();
    return width > 0 && left >= box.left && right <= box.right + 1;
}"""


def row(path: str, cell: str = "") -> str:
    """Return the selector of an actor's row, or of a cell in it."""
    return f'tr[data-path="lab{path}"] {cell}'.strip()


@pytest.fixture
def show(open_notebook: "OpenNotebook") -> "Callable[..., Notebook]":
    """Open a notebook, run its first cell, and wait until its tree is there."""

    def opened(*cells: str) -> "Notebook":
        notebook = open_notebook(list(cells))
        notebook.run(0)
        notebook.wait(0)
        notebook.expect(".al-badge").to_have_text("live")
        return notebook

    return opened


def test_every_actor_is_a_row_with_its_state_generation_and_memory(
    show: "Callable[..., Notebook]",
) -> None:
    notebook = show(SHOW)
    notebook.expect("tbody tr").to_have_count(9)
    notebook.expect(row("/gpu1", ".al-state")).to_have_text("idle")
    notebook.expect(row("/gpu1", ".al-tag")).to_have_text("g1")
    notebook.expect(row("/gpu1", ".al-memory")).to_have_text("17 / 139 GiB")


def test_the_tree_updates_while_a_cell_awaits(show: "Callable[..., Notebook]") -> None:
    notebook = show(SHOW, "lab.devices[0].in_flight = 7\nawait asyncio.sleep(20)")
    notebook.run(1)
    notebook.expect(row("/gpu0", ".al-flight"), timeout_s=15).to_have_text("7")


@pytest.mark.parametrize(
    "block", ["time.sleep(20)", "while time.time() < end: pass"], ids=["sleeps", "computes"]
)
def test_the_tree_updates_while_a_cell_blocks(show: "Callable[..., Notebook]", block: str) -> None:
    notebook = show(SHOW, f"end = time.time() + 20\nlab.devices[0].in_flight = 7\n{block}")
    notebook.run(1)
    notebook.expect(row("/gpu0", ".al-flight"), timeout_s=15).to_have_text("7")
    notebook.expect(".al-badge").to_have_text("live")


def test_a_restart_is_seen_marked_and_said(show: "Callable[..., Notebook]") -> None:
    notebook = show(SHOW, "lab.restart(1)")
    notebook.run(1)
    notebook.expect(row("/gpu1", ".al-tag")).to_have_text("g2")
    notebook.expect(row("/gpu1", ".al-mark")).to_have_text("restarted")
    notebook.expect(row("/gpu1", ".al-restarts")).to_have_text("1")
    notebook.expect(row("/gpu0", ".al-mark")).to_have_count(0)
    notebook.expect("[role=status]").to_have_text("gpu1 restarted, generation 2")
    notebook.expect(".al-mark").to_have_count(0)  # after a few seconds


def test_with_reduced_motion_nothing_moves_and_the_word_stays(
    show: "Callable[..., Notebook]", lab_tab: "Tab"
) -> None:
    lab_tab.page.emulate_media(reduced_motion="reduce")
    notebook = show(SHOW, "lab.restart(1)")
    notebook.run(1)
    notebook.expect(row("/gpu1", ".al-mark")).to_have_text("restarted")
    moving = notebook.view.evaluate("(el) => el.getAnimations({ subtree: true }).length")
    assert moving == 0


def test_a_closed_system_leaves_its_last_state_and_no_thread(
    show: "Callable[..., Notebook]",
) -> None:
    threads = "print(*[t.name for t in threading.enumerate() if 'accel_lab' in t.name])"
    ended = """import time
until = time.monotonic() + 20
while any('accel_lab' in t.name for t in threading.enumerate()) and time.monotonic() < until:
    time.sleep(0.01)
"""
    notebook = show(
        SHOW,
        f"import threading\n{threads}\nlab.devices[0].in_flight = 7",
        "lab.closed = True",
        ended + threads,
    )
    notebook.run(1)
    notebook.expect(row("/gpu0", ".al-flight")).to_have_text("7")
    notebook.run(2)
    notebook.expect(".al-badge").to_have_text("closed · last state")
    notebook.expect(row("/gpu1", ".al-state")).to_have_text("stopped")
    notebook.expect(row("/gpu1", ".al-memory")).to_have_text("17 / 139 GiB")
    notebook.run(3)
    notebook.wait(3)
    assert (notebook.printed(1), notebook.printed(3)) == ("accel_lab views\n", "\n")


def test_a_kernel_that_falls_silent_is_called_stale_until_it_speaks_again(
    show: "Callable[..., Notebook]",
) -> None:
    notebook = show(SHOW, "print(os.getpid())")
    notebook.run(1)
    notebook.wait(1)
    kernel = int(notebook.printed(1))
    os.kill(kernel, signal.SIGSTOP)
    try:
        notebook.expect(".al-badge").to_contain_text(re.compile(r"stale \d"))
    finally:
        os.kill(kernel, signal.SIGCONT)
    notebook.expect(".al-badge").to_have_text("live")


def test_the_tree_comes_back_with_the_page(show: "Callable[..., Notebook]") -> None:
    notebook = show(SHOW, "lab.devices[0].in_flight = 7")
    notebook.reload()
    notebook.expect(row("/gpu0", ".al-tag")).to_have_text("g1")
    notebook.run(1)
    notebook.expect(row("/gpu0", ".al-flight")).to_have_text("7")


def test_one_widget_may_be_shown_twice_and_folds_apart(show: "Callable[..., Notebook]") -> None:
    notebook = show(SHOW, "views.tree(lab)")
    notebook.run(1)
    notebook.wait(1)
    both = notebook.page.locator(".accel-lab")
    both.nth(1).locator("tbody tr").nth(8).wait_for()
    both.nth(0).locator(row("/gpu0", ".al-fold")).click()
    notebook.expect("tbody tr").to_have_count(6)
    assert both.nth(1).locator("tbody tr").count() == 9


def test_the_keyboard_walks_the_tree_and_jupyterlab_hears_nothing(
    show: "Callable[..., Notebook]",
) -> None:
    notebook = show(SHOW, "'a cell below'")
    keyboard = notebook.page.keyboard
    notebook.view.locator(row("/gpu0")).click()
    before = notebook.active_cell()

    def press(*keys: str) -> None:
        for key in keys:
            keyboard.press(key)

    press("ArrowDown", "ArrowDown", "ArrowUp")
    notebook.expect(row("/gpu0/context")).to_be_focused()
    press("ArrowLeft")
    notebook.expect(row("/gpu0/context")).to_have_attribute("aria-expanded", "false")
    notebook.expect(row("/gpu0/context/blas")).to_have_count(0)
    press("ArrowLeft")
    notebook.expect(row("/gpu0")).to_be_focused()
    press("ArrowRight", "ArrowRight")
    notebook.expect(row("/gpu0/context/blas")).to_have_count(1)
    press("End")
    notebook.expect(row("/gpu1/context/blas")).to_be_focused()
    press("Home")
    notebook.expect(row("")).to_be_focused()
    # In JupyterLab's command mode: delete, insert, copy, change the type, go up, edit.
    press("d", "d", "a", "b", "x", "m", "y", "k", "j", "Enter", "Space")
    assert notebook.active_cell() == before


def test_a_row_that_goes_hands_its_focus_on(show: "Callable[..., Notebook]") -> None:
    notebook = show(SHOW)
    notebook.view.locator(row("/gpu1")).click()
    notebook.page.evaluate(
        """() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel
            .requestExecute({ code: 'del lab.devices[1]' }).done.then(() => null)"""
    )
    notebook.expect(row("/gpu1")).to_have_count(0)
    notebook.expect(row("")).to_be_focused()


def test_two_hundred_actors_start_folded_and_can_be_found(
    show: "Callable[..., Notebook]",
) -> None:
    notebook = show(
        f"{IMPORTS}\nlab = made_up(8, 24)\nlab.devices[5].state = 'restarting'\nviews.tree(lab)"
    )
    notebook.expect("tbody tr").to_have_count(9)
    notebook.expect(row("/gpu5", ".al-inside")).to_have_text("+25 folded")
    notebook.view.get_by_role("searchbox").fill("library17")
    notebook.expect("tbody tr").to_have_count(25)
    notebook.view.get_by_role("searchbox").fill("")
    notebook.view.get_by_role("button", name="Needs attention").click()
    notebook.expect("tbody tr").to_have_count(27)
    notebook.view.get_by_role("button", name="Needs attention").click()
    notebook.view.get_by_role("button", name="Unfold all").click()
    notebook.expect("tbody tr").to_have_count(216)  # idle ones stand below a row of their own
    notebook.screenshot("tree-200-actors")


def test_trouble_in_a_small_tree_can_be_looked_at_alone(show: "Callable[..., Notebook]") -> None:
    notebook = show(
        SHOW, "lab.devices[1].state = 'circuit open'", "lab.devices[1].state = 'running'"
    )
    notebook.expect(row("/gpu1")).to_have_count(1)
    attention = notebook.view.get_by_role("button", name="Needs attention")
    assert attention.count() == 0
    notebook.run(1)
    attention.click()
    notebook.expect("tbody tr").to_have_count(3)  # the system, the device and its context
    notebook.screenshot("tree-attention")
    notebook.run(2)
    notebook.expect(".al-note").to_have_text("Nothing needs attention.")
    attention.click()
    notebook.expect("tbody tr").to_have_count(9)
    notebook.expect(".al-button").to_have_count(0)


def test_idle_library_actors_are_one_row_which_keys_and_clicks_unfold(
    show: "Callable[..., Notebook]",
) -> None:
    notebook = show(f"{IMPORTS}\nlab = made_up(1, 7)\nviews.tree(lab)", BUSY)
    quiet = row("/gpu0/context/*")
    notebook.expect("tbody tr").to_have_count(4)
    notebook.expect(f"{quiet} .al-label").to_have_text("7 idle actors")
    notebook.view.locator(f"{quiet} .al-fold").click()
    notebook.expect("tbody tr").to_have_count(11)
    notebook.expect(quiet).to_be_focused()
    for rows in (4, 11):  # the words do as the arrow does
        notebook.view.locator(f"{quiet} .al-label").click()
        notebook.expect("tbody tr").to_have_count(rows)
    notebook.page.keyboard.press("ArrowRight")
    notebook.expect(row("/gpu0/context/array")).to_be_focused()
    notebook.page.keyboard.press("ArrowLeft")
    notebook.expect(quiet).to_be_focused()
    notebook.page.keyboard.press("ArrowLeft")
    notebook.expect("tbody tr").to_have_count(5)  # the one that was looked at keeps its row
    notebook.expect(f"{quiet} .al-label").to_have_text("6 idle actors")
    notebook.run(1)
    notebook.expect(row("/gpu0/context/blas", ".al-state")).to_have_text("busy")
    notebook.expect(row("", ".al-state")).to_have_text("busy")
    notebook.expect(f"{quiet} .al-label").to_have_text("5 idle actors")


def test_work_memory_and_restarts_stay_on_a_narrow_page(
    show: "Callable[..., Notebook]",
) -> None:
    notebook = show(SHOW, BUSY)
    notebook.page.evaluate("() => jupyterapp.commands.execute('application:toggle-left-area')")
    for width in (900, 600):
        notebook.run(1)
        notebook.page.set_viewport_size({"width": width, "height": 900})
        notebook.page.wait_for_function(
            "(most) => document.querySelector('.accel-lab').clientWidth < most", arg=width
        )
        notebook.expect(row("/gpu0", ".al-rate")).to_contain_text("/s")
        for cell in ("al-share", "al-memory", "al-restarts"):
            found = notebook.view.locator(row("/gpu0", f".{cell}"))
            assert found.evaluate(FITS), f"{cell} at {width} px"
    notebook.page.evaluate("() => jupyterapp.commands.execute('application:toggle-left-area')")


def test_no_devices_is_a_system_too(show: "Callable[..., Notebook]") -> None:
    notebook = show(f"{IMPORTS}\nlab = made_up(0)\nviews.tree(lab)")
    notebook.expect("tbody tr").to_have_count(1)
    notebook.expect(".al-note").to_have_text("This system has no devices.")


def test_the_tree_is_accessible(show: "Callable[..., Notebook]") -> None:
    notebook = show(TROUBLE)
    for theme in ("light", "dark"):
        check_accessible(notebook, theme)
    notebook.theme("JupyterLab Light")


def check_accessible(notebook: "Notebook", theme: str) -> None:
    """Have axe find nothing, in a theme of JupyterLab's."""
    from tests.browser.jupyter import axe

    notebook.theme(f"JupyterLab {theme.title()}")
    notebook.page.wait_for_function(
        "(theme) => document.querySelector('.accel-lab').dataset.theme === theme", arg=theme
    )
    notebook.view.locator(row("/gpu0")).focus()
    notebook.view.evaluate("(view) => view.scrollIntoView({ block: 'center' })")
    # JupyterLab's body is 0 high, so axe would take all text for invisible and skip its contrast.
    notebook.page.evaluate("() => { document.body.style.height = '100vh'; }")
    said, kept = axe(notebook.page.locator(".accel-lab"))
    assert said == []
    assert {"color-contrast", "aria-required-children", "aria-meter-name"} <= kept
    notebook.screenshot(f"tree-{theme}")
