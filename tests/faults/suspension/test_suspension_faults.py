"""Faults of a device that is given back, or comes back."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from accel_lab import Device, System, blas
from accel_lab.compute.events.lifecycle import ContextStarted, SuspensionFailed
from accel_lab.compute.machine.anonymous_files import PIECE_BYTES
from accel_lab.compute.requests.connection import Connection
from accel_lab.compute.suspension.suspension import Suspension
from accel_lab.compute.wire.link import Link
from accel_lab.errors import CircuitOpen, ContextLost, OutOfMemory, StaleRef, SystemClosed
from tests.faults.conftest import pid_of, settle, wait_for
from tests.faults.suspension.suspended import WAIT, A, suspending


@pytest.fixture
def replaying(nothing_left: None) -> Iterator[System]:
    with System("host", recover="replay", max_restarts=1000) as system:
        yield system


def test_a_context_that_is_lost_while_it_is_being_suspended_is_lost_as_ever(
    lab: System, cpu: Device, gate: Path
) -> None:
    x = cpu.put(A)
    slow = cpu.run(wait_for, gate)
    going, outcome = suspending(cpu)
    assert settle(lambda: cpu._requests.connection.link is None)
    os.kill(pid_of(lab, cpu), signal.SIGKILL)
    going.join(WAIT)
    assert isinstance(outcome[0], ContextLost)
    with pytest.raises(ContextLost):
        slow.result(WAIT)
    lab.ready(timeout_s=WAIT)
    assert cpu.generation == 2
    if cpu.holds(x):
        np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)
    fresh = cpu.put(A)
    cpu.suspend()
    np.testing.assert_array_equal(fresh.get(timeout_s=WAIT), A)


def test_a_context_that_is_killed_while_it_comes_back_costs_nothing(
    lab: System, cpu: Device
) -> None:
    """What is kept is given to the next one, and what has waited is answered by it."""
    value = np.random.default_rng(2).standard_normal(PIECE_BYTES // 2)
    x = cpu.put(value)
    y = x[10:20]
    for turn in range(4):
        cpu.suspend()
        pids = {fact.pid for fact in lab.events.history(ContextStarted)}
        twice = blas.scal(y, 2.0)
        killed = 0
        while cpu.state != "running":
            new = {fact.pid for fact in lab.events.history(ContextStarted)} - pids
            if new and killed <= turn:
                killed += 1
                pids |= new
                for pid in new:
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.001)
        np.testing.assert_array_equal(twice.get(timeout_s=WAIT), 2 * value[10:20])
        np.testing.assert_array_equal(x.get(timeout_s=WAIT), value)
    assert cpu.generation == 1


def test_a_context_that_is_lost_before_it_is_given_anything_is_not_waited_for(
    lab: System, cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its loss was noticed before the thread that fills it came to that."""
    fill, began = Suspension._fill, []

    def late(self: Suspension, kept: Any, link: Any, *rest: Any) -> None:
        began.append(link)
        if len(began) == 1:
            os.kill(pid_of(lab, cpu), signal.SIGKILL)
            assert settle(lambda: cpu._supervisor._link is not link)
        fill(self, kept, link, *rest)

    monkeypatch.setattr(Suspension, "_fill", late)
    x = cpu.put(A)
    cpu.suspend()
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)
    assert settle(lambda: len(began) == 2 and not cpu.in_flight)
    cpu.suspend(timeout_s=WAIT)
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)


def test_closing_while_it_comes_back_ends_that(lab: System, cpu: Device) -> None:
    kept = cpu.put(np.ones(PIECE_BYTES // 2))
    for _ in range(3):
        cpu.suspend()
        starts = len(lab.events.history(ContextStarted))
        late = blas.nrm2(kept)
        while len(lab.events.history(ContextStarted)) == starts:
            time.sleep(0.001)
        if cpu.state != "running":
            break
    lab.close()
    with contextlib.suppress(SystemClosed):  # it may have been answered
        late.result(WAIT)
    with pytest.raises(SystemClosed):
        cpu.resume()


def test_a_suspended_device_stays_so_when_one_beside_it_is_lost(nothing_left: None) -> None:
    with System("host", 2, strategy="all_for_one") as lab:
        first, second = lab.devices
        x, y = first.put(A), second.put(A)
        first.suspend()
        with pytest.raises(ContextLost):
            lab.inject("kill", second).result(WAIT)
        np.testing.assert_array_equal(y.get(timeout_s=WAIT), A)
        assert (first.state, first.generation, second.generation) == ("suspended", 1, 2)
        np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)
        with pytest.raises(ContextLost):
            lab.inject("kill", first).result(WAIT)
        assert settle(lambda: (first.generation, second.generation) == (2, 3))
        np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)


