"""Handles of what is no array, in a copy of the project that has the library `recurrent`."""

import os
import pickle
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accel_lab.libraries.recurrent import Overflow, Step

from accel_lab import System, blas
from accel_lab.compute.device import Device
from accel_lab.errors import (
    CannotKeep,
    DependencyFailed,
    InvalidArgument,
    LibraryError,
    NotAnArray,
    StaleRef,
)
from accel_lab.journal.journal import Journal
from accel_lab.libraries import recurrent

BACKEND = os.environ.get("TRIAL_BACKEND", "host")
WAIT = 60
W = np.random.default_rng(7).standard_normal((4, 4))
X = np.arange(4.0)


@pytest.fixture
def lab() -> Iterator[System]:
    with System(BACKEND) as system:
        yield system


@pytest.fixture
def gpu(lab: System) -> Device:
    return lab.devices[0]


def after(steps: int, h: np.ndarray | None = None) -> np.ndarray:
    """Return what is in a state of W after so many steps of X."""
    h = np.zeros(4) if h is None else h
    for _ in range(steps):
        h = np.tanh(W @ h + X)
    return h


def test_a_state_is_made_written_and_read(gpu: Device) -> None:
    x = gpu.put(X)
    state = recurrent.make_state(gpu.put(W))
    first, second = recurrent.step(state, x), recurrent.step(state, x)
    np.testing.assert_allclose(first.get(), after(1))
    np.testing.assert_allclose(second.get(), after(2))
    np.testing.assert_allclose(recurrent.blend(state, like=x).get(), after(2))
    assert state.result(WAIT) is state
    assert state.kind == "RnnState"


def test_a_handle_is_no_array_and_says_so(gpu: Device) -> None:
    state = recurrent.make_state(gpu.put(W))
    uses: list[Callable[[Any], object]] = [
        lambda one: one + 1,
        lambda one: 2 * one,
        lambda one: one @ one,
        lambda one: one[0],
        lambda one: one < 1,
        lambda one: -one,
        lambda one: one.shape,
        lambda one: one.dtype,
        lambda one: one.get(),
        lambda one: one.nbytes,
        lambda one: one.sum(),
        np.asarray,
        len,
        list,
        float,
    ]
    for use in uses:
        with pytest.raises(NotAnArray, match=rf"RnnState #{state.id} of {gpu.name} is no array"):
            use(state)
    assert isinstance(NotAnArray("x"), TypeError | AttributeError)
    assert not hasattr(state, "shape")
    with pytest.raises(NotAnArray, match="no attribute 'nonsense'"):
        _ = state.nonsense
    assert state == state  # noqa: PLR0124 - that is asked
    assert len({state, recurrent.make_state(gpu.put(W))}) == 2
    with pytest.raises(InvalidArgument, match="Handle"):
        gpu.get(state).result(WAIT)
    with pytest.raises(TypeError, match="make another"):
        pickle.dumps(state)


def test_it_reads_well(gpu: Device) -> None:
    state = recurrent.make_state(gpu.put(W))
    state.result(WAIT)
    assert re.fullmatch(
        rf"<Handle RnnState on {gpu.name}, handle {state.id} of generation 1, made>", repr(state)
    )
    html = state._repr_html_()
    assert state.durability == "replayable"
    for text in ("RnnState", "recurrent", "160 B", gpu.name, "made", "replayable"):
        assert text in html, html
    state.free()
    assert "freed" in repr(state)
    message = recurrent.MakeState(gpu.put(W))
    assert "RnnState" in message._repr_html_()
    assert "shape" not in html


