"""The bytes of buffers are read in parts, proven, and not fetched again to be committed."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel_lab
from accel_lab import Device, Session, blas
from accel_lab.compute.arena.staging import CHUNK_BYTES
from accel_lab.compute.transfer import transfers
from accel_lab.errors import InvalidArgument, SessionDamaged

COUNT = CHUNK_BYTES // 8 + 1000
"""So many float64 numbers are a part and some more."""


def plus(x: Any) -> Any:
    return x + 1


def values() -> Any:
    return np.random.default_rng(3).random(COUNT)


def opened(folder: Path, names: dict[str, Any]) -> Session:
    return accel_lab.open(folder, "host", names=names)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a buffer of kept bytes, and one of several uploads."""
    folder, names = tmp_path_factory.mktemp("recorded") / "run.lab", dict[str, Any]()
    with opened(folder, names) as lab:
        gpu = lab.devices[0]
        names["kept"] = gpu.run(plus, gpu.put(values()), writes=())
        names["none"] = gpu.run(plus, gpu.put(np.ones((0, 2))), writes=())
        names["sent"] = gpu.put(np.concatenate([values(), values()[::-1]]))
        lab.commit()
    return folder


@pytest.fixture
def folder(recorded: Path, tmp_path: Path) -> Path:
    shutil.copytree(recorded, tmp_path / "run.lab")
    return tmp_path / "run.lab"


def test_parts_make_the_whole(folder: Path) -> None:
    names: dict[str, Any] = {}
    with opened(folder, names):
        np.testing.assert_array_equal(names["kept"].get(), values() + 1)
        np.testing.assert_array_equal(names["sent"].get(), np.r_[values(), values()[::-1]])
        assert names["none"].get().shape == (0, 2)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-8])


@pytest.mark.parametrize(
    ("damage", "text"), [(flip, "not those"), (cut, "bytes"), (Path.unlink, "missing")]
)
def test_damaged_bytes_are_named_and_nothing_is_made_of_them(
    folder: Path, damage: Callable[[Path], object], text: str
) -> None:
    kept = max((folder / "contents").iterdir(), key=lambda path: path.stat().st_size)
    whole, names = kept.read_bytes(), dict[str, Any]()
    with opened(folder, names):
        damage(kept)
        with pytest.raises(SessionDamaged, match=text) as told:
            names["kept"].get()
        assert told.value.path == str(kept)
        kept.write_bytes(whole)
        np.testing.assert_array_equal(names["kept"].get(), values() + 1)


def test_a_damaged_upload_is_named_whichever_it_is(folder: Path) -> None:
    db = sqlite3.connect(folder / "journal.sqlite")
    key, _ = db.execute("SELECT key, sum(length(data)) FROM contents GROUP BY key").fetchall()[-1]
    db.execute("UPDATE contents SET data = zeroblob(length(data)) WHERE key = ?", (key,))
    db.commit()
    db.close()
    names: dict[str, Any] = {}
    with opened(folder, names), pytest.raises(SessionDamaged, match=key) as told:
        names["sent"].get()
    assert told.value.path == str(folder / "journal.sqlite")


def test_what_was_read_is_not_fetched_to_be_committed_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise InvalidArgument("no fetching, please")

    names: dict[str, Any] = {}
    monkeypatch.setattr(transfers, "KEPT_BYTES", 1 << 20)  # so that the journal does not have it
    with opened(folder, names) as lab:
        names["kept"].result()
        with monkeypatch.context() as patch:
            patch.setattr(Device, "get", refuse)
            assert lab.commit().lost == {}
            blas.scal(names["kept"], 2.0, out=names["kept"])
            assert "no fetching" in lab.commit().lost["kept"]
        assert lab.commit().lost == {}
        np.testing.assert_array_equal(lab.at(commit=2)["kept"].get(), values() + 1)
        np.testing.assert_array_equal(lab.at(commit=4)["kept"].get(), 2 * (values() + 1))