def test_a_loss_after_it_is_back_is_recovered_as_before(replaying: System) -> None:
    lab, cpu = replaying, replaying.devices[0]
    x = cpu.put(A)
    product = blas.gemm(x, x)
    blas.scal(product, 2.0, out=product)
    part = product[:3]
    expected = product.get(timeout_s=WAIT)
    cpu.suspend()
    total = blas.axpy(x, product, alpha=0.5)
    both = total.get(timeout_s=WAIT)
    with pytest.raises(ContextLost):
        lab.inject("kill").result(WAIT)
    np.testing.assert_array_equal(product.get(timeout_s=WAIT), expected)
    np.testing.assert_array_equal(total.get(timeout_s=WAIT), both)
    np.testing.assert_array_equal(part.get(timeout_s=WAIT), expected[:3])
    assert cpu.generation == 2
    cpu.suspend()
    np.testing.assert_array_equal(total.get(timeout_s=WAIT), both)


def test_it_is_suspended_when_its_recovery_is_over(replaying: System) -> None:
    lab, cpu = replaying, replaying.devices[0]
    x = cpu.put(A)
    for _ in range(200):
        x = blas.gemm(x, cpu.put(np.eye(64)))
    with pytest.raises(ContextLost):
        lab.inject("kill").result(WAIT)
    cpu.suspend()
    assert (cpu.state, cpu.generation) == ("suspended", 2)
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)


def test_a_device_without_room_for_what_is_kept_stays_suspended(lab: System, cpu: Device) -> None:
    """Another has taken the memory: what has waited fails with that, and it is tried again."""
    x = cpu.put(A)
    cpu.suspend()
    services = cpu._supervisor._services
    cpu._supervisor._services = msgspec.structs.replace(services, limit_bytes=1000, spill_bytes=0)
    with pytest.raises(OutOfMemory):
        x.get(timeout_s=WAIT)
    assert settle(lambda: cpu.state == "suspended")
    assert lab.events.history(SuspensionFailed)[-1].device == "cpu0"
    with pytest.raises(OutOfMemory):
        cpu.resume()
    cpu._supervisor._services = services
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)
    assert cpu.generation == 1


def test_what_is_freed_meanwhile_needs_no_room(lab: System, cpu: Device) -> None:
    """Not what a message names that waits, though its handle is gone."""
    w, x, y, z = (cpu.put(A + i) for i in range(-1, 3))
    part = z[:8]
    cpu.suspend()
    services = cpu._supervisor._services
    limit_bytes = 7 * A.nbytes // 2
    cpu._supervisor._services = msgspec.structs.replace(
        services, limit_bytes=limit_bytes, spill_bytes=0
    )
    x.free()
    del w, z
    doubled = blas.scal(y, 2.0)
    del y
    np.testing.assert_array_equal(doubled.get(timeout_s=WAIT), 2 * (A + 1))
    np.testing.assert_array_equal(part.get(timeout_s=WAIT), A[:8] + 2)
    with pytest.raises(StaleRef):
        x.get(timeout_s=WAIT)
    del doubled
    cpu.suspend()
    cpu.resume()
    np.testing.assert_array_equal(part.get(timeout_s=WAIT), A[:8] + 2)


def test_the_circuit_opens_when_it_cannot_come_back_and_reset_goes_on(nothing_left: None) -> None:
    with System("host", max_restarts=0) as lab:
        cpu = lab.devices[0]
        x = cpu.put(A)
        cpu.suspend()
        pids = {fact.pid for fact in lab.events.history(ContextStarted)}
        cpu._requests.connection.wake()
        while not (new := {f.pid for f in lab.events.history(ContextStarted)} - pids):
            time.sleep(0.001)
        if cpu.state != "running":
            os.kill(new.pop(), signal.SIGKILL)
        assert settle(lambda: cpu.state in ("circuit open", "running"))
        if cpu.state == "circuit open":
            with pytest.raises(CircuitOpen):
                cpu.resume()
            assert cpu.suspend().buffers in (0, 1)
            cpu.reset()
        np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)


def test_a_loss_that_is_noticed_while_a_device_is_given_back_changes_nothing(
    lab: System, cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who noticed it took the process, and the suspension had none to let go."""
    x = cpu.put(A)
    (supervisor,), rest = lab._supervisors, Connection.rest
    noticing = list[threading.Thread]()

    def noticed(connection: Connection, link: Link, *refusal: Any) -> Any:
        rested = rest(connection, link, *refusal)
        other = threading.Thread(target=supervisor.link_ended, args=(link, "its wire ended"))
        noticing.append(other)
        other.start()
        other.join(0.2)
        return rested

    monkeypatch.setattr(Connection, "rest", noticed)
    assert cpu.suspend().buffers == 1
    noticing[0].join(WAIT)
    assert cpu.state == "suspended"
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)
    assert cpu.generation == 1


def test_what_is_kept_anew_is_not_thrown_away_by_the_resumption_before(
    lab: System, cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread suspends the device at the moment in which it runs again."""
    x = cpu.put(A)
    cpu.suspend()
    connected, again = Connection.connect, list[Any]()

    def late(connection: Connection, *what: Any, **free: Any) -> bool:
        done = connected(connection, *what, **free)
        if not again:
            again.append(None)
            again.append(cpu.suspend())
        return done

    monkeypatch.setattr(Connection, "connect", late)
    cpu._requests.connection.wake()
    assert settle(lambda: len(again) == 2)
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)
