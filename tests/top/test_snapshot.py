"""One look at all systems, as a monitor takes it: what it says, and its exit status."""

import os
import shutil
import signal
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from accel_lab import System, blas
from accel_lab.cli import app
from accel_lab.errors import AccelError, ContextLost, InvalidArgument, TelemetryUnavailable
from accel_lab.top import looker, stack
from accel_lab.top.looker import Looker
from accel_lab.top.snapshot import Seen, Snapshot
from tests.views.feed.processes import Program, eventually

pytestmark = pytest.mark.usefixtures("runtime")


def the_system(found: Snapshot) -> Seen:
    (one,) = found.systems
    return one


def test_nobody_is_there() -> None:
    with Looker(300.0) as looking:
        found = looking.settled()
    assert found.systems == ()
    assert found.mute == ()
    assert found.status == 2
    told = CliRunner().invoke(app, ["top", "--once"])
    assert told.exit_code == 2
    assert "no system" in told.output


def test_a_system_at_work_is_well_and_its_work_memory_and_processes_are_told(lab: System) -> None:
    (device,) = lab.devices
    x = device.put(np.ones((64, 64)))
    blas.gemm(x, x).result(60)
    busy = device.run(time.sleep, 60)
    with Looker(300.0) as looking:
        eventually(lambda: is_running(looking.settled()))
        told = CliRunner().invoke(app, ["top", "--json"])
    found = msgspec.json.decode(told.stdout, type=Snapshot)
    assert told.exit_code == found.status == 0
    one = the_system(found)
    assert (one.name, one.pid, one.state, one.wrong) == ("train", os.getpid(), "running", ())
    assert one.folder == str(Path.cwd())
    nodes = {node.path: node for node in lab.tree().walk()}
    assert [actor.path for actor in one.actors] == list(nodes)
    told_of = {actor.path: actor for actor in one.actors}
    assert told_of["train/cpu0"].used_bytes == nodes["train/cpu0"].used_bytes
    assert told_of["train/cpu0"].in_flight == 1
    assert told_of["train/cpu0/context"].pid == nodes["train/cpu0/context"].pid
    assert is_running(found)
    assert "library actors at rest" in str(found)
    busy.cancel()


def is_running(found: Snapshot) -> bool:
    return [
        (one.name, one.device, one.stream)
        for one in the_system(found).kernels
        if one.running_s is not None and one.running_s > 0
    ] == [("sleep", "cpu0", "run")]


def test_a_fault_counts_for_as_long_as_is_asked(lab: System) -> None:
    with pytest.raises(ContextLost):
        lab.inject("kill").result(60)
    lab.devices[0].run(abs, -1).result(60)
    with Looker(300.0) as looking:
        found = looking.settled()
    with Looker(0.0) as looking:
        later = looking.settled()
    assert found.status == 1
    (fault,) = the_system(found).faults
    assert (fault.path, fault.what) == ("cpu0", "context lost")
    assert "SIGKILL" in fault.cause
    assert "cpu0: context lost" in the_system(found).wrong[0]
    assert later.status == 0
    assert the_system(later).faults == (fault,)
    assert the_system(later).actors[1].restarts == 1


def test_an_open_circuit_is_not_well_however_long_ago(runtime: Path) -> None:
    with System("host", 1, name="train", max_restarts=0) as lab:
        with pytest.raises(AccelError):
            lab.inject("kill").result(60)
        eventually(lambda: lab.tree().children[0].state == "circuit open")
        with Looker(0.0) as looking:
            found = looking.settled()
    assert found.status == 1
    assert "train/cpu0: circuit open" in the_system(found).wrong


@pytest.mark.slow
def test_a_process_that_says_nothing_or_is_gone_is_not_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Program(tmp_path, "train") as program, Looker(300.0) as before:
        eventually(lambda: before.settled().systems)
        os.kill(program.pid, signal.SIGSTOP)
        monkeypatch.setattr(looker, "SPEAKS_WITHIN_S", 0.5)
        with Looker(300.0) as after:
            found = after.settled()
        assert (found.status, found.systems, found.mute) == (1, (), (program.pid,))
        assert f"process {program.pid} says nothing" in str(found)
        eventually(lambda: the_system(before.snapshot()).state == "silent")
        assert before.snapshot().status == 1
        os.kill(program.pid, signal.SIGCONT)
        program.kill()
        eventually(lambda: the_system(before.snapshot()).state == "killed")
        assert before.snapshot().status == 1
        assert the_system(before.snapshot()).wrong[0] == "its process is gone"


def test_a_system_that_was_closed_is_not_there(runtime: Path) -> None:
    with Looker(300.0) as looking:
        with System("host", 1, name="ended"):
            eventually(lambda: looking.snapshot().status == 0)
        eventually(lambda: the_system(looking.snapshot()).state == "closed")
        assert looking.snapshot().status == 2


def test_a_stack_is_of_the_context_that_is_named(lab: System) -> None:
    if shutil.which("py-spy") is None:
        pytest.skip("py-spy is not installed")
    with Looker(300.0) as looking:
        found = looking.settled()
    pid = lab.tree().children[0].children[0].pid
    for name in ("cpu0", "train/cpu0"):
        try:
            text = stack.stack_of(found, name)
        except TelemetryUnavailable as refused:
            pytest.skip(str(refused))
        assert f"Process {pid}" in text
        assert "be_context" in text
    for name in ("cpu1", "pu0", "other/cpu0", ""):
        with pytest.raises(InvalidArgument, match="is no device with a context"):
            stack.stack_of(found, name)
    with pytest.raises(InvalidArgument, match=f"process {os.getpid()} is no context"):
        stack.stacks(os.getpid())


def test_without_what_it_needs_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel_lab.telemetry.installed.find_spec", lambda _: None)
    told = CliRunner().invoke(app, ["top"])
    assert isinstance(told.exception, TelemetryUnavailable)
    assert "accel-lab top needs textual" in str(told.exception)
    assert "observability" in str(told.exception)
    monkeypatch.setattr("accel_lab.top.stack.shutil.which", lambda *_, **__: None)
    with pytest.raises(TelemetryUnavailable, match="install py-spy"):
        stack.stacks(1)
