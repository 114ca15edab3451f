"""What a cell deletes or binds anew ends at once, as in plain Python."""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import blas
from accel_lab.errors import StaleRef, UserCodeError
from accel_lab.notebook.object_ref import ObjectRef
from tests.faults.conftest import settle
from tests.notebook.cells import Notebook, empty, lose

MAKE = {
    "array": "xp.ones(1000)",
    "object": "Big()",
    "list": "[Big()]",
    "dict of tuples": "{'k': (Big(),)}",
}
WATCH = {
    "array": "weakref.ref(x)",
    "object": "weakref.ref(x)",
    "list": "weakref.ref(x[0])",
    "dict of tuples": "weakref.ref(x['k'][0])",
}


@pytest.fixture
def cell(notebook: Notebook) -> Iterator[Notebook]:
    notebook("import weakref\nclass Big:\n    pass", "--quiet")
    yield notebook
    empty(notebook)


def alone(cell: Notebook, name: str = "x", *, known: int = 1) -> None:
    """Wait until no request on its way has what a name stands for, and `known` others have it."""
    cell.lab.flush()
    assert settle(lambda: sys.getrefcount(cell.names[name]) <= known + 2)


@pytest.mark.parametrize("what", MAKE)
@pytest.mark.parametrize(
    ("end", "left"),
    [
        ("del x", "nothing"),
        ("x = None", "None"),
        ("x = [3]", "[3]"),
        ("globals().pop('x')", "nothing"),
        ("clear()", "None"),
        ("for x in (1, 2): pass", "2"),
    ],
)
def test_what_a_cell_lets_go_of_is_gone_at_once(
    cell: Notebook, what: str, end: str, left: str
) -> None:
    cell("def clear():\n    global x\n    x = None", "--quiet")
    cell(f"x = {MAKE[what]}\nwatched = {WATCH[what]}", "--quiet")
    cell("x", "--quiet")
    alone(cell)
    assert cell(f"{end}\nwatched() is None") == "True"
    assert cell("str(globals().get('x', 'nothing'))") == repr(left)
    assert ("x" in cell.names) is (left != "nothing")


@pytest.mark.parametrize("what", MAKE)
def test_each_turn_of_a_loop_frees_what_the_last_has_made(cell: Notebook, what: str) -> None:
    cell(f"x = {MAKE[what]}\ngone = []", "--quiet")
    alone(cell)
    cell(
        f"for _ in range(3):\n    watched = {WATCH[what]}\n    x = {MAKE[what]}\n"
        "    gone.append(watched() is None)",
        "--quiet",
    )
    assert cell.names["gone"].get() == [True] * 3


def test_an_array_of_the_notebooks_is_freed_and_the_device_has_its_memory(cell: Notebook) -> None:
    cell.names["x"] = cell.gpu.put(np.ones(1000))
    alone(cell, known=0)
    cell("watched = weakref.ref(x)\nx = x + 1\ngone = watched() is None", "--quiet")
    assert cell.names["gone"].get() is True
    assert cell.value("x")[0] == 2.0
    assert blas.axpy(cell.names["x"], cell.names["x"]).get()[0] == 4.0
    assert sum(row.nbytes for row in cell.gpu.resident if "%%gpu x" in row.kept_by) == 8000


@pytest.mark.parametrize("what", MAKE)
def test_what_the_notebook_has_elsewhere_stays(cell: Notebook, what: str) -> None:
    cell(f"x = {MAKE[what]}\nwatched = {WATCH[what]}", "--quiet")
    other = [cell.names["x"]]
    assert cell("x = None\nwatched() is None") == "False"
    if what == "array":
        assert cell.gpu.get(other[0]).result()[0] == 1.0
    else:
        with pytest.raises(StaleRef, match="reassigned"):
            other[0].get()


def test_what_the_notebook_keeps_under_its_name_stays(cell: Notebook) -> None:
    """Only `y` was asked for."""
    cell("x = xp.ones(3)", "--quiet")
    before = cell.names["x"].id
    cell("x = x + 1\ny = x", "-o y --quiet")
    assert cell.names["x"].id == before
    assert cell.value("x").tolist() == [1.0] * 3
    assert cell.value("y").tolist() == [2.0] * 3


def test_what_another_name_of_the_cells_has_stays(cell: Notebook) -> None:
    cell("x = xp.arange(6.0)", "--quiet")
    cell("part = x[2:]\nsame = x\ndel x", "--quiet")
    assert "x" not in cell.names
    assert cell.value("part").tolist() == [2.0, 3.0, 4.0, 5.0]
    cell("del same\npart += 1", "--quiet")
    assert cell.value("part").tolist() == [3.0, 4.0, 5.0, 6.0]
    cell("inner = [part]\ndel part", "--quiet")
    assert cell("inner[0].tolist()") == "[3.0, 4.0, 5.0, 6.0]"
    cell.lab.flush()
    cell.lab.check()


@pytest.mark.parametrize("end", ["x = x + 1", "del x", "pass", "y = x\ndel x"])
def test_a_cell_that_fails_has_what_it_had_then(cell: Notebook, end: str) -> None:
    cell("x = xp.ones(3)\nwatched = weakref.ref(x)", "--quiet")
    alone(cell)
    with pytest.raises(UserCodeError, match="ZeroDivisionError"):
        cell(f"{end}\ngone = watched() is None\n1 / 0", "--quiet")
    assert cell.names["gone"].get() is (end in ("x = x + 1", "del x"))
    found: dict[str, Any] = {n: cell.value(n)[0] for n in ("x", "y") if n in cell.names}
    assert found == {"x = x + 1": {"x": 2.0}, "del x": {}, "pass": {"x": 1.0}}.get(end, {"y": 1.0})
    lose(cell)
    assert all(cell(f"float({name}[0])") == str(float(one)) for name, one in found.items())


def test_a_list_that_takes_the_place_of_another_is_the_new_one(cell: Notebook) -> None:
    """It may have the very address of the one before."""
    cell("x = [Big()]", "--quiet")
    for turn in range(20):
        cell(f"del x\nx = [{turn}, Big]", "-o x --quiet")
        assert cell(f"x[0] == {turn}") == "True"
        made = cell.names["x"]
        assert isinstance(made, ObjectRef)
        assert f"[{turn}, " in repr(made)
        assert made[0] == turn


@pytest.mark.parametrize("raises", ["raise ValueError", "raise ValueError from KeyError(big)"])
def test_the_frames_of_an_exception_end_with_it(cell: Notebook, raises: str) -> None:
    cell(
        "def fails():\n    global watched\n    big = Big()\n    watched = weakref.ref(big)\n"
        f"    {raises}",
        "--quiet",
    )
    assert cell("try:\n    fails()\nexcept ValueError:\n    pass\nwatched() is None") == "True"
    with pytest.raises(UserCodeError):
        cell("fails()", "--quiet")
    assert cell("watched() is None") == "True"
