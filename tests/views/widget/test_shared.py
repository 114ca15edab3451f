"""A notebook as a page that others read: with the views' tables, and without their widgets."""

import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.project import ROOT

SHOW = (
    'from accel_lab import System, views\nlab = System("host", name="lab").ready()\nviews.lab(lab)'
)
COMMANDS = re.findall(
    r"^jupyter (nbconvert .*) analysis\.ipynb$",
    (ROOT / "docs/how-to/share-a-notebook.md").read_text(),
    re.MULTILINE,
)

pytestmark = pytest.mark.timeout(300)
if find_spec("anywidget") is None or find_spec("nbconvert") is None:
    pytest.skip("anywidget and nbconvert come with the lab extra", allow_module_level=True)


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a notebook that was executed, with the state of its widgets."""
    cells = [nbformat.v4.new_code_cell(source) for source in (SHOW, "lab.close()")]
    book = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(book, timeout=120).execute()
    assert "widgets" in book.metadata
    path = tmp_path_factory.mktemp("shared") / "analysis.ipynb"
    nbformat.write(book, path)
    return path


def test_a_guide_says_how_with_and_without_running_it() -> None:
    assert len(COMMANDS) == 2
    assert "--execute" in COMMANDS[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_page_has_the_views_tables_and_wants_no_widget_manager(
    notebook: Path, command: str, tmp_path: Path
) -> None:
    if "--execute" in command:
        book = nbformat.read(notebook, as_version=4)
        notebook = tmp_path / notebook.name
        nbformat.write(nbformat.v4.new_notebook(cells=book.cells), notebook)
    page = tmp_path / "page.html"
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command), str(notebook), f"--output={page}"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert re.search(r"<table.*cpu0/context.*</table>", text, re.DOTALL)
    assert "html-manager" not in text
    assert "unpkg.com" not in text
