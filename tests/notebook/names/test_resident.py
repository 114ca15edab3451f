"""What a device holds and who keeps it, in a real IPython; sizes are NumPy's own."""

import gc
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("IPython", reason="IPython comes with the lab extra")

from accel_lab import System
from accel_lab.compute.cells.workspace_registry import Workspaces
from accel_lab.compute.message.service import in_context
from accel_lab.compute.residency.resident import Resident, ResidentBuffer, ResidentObject
from accel_lab.display.sizes import size
from accel_lab.errors import InvalidArgument, StaleRef
from tests.notebook.ipython import Lab, notebook, wait_for_file

MIB = 1 << 20


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with System("host") as opened:
        yield opened


@pytest.fixture
def lab(system: System) -> Iterator[Lab]:
    with notebook(system) as opened:
        yield opened


def buffers(table: Resident) -> list[ResidentBuffer]:
    return [row for row in table if isinstance(row, ResidentBuffer)]


def test_an_empty_device_has_no_rows(lab: Lab) -> None:
    table = lab.gpu.resident
    assert (len(table), table.nbytes) == (0, 0)
    assert repr(table).startswith(f"Resident on {lab.gpu.name}: 0 / ")


def test_a_buffer_has_its_size_and_every_name(lab: Lab) -> None:
    lab("a = gpu.put(np.ones((256, 512)))\nboth = [a]\nclass Model: pass\nm = Model(); m.w = a")
    lab("a")
    (row,) = lab.gpu.resident
    assert isinstance(row, ResidentBuffer)
    assert (row.nbytes, row.dtype, row.shape) == (256 * 512 * 8, "float64", (256, 512))
    assert row.generation == lab.gpu.generation
    assert set(row.kept_by) == {"a", "both[0]", "m.w", "_", "Out[3]"}
    assert row.ids == (lab.names["a"].id,)


def test_rows_are_sorted_and_add_up(lab: Lab) -> None:
    arrays = {f"x{n}": np.ones(n, "float32") for n in (7, 1000, 30)}
    for name, array in arrays.items():
        lab.names[name] = lab.gpu.put(array)
    lab.names["part"] = lab.names["x1000"][10:]
    table = lab.gpu.resident
    assert [row.nbytes for row in table] == [4000, 120, 28]
    assert table.nbytes == table.used_bytes == sum(array.nbytes for array in arrays.values())
    assert set(table[0].kept_by) == {"part", "x1000"}  # a view has the memory of its base
    last = repr(table).splitlines()[-1]
    assert last.split() == ["total", *size(table.nbytes).split(), "3", "buffers,", "0", "objects"]


def test_names_of_cells_keep_too(lab: Lab) -> None:
    lab(f"a = gpu.put(np.ones({MIB}))")
    lab("%%gpu gpu\nb = a[::2]")
    lab("del a")
    (row,) = lab.gpu.resident
    assert set(row.kept_by) >= {"b", "%%gpu a", "%%gpu b"}
    assert row.nbytes == 8 * MIB


def test_an_object_is_seen_with_all_that_it_holds(lab: Lab) -> None:
    lab("a = gpu.put(np.ones(1000))")
    lab(
        "%%gpu gpu\n"
        "w = np.ones(500)\n"
        "deep = {'layers': [[w], [np.ones(300)], (a, a[5:])], 'of': lambda: w}"
    )
    row = lab.gpu.resident["%%gpu deep"]
    assert isinstance(row, ResidentObject)
    assert row.type == "dict"
    assert row.nbytes == 8 * (1000 + 500 + 300)
    table = lab.gpu.resident
    assert table.nbytes == 8 * (1000 + 500 + 300)  # `w` and `a` are buffers, and counted as such
    assert "each byte once" in " ".join(repr(table).split())


def test_a_function_does_not_count_with_the_names_of_its_module(lab: Lab) -> None:
    lab(
        "%%gpu gpu\nimport types\n"
        "module = types.ModuleType('module')\n"
        "source = 'import numpy as np; big = np.ones(1000)\\ndef f(x, y=np.ones(5)): pass'\n"
        "exec(source, vars(module))\n"
        "used = {'f': module.f}\n"
    )
    assert lab.gpu.resident["%%gpu used"].nbytes == 40


