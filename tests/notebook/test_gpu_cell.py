"""Cells that run inside a real context: the names that go in and come back."""

import gc
import math
import threading
import weakref
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import System, blas
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument, UserCodeError
from accel_lab.notebook.captures import CAPTURE_BYTES
from accel_lab.notebook.gpu_cell import GpuCells
from accel_lab.notebook.names import used_names
from accel_lab.notebook.object_ref import ObjectRef
from tests.notebook.cells import ONES, Notebook, lose


def test_names_go_in_and_come_back(notebook: Notebook) -> None:
    a = notebook.names["a"] = notebook.gpu.put(ONES)
    notebook.names["k"] = 3
    notebook("b = a * k\nlabel = 'three'")
    b, label = notebook.names["b"], notebook.names["label"]
    assert isinstance(b, AccelRef)
    assert (b.shape, b.dtype) == ((3, 3), "float64")
    np.testing.assert_array_equal(notebook.value("b"), 3 * ONES)
    assert isinstance(label, ObjectRef)
    assert (label.type, label.get()) == ("str", "three")
    assert "'three'" in repr(label)
    assert notebook.names["a"] is a


def test_an_array_in_a_cell_is_the_buffer_itself(notebook: Notebook) -> None:
    a = notebook.names["a"] = notebook.gpu.put(ONES)
    notebook("a += 1")
    np.testing.assert_array_equal(notebook.gpu.get(a).result(), 2 * ONES)
    blas.axpy(a, a, out=a).result()  # 2 + 2, by another library
    assert notebook("float(a.sum())") == "36.0"


def test_xp_is_the_module_of_the_devices_arrays(notebook: Notebook) -> None:
    assert notebook("xp.__name__") == "'numpy'"


def test_a_name_inside_a_text_is_not_seen_and_that_is_said(notebook: Notebook) -> None:
    notebook("later = [lambda: seed + 1]")
    for source in ("eval('seed + 1')", "later[0]()"):
        notebook.names["seed"] = 3
        with pytest.raises(UserCodeError, match="'seed' is not defined") as caught:
            notebook(source)
        assert caught.value.remedy.startswith("Write seed in the cell, if only on a line of its")
        assert notebook(f"seed\n{source}") == "4"
        del notebook.names["seed"]
        with pytest.raises(UserCodeError, match="'seed' is not defined") as caught:
            notebook(source)
        assert caught.value.remedy.startswith("Correct the cell")


def test_what_stands_in_an_f_string_is_code(notebook: Notebook) -> None:
    notebook.names |= {"k": 3, "width": 5}
    assert notebook("f'{k + 1!r:>{width}}'") == "'    4'"


def test_a_cell_after_another_knows_its_names(notebook: Notebook) -> None:
    notebook("model = {'w': np.full(4, 2.0)}\ndef twice(x):\n    return 2 * x")
    assert isinstance(notebook.names["model"], ObjectRef)
    assert notebook.names["model"].nbytes == 32
    assert notebook("twice(model['w']).tolist()") == "[4.0, 4.0, 4.0, 4.0]"


def test_the_notebooks_own_functions_and_what_they_use_go_in(notebook: Notebook) -> None:
    scale = 4
    inner = notebook.gpu.put(ONES)

    def scaled(x: Any) -> Any:
        return scale * x + inner

    notebook.names |= {"scaled": scaled, "math": math}
    assert notebook("scaled(np.zeros((3, 3))).sum() + math.floor(1.5)") == "np.float64(10.0)"


def test_a_decorated_function_runs_in_the_context(notebook: Notebook) -> None:
    @notebook.gpu.function(pure=True)
    def scaled(x: Any, *, by: float) -> Any:
        """Scale."""
        return x * by

    a = notebook.gpu.put(ONES)
    answer = scaled(a, by=3.0)
    assert isinstance(answer, AccelRef)
    np.testing.assert_array_equal(notebook.gpu.get(answer).result(), 3 * ONES)
    assert answer.durability == "replayable"
    assert scaled.__doc__ == "Scale."
    assert scaled.__wrapped__(2, by=2) == 4  # type: ignore[attr-defined]


