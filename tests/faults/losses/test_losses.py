"""Every way to lose a context gives its typed error, a new generation, and work goes on."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from accel_lab import Device, System, array, blas
from accel_lab.actor.reply import Reply
from accel_lab.compute.actors.fault import Fault, Inject
from accel_lab.compute.events.lifecycle import (
    CircuitClosed,
    CircuitOpened,
    ContextStarted,
    GenerationChanged,
)
from accel_lab.compute.events.lifecycle import ContextLost as ContextLostEvent
from accel_lab.errors import (
    CircuitOpen,
    ContextLost,
    ContextReplaced,
    DeadlineExceeded,
    DependencyFailed,
    InvalidArgument,
    StaleRef,
)
from tests.faults.conftest import pid_of, wait_for, works

WAIT = 30.0
ONES = np.ones((8, 8), np.float32)


@pytest.mark.parametrize(
    ("fault", "name", "code"),
    [
        ("kill", "SIGKILL", 0),
        ("segfault", "SIGSEGV", 0),
        ("exit", "exit status 3", 0),
        ("poison", "CUDA_ERROR_ILLEGAL_ADDRESS", 700),
    ],
)
def test_a_lost_context_says_why_and_comes_back(
    lab: System, cpu: Device, fault: Fault, name: str, code: int
) -> None:
    """The request gets ContextLost with signal or code; the next generation computes."""
    old = cpu.put(ONES).result(WAIT)
    with pytest.raises(ContextLost, match="generation 1") as caught:
        lab.inject(fault, cpu).result(WAIT)
    assert (caught.value.name, caught.value.code, caught.value.generation) == (name, code, 1)
    assert cpu.generation == 2
    assert not old.is_valid
    with pytest.raises(StaleRef, match="generation 1; cpu0 is at 2"):
        blas.gemm(old, old)
    assert works(cpu)
    changes = lab.events.history(GenerationChanged)
    assert [(e.device, e.before, e.after) for e in changes] == [("cpu0", 1, 2)]
    with pytest.raises(StaleRef):
        cpu.get(old)


def test_a_poisoned_context_says_what_ran_last_on_its_streams(lab: System, cpu: Device) -> None:
    """The error and the event have the last 64 operations; the text has the last of each stream."""
    a = cpu.put(ONES).result(WAIT)
    for _ in range(100):
        b = blas.gemm(a, a)
    b.result(WAIT)
    with pytest.raises(ContextLost) as caught:
        lab.inject("poison", cpu).result(WAIT)
    recent = caught.value.recent
    assert recent[-1] == "Inject #102 on fault"
    assert recent[:-1] == tuple(f"Gemm #{seq} on blas" for seq in range(39, 102))
    assert "what it ran last: Inject #102 on fault, Gemm #101 on blas" in str(caught.value)
    (event,) = lab.events.history(ContextLostEvent)
    assert event.recent == recent


def test_a_request_that_never_ends_says_what_ran_before(
    lab: System, cpu: Device, gate: Path
) -> None:
    """Both the request that was late and those that it took along."""
    a = cpu.put(ONES).result(WAIT)
    cpu.run(wait_for, gate)  # until all is sent
    late, behind = lab.inject("hang", cpu, timeout_s=0.2), blas.gemm(a, a)
    gate.touch()
    for reply in (late, behind):
        with pytest.raises(ContextLost) as caught:
            reply.result(WAIT)
        ran = ("Put #1 on upload", "wait_for #2 on run", "Inject #3 on fault")
        assert caught.value.recent == ran
        last = "Inject #3 on fault, wait_for #2 on run, Put #1 on upload"
        assert f"what it ran last: {last}" in str(caught.value)
        assert caught.value.generation == 1


def test_requests_behind_a_fault_are_all_answered(lab: System, cpu: Device) -> None:
    """Everything in flight gets ContextLost, and nothing waits."""
    a = cpu.put(ONES).result(WAIT)
    latch = cpu.run(time.sleep, 600)
    replies = [blas.gemm(a, a) for _ in range(100)]
    os.kill(pid_of(lab, cpu), signal.SIGKILL)
    for reply in [latch, *replies]:
        with pytest.raises(ContextLost, match="SIGKILL"):
            reply.result(WAIT)
    assert works(cpu)


def test_the_generation_moves_before_any_failed_reply_is_delivered(
    lab: System, cpu: Device
) -> None:
    """Whoever learns of the loss already sees the new generation."""
    seen: list[int] = []
    reply = lab.inject("kill", cpu)
    reply.add_waiter(lambda: seen.append(cpu.generation))
    with pytest.raises(ContextLost):
        reply.result(WAIT)
    assert seen[0] == 2


def test_messages_sent_while_a_context_is_rebuilt_wait_and_run_in_order(
    lab: System, cpu: Device
) -> None:
    """A chain sent during the restart runs on the new generation."""
    with pytest.raises(ContextLost):
        lab.inject("kill", cpu).result(WAIT)
    x = array.full(cpu, (4,), 1.0, dtype="float64")
    for _ in range(20):
        x = blas.axpy(x, x)
    assert x.generation == 2
    assert (cpu.get(x).result(WAIT) == 2.0**20).all()


def test_a_request_that_runs_too_long_loses_its_context_and_says_so(
    lab: System, cpu: Device, gate: Path
) -> None:
    """DeadlineExceeded for the one, ContextLost for those behind it."""
    cpu.run(wait_for, gate)  # until all is sent
    slow = lab.inject("hang", cpu, timeout_s=0.3)
    behind = cpu.put(ONES)
    gate.touch()
    with pytest.raises(DeadlineExceeded, match=r"0\.3 s"):
        slow.result(WAIT)
    with pytest.raises(ContextLost, match="ran longer"):
        behind.result(WAIT)
    assert works(cpu)


def test_a_device_has_a_deadline_for_what_has_none_of_its_own(nothing_left: None) -> None:
    """`System(timeout_s=)` for all, `device.timeout_s` for one; `ask` and `run` have their say."""
    with System("host", recover="stale", timeout_s=0.3, max_restarts=1000) as lab:
        (cpu,) = lab.devices
        assert cpu.timeout_s == 0.3
        assert cpu.run(time.sleep, 0.6).result(WAIT) is None
        begun = time.perf_counter()
        patient = cpu.ask(Inject("hang"), timeout_s=0.9)
        with pytest.raises(DeadlineExceeded, match=r"0\.9 s"):
            patient.result(WAIT)
        assert time.perf_counter() - begun > 0.9
        with pytest.raises(DeadlineExceeded, match=r"0\.3 s"):
            cpu.ask(Inject("hang")).result(WAIT)
        cpu.timeout_s = 0.2
        with pytest.raises(DeadlineExceeded, match=r"0\.2 s"):
            cpu.ask(Inject("hang")).result(WAIT)
        with pytest.raises(InvalidArgument, match="above 0"):
            cpu.timeout_s = 0.0
        cpu.timeout_s = WAIT
        assert works(cpu)
    with pytest.raises(InvalidArgument, match="above 0"):
        System("host", recover="stale", timeout_s=-1.0)


def test_waiting_in_a_queue_does_not_count_towards_a_deadline(cpu: Device) -> None:
    """A short deadline behind a long request is met."""
    cpu.run(time.sleep, 2.0)
    quick = cpu.run(float, 2, timeout_s=1.5)
    assert quick.result(WAIT) == 2.0
    assert cpu.generation == 1


def test_the_circuit_opens_after_too_many_losses_and_reset_closes_it(nothing_left: None) -> None:
    """Three restarts, then every call fails at once and says how to go on."""
    with System("host", recover="stale", max_restarts=3, within_s=60.0) as lab:
        (cpu,) = lab.devices
        for _ in range(4):
            with pytest.raises(ContextLost):
                lab.inject("kill", cpu).result(WAIT)
        lab.events.wait_for(CircuitOpened, WAIT, since=0)
        took = []
        for _ in range(5):
            begin = time.perf_counter()
            with pytest.raises(CircuitOpen, match=r"reset\(\)"):
                cpu.put(ONES)
            took.append(time.perf_counter() - begin)
        assert min(took) < 0.1
        assert cpu.state == "circuit open"
        cpu.reset()
        queued = cpu.put(ONES)  # waits for the context on probation
        lab.events.wait_for(CircuitClosed, WAIT, since=0)
        assert works(cpu)
        assert (cpu.get(queued).result(WAIT) == 1.0).all()
        stuck = _replaced(cpu)
        with pytest.raises(ContextLost, match="on demand"):
            stuck.result(WAIT)


def test_a_replacement_that_is_asked_for_counts_for_nothing(nothing_left: None) -> None:
    with System("host", recover="stale", max_restarts=1, within_s=600.0) as lab:
        (cpu,) = lab.devices
        for _ in range(5):
            with pytest.raises(ContextReplaced, match="on demand"):
                _replaced(cpu).result(WAIT)
            assert works(cpu)
        assert cpu.generation == 6
        (row,) = [node for node in lab.tree().walk() if node.kind == "device"]
        assert row.restarts == 5
        with pytest.raises(ContextLost):  # that there may still be
            lab.inject("kill", cpu).result(WAIT)
        assert works(cpu)
        assert not lab.events.history(CircuitOpened)


def _replaced(device: Device) -> Reply[None]:
    """Replace a context that is stuck in a function."""
    stuck: Reply[None] = device.run(time.sleep, 600)
    device.replace()
    return stuck


def test_a_context_that_is_starting_is_not_replaced_and_a_line_says_so(
    nothing_left: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with System("host", devices=1) as lab:
        (cpu,) = lab.devices
        start, due, on = cpu._supervisor.start, threading.Event(), threading.Event()

        def late() -> None:
            due.set()
            assert on.wait(WAIT)  # nor is the request answered, if its process is not reaped yet
            monkeypatch.undo()
            start()

        monkeypatch.setattr(cpu._supervisor, "start", late)
        killed = lab.inject("kill", cpu)
        assert due.wait(WAIT)
        kept = cpu.put(ONES)
        cpu.replace()
        text = "cpu0 is restarting: there is no context to replace yet; queued messages stay"
        assert text in capsys.readouterr().err
        on.set()
        with pytest.raises(ContextLost):
            killed.result(WAIT)
        assert (kept.get(timeout_s=WAIT) == ONES).all()
        cpu.replace()
        assert (kept.get(timeout_s=WAIT) == ONES).all()
        assert capsys.readouterr().err == ""


def test_what_was_caught_once_is_in_no_later_check(lab: System, cpu: Device, gate: Path) -> None:
    """Nor is what caused it, or failed with it."""
    cpu.run(wait_for, gate)  # until all is sent
    lab.inject("kill", cpu)
    lost = [cpu.put(ONES) for _ in range(3)]
    answer = cpu.get(blas.gemm(lost[0], lost[1]))
    gate.touch()
    with pytest.raises((ContextLost, DependencyFailed)):
        answer.result(WAIT)
    lab.check()


def test_a_lost_context_leaves_the_other_device_alone(nothing_left: None) -> None:
    """Generations, buffers and requests of a sibling do not notice."""
    with System("host", 2, recover="stale") as lab:
        one, two = lab.devices
        kept = two.put(ONES)
        with pytest.raises(ContextLost):
            lab.inject("kill", one).result(WAIT)
        assert (one.generation, two.generation) == (2, 1)
        assert (two.get(blas.gemm(kept, kept)).result(WAIT) == 8.0).all()


def test_downloaded_arrays_outlive_the_context_and_the_system(nothing_left: None) -> None:
    """They own their memory."""
    with System("host", recover="stale") as lab:
        (cpu,) = lab.devices
        data = np.arange(100_000.0)
        got = cpu.get(cpu.put(data)).result(WAIT)
        with pytest.raises(ContextLost):
            lab.inject("segfault", cpu).result(WAIT)
        np.testing.assert_array_equal(got, data)
    np.testing.assert_array_equal(got, data)
    got[:] = 0
    del got


def test_an_upload_survives_a_loss_in_its_middle(lab: System, cpu: Device) -> None:
    """`put` starts again on the new generation, because it still has the array."""
    data = np.random.default_rng(1).standard_normal(6_000_000)
    lab.inject("kill", cpu)
    got = cpu.get(cpu.put(data))
    try:
        answer = got.result(WAIT)
    except (ContextLost, StaleRef, DependencyFailed):
        answer = cpu.get(cpu.put(data)).result(WAIT)
    np.testing.assert_array_equal(answer, data)


def test_two_systems_are_isolated(nothing_left: None) -> None:
    """A loss in one is no event in the other."""
    with System("host", recover="stale") as one, System("host", recover="stale") as two:
        with pytest.raises(ContextLost):
            one.inject("kill").result(WAIT)
        one.events.wait_for(
            lambda e: isinstance(e, ContextStarted) and e.generation == 2, WAIT, since=0
        )
        assert not two.events.history(GenerationChanged)
        assert works(two.devices[0])


@pytest.mark.parametrize("recover", ["stale", "replay"])
def test_what_to_do_about_a_buffer_that_is_gone_goes_by_what_is_known(
    nothing_left: None, recover: Literal["stale", "replay"]
) -> None:
    with System("host", recover=recover) as lab:
        (cpu,) = lab.devices
        freed = cpu.put(np.ones(4))
        freed.free()
        with pytest.raises(StaleRef) as caught:
            blas.scal(freed, 2.0)
        assert "free() gives the buffer back" in caught.value.remedy
        drawn = cpu.run(np.random.default_rng().random, 4).result(WAIT)
        with pytest.raises(ContextLost):
            lab.inject("kill", cpu).result(WAIT)
        lab.ready(timeout_s=WAIT)
        with pytest.raises(StaleRef) as caught:
            cpu.get(drawn).result(WAIT)
        said = caught.value.remedy
        assert ('recover="replay"' in said) == (recover == "stale")
        assert ("gpu.checkpoint(ref)" in said) == (recover == "replay")


def test_why_a_buffer_is_gone_is_the_same_at_any_time(nothing_left: None) -> None:
    """At once, when no new context has begun; when one has; and after another loss."""

    def why() -> str:
        with pytest.raises((StaleRef, DependencyFailed)) as caught:
            (a + 1).result(WAIT)
        found: BaseException = caught.value
        while not isinstance(found, StaleRef):
            assert found.__cause__ is not None
            found = found.__cause__
        return f"{found} {found.remedy}"

    with System("host", devices=1) as lab:
        (cpu,) = lab.devices
        a = cpu.put(ONES)
        cpu.run(lambda _: None, a).result(WAIT)
        cpu.replace()
        first = why()
        lab.ready()
        assert why() == first
        assert "could not be rebuilt for generation 2: a function that was run without" in first
        assert "gpu.checkpoint(ref)" in first
        cpu.replace()
        assert why().replace("generation 3", "generation 2") == first
        lab.ready()
        assert why().replace("generation 3", "generation 2") == first
