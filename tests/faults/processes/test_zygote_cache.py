"""The zygote of a closed system is kept for the next one, for a minute, and by nobody else."""

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from accel_lab import System
from accel_lab.backends import host
from accel_lab.compute.events.lifecycle import CircuitOpened
from accel_lab.compute.process import zygote_cache
from accel_lab.errors import CircuitOpen, ContextLost
from tests.faults.conftest import runs, settle

WAIT_S = 30.0
FOLDER = Path(host.__file__).parent
PROGRAM = """
import os, sys, time
from accel_lab import System
from accel_lab.compute.process import zygote_cache as kept_zygote

def opened():
    lab = System("host")
    return lab, lab.devices[0].run(os.getppid).result(30)

lab, first = opened()
lab.close()
"""


@pytest.fixture(autouse=True)
def none_before(nothing_left: None) -> Iterator[None]:
    zygote_cache.end()
    yield
    zygote_cache.end()


def zygote_of(lab: System) -> int:
    return int(lab.devices[0].run(os.getppid).result(WAIT_S))


def opened_and_closed() -> int:
    """Return the zygote of a system that is closed by now."""
    with System("host") as lab:
        return zygote_of(lab)


def descriptors(pid: int) -> list[str]:
    return sorted(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - no files


def test_the_next_system_takes_it_and_it_gathers_nothing() -> None:
    first = opened_and_closed()
    assert zygote_cache.numbers() == [first]
    with System("host", 2) as lab:
        assert zygote_of(lab) == first
        assert zygote_cache.numbers() == []
    before = descriptors(first)
    for _ in range(3):
        assert opened_and_closed() == first
    assert descriptors(first) == before
    assert len(os.listdir(f"/proc/{first}/task")) == 1  # noqa: PTH208 - no files


def test_systems_that_are_open_at_once_have_one_each_and_one_is_kept() -> None:
    with System("host") as one, System("host") as other:
        both = {zygote_of(one), zygote_of(other)}
    assert len(both) == 2
    (kept,) = zygote_cache.numbers()
    assert [pid for pid in both if runs(pid)] == [kept]


def test_one_that_began_otherwise_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    first = opened_and_closed()
    monkeypatch.setenv("ACCEL_LAB_TEST", "another")
    second = opened_and_closed()
    assert second != first
    assert not runs(first)
    assert zygote_cache.numbers() == [second]


def test_the_limits_the_cores_and_the_backend_are_of_its_beginning() -> None:
    before = zygote_cache.birth_of("host", FOLDER)
    assert zygote_cache.birth_of("host", FOLDER) == before != zygote_cache.birth_of("cuda", FOLDER)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
    try:
        assert zygote_cache.birth_of("host", FOLDER) != before
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    cores = os.sched_getaffinity(0)
    if len(cores) == 1:
        pytest.skip("there is one core")
    os.sched_setaffinity(0, {min(cores)})
    try:
        assert zygote_cache.birth_of("host", FOLDER) != before
    finally:
        os.sched_setaffinity(0, cores)


def test_the_files_of_the_backend_are_those_of_its_beginning(tmp_path: Path) -> None:
    source = tmp_path / "__init__.py"
    source.write_text("")
    before = zygote_cache.birth_of("edited", tmp_path)
    assert zygote_cache.birth_of("edited", tmp_path) == before
    source.write_text("FACTOR = 2")
    assert zygote_cache.birth_of("edited", tmp_path) != before


def test_one_whose_contexts_were_all_lost_is_kept() -> None:
    with System("host", max_restarts=0) as lab:
        first = zygote_of(lab)
        with pytest.raises((ContextLost, CircuitOpen)):  # the latter where the loss is told late
            lab.inject("kill").result(WAIT_S)
        lab.events.wait_for(CircuitOpened, WAIT_S, since=0)
    assert opened_and_closed() == first


def test_one_that_ended_meanwhile_is_not_taken() -> None:
    first = opened_and_closed()
    os.kill(first, signal.SIGKILL)
    assert settle(lambda: not runs(first))
    assert opened_and_closed() != first


def test_it_ends_and_is_reaped_when_nobody_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zygote_cache, "KEPT_S", 0.1)
    first = opened_and_closed()
    assert settle(lambda: not Path(f"/proc/{first}").exists())
    assert zygote_cache.numbers() == []
    assert settle(lambda: zygote_cache.THREAD not in [one.name for one in threading.enumerate()])
    assert opened_and_closed() != first


def test_one_that_was_taken_waits_for_no_other_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time ends when it is taken, and that of the next time is its own."""
    monkeypatch.setattr(zygote_cache, "KEPT_S", 2.0)
    first = opened_and_closed()
    with System("host") as lab:
        assert zygote_of(lab) == first
        assert not settle(lambda: not runs(first), 2.5)
        assert zygote_of(lab) == first


def test_none_is_kept_where_no_thread_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Timer) -> None:
        raise RuntimeError("can't start new thread")

    with System("host") as lab:
        first = zygote_of(lab)
        monkeypatch.setattr(threading.Timer, "start", refuse)
    assert zygote_cache.numbers() == []
    assert not Path(f"/proc/{first}").exists()


@pytest.mark.parametrize(
    "body",
    [
        "time.sleep(60)",
        "lab, second = opened(); assert second == first; print(flush=True); time.sleep(60)",
    ],
    ids=["kept", "taken"],
)
def test_it_ends_with_a_notebook_that_is_killed(body: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", f"{PROGRAM}print(first, flush=True)\n{body}"],
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        first = int(owner.stdout.readline())
        assert runs(first)
        if "second" in body:
            owner.stdout.readline()
        contexts = list(map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split()))
        assert len(contexts) == ("second" in body)
        owner.kill()
    assert settle(lambda: not any(map(runs, [first, *contexts])))


@pytest.mark.parametrize("end", ["", "os._exit(0)"], ids=["ends", "leaves"])
def test_it_ends_with_a_notebook_that(end: str) -> None:
    program = f"{PROGRAM}print(first, flush=True)\n{end}"
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True)  # noqa: PLW1510
    assert (done.returncode, done.stderr) == (0, b"")
    first = int(done.stdout)
    assert settle(lambda: not runs(first))


def test_a_fork_of_the_notebook_neither_takes_nor_ends_it() -> None:
    program = f"""{PROGRAM}
sys.stdout.flush()
pid = os.fork()
if not pid:
    lab, other = opened()
    assert other != first
    lab.close()
    sys.exit(7)
assert os.waitpid(pid, 0)[1] == 7 << 8
lab, second = opened()
print(first == second)
lab.close()
"""
    # From 3.12 on a process with threads is warned of `fork`, and a thread ends the kept one.
    command = [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True)  # noqa: PLW1510
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_one_that_executes_contexts_anew_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A profiler may have to write what it found when it ends."""
    monkeypatch.setenv("ACCEL_LAB_FORK", "0")
    first = opened_and_closed()
    assert zygote_cache.numbers() == []
    assert not runs(first)