def test_a_function_is_decorated_without_options_too(notebook: Notebook) -> None:
    @notebook.gpu.function
    def twice(x: Any) -> Any:
        return 2 * x

    assert twice(21).result() == 42
    assert twice.__wrapped__(1) == 2  # type: ignore[attr-defined]


def test_a_name_that_hides_a_built_in_one_goes_in(notebook: Notebook) -> None:
    notebook.names |= {"input": notebook.gpu.put(ONES), "max": 3}
    assert notebook("float(input.sum()) + max") == "12.0"


def test_a_parameter_is_not_the_notebooks_name(notebook: Notebook) -> None:
    """However large what the notebook calls so, and though a fault took it."""
    notebook.names["table"] = b"0" * (CAPTURE_BYTES + 1)
    notebook("row = 'lost'")
    lose(notebook)
    notebook("def first(table, row=0):\n    return table[row]")
    assert notebook("first('abc')") == "'a'"


def test_what_is_bound_anew_goes_in_again(notebook: Notebook) -> None:
    notebook.names["n"] = 1
    notebook("m = n + 1")
    notebook.names["n"] = 10
    assert notebook("n") == "10"
    notebook.names["m"] = 7  # no longer the handle
    assert notebook("m") == "7"


def test_a_name_that_a_cell_deletes_goes_from_the_notebook(notebook: Notebook) -> None:
    notebook("x = 1\ny = 2")
    notebook("del x")
    assert "x" not in notebook.names
    assert notebook.names["y"].get() == 2


def test_a_name_may_be_bound_by_a_pattern_or_a_handler(notebook: Notebook) -> None:
    notebook.names |= {"kind": "mine", "rest": "mine", "error": "mine"}
    use = (
        "match ['a', 'b']:\n    case ['c', kind, *rest]: pass\n    case {'k': 1, **rest}: pass\n"
        "try:\n    pass\nexcept OSError as error:\n    pass\nkind, rest, error"
    )
    assert notebook(use) == "('mine', 'mine', 'mine')"
    notebook("kind = rest = error = 'bound'")
    notebook.names |= {"kind": "mine", "rest": "mine", "error": "mine"}
    assert notebook(use) == "('mine', 'mine', 'mine')"
    notebook("match 'new':\n    case kind: pass")
    assert notebook.names["kind"].get() == "new"


def test_a_name_that_a_cell_deletes_goes_though_the_notebook_has_bound_it(
    notebook: Notebook,
) -> None:
    notebook("m = 1")
    notebook.names["m"] = 2
    notebook("del m")
    assert "m" not in notebook.names
    notebook.names["m"] = 3
    notebook("m = 4\ndel m")
    assert "m" not in notebook.names


def test_a_function_that_a_cell_calls_finds_what_the_cell_is_to_bind_anew(
    notebook: Notebook,
) -> None:
    notebook.names["w"] = 1
    notebook("table = [lambda: w + 1]")
    notebook("w = table[0]()")
    assert notebook.names["w"].get() == 2
    notebook.names["w"] = 5
    notebook("w = table[0]()")
    assert notebook.names["w"].get() == 6
    exec("def step():\n    return w * 2", notebook.names)  # noqa: S102 - of this file
    notebook.names |= {"w": 7, "f": notebook.names["step"]}
    notebook("table.append(lambda: f())")
    notebook("f = table[1]()")
    assert notebook.names["f"].get() == 14, "the function's own names go along, too"


def test_a_private_name_that_the_notebook_has_is_one_of_both(notebook: Notebook) -> None:
    notebook.names |= {"_best": 0, "_": "shown last"}
    notebook("for _ in range(2):\n    _best = 1")
    assert notebook("_best") == "1"
    assert notebook.names["_best"].get() == 1
    assert notebook.names["_"] == "shown last"


