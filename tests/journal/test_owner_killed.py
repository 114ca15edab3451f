"""The process that owns a system is killed while it keeps a journal: the next one goes on from it.

What was flushed before is there, message by message; what is there can be replayed, and gives what
NumPy makes of the same program. Of the process nothing is left.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from accel_lab import System, blas
from accel_lab.journal.journal import Journal
from accel_lab.journal.replay.replay import Replay
from tests.faults.conftest import runs, settle
from tests.journal.seeded import SLOTS, Recorded, Twin, match, twins
from tests.project import ROOT

FEW, MANY = 2_500, 10_000
PLAIN_KILLS = int(os.environ.get("ACCEL_LAB_KILLS", "12"))
"""How many owners the slow test kills; 48 were killed for `docs/reliability.md`."""
GONE_S = 4.0
"""More than the second that `faults/processes/test_owner.py` measures: machines may stand still."""
LOOKS = 5
CELL = 500
CELLS = 60
SMALL_SESSION = ["session", "context began", "Put", "Scal"]

OWNER = """
import sys
from tests.journal.seeded import Run
Run(sys.argv[1], int(sys.argv[2]), sys.stdout).send(1 << 62)
"""


class Killed(NamedTuple):
    """A program whose process is dead, and how many of its actions had been committed."""

    seed: int
    flushed: int


class Owner:
    """A Python process that runs a program."""

    def __init__(self, path: Path, seed: int) -> None:
        self._seed = seed
        self._dice = random.Random(f"kill {seed}")
        self._process = subprocess.Popen(
            [sys.executable, "-c", OWNER, str(path), str(seed)],
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )

    def kill(self, actions: int) -> Killed:
        """Kill it somewhere in so many; blocks until it and all that was its own is gone."""
        goal = self._dice.randrange(actions)
        assert self._process.stdout is not None
        told = 0
        while told < goal:
            told = int(self._process.stdout.readline())
        estate = Estate(self._process.pid)
        if self._dice.randrange(2):  # as soon as it says that something is committed
            told = int(self._process.stdout.readline())
        else:  # wherever it is by then
            time.sleep(self._dice.uniform(0, 0.03))
        estate.kill()
        rest = self._process.stdout.read()
        # A line is whole or was not written: it is shorter than what a pipe takes at once.
        return Killed(self._seed, max([told, *map(int, rest.split())]))

    def end(self) -> None:
        """End it, whatever it is doing."""
        with self._process:
            self._process.kill()


def run_and_kill(path: Path, seed: int, actions: int) -> Killed:
    """Run a program and kill its process somewhere in the middle."""
    owner = Owner(path, seed)
    try:
        return owner.kill(actions)
    finally:
        owner.end()


class Estate:
    """What a process that owns a system has: its contexts and their memory."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._memory = memories(pid)
        self._children = descendants(pid)
        assert self._memory
        assert self._children

    def kill(self) -> None:
        """Kill the process, and see that all of it goes."""
        os.kill(self._pid, signal.SIGKILL)
        began = time.monotonic()
        assert settle(lambda: not any(map(runs, self._children)), 10 * GONE_S), self._children
        assert time.monotonic() - began < GONE_S
        assert not holders(self._memory, besides=self._pid)


def descendants(pid: int) -> list[int]:
    """Return the children of a process, and theirs."""
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # its thread ended
                for child in map(int, path.read_text().split()):
                    found += [child, *descendants(child)]
    return found


def memories(pid: int) -> set[int]:
    """Return the inodes of the memory files that a process holds or has mapped."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if str(fd.readlink()).startswith("/memfd:"):
                    found.add(fd.stat().st_ino)
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            if "/memfd:" in line:
                found.add(int(line.split()[4]))
    return found


def holders(memory: set[int], besides: int) -> list[int]:
    """Return the processes that hold any of these memory files."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if pid != besides and memory & memories(pid)]


def examine(path: Path, owners: list[Killed], lab: System, looks: int = 1) -> Journal:
    """Check what killed processes left, and replay it.

    Parameters:
        owners: in the order in which they began to write.
        looks: how often to compare buffers while the last of them is replayed.
    """
    journal = Journal.open(path)
    entries = list(journal)
    assert journal.damage is None
    sessions = [entry.session for entry in entries if entry.kind == "session"]
    assert len(sessions) == len(set(sessions)) == len(owners)
    messages = {
        session: [e for e in entries if e.session == session and e.kind == "message"]
        for session in sessions
    }
    records = [
        match(messages[session], owner.seed, owner.flushed)
        for session, owner in zip(sessions, owners, strict=True)
    ]
    for record, owner in zip(records, owners, strict=True):
        assert owner.flushed <= len(record.ends)
    replay = Replay(journal, lab, progress=False)
    if looks > 1:
        look(replay, sessions[-1], records[-1], owners[-1].seed, looks)
    report = replay.run()
    assert report.ok, report
    done = report.run + len(report.not_run) + report.skipped["Download"]
    assert done == sum(map(len, messages.values()))
    for session, record, owner in zip(sessions, records, owners, strict=True):
        lost = {entry.seq for entry, _ in report.not_run if entry.session == session}
        # Behind what was flushed the bytes of an upload may be missing; the report says so.
        assert all(seq > [0, *record.ends][owner.flushed] for seq in lost), report
        *_, twin = twins(owner.seed, record.ends, lost.__contains__)
        assert compare(replay, twin, record) == SLOTS or lost
    return journal


