"""Functions of the notebook look up their globals among the names of its cells."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from accel_lab.errors import InvalidArgument, UserCodeError
from accel_lab.notebook.captures import CAPTURE_BYTES
from tests.notebook.cells import Notebook, lose


def define(notebook: Notebook, source: str) -> None:
    """Run a cell of the notebook's own."""
    notebook.names["__name__"] = "__main__"
    exec(source, notebook.names)  # noqa: S102 - as IPython does


STEP = "rate = 0.5\ndef step(x):\n    return x * rate\n"


def test_a_function_sees_at_once_what_the_cell_assigns(notebook: Notebook) -> None:
    define(notebook, STEP)
    assert notebook("step(2.0)") == "1.0"
    assert notebook("before = step(2.0)\nrate = 3.0\nbefore, step(2.0)") == "(1.0, 6.0)"
    assert float(notebook.names["rate"]) == 3.0
    assert notebook("step(2.0)") == "6.0"
    define(notebook, "rate = 10.0")
    assert notebook("step(2.0)") == "20.0", "the notebook's own is the last one"


def test_what_a_function_declares_global_is_bound_in_the_notebook(notebook: Notebook) -> None:
    define(notebook, "count = 0\ndef add():\n    global count\n    count += 1\n    return count\n")
    assert notebook("add(), add()") == "(1, 2)"
    assert notebook.names["count"] == 2
    assert notebook("add()") == "3"


@pytest.mark.parametrize(
    ("source", "call"),
    [
        ("many = [step]", "many[0]"),
        ("from functools import partial\nbound = partial(step)", "bound"),
        ("def outer(x, inner=step):\n    return inner(x)", "outer"),
        ("def outer(x):\n    return (lambda y: step(y))(x)", "outer"),
        ("import functools\ncached = functools.cache(step)", "cached"),
        (
            "class Model:\n    def __call__(self, x):\n        return step(x)\nmodel = Model()",
            "model",
        ),
        ("class Base:\n    step = staticmethod(step)\nclass Model(Base): pass", "Model.step"),
        ("def outer(x):\n    class Own:\n        y = rate\n    return x * Own.y", "outer"),
    ],
)
def test_it_is_so_wherever_the_function_is(notebook: Notebook, source: str, call: str) -> None:
    define(notebook, STEP + source)
    assert notebook(f"{call}(2.0)") == "1.0"
    assert notebook(f"rate = 3.0\n{call}(4.0)") == "12.0"


def test_a_buffer_is_the_cells_own(notebook: Notebook) -> None:
    define(notebook, "def total():\n    return float(data.sum())\n")
    notebook("data = xp.ones(4)")
    assert notebook("data[0] = 3.0\ntotal()") == "6.0"
    assert notebook("total()") == "6.0"
    lose(notebook)
    assert notebook("total()") == "6.0"


def test_a_function_of_a_cell_behind_one_of_the_notebook_sees_what_it_has_now(
    notebook: Notebook,
) -> None:
    define(notebook, "rate = 0.5\ndef outer(x):\n    return inner(x)\n")
    notebook("def inner(x):\n    return x * rate")
    assert notebook("outer(2.0)") == "1.0"
    define(notebook, "rate = 2.0")
    assert notebook("outer(2.0)") == "4.0"


def test_bases_and_decorators_of_a_cells_class_are_seen(notebook: Notebook) -> None:
    define(notebook, "SIZE = 1\nclass Base:\n    def size(self):\n        return SIZE\n")
    notebook("class Own(Base): pass")
    assert notebook("Own().size()") == "1"
    define(notebook, "SIZE = 2")
    assert notebook("Own().size()") == "2"


def test_what_the_notebook_has_deleted_is_gone_for_its_functions_and_cells(
    notebook: Notebook,
) -> None:
    define(notebook, STEP + "max = lambda *_: 'mine'\ndef most():\n    return max(1, 2)\n")
    assert notebook("step(2.0), most()") == "(1.0, 'mine')"
    del notebook.names["rate"], notebook.names["max"]
    assert notebook("most()") == "2", "the built-in function again"
    with pytest.raises(UserCodeError, match="name 'rate' is not defined"):
        notebook("step(2.0)")