def test_a_name_that_gets_its_old_handle_again_is_what_that_stands_for(
    notebook: Notebook,
) -> None:
    notebook("x = xp.ones(2)")
    old = notebook.names["x"]
    notebook.names["x"] = 7
    notebook("x")
    notebook.names["x"] = old
    assert notebook("float(x.sum())") == "2.0"


def test_only_what_is_asked_for_comes_back(notebook: Notebook) -> None:
    notebook("u = 1\nv = 2", "-o v")
    assert "u" not in notebook.names
    assert notebook.names["v"].get() == 2
    notebook("u, v = 3, 4", "-o u, v --quiet")
    assert (notebook.names["u"].get(), notebook.names["v"].get()) == (3, 4)
    notebook("u, v = 5, 6", "-o u ,v")
    assert (notebook.names["u"].get(), notebook.names["v"].get()) == (5, 6)
    notebook("u = 7", "-o u cpu0")
    assert notebook.names["u"].get() == 7
    with pytest.raises(InvalidArgument, match="did not assign w"):
        notebook("v = 3", "-o w")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("--loud", "'--loud' is not understood"),
        ("cpu0 cpu1", "'cpu1' is not understood"),
        ("-o", "-o takes names"),
        ("cpu9", "'cpu9' is no device"),
        ("-o u v", "'v' is no device .* separated by commas: -o u,v$"),
        ("-o u v --quiet", "'v' is no device .* separated by commas: -o u,v$"),
        ("-o u v w", "separated by commas: -o u,v,w$"),
        ("-o u, v w", "separated by commas: -o u,v,w$"),
        ("cpu0 -o u v", "separated by commas: -o u,v$"),
        ("-o u cpu0 --quiet cpu1", "'cpu1' is not understood"),
    ],
)
def test_options_that_do_not_fit_are_refused(notebook: Notebook, line: str, why: str) -> None:
    with pytest.raises(InvalidArgument, match=why):
        notebook("1", line)


def test_two_names_of_one_array_are_one_handle_and_come_back(notebook: Notebook) -> None:
    notebook("u = xp.zeros(4)\nfor _ in range(3):\n    new = u + 1\n    u = new")
    assert notebook.names["u"] is notebook.names["new"]
    notebook("again = u")
    assert notebook.names["again"] is notebook.names["u"]
    notebook.names["given"] = notebook.gpu.put(ONES)
    notebook("taken = given")
    assert notebook.names["taken"] is notebook.names["given"]
    notebook.lab.flush()
    assert notebook.names["u"].durability == "checkpointed"
    lose(notebook)
    assert notebook("u is new, again.tolist()") == "(True, [3.0, 3.0, 3.0, 3.0])"
    assert notebook("u = u + 1\nu.tolist()") == "[4.0, 4.0, 4.0, 4.0]"
    assert notebook.value("new").tolist() == [3.0, 3.0, 3.0, 3.0]


def test_another_name_is_a_handle_where_the_first_was_not_asked_for(notebook: Notebook) -> None:
    notebook("hidden = xp.ones(2)", "-o hidden")
    del notebook.names["hidden"]
    notebook("secret = xp.arange(2.0)\nseen = secret", "-o seen")
    assert "secret" not in notebook.names
    assert notebook.value("seen").tolist() == [0.0, 1.0]
    notebook("found = secret")
    assert notebook.value("found").tolist() == [0.0, 1.0]
    notebook("found = xp.ones(1)", "-o found")
    notebook("found = xp.zeros(1)\nother = found", "-o other")
    assert notebook.value("found").tolist() == [1.0]
    assert notebook.value("other").tolist() == [0.0]
    assert notebook("found.tolist()") == "[1.0]"


