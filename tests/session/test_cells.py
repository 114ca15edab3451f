"""Cells of a notebook: each is committed when it has ended, and the next kernel has its names."""

import os
import random
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel_lab
from accel_lab.errors import SessionError
from accel_lab.session.session import Session
from accel_lab.session.store.commit import Commit
from tests.interactive import Shell, shell


class Notebook:
    """An IPython, in which a folder is open as `lab`."""

    def __init__(self, opened: Shell) -> None:
        self._shell = opened
        self.names: dict[str, Any] = opened.ipython.user_ns

    def __call__(self, source: str) -> Any:
        """Run a cell; return its value."""
        value = self._shell(source)
        assert self._shell.error is None, self._shell.error
        return value

    def fail(self, source: str) -> BaseException:
        """Run a cell that must fail; return its error."""
        self._shell(source)
        assert self._shell.error is not None
        error: BaseException = self._shell.error
        return error

    @property
    def lab(self) -> Session:
        found: Session = self.names["lab"]
        return found

    def last(self) -> Commit:
        return self.lab._folder.read(self.lab._numbers[-1])[0]


@contextmanager
def notebook(folder: Path, options: str = "") -> Iterator[Notebook]:
    """Start a kernel's worth of cells, and open a folder there."""
    with shell() as opened:
        made = Notebook(opened)
        made("%load_ext accel_lab\nimport accel_lab")
        made(f"lab = accel_lab.open({str(folder)!r}, 'host'{options})")
        try:
            yield made
        finally:
            made.lab.close()
            made("%unload_ext accel_lab")
            opened.ipython.last_execution_result = None
            for name in ("last_type", "last_value", "last_traceback", "last_exc"):
                vars(sys).pop(name, None)


