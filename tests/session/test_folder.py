"""The folder: of one process at a time, whole at every moment, and damage is told by file."""

import json
import multiprocessing
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import accel_lab
from accel_lab.errors import InvalidArgument, SessionDamaged, SessionError
from accel_lab.session.store import trust
from accel_lab.session.store.commit import FORMAT, Commit
from accel_lab.session.store.folder import Folder, key_of

HOLDER = """
import sys, time
from accel_lab.session.store.folder import Folder
folder = Folder(sys.argv[1])
print("open", flush=True)
time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path / "run.lab")
    yield made
    made.close()


def commit(number: int, **names: object) -> Commit:
    return Commit(number, number, "", 0.0, names, [], None, {}, {}, "s")


def test_what_is_written_is_read(folder: Folder) -> None:
    key = folder.keep(b"abc")
    folder.write(commit(1, x=5))
    folder.write(commit(2, x=6))
    assert folder.numbers == [1, 2]
    assert folder.read(1)[0].names == {"x": 5}
    assert folder.content(key) == b"abc"
    assert key == key_of(b"abc")


def test_it_is_for_this_user_alone(folder: Folder) -> None:
    folder.keep(b"abc")
    folder.write(commit(1))
    for path in (folder.path, *folder.path.rglob("*")):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


@pytest.mark.parametrize("at", [0, 5, 30, 60, 100, -1])
def test_a_commit_that_was_cut_off_or_changed_is_damaged(folder: Folder, at: int) -> None:
    folder.write(commit(1, x=list(range(100))))
    path = folder.commit_path(1)
    whole = path.read_bytes()
    changed = bytearray(whole)
    changed[at] ^= 1
    if at not in range(49, 81):  # the seal tells who has written it, and not what
        path.write_bytes(changed)
        with pytest.raises(SessionDamaged, match="000001") as told:
            folder.read(1)
        assert told.value.path == str(path)
    else:
        path.write_bytes(changed)
        assert not folder.read(1)[1]
    path.write_bytes(whole[:at])
    with pytest.raises(SessionDamaged, match="000001"):
        folder.read(1)


def test_a_missing_file_is_named(folder: Folder) -> None:
    key = folder.keep(b"x" * 1000)
    folder.write(commit(1))
    folder.content_path(key).unlink()
    with pytest.raises(SessionDamaged, match=key):
        folder.content(key)
    with pytest.raises(SessionDamaged, match=key):
        folder.require(key)
    folder.commit_path(1).unlink()
    with pytest.raises(SessionDamaged, match="000001"):
        folder.read(1)


def test_a_content_with_other_bytes_is_named(folder: Folder) -> None:
    key = folder.keep(b"x" * 1000)
    folder.content_path(key).write_bytes(b"x" * 999)
    with pytest.raises(SessionDamaged, match=key):
        folder.content(key)
    with pytest.raises(SessionDamaged, match=r"\.\./lock"):
        folder.content("../lock")


def test_two_do_not_write_to_it(folder: Folder) -> None:
    with pytest.raises(SessionError, match="open in this process"):
        Folder(folder.path)
    code = HOLDER.replace("600", "0")
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder.path)], capture_output=True, text=True, check=False
    )
    assert f"is open in process {os.getpid()}" in done.stderr
    folder.close()
    again = Folder(folder.path)
    again.close()
    again.close()


def test_a_refused_second_one_does_not_give_up_the_lock(folder: Folder) -> None:
    with pytest.raises(SessionError):
        Folder(folder.path)
    done = subprocess.run(
        [sys.executable, "-c", HOLDER.replace("600", "0"), str(folder.path)],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1


def test_a_killed_process_does_not_hold_it(tmp_path: Path) -> None:
    path = tmp_path / "run.lab"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(SessionError, match=f"process {holder.pid}"):
            Folder(path)
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
    Folder(path).close()


def _wait(event: Any) -> None:
    event.wait(60)


def test_a_forked_child_does_not_hold_it(folder: Folder) -> None:
    fork = multiprocessing.get_context("fork")
    over = fork.Event()
    child = fork.Process(target=_wait, args=(over,))
    child.start()
    try:
        folder.close()
        done = subprocess.run(
            [sys.executable, "-c", HOLDER.replace("600", "0"), str(folder.path)], check=False
        )
        assert done.returncode == 0
    finally:
        over.set()
        child.join()


def test_a_later_version_is_refused_by_its_number(folder: Folder) -> None:
    folder.write(commit(1))
    folder.close()
    about = folder.path / "session.json"
    about.write_text(json.dumps({"format": FORMAT + 1, "accel_lab": "9.9"}))
    with pytest.raises(SessionError, match=rf"format {FORMAT + 1}, written by accel_lab 9\.9"):
        accel_lab.open(folder.path, "host", names={})
    about.write_text("{")
    with pytest.raises(SessionDamaged, match=r"session\.json"):
        accel_lab.open(folder.path, "host", names={})


def test_a_commit_of_a_later_version_is_refused(folder: Folder) -> None:
    later = msgspec.structs.replace(commit(1), format=FORMAT + 1)
    folder.write(later)
    with pytest.raises(SessionError, match=f"format {FORMAT + 1}"):
        folder.read(1)


def test_what_is_no_sessions_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("…")
    with pytest.raises(SessionError, match=r"has thesis\.txt and no session\.json"):
        accel_lab.open(tmp_path / "mine", "host", names={})
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    with pytest.raises(SessionError, match="is a file"):
        accel_lab.open(tmp_path / "mine" / "thesis.txt", "host", names={})
    with pytest.raises(SessionError, match="cannot be used"):
        accel_lab.open(tmp_path / "not" / "there", "host", names={})
    with pytest.raises(InvalidArgument, match="no journal"):
        accel_lab.open(tmp_path / "x", "host", journal="memory")
    with pytest.raises(InvalidArgument, match="path of a folder, not 5"):
        accel_lab.open(5)  # type: ignore[arg-type]
    with pytest.raises(SessionError, match="no commit 3; it has none"):
        accel_lab.open(tmp_path / "new", "host", commit=3, names={})


def test_what_a_killed_process_had_not_finished_is_swept(folder: Folder) -> None:
    folder.close()
    left = folder.path / "contents" / "abc.1234.part"
    left.write_bytes(b"x")
    Folder(folder.path).close()
    assert not left.exists()


def test_a_folder_that_was_begun_and_not_made_is_made(tmp_path: Path) -> None:
    path = tmp_path / "run.lab"
    path.mkdir()
    (path / "lock").write_text("1")
    (path / "session.json.12.part").write_bytes(b"{")
    Folder(path).close()
    assert json.loads((path / "session.json").read_bytes())["format"] == FORMAT


def test_a_full_disk_leaves_the_commits_before(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write(commit(1, x=1))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SessionError, match="No space left"):
        folder.keep(b"new")
    with pytest.raises(SessionError, match="No space left"):
        folder.write(commit(2, x=2))
    monkeypatch.undo()
    assert folder.numbers == [1]
    assert folder.read(1)[0].names == {"x": 1}
    assert list(folder.path.rglob("*.part")) == []


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(data)


def _lose_key(_: Path) -> None:
    trust.key_path().write_bytes(bytes(32))


def _open_key(_: Path) -> None:
    trust.key_path().chmod(0o666)


@pytest.mark.parametrize("change", [_flip, _lose_key, _open_key])
def test_only_what_this_user_has_written_is_sealed(
    folder: Folder,
    change: Callable[[Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "of_this_test"))
    folder.write(commit(1))
    assert folder.read(1)[1]
    moved = Path(shutil.move(folder.path, tmp_path / "elsewhere"))
    folder.close()
    again = Folder(moved)
    assert again.read(1)[1]
    change(again.commit_path(1))
    assert not again.read(1)[1]
    again.close()


def test_without_a_home_nothing_is_sealed(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/proc/nowhere")
    folder.write(commit(1))
    assert not folder.read(1)[1]
