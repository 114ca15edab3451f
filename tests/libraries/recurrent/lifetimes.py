"""When things are closed, rebuilt and kept, in a copy of the project that has `recurrent`."""

import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from accel_lab.libraries.recurrent import Overflow

from accel_lab import System
from accel_lab.compute.device import Device
from accel_lab.errors import (
    CannotKeep,
    DependencyFailed,
    InvalidArgument,
    LibraryError,
    StaleRef,
)
from accel_lab.libraries import recurrent
from tests.libraries.recurrent.given import (
    BACKEND,
    WAIT,
    W,
    X,
    after,
    gpu,
    kill,
    lab,
    lines,
    row,
    until,
)

__all__ = ["gpu", "lab"]

STATE = "State on its thread"


def test_it_is_closed_with_its_last_handle(gpu: Device, tmp_path: Path) -> None:
    log = tmp_path / "log"
    state = recurrent.make_state(gpu.put(W), log=str(log))
    again = state.result(WAIT)
    del state
    gpu.ping().result(WAIT)
    assert lines(log) == []
    del again
    gpu.ping()
    assert until(log, 1) == [STATE]


def test_it_is_closed_when_it_is_freed_and_only_then(gpu: Device, tmp_path: Path) -> None:
    log = tmp_path / "log"
    state = recurrent.make_state(gpu.put(W), log=str(log))
    state.result(WAIT)
    state.free()
    assert until(log, 1) == [STATE]
    del state
    gpu.ping().result(WAIT)
    assert until(log, 1) == [STATE]


def test_it_is_closed_behind_work_beside_the_dispatcher(gpu: Device, tmp_path: Path) -> None:
    log = tmp_path / "log"
    cache = recurrent.make_cache(gpu, 4, str(log))
    slow = recurrent.append(cache, gpu.put(W), slow=True)
    del cache
    gpu.ping().result(WAIT)
    assert lines(log) == []
    slow.result(WAIT)
    assert until(log, 1) == ["Cache on its thread"]


def test_a_failed_launch_closes_what_it_kept(gpu: Device, tmp_path: Path) -> None:
    log = tmp_path / "log"
    cache = recurrent.make_cache(gpu, 4, str(log), fails=True)
    with pytest.raises(Overflow):
        cache.result(WAIT)
    assert until(log, 1) == ["Cache on its thread"]
    with pytest.raises(DependencyFailed):
        recurrent.append(cache, gpu.put(W)).result(WAIT)


def test_a_restart_of_its_library_closes_it(gpu: Device, tmp_path: Path) -> None:
    log, x = tmp_path / "log", gpu.put(X)
    state = recurrent.make_state(gpu.put(W), log=str(log))
    other = recurrent.make_state(gpu.put(W), log=str(log))
    slow = recurrent.make_cache(gpu, 4, str(log))
    np.testing.assert_allclose(recurrent.step(other, x).get(), after(1))
    working = recurrent.append(slow, gpu.put(W), slow=True)
    with pytest.raises(LibraryError, match="upset"):
        recurrent.upset(state).result(WAIT)
    assert sorted(until(log, 3)) == ["Cache on its thread", STATE, STATE]
    assert working.done  # that was closed behind it
    with pytest.raises(StaleRef, match=r"RnnState .* was closed when recurrent was replaced"):
        recurrent.step(other, x).result(WAIT)
    fresh = recurrent.make_state(gpu.put(W))
    np.testing.assert_allclose(recurrent.step(fresh, x).get(), after(1))
    gpu.replace()
    np.testing.assert_allclose(recurrent.step(other, x).get(), after(2))
    assert lines(log).count(STATE) == 2