CELLS = (
    "import numpy as np\nfrom math import sqrt\nimport random",
    "def double(x):\n    return factor * x\nfactor = 2\nclass Point:\n    n = 3",
    "half = lambda x: x / factor\nmade = (lambda n: lambda: n)(3)",
    "gpu = lab.devices[0]\na = gpu.put(np.arange(3.0))\nnumbers = [1, 2]",
    "np.random.seed(1); random.seed(2)",
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a notebook whose process is over."""
    folder = tmp_path_factory.mktemp("cells") / "run.lab"
    with notebook(folder) as first:
        for cell in CELLS:
            first(cell)
        assert isinstance(first.fail("b = a + 1\nraise ValueError"), ValueError)
        first("api_key = 'x'; token_text = 'sk-abcdefghijklmnopqrst'")
        last = first.last()
        assert set(last.lost) == {"made", "api_key", "token_text"}
        assert "sk-abc" not in last.source
        assert last.cell == len(CELLS) + 4
        first("del api_key, token_text")
    return folder


@pytest.fixture
def recorded(original: Path, tmp_path: Path) -> Path:
    """Return a copy of that folder."""
    return Path(shutil.copytree(original, tmp_path / "run.lab"))


def test_each_cell_is_committed_with_its_text(recorded: Path) -> None:
    with notebook(recorded) as again:
        commits = [again.lab._folder.read(one)[0] for one in again.lab._numbers]
    cells = [commit.cell for commit in commits]
    assert cells[: len(CELLS) + 3] == [*range(2, len(CELLS) + 5)]
    assert [commit.source for commit in commits[1 : len(CELLS) + 1]] == [*CELLS]


def test_names_functions_and_random_numbers_are_back(
    recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    np.random.seed(99)  # noqa: NPY002 - the global one
    random.seed(99)
    with notebook(recorded) as again:
        assert again("double(3), half(3), Point.n, sqrt(4.0)") == (6, 1.5, 3, 2.0)
        again("factor = 5")
        assert again("double(3)") == 15
        assert again("numbers") == [1, 2]
        assert "float64[3]" not in repr(again("gpu.resident"))  # to look makes nothing
        assert type(again.names["b"]).waits
        np.testing.assert_array_equal(again("b.get()"), [1, 2, 3])
        assert again("np.random.rand()") == np.random.RandomState(1).rand()
        assert again("random.random()") == random.Random(2).random()
        assert again.lab.opened.lost == {"made": again.lab.opened.lost["made"]}
        assert "no cell has defined it" in again.lab.opened.lost["made"]
    told = capfd.readouterr().err
    assert "is open again" in told
    assert "not here: made: no cell has defined it" in told


def test_without_leave_no_text_runs_and_nothing_is_lost_by_that(recorded: Path) -> None:
    with notebook(recorded, ", run_code=False") as again:
        assert {"double", "half", "Point", "sqrt", "random"} <= again.lab.opened.lost.keys()
        assert "double" not in again.names
        again("x = 5")
    with notebook(recorded) as trusted:
        assert trusted("double(3), half(3), Point.n, sqrt(4.0), x")


def test_what_another_user_has_written_needs_leave(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with notebook(recorded) as again:
        assert "double" not in again.names
        assert "needs leave" in again.lab.opened.lost["double"]
    with notebook(recorded, ", run_code=True") as again:
        assert again("double(3)")
    with notebook(recorded) as again:  # it is this user's by now
        assert again("double(3)")


def test_to_commit_is_not_to_trust(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for _ in range(2):  # also what is committed beside another's code is not this user's
        with notebook(recorded) as again:
            assert "double" not in again.names
            again("x = 5")


GPU_CELLS = (
    (
        "%%gpu\nclass Model:\n    def __init__(self, w):\n        self.w = w\n"
        "    def step(self, x):\n        self.w += x * random.random()\n"
        "        return float(self.w.sum())\nimport random\nmodel = Model(xp.zeros(3))\nw = model.w"
    ),
    "import random\nrandom.seed(4)\nx = lab.devices[0].put([1.0, 2.0, 3.0])",
    "%%gpu\nlosses = [model.step(x) for _ in range(3)]",
    "y = x + w",
    "%%gpu\nx *= 2\nlosses += [model.step(x)]",
)
NEXT = "%%gpu\nlast = model.step(x)"


def test_gpu_cells_run_again_with_leave(tmp_path: Path) -> None:
    folder = tmp_path / "run.lab"
    with notebook(folder) as first:
        for cell in GPU_CELLS:
            first(cell)
        before = first("list(losses), y.get().tolist(), x.get().tolist(), w.get().tolist()")
        state = first("random.getstate()")
        first(NEXT)
        following = first("float(last), w.get().tolist()")
        number = first.last().number - 3
    with notebook(folder, f", commit={number}") as again:  # a trusted folder's cells do not either
        assert again.lab.opened.cells == 0
        assert {"model", "Model"} <= again.lab.opened.lost.keys()
        assert "run_code=True" in again.lab.opened.lost["model"]
        assert again("losses, y.get().tolist(), x.get().tolist(), w.get().tolist()") == before
        again("z = 1")
        assert "model" in again.last().names  # it can be had later
    with notebook(folder, f", commit={number}, run_code=True") as again:
        assert again.lab.opened.cells == 3
        assert again.lab.opened.lost == {}
        told = "list(losses), y.get().tolist(), x.get().tolist(), w.get().tolist()"
        assert again(told) == before
        assert again("random.getstate()") == state
        again(NEXT)
        assert again("float(last), w.get().tolist()") == following


def test_an_earlier_cell_is_beside_todays(tmp_path: Path) -> None:
    with notebook(tmp_path / "run.lab") as first:
        first("import numpy as np\nfrom accel_lab import blas\ngpu = lab.devices[0]")
        first("a = gpu.put(np.ones((2, 3))); n, rows = 1, [1]; old = 5")  # cell 4
        first("b = blas.scal(a, 3.0, out=a); n = 2; rows.append(2); new = 6; del old")
        first("b = b + 0")
        lab = first.lab
        np.testing.assert_array_equal(lab.at(4)["a"].get(), 1.0)
        np.testing.assert_array_equal(lab.at(5)["a"].get(), 3.0)
        np.testing.assert_array_equal(first("a.get()"), 3.0)
        assert (lab.at(4)["rows"], lab.at(5)["rows"]) == ([1], [1, 2])
        assert "new" not in lab.at(4)
        with pytest.raises(KeyError, match="no such name"):
            lab.at(4)["new"]
        told = lab.diff(4, 5)
        assert (told.new, told.gone) == (("b", "new"), ("old",))
        assert told.changed == {
            "a": "6 of 6 elements: 1.0 -> 3.0, 1.0 -> 3.0, 1.0 -> 3.0, …",
            "n": "1 -> 2",
            "rows": "[1] -> [1, 2]",
        }
        assert told.first.startswith("Scal, message ")
        assert "first message" in repr(told)
        same = lab.diff(5, 6)
        assert not same
        assert "every name stands for the same" in repr(same)
        with pytest.raises(SessionError, match="no commit of cell 99"):
            lab.at(99)
        with pytest.raises(SessionError, match="no commit of number 99"):
            lab.at(commit=99)
        assert lab.at(commit=1).commit.cell == 2


def test_a_cell_that_cannot_be_committed_says_so_and_goes_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with notebook(tmp_path / "run.lab") as first:
        first("x = 1")

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        first("x = 2")
        assert "this cell is not committed" in capfd.readouterr().err
        monkeypatch.undo()
        first("y = 3")
        assert first.last().names["x"] == 2


def test_a_closed_session_commits_no_more(tmp_path: Path) -> None:
    with notebook(tmp_path / "run.lab") as first:
        first("lab.close()")
        first("x = 5")
        names: dict[str, Any] = {}
        accel_lab.open(tmp_path / "run.lab", "host", names=names).close()
        assert "x" not in names
