"""Two moments are compared by value, and a folder is opened as it was asked for or not at all."""

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel_lab
from accel_lab import blas, sparse
from accel_lab.errors import InvalidArgument, SessionError
from tests.session.test_cells import notebook

KEY = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


def test_what_is_equal_is_no_difference_whatever_made_it(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    with accel_lab.open(tmp_path / "run.lab", "host", names=names) as lab:
        gpu = lab.devices[0]
        names |= {"nan": float("nan"), "rows": [1, float("nan")], "w": {"a": gpu.put(np.ones(4))}}
        names["m"] = sparse.from_dense(gpu.put(np.eye(3)))
        lab.commit()
    names.clear()
    with accel_lab.open(tmp_path / "run.lab", "host", names=names) as lab:
        names["w"]["a"].result()  # by messages of this process from now on
        names["m"].values.result()
        lab.commit()
        told = lab.diff(lab.at(commit=1), lab.at(commit=2))
        assert not told, told
        blas.scal(names["w"]["a"], 2.0, out=names["w"]["a"])
        names["rows"].append(2)
        lab.commit()
        changed = lab.diff(lab.at(commit=2), lab.at(commit=3)).changed
        assert set(changed) == {"w", "rows"}


def test_arrays_of_objects_are_compared_by_what_is_in_them(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    with accel_lab.open(tmp_path / "run.lab", "host", names=names) as lab:
        arrays = np.empty(3, object)
        arrays[:] = [np.ones(2), None, float("nan")]
        same = np.array([None, float("nan"), "a"], object)
        names |= {"arrays": arrays, "same": same}
        lab.commit()
        arrays[0] = np.zeros(2)
        same[2] = same[2] + ""
        lab.commit()
        changed = lab.diff(lab.at(commit=1), lab.at(commit=2)).changed
        assert list(changed) == ["arrays"]
        assert changed["arrays"].startswith("1 of 3 elements: ")


def test_a_function_that_is_defined_anew_is_a_difference(tmp_path: Path) -> None:
    with notebook(tmp_path / "run.lab") as first:
        first("def f(x):\n    return x + 1\ndef g(x):\n    return x")
        before = first.last().number
        first("def f(x):\n    return x + 2")
        lab = first.lab
        then = lab.at(commit=before)
        assert "f" in then
        assert set(then) == {name for name in then if name in then}
        told = lab.diff(then, lab.at(commit=lab.commits[-1]))
        assert told.changed == {"f": "it is of another cell's text, or of other code"}


def test_a_moment_is_asked_for_by_one_number(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    with accel_lab.open(tmp_path / "run.lab", "host", names=names) as lab:
        with pytest.raises(SessionError, match="no commit of number 1; it has none yet"):
            lab.at(commit=1)
        lab.commit()
        asked: list[tuple[Any, Any]] = [(None, None), ("1", None), (None, True), (1, 1), (1.0, 1)]
        for cell, commit in asked:
            with pytest.raises(InvalidArgument, match="at\\(\\) takes the number of a cell"):
                lab.at(cell, commit=commit)
        assert lab.at(commit=1).commit.number == 1


def test_an_open_folder_is_not_opened_otherwise(tmp_path: Path) -> None:
    names: dict[str, Any] = {"x": 1}
    with accel_lab.open(tmp_path / "run.lab", "host", names=names, run_code=False) as lab:
        assert accel_lab.open(tmp_path / "run.lab", run_code=False) is lab
        lab.commit()
        names["x"] = 2
        lab.commit()
        with pytest.raises(SessionError, match=r"open here.*not 1"):
            accel_lab.open(tmp_path / "run.lab", "host", names={}, commit=1)
        with pytest.raises(SessionError, match="not with run_code=True"):
            accel_lab.open(tmp_path / "run.lab", "host", run_code=True)
    again: dict[str, Any] = {}
    with accel_lab.open(tmp_path / "run.lab", "host", names=again, commit=1, run_code=True) as lab:
        assert again["x"] == 1
        assert accel_lab.open(tmp_path / "run.lab", commit=1, run_code=True) is lab


def test_a_session_that_was_dropped_is_waited_for(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    lab = accel_lab.open(tmp_path / "run.lab", "host", names=names)
    names["a"] = lab.devices[0].put(np.ones(3))
    lab.commit()
    names.clear()
    del lab
    gc.collect()
    with accel_lab.open(tmp_path / "run.lab", "host", names=names):
        np.testing.assert_array_equal(names["a"].get(), np.ones(3))


def test_the_reason_why_something_is_lost_holds_no_secret(tmp_path: Path) -> None:
    def fail(key: str) -> None:
        raise ValueError(f"{key} is refused")

    names: dict[str, Any] = {}
    with accel_lab.open(tmp_path / "run.lab", "host", names=names) as lab:
        names["failed"] = lab.devices[0].run(fail, KEY)
        commit = lab.commit()
        assert "is refused" in commit.lost["failed"]
        assert KEY not in commit.lost["failed"]
        kept = tmp_path / "run.lab" / "commits" / "000001"
        assert KEY.encode() not in kept.read_bytes()


def test_what_was_made_after_looking_back_can_be_looked_at(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    with accel_lab.open(tmp_path / "run.lab", "host", names=names) as lab:
        names["a"] = lab.devices[0].put(np.ones(3))
        for number in range(1, 4):
            lab.commit()
            np.testing.assert_array_equal(lab.at(commit=number)["a"].get(), np.full(3, number))
            names["a"] = names["a"] + 1
