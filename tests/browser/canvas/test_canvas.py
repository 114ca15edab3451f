"""The canvas in a real JupyterLab: a simulation that is watched, set, and killed."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.conftest import require

if TYPE_CHECKING:
    from tests.browser.jupyter import Notebook

    OpenNotebook = Callable[[list[str]], Notebook]

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

SHOW = """
from accel_lab import System, views
from accel_lab.blueprints import realtime
lab = System("host", devices=1, name="lab").ready()
fluid = lab.spawn(lambda: realtime.FluidSimulationActor(lab.devices[0], 24, 36, sweeps=8))
fluid.ask(realtime.AddSource(realtime.Splash(18, 20, 4, dye=(4, 2, 1)))).result()
views.canvas(fluid)"""
ASK = """
import time
end = time.monotonic() + 20
lift = 0
while lift == 0 and time.monotonic() < end:  # what the slider sends is taken meanwhile
    lift = fluid.ask(realtime.Describe()).result().controls[3].value
print(lift)"""
KILL = """
from contextlib import suppress
with suppress(Exception):
    lab.inject("kill").result()"""
SHOWN = "(one) => Number(one.getAttribute('aria-label').split(' ').at(-1).replace(',', ''))"
HATCHED = """() => new Promise((done) => {
    const one = document.querySelector(".al-canvas-hatch");
    new MutationObserver(() => one.hidden || done()).observe(one, { attributes: true });
    window.watching = true;
})"""


PIXELS = "(one) => one.toDataURL()"


def test_it_plays_while_cells_run_and_goes_on_after_a_kill(open_notebook: "OpenNotebook") -> None:
    require("compiler")
    notebook = open_notebook([SHOW, ASK, KILL])
    notebook.run(0)
    notebook.wait(0)
    notebook.expect(".al-badge").to_have_text("live")
    picture = notebook.view.locator("canvas.al-canvas-picture[aria-label]")
    picture.wait_for()
    later = "([one, steps]) => Number(one.ariaLabel.split(' ').at(-1)) > steps"

    def plays() -> None:
        steps = picture.evaluate(SHOWN)
        handle = picture.element_handle()
        notebook.page.wait_for_function(later, arg=[handle, steps])

    first = picture.evaluate(PIXELS)
    plays()
    assert picture.evaluate(PIXELS) != first, "the smoke has moved"
    notebook.view.get_by_role("button", name="Record").click()
    notebook.expect(".al-canvas-film").to_contain_text("recording fluid-")
    notebook.view.get_by_label("lift").fill("25")
    notebook.expect(".al-canvas-control >> nth=3").to_contain_text("25")
    notebook.run(1)
    notebook.wait(1)
    assert notebook.printed(1) == "25.0\n"
    notebook.page.evaluate(f"() => {{ window.hatched = ({HATCHED})(); }}")
    notebook.run(2)
    notebook.page.evaluate("() => window.hatched")
    notebook.wait(2)
    notebook.expect(".al-chips").to_contain_text("generation 2")
    notebook.expect(".al-canvas-hatch").to_be_hidden()
    plays()
    notebook.view.get_by_role("button", name="Stop recording").click()
    notebook.expect(".al-canvas-film").to_contain_text(re.compile(r"^fluid-[\d-]+\.(gif|mp4): "))
    notebook.screenshot("canvas-jupyterlab")