def test_wrong_operands_are_refused_by_name(gpu: Device) -> None:
    x, state = gpu.put(X), recurrent.make_state(gpu.put(W))
    cache = recurrent.make_cache(gpu, 4)
    sent = gpu.ping().result(WAIT)
    wrong: Any = cache
    state_of, cached = r"Step.state must be a Handle\[RnnState\], not ", f"#{cache.id} KVCache"
    for call, text in (
        (lambda: recurrent.step(wrong, x), f"{state_of}{cached}; MakeState makes one"),
        (lambda: recurrent.step(x, x), rf"{state_of}#{x.id} float64\[4\]"),
        (lambda: recurrent.step(state, state), f"Step.x must be an AccelRef, not #{state.id} RnnS"),
        (lambda: recurrent.step(7, x), "an operand must be an AccelRef, not a int"),
        (lambda: gpu.ask(Step(7, x)), f"{state_of}int"),
        (lambda: gpu.ask(Step(None, x)), f"{state_of}NoneType"),
        (lambda: recurrent.blend(state, wrong, like=x), f"Blend.states must be .*{cached}"),
        (lambda: recurrent.blend(state, first=wrong, like=x), f"Blend.first must be .*{cached}"),
        (lambda: blas.gemm(state, x), f"Gemm.a must be an AccelRef, not #{state.id} RnnState"),
        (lambda: x + state, "RnnState"),
        (lambda: recurrent.make_state(x), "square"),
    ):
        with pytest.raises((InvalidArgument, TypeError), match=text):
            call()
    assert sent is None
    np.testing.assert_allclose(recurrent.step(state, x).get(), after(1))


def test_stale_freed_and_foreign_ones_are_refused(lab: System, gpu: Device) -> None:
    x, state = gpu.put(X), recurrent.make_state(gpu.put(W))
    state.free()
    with pytest.raises(StaleRef, match="was freed"):
        recurrent.step(state, x)
    with System(BACKEND) as other:
        there = other.devices[0]
        foreign = recurrent.make_state(there.put(W))
        with pytest.raises(InvalidArgument, match="another system"):
            gpu.ask(Step(foreign, x))
    with pytest.raises(InvalidArgument, match="closed"):
        gpu.ask(Step(foreign, x))
    gone = recurrent.make_state(gpu.put(W))
    gpu.run(id, gone).result(WAIT)  # it may have changed it
    gpu.replace()
    with pytest.raises(StaleRef, match="pure=True"):
        recurrent.step(gone, x).result(WAIT)
    lab.check()


def test_one_of_several_results_is_a_handle(gpu: Device) -> None:
    w, h = gpu.put(W), gpu.put(X)
    made = recurrent.make_both(w, h)
    assert (made.state.kind, made.cache) == ("RnnState", None)
    assert made.h.shape == (4,)
    np.testing.assert_allclose(recurrent.step(made.state, h).get(), after(1, X))
    np.testing.assert_allclose(made.h.get(), X)
    more = recurrent.make_both(w, h * 2, cached=True)
    recurrent.append(more.cache, gpu.put(W)).result(WAIT)
    np.testing.assert_allclose(recurrent.read_cache(more.cache).get(), W)
    gpu.replace()
    np.testing.assert_allclose(recurrent.read_cache(more.cache).get(), W)
    np.testing.assert_allclose(recurrent.step(made.state, h).get(), after(2, X))
    np.testing.assert_allclose(recurrent.step(more.state, h).get(), after(1, 2 * X))


def test_it_may_come_of_what_has_no_shape_yet(gpu: Device) -> None:
    cache = recurrent.make_cache(gpu, 4)
    recurrent.append(cache, gpu.put(W))
    state = recurrent.make_state(recurrent.read_cache(cache))
    np.testing.assert_allclose(recurrent.step(state, gpu.put(X)).get(), after(1))
    gpu.run(time.sleep, 0.5)  # so that it is not known by the next line
    recurrent.append(cache, gpu.put(W))
    wrong = recurrent.make_state(recurrent.read_cache(cache))
    behind = recurrent.step(wrong, gpu.put(X))
    with pytest.raises(InvalidArgument, match="square"):
        wrong.result(WAIT)
    with pytest.raises(DependencyFailed):
        behind.result(WAIT)


# Closing.


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def until(log: Path, count: int) -> list[str]:
    """Return the lines of a log once there are so many, and a moment has brought no more."""
    end = time.monotonic() + 20
    while len(lines(log)) < count and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(0.2)
    return lines(log)


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
    assert until(log, 2) == [STATE]


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
    assert until(log, 4)[:3].count(STATE) == 2


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


# Memory.


