"""How often the browser paints what a lab at work publishes, in a real JupyterLab.

A figure, and it needs a machine that has cores left; so it runs only when asked for.
"""

import statistics
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from accel_lab.views.widget.publisher import DEFAULT_HZ

if TYPE_CHECKING:
    from tests.browser.jupyter import Notebook

    OpenNotebook = Callable[[list[str]], Notebook]

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(180)]

SECONDS = 20
FRAMES_HZ = 9.0

SHOW = """
import threading, time
import numpy as np
from accel_lab import System, blas, fft, views
lab = System("host", devices=2, name="lab").ready()
def work(cpu):
    a = cpu.put(np.ones((256, 256), np.float32))
    while True:
        blas.gemm(a, a)
        fft.r2c(a).result()
        time.sleep(0.03)
for cpu in lab.devices:
    threading.Thread(target=work, args=(cpu,), daemon=True).start()
views.lab(lab)
"""

# For each second: the states that came, the frames in which newly done work was drawn, all frames.
# What moves by the page's own clock counts for nothing here.
COUNT = """(seconds) => new Promise((resolve) => {
    const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    const done = () => document.querySelector(".al-lab .timeline-done").textContent;
    const found = Array.from({ length: seconds }, () => ({ came: 0, drawn: 0, frames: 0 }));
    const begun = performance.now();
    const second = () => found[Math.floor((performance.now() - begun) / 1000)];
    const hear = (_, { content }) => {
        const isState = content.data?.buffer_paths?.flat().includes("state");
        if (isState && second()) second().came += 1;
    };
    let seen = done();
    const frame = () => {
        const now = second();
        if (!now) {
            kernel.iopubMessage.disconnect(hear);
            resolve(found);
            return;
        }
        now.frames += 1;
        const drawn = done();
        if (drawn !== seen) now.drawn += 1;
        seen = drawn;
        requestAnimationFrame(frame);
    };
    kernel.iopubMessage.connect(hear);
    requestAnimationFrame(frame);
})"""


def test_a_lab_that_publishes_ten_times_a_second_is_painted_as_often(
    open_notebook: "OpenNotebook", capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = open_notebook([SHOW])
    notebook.page.set_viewport_size({"width": 1700, "height": 1400})
    notebook.run(0)
    notebook.wait(0)
    notebook.expect(".al-lab-bar .al-badge").to_have_text("live")
    notebook.expect(".timeline-done").not_to_have_text("0 done")
    seconds: list[dict[str, int]] = notebook.page.evaluate(COUNT, SECONDS)
    middle = {what: statistics.median(one[what] for one in seconds) for what in seconds[0]}
    with capsys.disabled():
        sys.stdout.write(
            f"\na second, of {SECONDS}: {middle}; drawn {[s['drawn'] for s in seconds]}\n"
        )
    assert middle["came"] <= DEFAULT_HZ + 1, "the view publishes at its usual rate"
    assert middle["drawn"] >= FRAMES_HZ, seconds
