"""Who sent a request: the cell of a notebook, by the number that IPython shows beside it."""

import os
import subprocess
import sys
from pathlib import Path

from accel_lab.compute.output import cell_origin
from tests.project import ROOT

NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
cells = [
    "1 + 1",
    "from accel_lab.compute.output import cell_origin as origin; origin.follow_notebook()\\n"
    "print(origin.current().cell, len(In) - 1)",
    "print(origin.current().cell, len(In) - 1)",
]
for cell in cells:
    shell.run_cell(cell, store_history=True)
"""


def test_a_cell_has_the_number_that_is_shown_beside_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=os.environ | {"IPYTHONDIR": str(tmp_path)},
        timeout=60,
    )
    assert done.stdout.splitlines()[-2:] == ["2 2", "3 3"]


def test_a_plain_program_has_no_cells() -> None:
    cell_origin.follow_notebook()
    assert cell_origin.current().cell is None
