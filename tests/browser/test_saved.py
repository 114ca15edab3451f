"""A notebook that was saved with its outputs is read where no kernel runs."""

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from tests.browser.jupyter import JupyterLab, Notebook, Tab

    OpenNotebook = Callable[[list[str]], Notebook]

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

CELLS = [
    """%load_ext accel_lab
import numpy as np
from accel_lab import System, views
lab = System("host", name="lab").ready()
a = lab.devices[0].put(np.ones((64, 64), np.float32)).result()
views.lab(lab)""",
    "lab",
    "%%gpu\nprint('in the context')\nb = a @ a\nb[0, :3]",
    "%%gpu\nscale = 0\n1 / scale",
]
FAILS = 3
ELSEWHERE = {"name": "elsewhere", "display_name": "Elsewhere", "language": "other"}
"""What the notebook was run by: none of this machine's kernels, so JupyterLab asks for one."""


THEME = "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"
EXECUTE = "(command) => window.jupyterapp.commands.execute(command)"
KEEP = "@jupyter-widgets/jupyterlab-manager:saveWidgetState"  # Save Widget State Automatically
MISSED = "model not found"
"""What JupyterLab says in place of a view, and logs, if the new kernel connects while it begins.

It reads the state that was saved in the notebook no more then; a reload helps.
"""
RELOADS = 4


@pytest.fixture
def saved(open_notebook: "OpenNotebook", jupyter: "JupyterLab") -> str:
    """Run the cells in JupyterLab and save them; return the name of a copy from elsewhere."""
    notebook = open_notebook(CELLS)
    for cell in range(FAILS):
        notebook.run(cell)
        notebook.wait(cell)
    notebook.expect(".al-lab-bar .al-badge").to_have_text("live")
    notebook.run(FAILS)
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        notebook.wait(FAILS)
    notebook.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    name: str = notebook.page.evaluate("() => window.jupyterapp.shell.currentWidget.context.path")
    notebook.close()
    document: dict[str, Any] = json.loads((jupyter.notebooks / name).read_text())
    document["metadata"] |= {"kernelspec": ELSEWHERE, "language_info": {"name": "other"}}
    copy = f"copy-{name}"
    (jupyter.notebooks / copy).write_text(json.dumps(document))
    return copy


def test_a_saved_notebook_is_read_without_a_kernel(
    saved: str, jupyter: "JupyterLab", lab_tab: "Tab"
) -> None:
    from tests.browser.jupyter import SCREENSHOTS

    page = lab_tab.page
    page.goto(f"http://127.0.0.1:{jupyter.port}/lab/tree/{saved}?reset&token={jupyter.token}")
    dialog = page.locator(".jp-Dialog")
    dialog.locator("select").select_option(label="No Kernel")
    dialog.locator(".jp-mod-accept").click()
    dialog.wait_for(state="detached")

    shown, itself, worked, failed = (
        page.locator(".jp-Cell").nth(cell).locator(".jp-OutputArea") for cell in range(len(CELLS))
    )
    for view in (shown, itself):
        device = view.get_by_role("row").filter(has=page.get_by_text("cpu0", exact=True)).first
        reads(device, ["cpu0", "idle", "g1", "16 KiB"])
    reads(shown, ["lab: 1 device", "lab: 0 faults", "Memory of lab", "float32[64, 64]"])
    reads(shown, ["lab: health", "journal of lab", "context of generation 1 began"])
    reads(itself, ["Supervision", "no faults"])
    reads(worked, ["in the context", "array([64., 64., 64.]", "cpu0 ", " · wall "])
    reads(worked, [" kept for recovery"])
    reads(failed, ["ZeroDivisionError: division by zero", "1 / scale", "what to do: Correct"])
    page.wait_for_timeout(2000)  # whatever else might still come in their place
    text = page.locator(".jp-Notebook").inner_text()
    assert not re.search("displaying widget|loading widget|view id:|jupyter-widget", text.lower())
    assert page.locator(".jp-Notebook .accel-lab").count() == 0
    assert jupyter.api("api/kernels") == []

    SCREENSHOTS.mkdir(exist_ok=True)
    page.set_viewport_size({"width": 1300, "height": 2600})
    for theme in ("Dark", "Light"):
        page.evaluate(THEME, f"JupyterLab {theme}")
        page.wait_for_function(
            "(name) => document.body.dataset.jpThemeName === name", arg=f"JupyterLab {theme}"
        )
        page.locator(".jp-Notebook").screenshot(path=SCREENSHOTS / f"saved-{theme.lower()}.png")
    lab_tab.check()


def test_ones_own_views_are_as_they_were_last_when_their_state_was_saved(
    open_notebook: "OpenNotebook", jupyter: "JupyterLab", lab_tab: "Tab"
) -> None:
    from playwright.sync_api import expect

    from tests.browser.jupyter import PATIENCE_S

    notebook = open_notebook(CELLS[:2])
    notebook.page.evaluate(EXECUTE, KEEP)
    try:
        for cell in range(2):
            notebook.run(cell)
            notebook.wait(cell)
        notebook.expect(".al-lab-bar .al-badge").to_have_text("live")
        notebook.page.evaluate(EXECUTE, "docmanager:save")
        jupyter.end_kernels()
        outputs = notebook.page.locator(".jp-OutputArea-output")
        for _ in range(RELOADS):
            notebook.open_again()
            shown = outputs.locator(".accel-lab").or_(outputs.filter(has_text=MISSED))
            expect(shown).to_have_count(2, timeout=PATIENCE_S * 1000)
            lab_tab.errors = [error for error in lab_tab.errors if MISSED not in error]
            if not outputs.filter(has_text=MISSED).count():
                break
        for view in (notebook.page.locator(".jp-Cell").nth(cell) for cell in range(2)):
            expect(view.locator(".al-lab-bar .al-badge")).to_contain_text("stale")
            state = view.locator("tr[data-path='lab/cpu0'] .al-state").first
            expect(state).to_have_text("idle")
    finally:
        notebook.page.evaluate(EXECUTE, KEEP)


def reads(place: "Locator", words: list[str]) -> None:
    """Assert that a person reads these words there."""
    from playwright.sync_api import expect

    expect(place).to_be_visible()
    for word in words:
        expect(place).to_contain_text(word)


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_after_its_kernel_restarted_a_view_is_grey_and_no_button_is_obeyed(
    open_notebook: "OpenNotebook", lab_tab: "Tab", theme: str
) -> None:
    from playwright.sync_api import expect

    from tests.browser.jupyter import SCREENSHOTS

    notebook = open_notebook(CELLS[:1])
    page = notebook.page
    page.evaluate(THEME, f"JupyterLab {theme}")
    notebook.run(0)
    notebook.wait(0)
    notebook.expect(".al-lab-bar .al-badge").to_have_text("live")
    page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    notebook.expect(".al-lab-bar .al-badge").to_have_text("kernel restarted")
    view = page.locator(".jp-OutputArea-output .accel-lab").first
    expect(view).to_have_class(re.compile(r"\bal-gone\b"))
    expect(view.locator("button").first).to_be_disabled()
    assert view.locator("button:not(:disabled), select:not(:disabled)").count() == 0
    SCREENSHOTS.mkdir(exist_ok=True)
    for width in (1400, 900):
        page.set_viewport_size({"width": width, "height": 1400})
        view.screenshot(path=SCREENSHOTS / f"gone-{theme.lower()}-{width}.png")
    lab_tab.errors = []  # what JupyterLab says of comms that the old kernel had
