"""Other actor systems are measured fairly, and leave nothing behind however it ends."""

import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import msgspec
import pytest

from accel_lab import System
from accel_lab.bench import effort, suite
from accel_lab.bench.report import Report
from accel_lab.bench.row import Budget, judged
from tests.benchmarks.peers.catalogue import PEERS, Peer, peer_of
from tests.benchmarks.peers.comparison import compare
from tests.benchmarks.peers.guard import children, command_of
from tests.benchmarks.peers.process import GUARD, PeerFailed, PeerProcess
from tests.faults.conftest import runs, settle
from tests.project import ROOT, requirements

PYKKA = [peer for peer in PEERS if peer.package == "pykka"]

# Leaves a process in a session of its own that no signal but SIGKILL ends, a file, shared memory.
MESSY = """
import os, signal, subprocess, sys, tempfile
from multiprocessing.shared_memory import SharedMemory

stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); "
left = subprocess.Popen(
    [sys.executable, "-c", stubborn + "signal.pause()"],
    start_new_session=True,
    stdout=subprocess.PIPE,
)
left.stdout.readline()
file = tempfile.NamedTemporaryFile(delete=False)
memory = SharedMemory(create=True, size=64)
print(os.getpid(), left.pid, file.name, memory.name, flush=True)
"""


def below(pid: int) -> Iterator[int]:
    """Give all descendants of a process."""
    for child in children(pid):
        yield child
        yield from below(child)


def shared(name: str) -> bool:
    try:
        SharedMemory(name).close()
    except FileNotFoundError:
        return False
    return True


@pytest.mark.parametrize("ending", ["by itself", "SIGTERM", "death of its parent"])
def test_guard_leaves_nothing_behind(ending: str) -> None:
    code = MESSY + ("" if ending == "by itself" else "signal.pause()")
    guard = [*GUARD, sys.executable, "-c", code]
    above = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    command = [sys.executable, "-c", above, *guard] if ending == "death of its parent" else guard
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        worker, left, file, memory = process.stdout.readline().split()
        if ending != "by itself":
            assert runs(int(left))
            assert Path(file).exists()
            assert shared(memory)
            process.send_signal(signal.SIGTERM if ending == "SIGTERM" else signal.SIGKILL)
        process.wait(20)
        assert settle(lambda: not Path(file).parent.exists(), 60)
        assert not runs(int(worker))
        assert not runs(int(left))
        assert not shared(memory)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL], ids=lambda end: end.name)
def test_benchmark_that_is_interrupted_takes_its_peer_along(end: signal.Signals) -> None:
    command = [sys.executable, "-m", "tests.benchmarks.peers", "--backend=host"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        family: list[int] = []

        def measuring() -> bool:
            family[:] = below(process.pid)
            lines = [command_of(pid) for pid in family if runs(pid)]
            return any(b"peers.worker" in line and b"guard.py" not in line for line in lines)

        assert settle(measuring, 60)
        process.send_signal(end)
        process.wait(30)
        assert settle(lambda: not any(map(runs, family)), 60)


def test_every_peer_is_in_the_extra() -> None:
    needed = {name for peer in PEERS for name in (peer.package, *peer.needs)}
    assert needed == requirements("peers").keys()
    assert "pykka" in requirements("test")
    assert len({peer.name for peer in PEERS}) == len(PEERS)


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_peer_takes_every_message(peer: Peer) -> None:
    if peer.missing:
        pytest.skip(f"the peers extra is not installed: {', '.join(peer.missing)}")
    with PeerProcess(peer) as process:
        assert process.version[0].isdigit()
        assert len(process.ask(5)) == 5
        told = process.tell(20)
        assert 0 < told.sending_s < told.taken_s
        assert process.tell(20).taken_s > 0


def test_peer_that_cannot_start_says_why() -> None:
    peer = Peer("pykka", "pykka", "a pykka that does not stop", "InExecutor")
    with PeerProcess(peer) as process:
        worker = max(below(process.pid))
        os.kill(worker, signal.SIGKILL)
        with pytest.raises(PeerFailed, match="a pykka that does not stop: it ended"):
            process.ask(1)
    with pytest.raises(PeerFailed, match="KeyError: 'no peer'"):
        PeerProcess(peer._replace(name="no peer"))


def test_peers_are_rows_with_budgets_and_absent_ones_are_named() -> None:
    versions: dict[str, str] = {}
    notes: list[str] = []
    nowhere = Peer("nowhere", "no_such_package_at_all", "nothing", "None")
    with System("host", devices=1) as lab:
        rows = compare(lab.devices[0], effort.QUICK, versions, notes, catalogue=[*PYKKA, nowhere])
    kinds = ("ask-p50", "ask-p99", "tell", "tell-cost")
    assert [row.name for row in rows] == [f"{peer.name}-{kind}" for peer in PYKKA for kind in kinds]
    for row in rows:
        for value in (row.ours, row.theirs, row.ratio):
            assert value is not None
            assert math.isfinite(value)
            assert value > 0
    assert [row.name for row in map(judged, rows) if row.met is not None] == [
        "pykka-ask-p50",
        "pykka-tell",
    ]
    assert versions.keys() == {"pykka"}
    (note,) = notes
    assert "nowhere" in note
    assert "[peers]" in note


def test_a_run_of_the_comparison_prints_its_report_and_what_is_not_installed() -> None:
    command = [sys.executable, "-m", "tests.benchmarks.peers", "--backend=host", "--quick"]
    done = subprocess.run(
        [*command, "--json"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=110
    )
    assert done.returncode == 0, done.stderr
    report = msgspec.json.decode(done.stdout, type=Report)
    assert report.quick
    assert report["pykka-ask-p50"].budget == Budget(5, "at least", "speedup")
    assert "pykka" in report.machine.libraries
    measured = {row.peer for row in report.rows}
    unmeasured = [peer for peer in PEERS if peer.title not in measured]
    assert all(any(peer.name in note for note in report.notes) for peer in unmeasured)


def test_the_benchmark_that_is_installed_knows_no_peers() -> None:
    assert "peers" not in suite.NAMES
    assert peer_of("ray").ask == 100