def look(replay: Replay, session: str, record: Recorded, seed: int, looks: int) -> None:
    """Replay step by step, and compare the buffers from time to time."""
    every = len(record.ends) // looks
    ahead = twins(seed, record.ends, lambda _: False)
    due = record.ends[every - 1 :: every]
    for replayed in replay:
        entry = replayed.entry
        if entry.session == session and due and entry.seq == due[0]:
            twin = next(twin for twin in ahead if record.ends[twin.done - 1] == entry.seq)
            assert compare(replay, twin, record) == SLOTS or replay.report.not_run
            due.pop(0)


def compare(replay: Replay, twin: Twin, record: Recorded) -> int:
    """Compare the buffers that are known with NumPy's; returns how many these are."""
    count = 0
    for value, maker in zip(twin.values, twin.makers, strict=True):
        if np.isnan(value).any():
            continue
        ref = replay.buffer(record.makers[maker])
        assert ref is not None
        found = ref.device.get(ref).result()
        np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-12)
        count += 1
    return count


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    """Open where everything is replayed."""
    with System("host", journal=None) as lab:
        yield lab


def kill_two_and_examine(folder: Path, seed: int, actions: int, lab: System) -> None:
    """Kill two processes that run at once, each with a journal of its own."""
    paths = [folder / f"{seed + i}.journal" for i in range(2)]
    with ThreadPoolExecutor() as threads:
        killed = list(threads.map(run_and_kill, paths, (seed, seed + 1), (actions, actions)))
    examine(paths[0], killed[:1], lab)
    examine(paths[1], killed[1:], lab, looks=LOOKS)


@pytest.mark.parametrize("seed", range(0, 6, 2))
def test_what_a_killed_owner_flushed_is_there_and_replays(
    seed: int, lab: System, tmp_path: Path
) -> None:
    kill_two_and_examine(tmp_path, seed, FEW, lab)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 10 + PLAIN_KILLS, 2))
def test_what_many_killed_owners_flushed_is_there_and_replays(
    seed: int, lab: System, tmp_path: Path
) -> None:
    kill_two_and_examine(tmp_path, seed, MANY, lab)


def test_the_next_one_goes_on_in_the_file_of_a_killed_one(lab: System, tmp_path: Path) -> None:
    path = tmp_path / "x.journal"
    owners = [run_and_kill(path, seed, FEW) for seed in (6, 7)]
    before = list(map(str, examine(path, owners, lab)))
    with System("host", journal=path).ready() as third:
        blas.scal(third.devices[0].put(np.ones(3)), 2.0).result()
        third.flush()
        assert [str(entry) for entry in third.journal][: len(before)] == before
        third.journal.replay(third, progress=False)
    after = list(Journal.open(path))
    assert list(map(str, after))[: len(before)] == before
    assert [entry.name for entry in after[len(before) :]][:4] == SMALL_SESSION
    assert len({entry.session for entry in after}) == 3


@contextlib.contextmanager
def client_of(manager: KernelManager) -> Iterator[BlockingKernelClient]:
    """Connect to a kernel that has just been started."""
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        yield client
    finally:
        client.stop_channels()


def kill_kernel(manager: KernelManager, path: Path, seed: int) -> Killed:
    """Run a program in cells of a notebook, and kill the kernel in the middle of one."""
    dice = random.Random(f"kill {seed}")
    goal = dice.randrange(MANY)
    pipe = path.with_name("pipe")
    os.mkfifo(pipe)
    told = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    lines = b""
    with client_of(manager) as client, os.fdopen(told, "rb", buffering=0) as reader:
        client.execute(f"""
from tests.journal.seeded import Run
run = Run({str(path)!r}, {seed}, open({str(pipe)!r}, "w"))""")
        for _ in range(CELLS):
            client.execute(f"run.send({CELL})")

        def arrived() -> bool:
            nonlocal lines
            lines += reader.read(1 << 16) or b""
            return int((lines.rpartition(b"\n")[0].split() or [b"0"])[-1]) >= goal

        assert settle(arrived, 90.0), lines
        assert isinstance(manager.provisioner, LocalProvisioner)
        assert manager.provisioner.pid is not None
        estate = Estate(manager.provisioner.pid)
        time.sleep(dice.uniform(0, 0.03))
        estate.kill()
        lines += reader.read() or b""
    return Killed(seed, int(lines.split()[-1]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [60, 61])
def test_the_next_kernel_finds_what_a_killed_kernel_flushed(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "x.journal"
    manager = KernelManager()
    manager.start_kernel(cwd=str(ROOT), env=os.environ | {"PYTHONPATH": str(ROOT)})
    try:
        killed = kill_kernel(manager, path, seed)
        manager.restart_kernel(now=True)
        with client_of(manager) as client:
            said: list[str] = []
            answer = client.execute_interactive(
                f"""
from pathlib import Path
from accel_lab import System
from tests.journal.test_owner_killed import Killed, examine
with System("host", journal=None) as lab:
    examine(Path({str(path)!r}), [{killed!r}], lab)""",
                timeout=100,
                output_hook=lambda message: said.append(str(message["content"])),
            )
        assert answer["content"]["status"] == "ok", "\n".join(said)
    finally:
        manager.shutdown_kernel(now=True)
    messages = [entry for entry in Journal.open(path) if entry.kind == "message"]
    for number, entry in match(messages, seed, killed.flushed).makers.items():
        assert entry.cell == 2 + number // CELL