def row(gpu: Device, handle: Any) -> Any:
    gpu.ping().result(WAIT)
    rows: list[Any] = [*gpu.resident]
    (found,) = [one for one in rows if handle.id in one.ids]
    return found


def test_the_memory_view_has_it_with_size_and_name(gpu: Device) -> None:
    before = gpu.resident.used_bytes
    state = recurrent.make_state(gpu.put(W))
    state.result(WAIT)
    seen = row(gpu, state)
    assert (seen.nbytes, seen.dtype) == (160, "RnnState")
    assert re.fullmatch(r"MakeState #\d+", seen.made_by)
    assert "state" in " ".join(seen.kept_by)
    assert "RnnState" in repr(seen)
    assert "[" not in repr(seen).split("RnnState")[1][:2]
    assert gpu.resident.used_bytes >= before + 160


def test_one_that_grows_is_counted_as_it_grows(lab: System, gpu: Device) -> None:
    cache, rows = recurrent.make_cache(gpu, 4), gpu.put(np.ones((256, 4)))
    rows.result(WAIT)
    before = gpu.resident.used_bytes
    for count in range(1, 6):
        recurrent.append(cache, rows).result(WAIT)
        assert row(gpu, cache).nbytes == count * 8192
        assert gpu.resident.used_bytes == before + count * 8192
    recurrent.append(cache, rows, slow=True).result(WAIT)
    assert row(gpu, cache).nbytes == 6 * 8192
    cache.free()
    gpu.ping().result(WAIT)
    time.sleep(0.2)
    assert gpu.resident.used_bytes == before
    lab.check()


# Faults.


def kill(gpu: Device) -> None:
    os.kill(gpu.run(os.getpid).result(WAIT), signal.SIGKILL)


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


def test_several_threads_step_one_each_and_all(gpu: Device) -> None:
    x = gpu.put(X)
    shared, wrong = recurrent.make_cache(gpu, 4), []

    def work() -> None:
        try:
            state = recurrent.make_state(gpu.put(W))
            for count in range(1, 30):
                found = recurrent.step(state, x)
                recurrent.append(shared, x.reshape(1, 4))
                np.testing.assert_allclose(found.get(), after(count))
        except BaseException as error:  # noqa: BLE001 - told by whoever joins
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(WAIT)
    assert not wrong, wrong
    assert recurrent.read_cache(shared).shape == (4 * 29, 4)


def test_a_function_gets_the_thing_itself(gpu: Device) -> None:
    state = recurrent.make_state(gpu.put(W))
    x = gpu.put(X)
    recurrent.step(state, x)

    def look(thing: Any, factor: float) -> Any:
        return type(thing).__name__, thing.h * factor

    name, h = gpu.run(look, state, 2.0, pure=True).result(WAIT)
    assert name == "State"
    np.testing.assert_allclose(h.get(), 2 * after(1))
    assert state.durability == "replayable"
    gpu.replace()
    np.testing.assert_allclose(recurrent.step(state, x).get(), after(2))


def test_the_journal_replays_makers_and_writers(tmp_path: Path) -> None:
    with System(BACKEND, journal=tmp_path / "j.sqlite", results="digests") as lab:
        gpu = lab.devices[0]
        x = gpu.put(X)
        state, cache = recurrent.make_state(gpu.put(W)), recurrent.make_cache(gpu, 4)
        recurrent.step(state, x).result(WAIT)
        recurrent.step(state, x).result(WAIT)
        recurrent.append(cache, x.reshape(1, 4))
        recurrent.read_cache(cache).result(WAIT)
        recurrent.make_both(gpu.put(W), x).state.result(WAIT)
        gpu.ping().result(WAIT)
    journal = Journal.open(tmp_path / "j.sqlite")
    with System(BACKEND, journal=None) as lab:
        texts = [str(entry) for entry in journal if entry.library == "recurrent"]
        assert re.search(rf"-> #{state.id} RnnState$", texts[0]), texts[0]
        report = journal.replay(lab)
        assert report.ok, report
        assert report.uncompared == 0
        assert report.compared == 3 + 2 + 1 + 1 + 1  # puts, steps, a view, rows, h


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
