"""The feed: who may read it, what it tells, what it costs, and what it leaves behind."""

import contextlib
import gc
import itertools
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from accel_lab import System, blas
from accel_lab.actor.events import Event
from accel_lab.compute.events import CircuitOpened, ContextLost
from accel_lab.compute.samples import (
    Block,
    HealthSampled,
    MemorySampled,
    Reading,
    Slice,
    SystemEnded,
    TreeSampled,
    WorkTraced,
)
from accel_lab.views import feed, feed_folder, feed_lines, feed_reader, feed_shown
from accel_lab.views.feed import FEED
from accel_lab.views.feed_client import STALE_AFTER_S, FeedSource, Watch
from accel_lab.views.feed_folder import Name
from accel_lab.views.observer import observer_of
from accel_lab.views.recap import SLICES, recap
from accel_lab.views.scene import Scene
from accel_lab.views.tape import decode
from tests.held import NOTHING, descriptors, held
from tests.project import ROOT
from tests.views.made_up import Lab
from tests.views.made_up import lab as made_up
from tests.views.processes import Program, eventually


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a runtime folder of its own, with a long path; return where its feeds are."""
    place = tmp_path / ("long-" * 20)
    place.mkdir(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    monkeypatch.setenv("ACCEL_LAB_FEED", "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(feed, "FAREWELL_S", 10.0)  # its thread may stand still for a while
    return place / "accel_lab"


@pytest.fixture
def watch() -> Iterator[Watch]:
    watch = Watch()
    yield watch
    watch.close()


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A made-up system that is offered."""
    lab = made_up(2)
    FEED.add(lab)
    yield lab
    FEED.remove(lab)


def connect(folder: Path) -> socket.socket:
    """Connect to the only feed in a folder."""
    entered = feed_folder.enter(folder)
    (name,) = feed_folder.names(entered)
    connected = socket.socket(socket.AF_UNIX)
    connected.settimeout(20)
    connected.connect(feed_folder.path(entered, name))
    os.close(entered)
    return connected


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name == "accel_lab feed"]


def facts(lines: list[bytes]) -> list[Event]:
    return [decode(line) for line in lines if line.startswith(b'{"type"')]


# Who may read.


def test_the_socket_and_its_folder_are_this_users_alone(lab: Lab, runtime: Path) -> None:
    (path,) = runtime.iterdir()
    assert stat.S_ISSOCK(path.stat().st_mode)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(runtime.stat().st_mode) == 0o700
    name = Name.read(path.name)
    assert name == Name.of(os.getpid())


def test_the_mode_does_not_depend_on_the_umask(runtime: Path) -> None:
    before = os.umask(0)
    try:
        lab = made_up()
        FEED.add(lab)
        assert [stat.S_IMODE(one.stat().st_mode) for one in (runtime, *runtime.iterdir())] == [
            0o700,
            0o600,
        ]
        FEED.remove(lab)
    finally:
        os.umask(before)


