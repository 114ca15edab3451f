"""The tutorials as files. That they run, nbmake says: `notebooks` is one of pytest's paths."""

import inspect
import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from accel_lab import cli
from tests.project import PYPROJECT, ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CELL_LIMIT = 16  # lines
NAME_LIMIT = 22  # characters; JupyterLab's file browser cuts a longer name at its default width


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> Any:
    path: Path = request.param
    return json.loads(path.read_text())


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_pytest_runs_every_notebook() -> None:
    options = PYPROJECT["tool"]["pytest"]["ini_options"]
    assert "notebooks" in options["testpaths"]
    assert "--nbmake" in options["addopts"]
    assert NOTEBOOKS


def test_notebook_keeps_no_output_and_no_widget_state(notebook: Any) -> None:
    """A saved view would carry its whole front end, and show an empty cell where it has none."""
    assert "widgets" not in notebook["metadata"]
    for cell in code_cells(notebook):
        assert cell["outputs"] == [], cell["id"]
        assert cell["execution_count"] is None, cell["id"]


def test_notebook_is_of_format_4_5_with_ids_that_say_what_a_cell_does(notebook: Any) -> None:
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    for id_ in ids:
        assert re.fullmatch(r"[a-z][a-z0-9-]{1,63}", id_), id_


def test_names_are_not_cut_in_the_file_browser() -> None:
    for path in NOTEBOOKS:
        assert len(path.name) <= NAME_LIMIT, path.name


def test_numbers_have_no_gaps() -> None:
    numbers = [int(path.name.partition("-")[0]) for path in NOTEBOOKS]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert numbers[0] in {0, 1}


def test_cell_that_hangs_fails_within_minutes(notebook: Any) -> None:
    assert 0 < notebook["metadata"]["execution"]["timeout"] <= 300


def test_tutorial_is_given_two_minutes_in_all() -> None:
    """Each takes under one; pytest's limit holds for a notebook, too, on a machine that is busy."""
    assert 0 < PYPROJECT["tool"]["pytest"]["ini_options"]["timeout"] <= 120


def test_cells_are_short(notebook: Any) -> None:
    for cell in code_cells(notebook):
        assert len(cell["source"]) <= CELL_LIMIT, cell["id"]


def test_notebook_ends_with_check_and_close(notebook: Any) -> None:
    """An exception in a background thread fails no cell by itself."""
    last = "".join(code_cells(notebook)[-1]["source"]).splitlines()
    assert [line for line in last if line.startswith("lab.")] == ["lab.check()", "lab.close()"]


def test_the_notebooks_are_one_course() -> None:
    """The first cell says what comes before, the last one to be read what comes after."""
    texts = [
        ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
        for notebook in (json.loads(path.read_text()) for path in NOTEBOOKS)
    ]
    for before, after in itertools.pairwise(range(len(NOTEBOOKS))):
        assert texts[before][-1].startswith("## Close\n"), NOTEBOOKS[before]
        assert f"({NOTEBOOKS[after].name})" in texts[before][-1], NOTEBOOKS[before]
        assert f"({NOTEBOOKS[before].name})" in texts[after][0], NOTEBOOKS[after]
    assert "the last of the tutorials" in texts[-1][-1]


def test_what_a_notebook_writes_it_removes(notebook: Any) -> None:
    code = "".join("".join(cell["source"]) for cell in code_cells(notebook))
    assert code.count("tempfile.mkdtemp(") == code.count("shutil.rmtree(")


def test_the_users_copy_in_a_checkout_is_ignored() -> None:
    """The README's first command makes it there; the second one checks the style of the rest."""
    folder = inspect.signature(cli.lab).parameters["folder"].default
    assert f"{folder}/" in (ROOT / ".gitignore").read_text().splitlines()