def test_free_gives_back_what_cells_have_named_too(lab: Lab) -> None:
    lab(f"a = gpu.put(np.ones({MIB}))\nb = gpu.put(np.ones(10))")
    lab(
        "%%gpu gpu\nimport sys, weakref\n"
        "sys.watched = weakref.ref(a if a.base is None else a.base)\nb"
    )
    assert lab("gpu.run(lambda: __import__('sys').watched() is not None).result()")
    row = lab.gpu.resident["a"]
    assert isinstance(row, ResidentBuffer)
    row.free()
    assert [row.nbytes for row in lab.gpu.resident] == [80]
    assert not lab("gpu.run(lambda: __import__('sys').watched() is not None).result()")
    with pytest.raises(StaleRef, match="was freed"):
        lab.gpu.get(lab.names["a"]).result()


def test_a_name_of_a_cell_goes_with_a_del_in_a_cell_or_with_the_cell_after_one(lab: Lab) -> None:
    lab("%%gpu gpu\nlarge, model = np.zeros((100, 100)), {'w': np.zeros((10, 10))}")
    lab("%%gpu gpu\nwide = large + 1")
    lab("del large, model")
    assert {"%%gpu large", "%%gpu model"} <= {
        name for row in lab.gpu.resident for name in row.kept_by
    }
    lab.gpu.resident["%%gpu model"].drop()  # type: ignore[union-attr]
    lab("%%gpu gpu\npass")
    assert {"wide"} == {row.kept_by[0] for row in lab.gpu.resident}
    lab("%%gpu gpu\ndel wide")
    assert not list(lab.gpu.resident)


def test_drop_has_cells_forget_an_object(lab: Lab) -> None:
    lab("%%gpu gpu\nimport sys, weakref\nw = [np.ones(1000)]\nsys.watched = weakref.ref(w[0])")
    row = lab.gpu.resident["w"]
    assert isinstance(row, ResidentObject)
    row.drop()
    assert lab("gpu.run(lambda: __import__('sys').watched() is None).result()")
    assert len(lab.gpu.resident) == 0
    with pytest.raises(StaleRef, match="'w' was deleted"):
        lab.names["w"].get()


def test_what_a_failed_cell_has_bound_is_seen_and_freed(lab: Lab) -> None:
    lab.fail("%%gpu gpu\nmade = np.ones((3, 1000))\nraise ValueError")
    row = lab.gpu.resident["made"]
    assert isinstance(row, ResidentBuffer)
    assert (row.shape, row.nbytes) == ((3, 1000), 24_000)
    row.free()
    assert lab.gpu.resident.nbytes == 0


def test_what_a_cell_does_not_give_back_is_seen_and_dropped(lab: Lab) -> None:
    lab("%%gpu gpu -o given\ngiven = 1\nhidden = np.ones((3, 1000))")
    assert "hidden" not in lab.names
    row = lab.gpu.resident["hidden"]
    assert isinstance(row, ResidentObject)
    assert (row.type, row.nbytes) == ("float64[3, 1000]", 24_000)
    row.drop()
    assert lab.gpu.resident.nbytes == 0


def test_variables_of_a_failed_function_keep(lab: Lab) -> None:
    lab.fail(
        "def train():\n    x = gpu.put(np.ones(100))\n"
        "    steps = [gpu.put(np.ones(20))]\n    1 / 0\ntrain()"
    )
    kept = {row.shape: row.kept_by for row in buffers(lab.gpu.resident)}
    assert kept == {
        (100,): ("x in train(), of the last error",),
        (20,): ("steps[0] in train(), of the last error",),
    }


def test_variables_of_a_function_that_runs_keep_and_are_not_kept(lab: Lab) -> None:
    lab(
        "def look():\n"
        "    x = gpu.put(np.ones(100))\n"
        "    before = gpu.resident\n"
        "    del x\n"
        "    return before, gpu.resident\n"
        "before, after = look()"
    )
    (row,) = lab.names["before"]
    assert row.kept_by == ("x in look()",)
    assert len(lab.names["after"]) == 0


def test_a_handle_without_a_name_is_found(lab: Lab) -> None:
    lab("def later(x):\n    return lambda: x\nf = later(gpu.put(np.ones(5)))")
    (row,) = lab.gpu.resident
    assert row.kept_by == ("a closure's cell",)
    lab("nested = [[gpu.put(np.ones(6))]]")
    assert lab.gpu.resident[0].kept_by == ("a list",)