def test_a_function_of_the_notebook_finds_what_a_cell_has_bound(notebook: Notebook) -> None:
    """As one that says `cp.`, where a cell says `cp = xp`."""
    namespace = notebook.names
    source = "def inner(x):\n    return cp.sum(x)\ndef total(x):\n    return inner(x) + offset"
    exec(source, namespace)  # noqa: S102 - as IPython does
    notebook("cp, offset = xp, 0.5")
    assert notebook("float(total(xp.ones(3)))") == "3.5"
    namespace["offset"] = 10  # the notebook's own goes first
    assert notebook("float(total(xp.ones(3)))") == "13.0"


def test_a_cell_that_is_not_python_is_refused_before_it_is_sent(notebook: Notebook) -> None:
    with pytest.raises(InvalidArgument, match=r"not plain Python.*line 2: !ls") as caught:
        notebook("x = 1\n!ls")
    assert "Correct that line" in caught.value.remedy


def test_captures_that_cannot_go_in_are_refused_by_name(notebook: Notebook) -> None:
    notebook.names["lock"] = threading.Lock()
    with pytest.raises(InvalidArgument, match="lock, a lock, cannot go into the cell"):
        notebook("lock")
    notebook.names["gpu"] = notebook.gpu
    with pytest.raises(InvalidArgument, match="gpu, a Device, stays in the notebook"):
        notebook("x = gpu.put(xp.ones(3))")
    notebook.names["big"] = np.zeros(CAPTURE_BYTES + 1, np.uint8)
    with pytest.raises(InvalidArgument, match=r"big = gpu.put\(big\)"):
        notebook("big.sum()")
    notebook.names |= {"table": {"key": "x" * CAPTURE_BYTES}}  # `put` takes none
    with pytest.raises(InvalidArgument, match=r"; make table in a %%gpu cell$"):
        notebook("table['key']")


def test_a_number_that_a_cell_computes_is_a_handle(notebook: Notebook) -> None:
    notebook("total = xp.arange(5.0).sum()")
    assert isinstance(notebook.names["total"], AccelRef)
    assert float(notebook.names["total"]) == 10.0
    assert notebook("float(total) + 1") == "11.0"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("y = x + len(z)", ["len", "x", "z"]),
        ("x += 1", ["x"]),
        ("def f(a):\n    return a + b\nf(c)", ["b", "c"]),
        ("def f(n):\n    return f(n - 1)", []),
        ("@g\ndef g(a=g):\n    pass", ["g"]),
        ("def f():\n    return x\nx = 1", ["x"]),
        ("x = 1\nx", []),
        ("x\nx = 1", ["x"]),
        ("x = x + 1", ["x"]),
        ("x: k = 1\nx", ["k"]),
        ("x, (y, z[0]) = w\nx + y", ["w", "z"]),
        ("if a:\n    x = 1\nx", ["a", "x"]),
        ("try:\n    x = 1\nexcept E:\n    pass\nx", ["E", "x"]),
        ("with a as b, b.c as d:\n    d", ["a"]),
        ("with a as z[0]:\n    pass\nz = 1", ["a", "z"]),
        ("def f() -> x:\n    pass\nx = 1", ["x"]),
        ("with a:\n    x = 1\nx", ["a", "x"]),
        ("class C:\n    k = C", ["C"]),
        ("class C:\n    k = k\n    n = 1\n    m = n", ["k"]),
        ("@d\nclass C:\n    n += 1\n    if n:\n        k = 1\n    m = k", ["d", "k", "n"]),
        ("class C:\n    m = [i for i in n]\n    def get(self):\n        k = k", ["n"]),
        ("def f(k):\n    class C:\n        k = k", ["k"]),
        ("def f(k):\n    class C:\n        m = k", []),
        ("for i in n: pass\ni", ["i", "n"]),
        ("def f(a=d):\n    n = a\n    return [n for i in m]", ["d", "m"]),
        ("def f():\n    def g():\n        return n\n    n = b", ["b"]),
        ("def f():\n    global n\n    n += 1", ["n"]),
        ("class C(B):\n    size = 3\n    def get(self):\n        return self.size * k", ["B", "k"]),
        ("[i for i in n]\nk = lambda i: i + z", ["n", "z"]),
        ("{k: v + z for k, v in m.items() if k}\n[i for i in n]\ni", ["i", "m", "n", "z"]),
        ("i = 3\n[[i for i in j] for j in n if o]", ["n", "o"]),
        ("[i := n for n in m]\ni", ["i", "m"]),
        ("for i in n: print(i)", ["n", "print"]),
        ("del gone", ["gone"]),
        ("match x:\n    case [a, *b] | {'k': a, **b}: a\n    case [_] as c: c\nb", list("abcx")),
        ("try:\n    pass\nexcept E as e:\n    e", ["E", "e"]),
        ("import os\nos.path", []),
        ("os.path\nimport os", ["os"]),
    ],
)
def test_names_that_a_cell_uses_before_it_binds_them(source: str, names: list[str]) -> None:
    assert used_names(source) == names


