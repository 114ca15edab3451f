"""A device that is given back keeps what it held, whatever happens on the way."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, Device, System, array, blas, fft, jit
from accel_lab.compute.events.lifecycle import (
    ContextExited,
    DeviceSuspended,
    GenerationChanged,
    SuspensionFailed,
)
from accel_lab.compute.machine.anonymous_files import PIECE_BYTES
from accel_lab.errors import AccelError, DependencyFailed, OutOfMemory, SystemClosed
from tests.conftest import require
from tests.faults.conftest import census, pid_of, settle, wait_for
from tests.faults.suspension.suspended import WAIT, A, Cells, is_alive, suspending

# What comes back.


def test_the_same_handles_hold_the_same_values_in_the_same_generation(
    lab: System, cpu: Device
) -> None:
    a = cpu.put(A)
    kept = [a, blas.gemm(a, a), fft.rfft(cpu.put(A[0])), a.astype("float16"), array.zeros(cpu, ())]
    kept += [array.zeros(cpu, (0, 3)), cpu.put(np.arange(7, dtype="int8")), a.astype("bfloat16")]
    before = [ref.get(timeout_s=WAIT) for ref in kept]
    told = cpu.suspend()
    assert told.buffers >= len(kept)
    assert (told.objects, told.lost) == (0, ())
    assert told.nbytes > A.nbytes
    assert (cpu.state, cpu.generation) == ("suspended", 1)
    after = [ref.get(timeout_s=WAIT) for ref in kept]
    for was, is_ in zip(before, after, strict=True):
        assert was.dtype == is_.dtype
        np.testing.assert_array_equal(was, is_)
    assert (cpu.state, cpu.generation) == ("running", 1)
    assert all(ref.is_valid for ref in kept)
    assert not lab.events.history(GenerationChanged)


def test_the_process_is_gone_and_no_fault_was_seen(lab: System, cpu: Device) -> None:
    pid = pid_of(lab, cpu)
    lab.suspend()
    assert not is_alive(pid)
    node = lab.tree().children[0]
    assert (node.state, node.used_bytes, node.restarts) == ("suspended", 0, 0)
    assert "0 buffers and 0 objects wait on the host" in node.children[0].detail
    lab.resume()
    assert cpu.state == "running"
    assert pid_of(lab, cpu) != pid
    (fact,) = lab.events.history(DeviceSuspended)
    assert (fact.device, fact.generation, fact.lost) == ("cpu0", 1, ())
    assert [fact.status for fact in lab.events.history(ContextExited)] == ["exit status 0"]
    assert lab.tree().children[0].restarts == 0


def test_arrays_of_several_pieces_come_back(cpu: Device) -> None:
    count = PIECE_BYTES // 8 * 5 // 2 + 3
    value = np.random.default_rng(1).standard_normal(count)
    x = cpu.put(value)
    short = cpu.put(value[: PIECE_BYTES // 8])
    for _ in range(2):
        cpu.suspend()
        np.testing.assert_array_equal(x.get(timeout_s=WAIT), value)
        np.testing.assert_array_equal(short.get(timeout_s=WAIT), value[: PIECE_BYTES // 8])


def test_views_share_their_memory_afterwards(cpu: Device) -> None:
    x = cpu.put(np.arange(24.0))
    views: dict[str, tuple[AccelRef, Callable[[Any], Any]]] = {
        "part": (x[1:9], lambda a: a[1:9]),
        "turned": (x.reshape(4, 6).T, lambda a: a.reshape(4, 6).T),
        "steps": (x[2::3], lambda a: a[2::3]),
        "back": (x[::-1], lambda a: a[::-1]),
        "corner": (x.reshape(4, 6)[2:, ::-2], lambda a: a.reshape(4, 6)[2:, ::-2]),
    }
    expected = np.arange(24.0)
    for turn in range(3):
        cpu.suspend()
        for name, (ref, of) in views.items():
            blas.scal(ref, 2.0, out=ref)
            of(expected)[...] *= 2.0
            np.testing.assert_array_equal(x.get(timeout_s=WAIT), expected, f"{name} {turn}")
        for ref, of in views.values():
            np.testing.assert_array_equal(ref.get(timeout_s=WAIT), of(expected))


def test_views_whose_array_has_no_handle_any_more_share_it_still(cpu: Device) -> None:
    x = cpu.put(np.arange(24.0))
    even, odd, late = x[::2], x[1::2], x[12:]
    del x
    cpu.ping().result(WAIT)
    cpu.suspend()
    blas.scal(even, -1.0, out=even)
    expected = np.arange(24.0)
    expected[::2] *= -1
    np.testing.assert_array_equal(odd.get(timeout_s=WAIT), expected[1::2])
    np.testing.assert_array_equal(late.get(timeout_s=WAIT), expected[12:])


def test_what_user_code_answered_shares_what_it_shared(cpu: Device) -> None:
    x = cpu.put(np.arange(6.0))
    pair = cpu.run(lambda a: {"same": a, "end": a[3:]}, x).result(WAIT)
    cpu.suspend()
    more = cpu.run(lambda a: [a + 1], x).result(WAIT)
    assert {pair["same"].id, pair["end"].id}.isdisjoint({more[0].id})
    blas.scal(x, 10.0, out=x)
    np.testing.assert_array_equal(pair["same"].get(timeout_s=WAIT), 10 * np.arange(6.0))
    np.testing.assert_array_equal(pair["end"].get(timeout_s=WAIT), 10 * np.arange(3.0, 6.0))
    np.testing.assert_array_equal(more[0].get(timeout_s=WAIT), np.arange(6.0) + 1)


def test_handles_that_go_while_it_is_suspended_free_their_buffers(lab: System, cpu: Device) -> None:
    kept = cpu.put(np.ones(1000))
    gone = [cpu.put(np.ones(1000)) for _ in range(5)]
    cpu.suspend()
    gone.clear()
    np.testing.assert_array_equal(kept.get(timeout_s=WAIT), np.ones(1000))

    def used() -> int:
        return sum(row.nbytes for row in cpu.resident)

    assert settle(lambda: used() == 8000)


def test_a_compiled_kernel_is_there_again(cpu: Device, compiler: None) -> None:
    source = "__global__ void add(double *x, double y) { x[threadIdx.x] += y; }"
    kernel = jit.compile(cpu, source, "add")
    x = cpu.put(np.zeros(4))
    kernel(1, 4, (x, 1.0)).result(WAIT)
    cpu.suspend()
    ref = kernel.ref
    kernel(1, 4, (x, 2.0)).result(WAIT)
    assert kernel.ref is ref
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), 3 * np.ones(4))


def test_what_had_given_way_comes_back_too(nothing_left: None) -> None:
    """There is more than the device holds at a time, before and after."""
    mib = 1 << 20
    with System("host", memory_bytes=4 * mib) as lab:
        cpu = lab.devices[0]
        kept = [cpu.put(np.full(mib // 8, float(i))) for i in range(9)]
        cpu.suspend()
        assert [float(ref.get(timeout_s=WAIT)[-1]) for ref in kept] == list(map(float, range(9)))


@pytest.mark.parametrize("made", ["huge = xp.ones(1 << 18)", "huge = {'a': xp.ones(1 << 18)}"])
def test_what_user_code_made_beyond_the_limit_comes_back(nothing_left: None, made: str) -> None:
    """NumPy's own allocations know no limit; what had given way for them gives way again."""
    mib = 1 << 20
    with System("host", memory_bytes=mib) as lab:
        cpu = lab.devices[0]
        notebook = Cells(cpu)
        kept = [cpu.put(np.full(mib // 16, float(i))) for i in range(3)]
        notebook(made)
        if "{" not in made:
            with pytest.raises(OutOfMemory):  # all that can has given way by then
                kept[0].get(timeout_s=WAIT)
        for _ in range(2):
            cpu.suspend()
            cpu.resume()
        notebook("float((huge['a'] if isinstance(huge, dict) else huge).sum())")
        assert notebook.shown[-1]["text/plain"] == str(float(1 << 18))
        notebook("del huge")
        assert [float(ref.get(timeout_s=WAIT)[-1]) for ref in kept] == [0.0, 1.0, 2.0]
        with pytest.raises(OutOfMemory):
            array.zeros(cpu, (mib,)).result(WAIT)  # the limit is what it was


def test_a_buffer_that_was_never_made_stays_so(cpu: Device) -> None:
    broken = cpu.run(lambda: 1 / 0)
    behind = cpu.run(np.negative, broken)
    with pytest.raises(AccelError):
        broken.result(WAIT)
    cpu.suspend()
    with pytest.raises(DependencyFailed):
        behind.result(WAIT)
    with pytest.raises(DependencyFailed):
        cpu.run(np.negative, broken).result(WAIT)


# When it is used.


def test_what_is_sent_before_is_answered_and_what_is_sent_meanwhile_waits(
    lab: System, cpu: Device, gate: Path
) -> None:
    x = cpu.put(np.ones(4))
    slow = cpu.run(wait_for, gate)
    after = blas.scal(x, 2.0)
    pid = pid_of(lab, cpu)
    going, _ = suspending(cpu)
    assert settle(lambda: cpu._requests.connection.link is None)
    late = [blas.scal(after, float(i)) for i in range(5)]
    cpu.tell(blas.Scal(x, 3.0, out=x))
    assert going.is_alive()
    assert not slow.done
    gate.touch()
    going.join(WAIT)
    slow.result(WAIT)
    assert [float(ref.get(timeout_s=WAIT)[0]) for ref in late] == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert float(x.get(timeout_s=WAIT)[0]) == 3.0
    assert pid_of(lab, cpu) != pid
    assert not is_alive(pid)


def test_a_device_that_stays_busy_is_left_as_it_is(cpu: Device, gate: Path) -> None:
    slow = cpu.run(wait_for, gate)
    with pytest.raises(TimeoutError):
        cpu.suspend(timeout_s=0.2)
    behind = cpu.put(A)
    gate.touch()
    slow.result(WAIT)
    np.testing.assert_array_equal(behind.get(timeout_s=WAIT), A)
    assert cpu.state == "running"


def test_twice_is_once(cpu: Device) -> None:
    x = cpu.put(A)
    first = cpu.suspend()
    assert cpu.suspend() == first
    cpu.resume()
    cpu.resume()
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)
    threads = [threading.Thread(target=cpu.suspend) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(WAIT)
    assert cpu.state == "suspended"
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)


def test_several_devices_go_and_come_back_together(nothing_left: None) -> None:
    with System("host", 3) as lab:
        kept = [device.put(A + i) for i, device in enumerate(lab.devices)]
        assert [told.device for told in lab.suspend()] == ["cpu0", "cpu1", "cpu2"]
        np.testing.assert_array_equal(kept[1].get(timeout_s=WAIT), A + 1)
        assert [device.state for device in lab.devices] == ["suspended", "running", "suspended"]
        lab.ready(timeout_s=WAIT)
        lab.resume()
        for i, ref in enumerate(kept):
            np.testing.assert_array_equal(ref.get(timeout_s=WAIT), A + i)


def test_closing_a_suspended_system_leaves_nothing(lab: System, cpu: Device) -> None:
    before = census().descriptors
    x = cpu.put(A)
    cpu.suspend()
    assert census().descriptors > before - 20
    lab.close()
    with pytest.raises(SystemClosed):
        x.get()
    with pytest.raises(SystemClosed):
        cpu.suspend()
    with pytest.raises(SystemClosed):
        cpu.resume()


def test_closing_while_it_is_being_suspended_ends_that(
    lab: System, cpu: Device, gate: Path
) -> None:
    cpu.run(wait_for, gate)
    going, outcome = suspending(cpu)
    assert settle(lambda: cpu._requests.connection.link is None)
    lab.close()
    going.join(WAIT)
    assert isinstance(outcome[0], SystemClosed)


# Beside it.


def test_a_journal_of_a_suspended_session_is_run_again(nothing_left: None, tmp_path: Path) -> None:
    with System("host", journal=tmp_path / "journal.sqlite", results="digests") as lab:
        cpu = lab.devices[0]
        x = cpu.put(A)
        cpu.suspend()
        y = blas.gemm(x, x)
        cpu.suspend()
        y.get(timeout_s=WAIT)
        lab.flush()
        with System("host") as other:
            report = lab.journal.replay(other)
            assert report.ok, report


def test_an_idle_device_is_suspended_by_itself(nothing_left: None) -> None:
    with System("host", suspend_after_s=0.2) as lab:
        cpu = lab.devices[0]
        x = cpu.put(A)
        for _ in range(2):
            assert settle(lambda: cpu.state == "suspended")
            np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)
        assert len(lab.events.history(DeviceSuspended)) >= 2


def test_an_idle_device_that_would_lose_something_says_so_once(nothing_left: None) -> None:
    with System("host", suspend_after_s=0.2) as lab:
        cpu = lab.devices[0]
        notebook = Cells(cpu)
        notebook("lines = (line for line in 'ab')")
        mark = lab.events.published
        fact = lab.events.wait_for(SuspensionFailed, WAIT, since=mark)
        assert "lines" in fact.cause
        time.sleep(1.0)
        assert notebook("next(lines)") == "'a'"


@pytest.fixture
def compiler() -> None:
    require("compiler")