def test_a_process_of_another_user_is_hung_up_on(
    lab: Lab, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = feed_folder.enter(runtime)
    (name,) = feed_folder.names(here)
    monkeypatch.setattr("accel_lab.views.feed_folder.is_mine", lambda _: False)
    with socket.socket(socket.AF_UNIX) as other:
        other.settimeout(20)
        other.connect(feed_folder.path(here, name))
        assert other.recv(1) == b""
    os.close(here)


def test_the_peer_check_asks_the_system_who_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = socket.socketpair()
    with one, other:
        assert feed_folder.is_mine(one)
        user = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
        assert not feed_folder.is_mine(one)


AS_NOBODY = """
import socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.settimeout(20)
try:
    sock.connect(sys.argv[1])
    print(len(sock.recv(1)))
except PermissionError:
    print("denied")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_user_is_denied_and_where_the_modes_are_wide_still_gets_nothing(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        Path(place).chmod(0o711)
        monkeypatch.setenv("XDG_RUNTIME_DIR", place)
        lab = made_up()
        FEED.add(lab)
        (path,) = (Path(place) / "accel_lab").iterdir()

        def ask() -> str:
            command = ["/usr/bin/python3", "-c", AS_NOBODY, str(path)]
            done = subprocess.run(
                command, user=65534, group=65534, extra_groups=[], capture_output=True, check=True
            )
            return done.stdout.decode().strip()

        assert ask() == "denied"
        path.parent.chmod(0o711)
        assert ask() == "denied"
        path.chmod(0o666)
        assert ask() == "0"
        FEED.remove(lab)


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_can_enter_is_not_used(
    runtime: Path, mode: int, tmp_path: Path
) -> None:
    runtime.mkdir()
    runtime.chmod(mode)
    lab = made_up()
    FEED.add(lab)
    assert list(runtime.iterdir()) == []
    (elsewhere,) = (tmp_path / f"accel_lab-{os.geteuid()}").iterdir()
    assert Name.read(elsewhere.name) == Name.of(os.getpid())
    FEED.remove(lab)
    with pytest.raises(PermissionError, match=f"mode {mode:04o}"):
        feed_folder.enter(runtime)


def test_a_link_is_no_folder(runtime: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(0o700)
    runtime.symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="Not a directory"):
        feed_folder.enter(runtime)


def test_without_any_safe_folder_there_is_a_warning_and_a_system_all_the_same(
    runtime: Path, tmp_path: Path
) -> None:
    for folder in (runtime, tmp_path / f"accel_lab-{os.geteuid()}"):
        folder.mkdir()
        folder.chmod(0o755)
    with pytest.warns(RuntimeWarning, match="no dashboard can watch"):
        FEED.add(made_up())
    assert threads() == []


# What it tells.


def test_the_first_lines_say_who_speaks_and_of_what(lab: Lab, runtime: Path) -> None:
    with connect(runtime) as reader, reader.makefile("rb") as lines:
        speaker = msgspec.json.decode(lines.readline(), type=feed_lines.Speaker)
        topic = msgspec.json.decode(lines.readline(), type=feed_lines.Topic)
        told = (decode(line) for line in lines)
        tree = next(fact for fact in told if isinstance(fact, TreeSampled))
    assert speaker == feed_lines.Speaker(
        feed=2,
        pid=os.getpid(),
        version="0.1.0",
        program=feed_lines.program(),
        folder=str(Path.cwd()),
    )
    assert topic.name == "lab"
    assert topic.opened == pytest.approx(time.time(), abs=5)
    assert tree.root == lab.tree()


def test_two_systems_of_a_process_are_told_apart(lab: Lab, watch: Watch) -> None:
    other = made_up(1)
    other.name = "other"
    FEED.add(other)
    eventually(lambda: len(watch.sources()) == 2 and all(map(tree_of, watch.sources())))
    assert [(one.name, tree_of(one)) for one in watch.sources()] == [
        ("other", other.tree()),
        ("lab", lab.tree()),
    ]
    FEED.remove(other)


def tree_of(source: FeedSource) -> object:
    with source.lock:
        return source.look().tree


def test_a_fork_after_the_end_of_the_feed_closes_none_of_the_files_opened_since() -> None:
    """Their numbers are those that the feed had."""
    lab = made_up(1)
    FEED.add(lab)
    FEED.remove(lab)
    eventually(lambda: not threads())
    mine = [os.open(os.devnull, os.O_RDONLY) for _ in range(32)]
    pid = os.fork()
    if pid == 0:
        try:
            for fd in mine:
                os.fstat(fd)
        except OSError:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    for fd in mine:
        os.close(fd)


def test_a_new_reader_gets_what_was_before_it(lab: Lab, watch: Watch) -> None:
    lost = ContextLost(device="gpu0", generation=1, cause="SIGKILL", in_flight=3)
    lab.events.publish(lost)
    eventually(lambda: watch.sources() and watch.sources()[0].losses["gpu0"] == 1)
    other = Watch()
    eventually(lambda: other.sources() and other.sources()[0].losses["gpu0"] == 1)
    with other.sources()[0].lock:
        assert [fact for _, fact in other.sources()[0].look().facts] == [lost]
    other.close()


def test_changes_come_within_two_tenths_of_a_second(lab: Lab, watch: Watch) -> None:
    eventually(lambda: watch.sources() and tree_of(watch.sources()[0]))
    took = []
    for number in range(8):  # each follows a look, so that the next is a whole turn away
        lab.devices[0].in_flight = 7 + number
        took.append(eventually(lambda: tree_of(watch.sources()[0]) == lab.tree()))
    assert min(took[1:]) < 0.5


def test_a_stream_has_at_most_ten_looks_a_second_and_one_while_nothing_changes(
    lab: Lab, runtime: Path
) -> None:
    with connect(runtime) as reader:
        told = trees(reader, 3, lambda: None)
        assert min(steps(told)) > 0.99, "one a second"

        def change() -> None:
            lab.devices[0].in_flight += 1
            with observer_of(lab).lock:
                observer_of(lab).look()  # as a view in the notebook does, too

        told = trees(reader, 20, change)
    assert len(told) - 1 <= 10 * (told[-1] - told[0]) + 2
    assert sorted(steps(told))[len(told) // 2] < 0.2


def trees(reader: socket.socket, count: int, meanwhile: Callable[[], None]) -> list[float]:
    """Read until so many trees have come; return when each was taken."""
    told: list[float] = []
    rest, until = b"", time.monotonic() + 60
    reader.settimeout(0.01)
    while len(told) < count:
        assert time.monotonic() < until
        meanwhile()
        with contextlib.suppress(TimeoutError):
            rest += reader.recv(1 << 20)
        *lines, rest = rest.split(b"\n")
        told += [fact.at for fact in facts(lines) if isinstance(fact, TreeSampled)]
    return told


def steps(times: list[float]) -> list[float]:
    return [after - before for before, after in itertools.pairwise(times)]


def test_nothing_is_sampled_before_a_reader_comes_and_after_the_last_goes(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[tuple[bool, bool]] = []

    class Watched(Lab):
        def look(self, *, memory: bool, work: bool) -> list[MemorySampled | WorkTraced]:
            looks.append((memory, work))
            return []

    lab = Watched(made_up().devices)
    FEED.add(lab)
    time.sleep(0.3)
    assert looks == []
    with connect(runtime):
        eventually(lambda: len(looks) > 3)
        assert looks[0] == (True, True)
    eventually(lambda: not any(one._observer for one in FEED.shown()))
    seen = len(looks)
    time.sleep(0.3)
    assert len(looks) == seen
    observer_of(lab).look()
    assert looks[-1] == (False, False)  # and nothing is wanted any more
    FEED.remove(lab)


def test_the_idle_feed_sleeps(lab: Lab) -> None:
    (thread,) = (one for one in threading.enumerate() if one.name == "accel_lab feed")
    usage = Path(f"/proc/self/task/{thread.native_id}/status")

    def switches() -> list[str]:
        return [line for line in usage.read_text().splitlines() if "ctxt_switches" in line]

    def sleeps() -> bool:
        before = switches()
        time.sleep(0.5)
        return switches() == before

    eventually(sleeps)  # once it has come to that


# A scene, told.

BLOCK = Block(ids=(1,), address=0, nbytes=64, owner="Put #1", dtype="float32", shape=(16,))


def seen() -> Scene:
    scene = Scene()
    for fact in (
        CircuitOpened(at=1.0, device="gpu0", cause="4 losses"),
        MemorySampled(
            at=2.0, device="gpu0", generation=1, used_bytes=64, total_bytes=None, blocks=(BLOCK,)
        ),
        MemorySampled(
            at=3.0, device="gpu0", generation=2, used_bytes=0, total_bytes=None, blocks=()
        ),
        WorkTraced(
            at=4.0,
            device="gpu0",
            generation=2,
            done=(Slice(seq=1, name="Gemm", stream="blas", kind="kernel", start=3.0, end=3.5),),
            running=(Slice(seq=2, name="Gemm", stream="blas", kind="kernel", start=4, end=None),),
            dropped=3,
        ),
        HealthSampled(at=5.0, source="gpu0", model="H200", readings=(Reading("memory", 1.0),)),
        TreeSampled(at=6.0, root=made_up().tree()),
    ):
        scene.add(fact)
    return scene


@pytest.mark.parametrize("closed", [False, True])
def test_a_recap_folds_into_the_same_scene(closed: bool) -> None:  # noqa: FBT001
    scene, again = seen(), Scene()
    if closed:
        scene.add(SystemEnded(at=7.0, name="lab"))
    for fact in recap(scene):
        again.add(fact)
    assert vars(again) == vars(scene)


def test_a_recap_counts_the_slices_that_it_leaves_out() -> None:
    scene, again = seen(), Scene()
    one = Slice(seq=1, name="Gemm", stream="blas", kind="kernel", start=3.0, end=3.5)
    scene.add(WorkTraced(device="gpu0", generation=2, done=(one,) * (SLICES + 100), running=()))
    for fact in recap(scene):
        again.add(fact)
    assert (again.traced, again.untraced) == (SLICES, {"gpu0": 3 + 101})


# What it costs.


def test_a_reader_that_never_reads_loses_samples_and_is_told_so_when_it_reads(
    lab: Lab, runtime: Path
) -> None:
    work = Slice(seq=1, name="Gemm" * 20, stream="blas", kind="kernel", start=3.0, end=3.5)
    many = WorkTraced(device="gpu0", generation=1, done=(work,) * 1000, running=())
    with connect(runtime) as reader:
        eventually(lambda: bool(FEED.shown()[0]._observer))
        sent = 0
        server = FEED._server
        assert server is not None
        while not any(one.lost > 3 for one in server._readers):
            lab.seen.append(many)
            sent += 1
            eventually(lambda: not lab.seen)
        lab.events.publish(CircuitOpened(device="gpu0", cause="4 losses"))
        eventually(lambda: observer_of(lab).scene.counted)
        assert all(
            len(one.unread) < feed_reader.UNREAD_BYTES + (1 << 20) for one in server._readers
        )
        scene, told, rest = Scene(), b"", b""
        while b"CircuitOpened" not in told or b'{"lost"' not in told or scene.traced == 0:
            rest += reader.recv(1 << 20)
            *lines, rest = rest.split(b"\n")
            told += b"\n".join(line[:40] for line in lines)
            for fact in facts(lines):
                scene.add(fact)
        lab.seen.append(WorkTraced(device="gpu0", generation=1, done=(work,), running=()))
        while scene.traced + scene.untraced.get("gpu0", 0) < sent * 1000 + 1:
            rest += reader.recv(1 << 20)
            *lines, rest = rest.split(b"\n")
            for fact in facts(lines):
                scene.add(fact)
    assert 0 < scene.untraced["gpu0"] < sent * 1000


def test_a_reader_that_leaves_too_much_unread_is_hung_up_on_and_gets_it_all_anew(
    lab: Lab, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_reader, "HANG_UP_BYTES", 300_000)
    with connect(runtime):
        server = FEED._server
        assert server is not None
        eventually(lambda: server._readers)
        for number in range(700):
            lab.events.publish(CircuitOpened(device="gpu0", cause=f"{number}" * 400))
        eventually(lambda: not server._readers)
    watch = Watch()
    eventually(lambda: watch.sources() and watch.sources()[0].look().counted == 700)
    watch.close()


@pytest.mark.timeout(120)
def test_a_reader_that_never_reads_neither_slows_messages_nor_takes_memory(runtime: Path) -> None:
    def rate(lab: System) -> float:
        gpu = lab.devices[0]
        x = gpu.put(np.ones(16, "float32"))
        began = time.perf_counter()
        for _ in range(2000):
            x = blas.scal(x, 1.0)
        gpu.get(x).result()
        return 2000 / (time.perf_counter() - began)

    with System("host") as lab:
        rate(lab)
        # Rounds alternate: what else the machine does meets both.
        alone: list[float] = []
        watched: list[float] = []
        kept: list[int] = []
        for turn in range(20):
            if turn >= 5 and max(watched) > 0.6 * max(alone):
                break
            alone.append(rate(lab))
            with connect(runtime):
                eventually(lambda: FEED.shown()[0]._observer)
                watched.append(rate(lab))
                server = FEED._server
                assert server is not None
                kept.append(len(server._readers[0].unread))
            eventually(lambda: not FEED.shown()[0]._observer)
    assert max(watched) > 0.6 * max(alone)
    assert max(kept) < feed_reader.UNREAD_BYTES + (1 << 20)


def test_memory_is_bounded_however_long_nobody_reads(lab: Lab, runtime: Path) -> None:
    work = Slice(seq=1, name="Gemm" * 50, stream="blas", kind="kernel", start=3.0, end=3.5)
    many = WorkTraced(device="gpu0", generation=1, done=(), running=(work,) * 2000)
    with connect(runtime):
        eventually(lambda: FEED.shown()[0]._observer)
        server = FEED._server
        assert server is not None
        lab.seen = [many] * 30
        eventually(lambda: any(one.lost > 10 for one in server._readers))

        def held() -> int:
            for _ in range(5):
                lab.seen = [many] * 30
                eventually(lambda: not lab.seen)
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        first = held()
        assert held() - first < 5_000_000  # 75 MB were to be sent
        tracemalloc.stop()


# What it leaves.


def test_no_thread_and_no_file_is_left_after_the_last_system(runtime: Path) -> None:
    before = held()
    with System("host") as lab, System("host") as other:
        assert threads() == ["accel_lab feed"]
        assert len(list(runtime.iterdir())) == 1
        watch = Watch()
        eventually(lambda: len(watch.sources()) == 2)
        lab.close()
        eventually(lambda: sum(one.ended for one in watch.sources()) == 1)
        assert threads() == ["accel_lab feed"]
        assert other.name
    assert threads() == []
    assert list(runtime.iterdir()) == []
    eventually(lambda: all(one.ended and not one.killed for one in watch.sources()))
    watch.close()
    eventually(lambda: before.more() == NOTHING)


def test_a_system_that_is_dropped_is_offered_no_more(runtime: Path) -> None:
    lab = made_up()
    FEED.add(lab)
    del lab
    gc.collect()
    eventually(lambda: not threads() and not list(runtime.iterdir()))


def test_a_feed_that_is_turned_off_is_not_there(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCEL_LAB_FEED", "0")
    FEED.add(made_up())
    assert not runtime.exists()
    assert threads() == []


def test_fifty_readers_come_and_go_and_leave_no_descriptor(lab: Lab, runtime: Path) -> None:
    with connect(runtime) as first:
        first.recv(10)
    eventually(lambda: not FEED.shown()[0]._observer)
    before = descriptors()
    for number in range(50):
        with connect(runtime) as reader:
            if number % 2:
                reader.recv(10)
    eventually(lambda: not descriptors() - before and not FEED.shown()[0]._observer)
    assert observer_of(lab).followers == []


def test_there_is_room_for_sixteen(lab: Lab, runtime: Path) -> None:
    readers = [connect(runtime) for _ in range(feed.READERS)]
    assert all(one.recv(5) == b'{"fee' for one in readers)
    with connect(runtime) as one_more:
        assert one_more.recv(5) == b""
    for one in readers:
        one.close()


def test_a_reader_that_speaks_is_hung_up_on(lab: Lab, runtime: Path) -> None:
    with connect(runtime) as reader:
        reader.sendall(b"hello")
        with contextlib.suppress(ConnectionResetError):
            while reader.recv(1 << 16):
                pass


def test_a_forked_child_lets_go_of_the_feed(lab: Lab, runtime: Path, watch: Watch) -> None:
    script = f"""
import os, sys, time
sys.path.insert(0, {str(ROOT)!r})
from accel_lab.views import feed
from accel_lab.views.feed import FEED
from accel_lab.views.observer import observer_of
from tests.views.made_up import lab as made_up
feed.FAREWELL_S = 10.0
lab = made_up()
FEED.add(lab)
server = FEED._server
while not server._readers:
    time.sleep(0.01)
with observer_of(lab).lock:  # the feed reads no file meanwhile
    before = len(os.listdir("/proc/self/fd"))
    child = os.fork()
if child == 0:
    assert FEED.shown() == [] and FEED._server is None
    assert len(os.listdir("/proc/self/fd")) == before - 4
    mine = made_up()
    FEED.add(mine)
    print(sorted(os.listdir(os.environ["XDG_RUNTIME_DIR"] + "/accel_lab")).__len__(), flush=True)
    FEED.remove(mine)
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
print(len(os.listdir(os.environ["XDG_RUNTIME_DIR"] + "/accel_lab")), flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("3\n2\n", "")
    assert len(list(runtime.iterdir())) == 1


# Dead and living processes.


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