def test_what_cells_have_bound_and_the_notebook_has_deleted_is_gone_for_cells(
    notebook: Notebook,
) -> None:
    notebook("def f():\n    return 'mine'\nx, y, z, _own = [1], np.ones(2), [3], 4")
    other = notebook.names["z"]
    for name in ("f", "x", "y", "z"):
        del notebook.names[name]
    for name in ("x", "y", "f()"):
        with pytest.raises(UserCodeError, match="is not defined"):
            notebook(name)
    notebook.names["other"] = other
    assert notebook("other") == "[3]", "the notebook has it by another name"
    assert other.get() == [3]
    del other, notebook.names["other"]
    with pytest.raises(UserCodeError, match="'z' is not defined"):
        notebook("z")
    assert notebook("_own") == "4", "of which the notebook has had no handle"
    lose(notebook)
    with pytest.raises(UserCodeError, match="'f' is not defined"):
        notebook("f()")


def test_what_a_cell_binds_as_it_was_before_is_bound_in_the_notebook(notebook: Notebook) -> None:
    define(notebook, "best = None")
    notebook("best is None")
    define(notebook, "best = 5")
    notebook("best = None")
    assert notebook.names["best"] == None  # noqa: E711 - a handle
    define(notebook, "best = 5")
    notebook("if False:\n    best = None")
    assert notebook.names["best"] == 5, "it was not bound"
    notebook("best = None")
    del notebook.names["best"]
    notebook("best = None")
    assert notebook.names["best"] == None  # noqa: E711 - a handle


def test_private_names_of_the_notebook_come_back(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    define(notebook, "_count = 0")
    notebook("_count += 1")
    notebook("_count += 1\n_hidden = [object()]")
    assert notebook.names["_count"] == 2
    assert "_hidden" not in notebook.names
    lose(notebook)
    assert notebook("_count") == "2"
    assert "and with it _hidden;" in capsys.readouterr().err, "of a number there is a copy"
    assert notebook("_count += 1\n_count") == "3"


def test_what_is_changed_and_bound_anew_is_changed(notebook: Notebook) -> None:
    define(notebook, "log = []\nsame = log")
    notebook("log.append(1)\nlog = [2]")
    assert notebook.names["same"] == [1]
    assert notebook.names["log"].get() == [2]


def test_what_a_cell_deletes_is_deleted(notebook: Notebook) -> None:
    define(notebook, "one, two = 1, 2")
    notebook("del one")
    assert "one" not in notebook.names
    notebook("x = two\ndel two", "-o x")
    assert notebook.names["two"] == 2, "it was not asked for"


def test_what_a_function_uses_is_refused_by_name(notebook: Notebook) -> None:
    define(notebook, "def total():\n    return big.sum()\ndef held():\n    return lock\n")
    notebook.names["big"] = np.zeros(CAPTURE_BYTES + 1, np.uint8)
    notebook.names["lock"] = (n for n in range(3))
    with pytest.raises(InvalidArgument, match=r"big, which total uses, is .* gpu.put\(big\)"):
        notebook("total()")
    with pytest.raises(InvalidArgument, match="lock, which held uses, a generator, cannot go"):
        notebook("held()")


def test_a_timed_cell_leaves_the_names_as_they_were(notebook: Notebook) -> None:
    define(notebook, STEP)
    seen: list[Any] = []
    notebook.names["seen"] = seen
    notebook._cells.time("-n 2 -r 1", "seen.append(step(2.0))\nrate = 3.0\nseen.append(step(2.0))")
    assert notebook("step(2.0)") == "1.0"
    assert float(notebook.names["rate"]) == 0.5
    assert notebook("held = list(seen); held") is not None


def test_run_gives_a_function_a_copy_of_what_it_uses(notebook: Notebook) -> None:
    define(notebook, STEP)
    notebook("rate = 7.0")
    define(notebook, "rate = 0.5")
    assert notebook.gpu.run(notebook.names["step"], 2.0).result() == 1.0
    assert notebook.gpu.run(partial(notebook.names["step"]), 2.0).result() == 1.0
    assert notebook("rate") == "0.5"
