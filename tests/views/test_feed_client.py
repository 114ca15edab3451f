"""The other end of feeds, of processes that live and that are dead."""

import os
import signal
import socket
import time
from pathlib import Path

import pytest

from accel_lab.views import feed_folder, feed_lines, feed_shown
from accel_lab.views.feed_client import STALE_AFTER_S, Watch
from accel_lab.views.feed_folder import Name
from tests.project import ROOT
from tests.views.feeds import tree_of
from tests.views.made_up import Lab
from tests.views.processes import Program, eventually

pytestmark = pytest.mark.usefixtures("runtime")


def test_a_script_that_ends_removes_its_file_and_says_so(
    runtime: Path, tmp_path: Path, watch: Watch
) -> None:
    with Program(tmp_path, "train") as program:
        eventually(lambda: [one.name for one in watch.sources()] == ["train"])
        (source,) = watch.sources()
        assert source.speaker.program == "train.py"
        assert source.speaker.folder == str(tmp_path)
        assert source.speaker.pid == program.pid
        program.end()  # the system is open
        eventually(lambda: source.ended)
    assert not source.killed
    assert list(runtime.iterdir()) == []
    with source.lock:
        tree = source.look().tree
    assert tree is not None
    assert {node.state for node in tree.walk()} == {"stopped"}


def test_a_killed_process_is_seen_to_end_and_its_file_is_removed(
    runtime: Path, tmp_path: Path, watch: Watch
) -> None:
    with Program(tmp_path, "train") as program:
        eventually(watch.sources)
        (source,) = watch.sources()
        program.kill()
        eventually(lambda: source.ended)
        assert source.killed
        eventually(lambda: not list(runtime.iterdir()))


def test_a_stopped_process_is_stale_and_lives_on(tmp_path: Path, watch: Watch) -> None:
    with Program(tmp_path, "train") as program:
        eventually(watch.sources)
        (source,) = watch.sources()
        os.kill(program.pid, signal.SIGSTOP)
        eventually(lambda: source.is_stale)
        assert not source.ended
        assert source.silent_s > STALE_AFTER_S
        os.kill(program.pid, signal.SIGCONT)
        eventually(lambda: not source.is_stale)


def test_pages_and_feeds_call_a_silence_stale_after_the_same_time() -> None:
    source = (ROOT / "widgets" / "freshness.js").read_text()
    assert f"STALE_AFTER_S = {STALE_AFTER_S};" in source
    assert feed_shown.BEAT_S + 0.5 < STALE_AFTER_S < 2.0


def test_a_new_process_appears_and_its_device_is_seen_at_work(tmp_path: Path, watch: Watch) -> None:
    with Program(tmp_path, "train") as program:
        eventually(lambda: watch.sources() and tree_of(watch.sources()[0]))
        (source,) = watch.sources()
        program.run("import numpy; x = lab.devices[0].put(numpy.ones(1000, 'float32'))")

        def seen() -> object:
            program.run("y = blas.scal(x, 2.0); lab.devices[0].get(y).result()")
            return source.look().memory and source.look().traced

        eventually(seen)  # what ran before the first look had come to the device is not traced
        program.run("lab.inject('kill')")
        eventually(lambda: source.losses["cpu0"] == 1)


def test_a_reused_pid_does_not_fool_discovery(runtime: Path, watch: Watch) -> None:
    runtime.mkdir(mode=0o700, exist_ok=True)
    mine = Name.of(os.getpid())
    assert mine is not None
    earlier = runtime / mine._replace(began=mine.began - 1).file
    with socket.socket(socket.AF_UNIX) as left:
        entered = feed_folder.enter(runtime)
        left.bind(f"/proc/self/fd/{entered}/{earlier.name}")
        os.close(entered)
    eventually(lambda: not earlier.exists())
    assert watch.sources() == []


def test_a_living_process_that_does_not_listen_yet_keeps_its_file(
    runtime: Path, watch: Watch
) -> None:
    runtime.mkdir(mode=0o700, exist_ok=True)
    mine = Name.of(os.getpid())
    assert mine is not None
    entered = feed_folder.enter(runtime)
    with socket.socket(socket.AF_UNIX) as soon:
        soon.bind(feed_folder.path(entered, mine))
        time.sleep(0.6)
        assert (runtime / mine.file).exists()
        os.unlink(mine.file, dir_fd=entered)
    os.close(entered)


def test_a_feed_of_a_later_version_is_refused_once_and_by_name(
    runtime: Path, monkeypatch: pytest.MonkeyPatch, lab: Lab
) -> None:
    monkeypatch.setattr(feed_lines, "SCHEMA", 3)
    told: list[str] = []
    monkeypatch.setattr(
        "accel_lab.views.feed_client.warn_of", lambda error, what: told.append(f"{what}: {error}")
    )
    watch = Watch()
    eventually(lambda: told)
    time.sleep(0.6)
    watch.close()
    assert len(told) == 1
    assert "schema 3" in told[0]


def test_other_files_in_the_folder_are_let_be(runtime: Path, watch: Watch, lab: Lab) -> None:
    (runtime / "notes.txt").write_text("mine")
    eventually(watch.sources)
    assert (runtime / "notes.txt").exists()