def test_a_close_that_fails_is_told_and_breaks_nothing(
    gpu: Device, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "fails"
    state = recurrent.make_state(gpu.put(W), log=str(log))
    state.result(WAIT)
    state.free()
    assert until(log, 1) == [STATE]
    again = recurrent.make_state(gpu.put(W))
    np.testing.assert_allclose(recurrent.step(again, gpu.put(X)).get(), after(1))
    end = time.monotonic() + 10
    told = ""
    while "OSError('it does not close')" not in told and time.monotonic() < end:
        gpu.ping().result(WAIT)
        told += "".join(capfd.readouterr())
    assert re.search(r"accel_lab: recurrent: what MakeState #\d+ made was not closed", told), told


def test_it_is_closed_with_its_device(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with System(BACKEND) as lab:
        state = recurrent.make_state(lab.devices[0].put(W), log=str(log))
        state.result(WAIT)
        assert lines(log) == []
    assert lines(log) == [STATE]
    assert "closed" in repr(state)


def test_it_is_closed_when_its_device_is_suspended(gpu: Device, tmp_path: Path) -> None:
    log = tmp_path / "log"
    state = recurrent.make_state(gpu.put(W), log=str(log))
    x = gpu.put(X)
    recurrent.step(state, x).result(WAIT)
    gpu.suspend()
    assert lines(log) == [STATE]
    np.testing.assert_allclose(recurrent.step(state, x).get(), after(2))
    assert lines(log) == [STATE]


# Faults.


def test_a_fault_rebuilds_it_by_its_messages(lab: System, gpu: Device) -> None:
    """In order, and with what they have read as it was then."""
    w, x = gpu.put(W), gpu.put(X)
    state, cache = recurrent.make_state(w), recurrent.make_cache(gpu, 4)
    w *= 0  # it has its own copy
    recurrent.step(state, x)
    recurrent.append(cache, x.reshape(1, 4))
    x += 1
    recurrent.append(cache, x.reshape(1, 4))
    x -= 1
    recurrent.step(state, x)
    copied = recurrent.blend(state, like=x)
    recurrent.append(cache, copied.reshape(1, 4))
    gpu.ping().result(WAIT)
    kill(gpu)
    np.testing.assert_allclose(recurrent.read_cache(cache).get(), [X, X + 1, after(2)])
    np.testing.assert_allclose(recurrent.step(state, x).get(), after(3))
    np.testing.assert_allclose(w.get(), 0 * W)
    assert "made again in 2" in repr(state)
    assert gpu.generation == 2


def test_what_was_in_flight_is_run_again_once(gpu: Device) -> None:
    x, state = gpu.put(X), recurrent.make_state(gpu.put(W))
    x.result(WAIT)
    done = [recurrent.step(state, x) for _ in range(40)]
    os.kill(gpu.run(os.getpid).result(WAIT), signal.SIGKILL)
    done += [recurrent.step(state, x) for _ in range(40)]
    for count, one in enumerate(done, 1):
        np.testing.assert_allclose(one.get(), after(count))


def test_a_suspended_device_rebuilds_it(gpu: Device) -> None:
    w, x = gpu.put(W), gpu.put(X)
    state, cache = recurrent.make_state(w), recurrent.make_cache(gpu, 4)
    recurrent.step(state, x)
    scratch = x + 1
    recurrent.append(cache, scratch.reshape(1, 4))
    del scratch
    x += 1
    w *= 2
    gpu.suspend()
    queued = recurrent.step(state, x - 1)
    np.testing.assert_allclose(queued.get(), after(2))
    np.testing.assert_allclose(recurrent.read_cache(cache).get(), [X + 1])
    np.testing.assert_allclose(x.get(), X + 1)
    np.testing.assert_allclose(w.get(), 2 * W)
    gpu.suspend()
    np.testing.assert_allclose(recurrent.step(state, x - 1).get(), after(3))


def test_what_cannot_be_rebuilt_is_not_suspended_in_silence(gpu: Device) -> None:
    state = recurrent.make_state(gpu.put(W))
    gpu.run(id, state).result(WAIT)
    with pytest.raises(CannotKeep, match="pure=True"):
        gpu.suspend()
    np.testing.assert_allclose(recurrent.step(state, gpu.put(X)).get(), after(1))
    gpu.suspend(drop=True)
    with pytest.raises(StaleRef):
        recurrent.step(state, gpu.put(X))


def test_a_verdict_refuses_it(lab: System, gpu: Device) -> None:
    x, state = gpu.put(X), recurrent.make_state(gpu.put(W))
    state.result(WAIT)
    bad = recurrent.upset(state, judged=True)
    behind = recurrent.step(state, x)
    with pytest.raises(DependencyFailed):
        behind.result(WAIT)
    with pytest.raises(Overflow):
        bad.result(WAIT)
    gpu.replace()
    np.testing.assert_allclose(recurrent.step(state, x).get(), after(1))


# Checkpoints.


def test_a_checkpoint_cuts_short_what_runs_again(lab: System, gpu: Device) -> None:
    x, w = gpu.put(X), gpu.put(W)
    state = recurrent.make_state(w)
    gpu.run(abs, w).result(WAIT)  # from here on its messages alone cannot rebuild `w`
    for _ in range(5):
        recurrent.step(state, x)
    gpu.checkpoint(state).result(WAIT)
    assert state.durability == "checkpointed"
    recurrent.step(state, x).result(WAIT)
    assert state.durability.why == "2 messages would make it again"
    kill(gpu)
    np.testing.assert_allclose(recurrent.step(state, x).get(), after(7))
    assert row(gpu, state).nbytes == 160
    gpu.suspend()
    np.testing.assert_allclose(recurrent.step(state, x).get(), after(8))
    lab.check()


def test_what_has_no_checkpoint_says_so(gpu: Device) -> None:
    cache = recurrent.make_cache(gpu, 4)
    with pytest.raises(InvalidArgument, match=r"KVCache #\d+ has no checkpoint"):
        gpu.checkpoint(cache).result(WAIT)
