"""The quickstart as its reader sees it: the notebook itself, in JupyterLab, with a real system."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.browser.jupyter import Notebook

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

QUICKSTART = Path(__file__).parents[2] / "notebooks" / "01-quickstart.ipynb"
DEVICE = ".al-lab-tree tr.al-kind-device:nth-of-type(2)"


def test_the_quickstart_shows_a_context_lost_and_its_return(
    open_notebook: "Callable[[Path], Notebook]",
) -> None:
    notebook = open_notebook(QUICKSTART)
    cells = notebook.code()
    shown = next(i for i, source in cells.items() if "views." in source)
    kill = next(i for i, source in cells.items() if "lab.inject(" in source)
    end = next(i for i, source in cells.items() if "lab.close()" in source)

    def read(first: int, beyond: int) -> None:
        for cell in cells:
            if first <= cell < beyond:
                notebook.run(cell)
                notebook.wait(cell)

    assert shown == list(cells)[1], "the second cell shows the first live view"
    read(0, kill)
    notebook.expect(".al-lab-tree .al-badge").to_have_text("live")
    notebook.expect(f"{DEVICE} .al-state").to_have_text("idle")
    notebook.expect(f"{DEVICE} .al-tag").to_have_text("g1")
    notebook.expect(f"{DEVICE} .al-restarts").to_have_text("0")
    read(kill, end)
    notebook.expect(f"{DEVICE} .al-tag").to_have_text("g2")
    notebook.expect(f"{DEVICE} .al-state").to_have_text("idle")
    notebook.expect(f"{DEVICE} .al-restarts").to_have_text("1")
    notebook.expect(".al-lab-tree [role=status]").to_contain_text("restarted, generation 2")
    notebook.screenshot("quickstart")
    read(end, max(cells) + 1)
    notebook.expect(".al-lab-tree .al-badge").to_have_text("closed · last state")
    notebook.expect(f"{DEVICE} .al-tag").to_have_text("g2")
    assert shown < kill < end
