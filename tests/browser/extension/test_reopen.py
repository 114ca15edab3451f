"""A notebook gets its names back from its session, in a real JupyterLab."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.browser.jupyter import Notebook

    OpenNotebook = Callable[[list[str]], Notebook]

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]

OPEN = """%load_ext accel_lab
import numpy as np
import accel_lab
lab = accel_lab.open("{}", "host")
gpu = lab.devices[0]"""
MADE = "x = gpu.put(np.arange(3.0)) * 2; n = 5"
KILL = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
NEXT = "%%gpu\nprint(float((x + n).sum()))"
RESTART = "void window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
IDLE = """() => {
    const kernel = window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel;
    return kernel?.status === 'idle' && kernel.connectionStatus === 'connected';
}"""


def test_after_a_restart_and_from_the_launcher_every_name_is_back(
    open_notebook: "OpenNotebook", tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    expect.set_options(timeout=60_000)
    notebook = open_notebook([OPEN.format(tmp_path / "run.lab"), MADE, NEXT, KILL])
    page = notebook.page
    for cell in (0, 1):
        notebook.run(cell)
        notebook.wait(cell, 60)
    toasts = page.locator(".jp-toastContainer .Toastify__toast")
    page.evaluate(f"() => {RESTART}")
    expect(toasts.filter(has_text="run.lab has its names")).to_be_visible()
    page.wait_for_function(IDLE)
    toasts.get_by_role("button", name="Reopen with its session").click()
    told = toasts.filter(has_text="run.lab is open again: 6 names are back")
    expect(told).to_be_visible()
    notebook.run(2)
    notebook.wait(2, 60)
    assert notebook.printed(2) == "21.0\n"
    told.click()  # a notice goes when it is clicked

    path = page.evaluate("() => window.jupyterapp.shell.currentWidget.context.path")
    notebook.run(3)  # the kernel is killed, and JupyterLab starts another
    expect(toasts.filter(has_text="run.lab has its names")).to_be_visible()
    for command in ("notebook:clear-all-cell-outputs", "docmanager:save"):
        page.evaluate("(id) => window.jupyterapp.commands.execute(id)", command)
    page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    for dialog in page.locator(".jp-Dialog .jp-mod-accept").all():  # it says that it was killed
        dialog.click()
    notebook.close()
    expect(toasts).to_have_count(0)  # of a notebook that is closed nothing is offered
    card = page.locator(".jp-LauncherCard:visible", has_text="Reopen with its session")
    expect(card).to_be_visible()
    card.click()
    choice = page.locator(".jp-Dialog")
    if choice.is_visible():  # of another test's notebooks
        choice.locator("select").select_option(label=f"{path} ({tmp_path / 'run.lab'})")
        choice.get_by_role("button", name="Reopen").click()
    expect(toasts.filter(has_text="run.lab is open again: 6 names are back")).to_be_visible()
    page.wait_for_function(
        "(path) => window.jupyterapp.shell.currentWidget?.context?.path === path", arg=path
    )
    notebook.run(2)
    notebook.wait(2, 60)
    assert notebook.printed(2) == "21.0\n"
    assert page.evaluate("() => window.jupyterapp.commands.isEnabled('accel-lab:reopen')") is False
