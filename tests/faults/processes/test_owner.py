"""What the notebook's own process goes through: killed, interrupted, ended in the middle."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import require
from tests.faults.conftest import runs, settle

PROGRAM = """
import sys, time
import numpy as np
from accel_lab import System, blas
from accel_lab.compute.events.lifecycle import ContextStarted
lab = System("host", 2, max_restarts=1000)
lab.ready()
print(*[e.pid for e in lab.events.history(ContextStarted)], flush=True)
cpu = lab.devices[0]
one = cpu.put(np.ones(4))
"""


class Owner:
    """A Python process with a system of two host devices in it."""

    def __init__(self, body: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM + body],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.contexts = [int(word) for word in self.line().split()]
        self.zygotes: list[int] = []
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it may have left by now
            for path in Path(f"/proc/{self.process.pid}/task").glob("*/children"):
                self.zygotes += map(int, path.read_text().split())

    def interrupt(self) -> None:
        """Send Ctrl-C once the process sleeps in its wait, which nothing announces."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        asleep = 0
        while asleep < 20:
            asleep = asleep + 1 if stat.read_text().rsplit(")", 1)[1].split()[0] == "S" else 0
            time.sleep(0.01)
        os.kill(self.process.pid, signal.SIGINT)

    def said(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.readline().strip()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def alive(self) -> list[int]:
        return [pid for pid in (*self.contexts, *self.zygotes) if runs(pid)]


@pytest.fixture
def start() -> Iterator[type[Owner]]:
    started: list[Owner] = []

    class Started(Owner):
        def __init__(self, body: str) -> None:
            super().__init__(body)
            started.append(self)

    yield Started
    for owner in started:
        owner.process.kill()
        owner.process.communicate()


@pytest.mark.parametrize(
    "body",
    ["time.sleep(60)", "cpu.run(time.sleep, 60).result()", "import os; os._exit(0)"],
    ids=["idle", "in the middle of a request", "leaving without close"],
)
def test_contexts_end_within_a_second_of_their_notebook(start: type[Owner], body: str) -> None:
    took = [seconds_to_end(start(body), body)]
    while took[-1] >= 1.0 and len(took) < 3:  # unless the machine stood still for so long
        took.append(seconds_to_end(start(body), body))
    assert min(took) < 1.0


def seconds_to_end(owner: Owner, body: str) -> float:
    assert len(owner.contexts) == 2
    assert owner.zygotes or owner.process.poll() is not None
    if "_exit" in body:
        owner.process.wait(10)
    else:
        os.kill(owner.process.pid, signal.SIGKILL)
    begin = time.monotonic()
    assert settle(lambda: not owner.alive()), owner.alive()
    return time.monotonic() - begin


def test_an_interrupt_takes_the_cells_requests_back_and_the_context_lives_on(
    start: type[Owner],
) -> None:
    owner = start("""
slow = cpu.run(time.sleep, 600)
queued = [blas.scal(one, 2.0, out=one) for _ in range(5)]
try:
    print("waiting", flush=True)
    queued[-1].result()
except KeyboardInterrupt:
    print("interrupted", flush=True)
for reply in queued:
    try:
        reply.result(30)
        print("ran")
    except Exception as error:
        print(type(error).__name__)
print(cpu.get(one).result(30).tolist(), cpu.generation)
lab.close()
""")
    assert owner.line() == "waiting"
    owner.interrupt()
    assert owner.line() == "interrupted"
    assert [owner.line() for _ in range(5)] == ["Cancelled"] * 5
    assert owner.line() == "[1.0, 1.0, 1.0, 1.0] 1"
    _, said = owner.process.communicate(timeout=30)
    assert re.search(r"[67] requests of this cell", said)
    assert "still running" not in said


def test_an_interrupt_ends_a_function_that_runs(start: type[Owner], tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    owner = start(f"""
def sleep():
    open({str(runs)!r}, "w").close()
    time.sleep(600)
slow = cpu.run(sleep)
try:
    print("waiting", flush=True)
    slow.result()
except KeyboardInterrupt:
    print("interrupted", flush=True)
try:
    slow.result(30)
except Exception as error:
    print(type(error).__name__)
print(cpu.run(int).result(30), cpu.generation)
lab.close()
""")
    assert owner.line() == "waiting"
    assert settle(runs.exists)
    began = time.monotonic()
    owner.interrupt()
    assert [owner.line() for _ in range(3)] == ["interrupted", "Interrupted", "0 1"]
    assert time.monotonic() - began < 10


def test_a_second_interrupt_replaces_the_context(start: type[Owner], tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    owner = start(f"""
from accel_lab.compute.requests import stop_button
stop_button.SECOND_INTERRUPT_S = 60.0
def deaf():
    import signal
    signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGUSR1}})
    open({str(runs)!r}, "w").close()
    time.sleep(600)
stuck = cpu.run(deaf)
for _ in range(2):
    try:
        print("waiting", flush=True)
        stuck.result()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    except Exception as error:
        print(type(error).__name__, error)
try:
    stuck.result(30)
except Exception as error:
    print(type(error).__name__, flush=True)
print(cpu.get(cpu.put(np.ones(1))).result(30).tolist(), cpu.generation)
lab.close()
""")
    for _ in range(2):
        assert owner.line() == "waiting"
        assert settle(runs.exists)
        owner.interrupt()
        assert owner.line() == "interrupted"
    assert owner.line() == "ContextReplaced"
    assert owner.line() == "[1.0] 2"


SPIN = """
from accel_lab import jit
spin = jit.compile(cpu, "__global__ void spin(volatile int* go) { while (*go == 0) {} }", "spin")
go = cpu.put(np.zeros(1, np.int32)).result()
spin.result()
stuck = spin(1, 1, (go,))
cpu._requests.stop_button.patience_s = 60.0
behind = one + 1
try:
    print("waiting", flush=True)
    behind.result()
except KeyboardInterrupt:
    print("interrupted", cpu.generation, flush=True)
"""


def test_a_second_interrupt_while_a_kernel_runs_replaces_the_context(start: type[Owner]) -> None:
    """The cell is still there to be interrupted: it has not ended with the first."""
    require("compiler")
    owner = start(f"""{SPIN}
try:
    stuck.result(30)
except Exception as error:
    print(type(error).__name__, flush=True)
lab.close()
""")
    assert owner.line() == "waiting"
    owner.interrupt()
    assert "requests of this cell to cpu0 were cancelled" in owner.said()
    assert "it still runs on cpu0: interrupt (■) again within 60 s" in owner.said()
    owner.interrupt()
    assert owner.line() == "interrupted 2"
    assert owner.line() == "ContextReplaced"
    assert "interrupted again; the context of cpu0 is replaced" in owner.said()


def test_one_interrupt_of_a_kernel_ends_the_cell_and_leaves_the_kernel(start: type[Owner]) -> None:
    require("compiler")
    owner = start(f"""{SPIN.replace("60.0", "1.0")}
print(stuck.done, flush=True)
cpu.replace()
lab.close()
""")
    assert owner.line() == "waiting"
    owner.interrupt()
    assert owner.line() == "interrupted 1"
    assert owner.line() == "False"
    said = [owner.said() for _ in range(3)]
    assert "still running on cpu0. Stop it with: cpu.replace()" in said[2], said


@pytest.mark.parametrize("body", ["", "cpu.get(one).result()"], ids=["idle", "after an answer"])
def test_the_end_of_the_interpreter_closes_a_forgotten_system(
    start: type[Owner], body: str
) -> None:
    owner = start(body)
    out, err = owner.process.communicate(timeout=30)
    assert owner.process.returncode == 0, err
    assert (out, err) == ("", "")
    assert settle(lambda: not owner.alive())  # they end by themselves