def test_a_buffer_that_has_given_way_is_there_with_what_it_has_on_the_host() -> None:
    with System("host", memory_bytes=3 * MIB) as system, notebook(system) as lab:
        lab(f"a = gpu.put(np.ones({MIB // 4}))\na.result()\nb = gpu.put(np.ones({MIB // 4}))")
        table = lab.gpu.resident
        assert table.nbytes == 2 * MIB
        row = table["a"]
        assert isinstance(row, ResidentBuffer)
        assert (row.nbytes, row.away_bytes, row.shape) == (0, 2 * MIB, (MIB // 4,))
        assert "2 MiB on the host" in repr(table)
        row.free()
        assert [row.kept_by for row in lab.gpu.resident] == [("b",)]


def test_a_table_keeps_nothing_alive(lab: Lab) -> None:
    lab("a = gpu.put(np.ones(1000))\ntable = gpu.resident\ntable")
    lab("del a")
    gc.collect()
    assert len(lab.gpu.resident) == 0
    (row,) = buffers(lab.names["table"])
    row.free()  # what is gone already is no error


def test_a_busy_device_is_looked_at_all_the_same(lab: Lab, tmp_path: Path) -> None:
    x = lab.gpu.put(np.ones(1000))
    x.result()
    lab.names["a"] = lab.gpu.put(np.ones(500))
    lab.names["a"].result()
    done = tmp_path / "done"
    running = lab.gpu.run(wait_for_file, str(done), x)
    del x
    try:
        table = lab.gpu.resident
    finally:
        done.touch()
    running.result()
    assert {row.nbytes: row.kept_by for row in table} == {8000: ("work in flight",), 4000: ("a",)}
    assert "is busy" in table.note
    assert table.note in repr(table)
    assert len(lab.gpu.resident) == 1


def test_looking_runs_nothing_of_the_users(lab: Lab) -> None:
    lab(
        "class Shy:\n"
        "    def __getattribute__(self, name): touched.append(name)\n"
        "    def __repr__(self): touched.append('repr')\n"
        "touched = []\nshy = Shy()\nbelow = [Shy()]\na = gpu.put(np.ones(3))"
    )
    lab("%%gpu gpu\nclass Shy:\n    def __getattribute__(self, name): import os; os._exit(3)\n")
    lab.gpu.run(_bind_shy, in_context(Workspaces)).result()
    lab("touched.clear()")
    assert len(lab.gpu.resident) >= 1
    assert lab.names["touched"] == []
    assert lab.gpu.generation == 1


def _bind_shy(workspaces: Workspaces) -> None:
    for space in workspaces.spaces().values():
        space.names["shy"] = [space.names["Shy"]()]


class _Cells(HTMLParser):
    """Collects the text of a table's cells."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._in = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:  # noqa: ARG002
        if tag == "tr":
            self.rows.append([])
        self._in = tag in ("td", "th")
        if self._in:
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self._in:
            self.rows[-1][-1] += data


def test_the_table_in_a_notebook_has_the_same_cells(lab: Lab) -> None:
    lab("d = {'<b>': gpu.put(np.ones((2, 3)))}")
    parser = _Cells()
    parser.feed(lab.gpu.resident._repr_html_())
    head, row, total = parser.rows
    assert head == ["What", "Size", "Array or type", "Generation", "Made by", "Kept by"]
    ref = lab.names["d"]["<b>"]
    assert row[:4] == [f"buffer {ref.id}", "48 B", "float64[2, 3]", "1"]
    assert row[5] == "d['<b>']"
    assert total[:3] == ["total", "48 B", "1 buffer, 0 objects"]


def test_a_long_table_says_what_is_not_drawn(lab: Lab) -> None:
    lab("many = [gpu.put(np.ones(n)) for n in range(1, 41)]")
    drawn = repr(lab.gpu.resident).splitlines()
    assert drawn[-1] == "10 more rows with 440 B are not drawn"
    assert len(drawn) == 1 + 1 + 30 + 1 + 1


def test_a_name_that_keeps_nothing_is_refused(lab: Lab) -> None:
    with pytest.raises(InvalidArgument, match=r"nothing on .* is kept by the name 'x'"):
        lab.gpu.resident["x"]
