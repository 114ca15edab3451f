"""`%%gpu` cells in a real JupyterLab: what they print and show, an error, and the stop button."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.browser.jupyter import Notebook

    OpenNotebook = Callable[[list[str]], Notebook]

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

CELLS = [
    "%load_ext accel_lab\nfrom accel_lab import System\nlab = System('host').ready()",
    "%%gpu\nimport os, time\nprint('first')\nx = xp.arange(3.0)\n{wait}\nx * 2",
    "%%gpu\nscale = 0\n1 / scale",
    "%%gpu\nprint('asleep')\ntime.sleep(60)",
    "print(lab.devices[0].generation, x.get().tolist())",
]
OUTPUTS = """(index) => window.jupyterapp.shell.currentWidget.content.widgets[index].model
    .outputs.toJSON().map((output) => [output.text ?? output.data?.['text/plain']
    ?? output.traceback].flat().join(''))"""
STATE = """(index) => window.jupyterapp.shell.currentWidget.content.widgets[index].model
    .executionState"""


def test_cells_run_where_the_arrays_are(open_notebook: "OpenNotebook", tmp_path: Path) -> None:
    from tests.browser.jupyter import wait_until

    gate = tmp_path / "gate"
    wait = f"while not os.path.exists({str(gate)!r}):\n    time.sleep(0.01)"
    notebook = open_notebook([cell.replace("{wait}", wait) for cell in CELLS])

    def outputs(cell: int) -> str:
        return "\n".join(notebook.page.evaluate(OUTPUTS, cell))

    def runs(cell: int) -> bool:
        return bool(notebook.page.evaluate(STATE, cell) == "running")

    notebook.run(0)
    notebook.wait(0)
    notebook.run(1)
    wait_until(lambda: "first" in outputs(1), "the cell prints", 30)
    assert runs(1)
    gate.touch()
    notebook.wait(1)
    assert "array([0., 2., 4.])" in outputs(1)
    notebook.run(2)
    wait_until(lambda: "ZeroDivisionError" in outputs(2), "the error is shown", 30)
    assert "1 / scale" in outputs(2)
    wait_until(lambda: not runs(2), "the failed cell is over", 30)
    notebook.run(3)
    wait_until(lambda: "asleep" in outputs(3), "the cell is at work", 30)
    pressed = time.monotonic()
    notebook.page.evaluate(
        "() => void window.jupyterapp.commands.execute('notebook:interrupt-kernel')"
    )
    wait_until(lambda: not runs(3), "the cell is interrupted", 30)
    assert time.monotonic() - pressed < 20
    wait_until(lambda: "1 request of this cell to" in outputs(3), "that is said", 30)
    notebook.run(4)
    notebook.wait(4)
    assert notebook.printed(4) == "1 [0.0, 1.0, 2.0]\n"
