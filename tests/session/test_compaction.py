"""A folder that is compacted: what the newest commits need stays, and all else goes."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel_lab
from accel_lab import blas
from accel_lab.errors import InvalidArgument, SessionDamaged, SessionError

LONG = ["a text of some length, which is a content of its own: " * 9, *map(str, range(2000))]
WORK = """
import os, sys, signal
import numpy as np
import accel_lab
from accel_lab.session.store import folder as folders

names = {}
lab = accel_lab.open(sys.argv[1], "host", names=names)
names["x"] = lab.devices[0].put(np.arange(5.0))
for n in range(4):
    names["rows"] = [np.arange(100) + n]
    lab.commit()
left = int(sys.argv[2])

def unlink(path, *, missing_ok=False):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    os.unlink(path)

folders.Path.unlink = unlink
lab.compact(keep=2)
"""


def files(folder: Path) -> int:
    return len(list((folder / "contents").iterdir()))


def test_what_the_newest_commits_need_stays(tmp_path: Path) -> None:
    folder, names = tmp_path / "run.lab", dict[str, Any]()
    with accel_lab.open(folder, "host", names=names) as lab:  # the uploads of an earlier kernel
        gpu = lab.devices[0]
        names["gone"] = gpu.put(np.arange(50_000.0))
        names["a"] = gpu.put(np.arange(40_000.0))
        names["b"] = blas.scal(names["a"], 2.0)
        names["once"] = gpu.run(lambda x: x + 1, names["a"], writes=())
        lab.commit()
    names.clear()
    with accel_lab.open(folder, "host", names=names) as lab:
        gpu = lab.devices[0]
        del names["gone"]
        names["long"] = LONG
        for n in range(5):
            names["rows"] = np.arange(1000) + n
            names["mine"] = gpu.put(np.arange(30_000.0) + n)
            lab.commit()
        before = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        done = lab.compact(keep=2)
        assert (done.commits, done.uploads) == (5, 1)
        assert done.contents >= 4
        assert done.nbytes > 400_000
        assert "5 commits" in repr(done)
        assert lab.commits == [6, 7]
        np.testing.assert_array_equal(lab.at(commit=6)["rows"], np.arange(1000) + 4)
        with pytest.raises(SessionError, match="no commit of number 5"):
            lab.at(commit=5)
        assert lab.at(commit=7)["long"] == LONG  # which the next commit would keep again
        names["more"] = names["mine"] + 1  # and it goes on
        del names["rows"]
        assert lab.commit().number == 8
        assert lab.commit().lost == {}
    after = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert after < before - 300_000
    names.clear()
    with accel_lab.open(folder, "host", names=names) as lab:
        assert lab.opened.lost == {}
        assert names["long"] == LONG
        np.testing.assert_array_equal(names["a"].get(), np.arange(40_000.0))
        np.testing.assert_array_equal(names["b"].get(), np.arange(40_000.0) * 2)
        np.testing.assert_array_equal(names["once"].get(), np.arange(40_000.0) + 1)
        np.testing.assert_array_equal(names["more"].get(), np.arange(30_000.0) + 5)
        np.testing.assert_array_equal(lab.at(commit=7)["mine"].get(), np.arange(30_000.0) + 4)


def test_what_was_kept_before_and_is_named_again_is_kept_again(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    with accel_lab.open(tmp_path / "run.lab", "host", names=names) as lab:
        gpu = lab.devices[0]
        once = names["once"] = gpu.run(lambda: np.arange(1000.0), writes=())
        rows = names["rows"] = [np.arange(500)]
        lab.commit()
        names.clear()
        lab.compact(keep=1)
        assert files(tmp_path / "run.lab") <= 3  # the states of generators: NumPy, Python, PyTorch
        names |= {"once": once, "rows": rows}
        lab.commit()
    names.clear()
    with accel_lab.open(tmp_path / "run.lab", "host", names=names):
        np.testing.assert_array_equal(names["once"].get(), np.arange(1000.0))
        np.testing.assert_array_equal(names["rows"][0], np.arange(500))


def test_what_cannot_be_done_removes_nothing(tmp_path: Path) -> None:
    folder, names = tmp_path / "run.lab", dict[str, Any]()
    with accel_lab.open(folder, "host", names=names) as lab:
        for n in range(3):
            names["rows"] = [np.arange(500) + n]
            lab.commit()
        for keep in (0, -1, 2.0, True):
            with pytest.raises(InvalidArgument, match="1 or more"):
                lab.compact(keep)  # type: ignore[arg-type]
        path = folder / "commits" / "000002"
        data = path.read_bytes()
        path.write_bytes(data[:-1])
        count = files(folder)
        with pytest.raises(SessionDamaged, match="000002"):
            lab.compact(keep=3)
        assert files(folder) == count
        assert lab.commits == [1, 2, 3, 4]
        path.write_bytes(data)
        lab.compact(keep=2)
        assert lab.commits == [4, 5]


@pytest.mark.parametrize("removed", [1, 4])
def test_a_kill_in_the_middle_loses_none_that_stays(tmp_path: Path, removed: int) -> None:
    folder = tmp_path / "run.lab"
    ended = subprocess.run(
        [sys.executable, "-c", WORK, str(folder), str(removed)],
        env=os.environ, check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    names: dict[str, Any] = {}
    with accel_lab.open(folder, "host", names=names) as lab:
        assert lab.commits[-2:] == [4, 5]
        np.testing.assert_array_equal(names["x"].get(), np.arange(5.0))
        np.testing.assert_array_equal(names["rows"][0], np.arange(100) + 3)
        np.testing.assert_array_equal(lab.at(commit=4)["rows"][0], np.arange(100) + 3)
        lab.compact(keep=1)
        assert files(folder) <= 5
