"""The other end of feeds, of processes that live and that are dead."""

import errno
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from accel_lab.views.feed import client, lines, offered
from accel_lab.views.feed import folder as feed_folder
from accel_lab.views.feed.client import STALE_AFTER_S, Watch
from accel_lab.views.feed.feed import FEED
from accel_lab.views.feed.folder import Name
from tests.held import NOTHING, held
from tests.project import ROOT
from tests.views.feed.feeds import tree_of
from tests.views.feed.processes import Program, eventually
from tests.views.made_up import Lab

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
    source = (ROOT / "widgets/shared/freshness.js").read_text()
    assert f"STALE_AFTER_S = {STALE_AFTER_S};" in source
    assert offered.BEAT_S + 0.5 < STALE_AFTER_S < 2.0


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
    monkeypatch.setattr(lines, "SCHEMA", 3)
    told: list[str] = []
    monkeypatch.setattr(client, "warn_of", lambda error, what: told.append(f"{what}: {error}"))
    watch = Watch()
    eventually(lambda: told)
    time.sleep(0.6)
    watch.close()
    assert len(told) == 1
    assert "schema 3" in told[0]


def test_who_finds_no_descriptor_left_looks_again(
    runtime: Path, monkeypatch: pytest.MonkeyPatch, lab: Lab
) -> None:
    refused: list[int] = []

    def scarce(*kind: int) -> socket.socket:
        if len(refused) < 3:
            refused.append(errno.EMFILE)
            raise OSError(errno.EMFILE, "Too many open files")
        return socket.socket(*kind)

    patched = SimpleNamespace(**vars(socket) | {"socket": scarce})
    monkeypatch.setattr(client, "socket", patched)
    watch = Watch()
    eventually(watch.sources)
    watch.close()
    assert len(refused) == 3


def test_who_can_have_no_thread_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    before = held()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="new thread"):
        Watch()
    assert before.more() == NOTHING


def test_a_look_without_descriptors_takes_nobody_for_dead(
    monkeypatch: pytest.MonkeyPatch, lab: Lab, watch: Watch
) -> None:
    eventually(watch.sources)
    (source,) = watch.sources()
    looks: list[Path] = []

    def scarce(folder: Path) -> int:
        looks.append(folder)
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(feed_folder, "enter", scarce)
        server = FEED._server
        assert server is not None
        server._readers[0].socket.shutdown(socket.SHUT_RDWR)
        eventually(lambda: watch._adrift)
        seen = len(looks)
        eventually(lambda: len(looks) > seen + 4)  # two looks at each of two folders
    eventually(lambda: watch._connections and not watch._adrift)
    assert not source.ended
    assert watch.sources() == [source]


@pytest.fixture
def other(runtime: Path, lab: Lab) -> Iterator[socket.socket]:
    """Bind the socket of another process, beside the one of this; nobody listens yet."""
    mine = Name.of(os.getpid())
    assert mine is not None
    entered = feed_folder.enter(runtime)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(feed_folder.path(entered, mine._replace(began=mine.began - 1)))
        os.close(entered)
        yield bound


def is_followed(lab: Lab, watch: Watch) -> bool:
    """Whether a change reaches who looks on."""
    lab.devices[0].in_flight += 1
    tree = lab.tree()
    eventually(lambda: [tree_of(one) for one in watch.sources()] == [tree])
    return True


def test_a_process_that_nobody_may_ask_after_is_not_in_the_way_of_others(
    monkeypatch: pytest.MonkeyPatch, lab: Lab, other: socket.socket
) -> None:
    asked: list[Name] = []

    def refuse(name: Name) -> bool:
        asked.append(name)
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Name, "lives", property(refuse))
    watch = Watch()
    eventually(lambda: len(asked) > 3)
    assert is_followed(lab, watch)
    watch.close()


def test_a_process_that_makes_no_sense_is_refused_and_others_are_followed(
    monkeypatch: pytest.MonkeyPatch, lab: Lab, other: socket.socket
) -> None:
    told: list[str] = []
    monkeypatch.setattr(client, "warn_of", lambda error, what: told.append(f"{what}: {error}"))
    other.listen()
    other.settimeout(20)
    watch = Watch()
    connected, _ = other.accept()
    with connected:
        connected.sendall(lines.line_of(lines.speaker()) + b'{"type":"TreeSampled"}\n')
        assert connected.recv(1) == b""
    assert told == [f"the feed of process {os.getpid()} cannot be read: a fact follows its topic"]
    assert is_followed(lab, watch)
    watch.close()


def test_other_files_in_the_folder_are_let_be(runtime: Path, watch: Watch, lab: Lab) -> None:
    (runtime / "notes.txt").write_text("mine")
    eventually(watch.sources)
    assert (runtime / "notes.txt").exists()