def test_what_a_cell_binds_first_need_not_travel(notebook: Notebook, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("epoch 1")
    with path.open() as file:
        pass
    notebook.names |= {"file": file, "big": np.zeros(4_000_000), "path": str(path)}
    assert notebook("with open(path) as file:\n    text = file.read()\ntext") == "'epoch 1'"
    assert notebook("big = xp.ones(3)\nbig.shape") == "(3,)"
    notebook.names["file"] = file
    assert notebook("for file in range(2):\n    last = file\nlast") == "1"
    notebook.names["file"] = file
    with pytest.raises(InvalidArgument, match="file, a TextIOWrapper, cannot go"):
        notebook("file\nfile = 1")


@pytest.mark.skipif(bool(find_spec("cupy")), reason="CuPy is here")
@pytest.mark.parametrize("source", ["import cupy as cp", "from cupyx.scipy import fft"])
def test_what_stands_for_cupy_without_a_gpu_is_said(notebook: Notebook, source: str) -> None:
    with pytest.raises(UserCodeError, match=r"No module named 'cupyx?'") as caught:
        notebook(source)
    assert "Write cp = xp in place of the import" in caught.value.remedy


def test_an_array_of_a_closed_system_is_said_to_be_so(notebook: Notebook) -> None:
    with System("host") as other:
        notebook.names["x"] = other.devices[0].put(np.ones(2))
    with pytest.raises(InvalidArgument, match="x is on cpu0 of a system that is closed, and the"):
        notebook("x + 1")


@pytest.mark.parametrize(
    "source",
    [
        "x = np.arange(3.0)\ny = x.view()\ny.flags.writeable = False",
        "x = np.arange(3.0)\ny = np.broadcast_to(x, (2, 3))",
        "x = y = np.arange(3).astype('>f8')",
    ],
)
def test_an_array_of_which_a_buffer_would_have_a_copy_stays(
    notebook: Notebook, source: str
) -> None:
    notebook(source)
    assert isinstance(notebook.names["y"], ObjectRef)
    notebook("x[0] = 7.0")
    assert np.asarray(notebook.names["y"]).ravel()[0] == 7.0
    assert notebook("float(y.ravel()[0])") == "7.0"


def test_an_array_that_nobody_writes_may_be_copied(notebook: Notebook) -> None:
    notebook("y = np.arange(3.0)\ny.flags.writeable = False\nz = np.zeros((0, 2))[::-1]")
    assert isinstance(notebook.names["y"], AccelRef)
    assert isinstance(notebook.names["z"], AccelRef)


@pytest.mark.parametrize("source", ["y = [1, 2, 3]", "y = np.ones(3)", "def y(): return 1"])
def test_a_system_that_nobody_has_any_more_ends_though_cells_ran_there(source: str) -> None:
    """Each run of the cell that opens a system would leave one more context."""
    names: dict[str, Any] = {"np": np, "lab": System("host")}
    cells = GpuCells(names, lambda _: names["lab"].devices[0])
    cells.run("", source)
    lab = weakref.ref(names["lab"])
    names.clear()
    gc.collect()
    assert lab() is None
