"""The feed: what it tells, and what it leaves behind."""

import contextlib
import errno
import gc
import itertools
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from accel_lab import System
from accel_lab.compute.events.lifecycle import ContextLost
from accel_lab.compute.events.samples import MemorySampled, TreeSampled, WorkTraced
from accel_lab.views.feed import feed
from accel_lab.views.feed import lines as feed_lines
from accel_lab.views.feed.client import Watch
from accel_lab.views.feed.feed import FEED
from accel_lab.views.feed.reader import Reader
from accel_lab.views.scene import process_gauge
from accel_lab.views.scene.fact_lines import decode
from accel_lab.views.scene.observer import observer_of
from tests.held import NOTHING, held
from tests.project import ROOT
from tests.views.feed.feeds import connect, facts, threads, tree_of
from tests.views.feed.processes import eventually
from tests.views.made_up import Lab
from tests.views.made_up import lab as made_up

pytestmark = pytest.mark.usefixtures("runtime")


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
        version=version("accel-lab"),
        program=process_gauge.program(),
        folder=str(Path.cwd()),
    )
    assert topic.name == "lab"
    assert topic.opened == pytest.approx(time.time(), abs=5)
    assert tree.root == lab.tree()


@pytest.mark.parametrize(
    "opens", ["from accel_lab import System; lab = System('host')", "from accel_lab import gpu"]
)
def test_a_program_that_imports_no_view_is_found(opens: str, runtime: Path) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", f"{opens}; print('open', flush=True); input()"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with program:
        assert program.stdout is not None
        assert program.stdout.readline() == "open\n"
        with connect(runtime) as reader, reader.makefile("rb") as lines:
            speaker = msgspec.json.decode(lines.readline(), type=feed_lines.Speaker)
        program.communicate("\n")
    assert speaker.pid == program.pid


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


def test_a_program_whose_name_is_no_text_is_told_in_ascii(
    lab: Lab, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["scripts/caf\udce9.py"])
    watch = Watch()
    eventually(watch.sources)
    watch.close()
    assert [one.speaker.program for one in watch.sources()] == ["caf\\udce9.py"]


def test_a_system_whose_name_is_no_text_is_told_in_ascii(watch: Watch) -> None:
    lab = made_up(1)
    lab.name = "half \udce9"
    FEED.add(lab)
    eventually(watch.sources)
    assert [one.name for one in watch.sources()] == ["half \\udce9"]
    FEED.remove(lab)


def test_while_ipython_is_still_imported_it_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["scripts/train.py"])
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    assert process_gauge.program() == "train.py"


@pytest.mark.filterwarnings("ignore:a dashboard was turned away")
def test_trouble_with_one_reader_is_not_the_next_ones(
    lab: Lab, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    came: list[socket.socket] = []

    def reader(connection: socket.socket) -> Reader:
        came.append(connection)
        if len(came) == 1:
            raise UnicodeError("no words for it")
        return Reader(connection)

    monkeypatch.setattr(feed, "Reader", reader)
    with connect(runtime) as first:
        assert first.recv(10) == b""
    with connect(runtime) as second:
        assert second.recv(10) == b'{"feed":2,'
    assert came[0].fileno() == -1


def test_who_comes_when_no_descriptor_is_left_is_let_in_later(lab: Lab, runtime: Path) -> None:
    server = FEED._server
    assert server is not None
    listening = Scarce(server._listening)
    server._listening = listening  # type: ignore[assignment]
    with connect(runtime) as one, connect(runtime) as other:
        assert one.recv(10) == other.recv(10) == b'{"feed":2,'
    assert listening.refusals == 0


class Scarce:
    """A socket that has no descriptor for the first who come."""

    def __init__(self, listening: socket.socket) -> None:
        self.refusals = 3
        self._listening = listening

    def accept(self) -> object:
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self._listening.accept()

    def __getattr__(self, name: str) -> object:
        return getattr(self._listening, name)


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
        # A look's time is taken a little after it is due.
        assert min(steps(told)) > 0.9, "one a second"

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


def test_a_forked_child_lets_go_of_the_feed(lab: Lab, runtime: Path, watch: Watch) -> None:
    script = f"""
import os, sys, time
sys.path.insert(0, {str(ROOT)!r})
from accel_lab.views.feed import feed
from accel_lab.views.feed.feed import FEED
from accel_lab.views.scene.observer import observer_of
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
