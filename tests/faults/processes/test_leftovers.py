"""What a failure leaves behind: neither memory nor the variables of whoever caught it."""

import asyncio
import gc
import os
import signal
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accel_lab import Device, System
from accel_lab.compute.events.lifecycle import CircuitOpened
from accel_lab.compute.supervision import unclaimed_failures
from accel_lab.errors import AccelError, CircuitOpen, ContextLost, UserCodeError
from tests.faults.campaign.gate import holdings
from tests.faults.conftest import census, pid_of, settle
from tests.held import descriptors

WAIT = 30.0


def variable_of_a_catcher(call: Callable[[], object]) -> "weakref.ref[Any]":
    """Return a variable of a function that catches what `call` raises, and has ended."""
    array = np.zeros(1000)
    variable = weakref.ref(array)
    with pytest.raises(AccelError):
        call()
    return variable


def broken() -> None:
    """Fail."""
    raise ValueError


class Unreadable:
    """Raises where it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return int, ("no number",)


def test_a_failure_that_was_caught_keeps_no_variable_of_its_catcher(
    lab: System, cpu: Device
) -> None:
    """Though the request, its device and what failed with it are kept."""
    stuck = cpu.run(time.sleep, 600)
    behind = cpu.get(cpu.put(np.ones(10)))
    os.kill(pid_of(lab, cpu), signal.SIGKILL)
    kept = [stuck, behind, lab.inject("library"), cpu.run(broken)]
    found = [variable_of_a_catcher(reply.result) for reply in kept]
    gc.collect()
    assert [variable() for variable in found] == [None] * len(kept)
    assert all(reply.failed for reply in kept)


def test_an_answer_that_cannot_be_read_keeps_no_variable_of_its_reader(cpu: Device) -> None:
    """Whoever waits reads the wire, so that its frames are below what fails there."""
    kept = []

    def read() -> None:
        kept.append(cpu.run(Unreadable))
        kept[0].result(WAIT)

    variable = variable_of_a_catcher(read)
    gc.collect()
    assert variable() is None
    assert isinstance(kept[0].error.__cause__, ValueError)


def test_a_check_keeps_no_variable_of_its_caller(lab: System, cpu: Device) -> None:
    """Though the request that failed in the background is kept."""
    failed = cpu.run(broken)
    assert settle(lambda: failed.failed)
    variable = variable_of_a_catcher(lab.check)
    gc.collect()
    assert variable() is None


def test_a_refusal_keeps_no_variable_of_whoever_was_refused(nothing_left: None) -> None:
    """The circuit stays open, and remembers why, but not who asked."""
    with System("host", recover="stale", max_restarts=0) as lab:
        (cpu,) = lab.devices
        with pytest.raises(ContextLost):
            lab.inject("kill").result(WAIT)
        lab.events.wait_for(CircuitOpened, WAIT, since=0)
        found = [variable_of_a_catcher(lambda: cpu.put(1)), variable_of_a_catcher(lab.ready)]
        gc.collect()
        assert [variable() for variable in found] == [None, None]
        with pytest.raises(CircuitOpen, match=r"reset\(\)"):
            lab.ready()


def test_a_failure_is_remembered_without_its_request(
    lab: System, cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while somebody may still take it, for the request may hold memory."""
    monkeypatch.setattr(unclaimed_failures, "GRACE_S", 600.0)

    def request() -> "weakref.ref[Any]":
        reply = cpu.run(broken)
        assert settle(lambda: reply.failed)
        return weakref.ref(reply)

    gone = request()
    assert settle(lambda: gone() is None)
    with pytest.raises(UserCodeError):
        lab.check()


def test_answers_that_are_kept_keep_no_more_than_their_arrays(nothing_left: None) -> None:
    """A failed `get` and one that was small enough to copy hold no memory of the arena."""
    gc.collect()
    before = census().shared_mappings
    with System("host", recover="stale") as lab:
        (cpu,) = lab.devices
        small = cpu.get(cpu.put(np.ones(10)))
        assert small.result(WAIT).sum() == 10
        large = cpu.put(np.ones(1_000_000)).result(WAIT)
        cpu.run(time.sleep, 600)
        failed = cpu.get(large)
        os.kill(pid_of(lab, cpu), signal.SIGKILL)
        with pytest.raises(ContextLost):
            failed.result(WAIT)
    gc.collect()
    assert settle(lambda: census().shared_mappings <= before)
    assert failed.failed
    assert small.result().sum() == 10


def test_a_loop_that_is_closed_right_after_its_await_leaves_no_descriptor(cpu: Device) -> None:
    async def once() -> Any:
        return await cpu.run(abs, -1.0)

    assert asyncio.run(once()) == 1
    before = len(descriptors())
    for _ in range(10):
        assert asyncio.run(once()) == 1
    assert settle(lambda: cpu.run(abs, -1).result(WAIT) == 1 and len(descriptors()) <= before)


def test_the_wire_of_a_lost_context_takes_no_free_of_the_next_one(lab: System, cpu: Device) -> None:
    """A thread may be about to flush it when the loss is noticed."""
    lost = cpu._requests.connection.current_link
    assert lost is not None
    with pytest.raises(ContextLost):
        lab.inject("kill").result(WAIT)
    ref = cpu.put(np.ones(10)).result(WAIT)
    assert ref.generation == 2
    del ref
    lost.flush()
    for _ in range(2):  # the frees leave behind what is sent
        found = cpu.run(holdings).result(WAIT)
    assert found == (0, 0, ())
