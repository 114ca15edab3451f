"""A loss that is not over yet when something else comes: another loss, a close, a cancel."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import Any

import numpy as np
import pytest

from accel_lab import Device, System
from accel_lab.compute.process.spawner import Spawner
from accel_lab.compute.requests.connection import Connection
from accel_lab.compute.supervision.context_loss import Reason
from accel_lab.errors import ContextLost, SystemClosed
from tests.faults.conftest import pid_of, settle, works

WAIT = 30.0
LARGE = np.arange(100_000.0)

Reap = Callable[[], None]


@pytest.fixture
def replaying(nothing_left: None) -> Iterator[System]:
    """Run one host device that makes its buffers again."""
    with System("host", recover="replay", max_restarts=1000) as lab:
        yield lab


@pytest.fixture
def slow_end(monkeypatch: pytest.MonkeyPatch) -> Callable[[System], Reap]:
    """Have it take long until a system's context has ended; what this returns lets it end."""

    def hold(lab: System) -> Reap:
        (supervisor,), gone, held = lab._supervisors, Spawner._gone, list[tuple[Any, ...]]()
        assert supervisor.process is not None
        number = supervisor.process.number

        def late(spawner: Spawner, one: int, name: str) -> None:
            if one == number:
                held.append((spawner, one, name))
            else:
                gone(spawner, one, name)

        def reap() -> None:
            assert settle(lambda: bool(held))
            monkeypatch.setattr(Spawner, "_gone", gone)
            lab._event_loop.call_soon(gone, *held[0])

        monkeypatch.setattr(Spawner, "_gone", late)
        return reap

    return hold


def _doubled(a: Any) -> Any:
    import time

    time.sleep(0.3)
    return 2 * a


def test_what_a_context_took_is_run_again_though_the_next_is_lost_before_it_has_ended(
    replaying: System, slow_end: Callable[[System], Reap]
) -> None:
    """The third context ran, and the request of the first was nobody's."""
    (cpu,) = replaying.ready(WAIT).devices
    (supervisor,) = replaying._supervisors
    reap = slow_end(replaying)
    first = supervisor.process
    x = cpu.put(np.ones(4)).result(WAIT)
    reply = cpu.run(_doubled, x, pure=True)
    assert first is not None
    os.kill(first.pid, signal.SIGKILL)
    connection = cpu._requests.connection
    assert settle(lambda: supervisor.process is not first and connection.filling is not None)
    cpu.replace()
    assert settle(lambda: cpu.generation == 3 and connection.filling is not None)
    assert cpu.state == "restarting"  # it waits for the reason of the first loss
    reap()
    np.testing.assert_array_equal(cpu.get(reply.result(WAIT)).result(WAIT), np.full(4, 2.0))


def test_one_of_a_group_may_be_cancelled_while_the_others_fail(
    nothing_left: None, slow_end: Callable[[System], Reap]
) -> None:
    """As tasks of a group are when one of them has failed."""
    with closing(System("host", recover="replay", max_restarts=0)) as lab:
        (cpu,) = lab.ready(WAIT).devices
        (supervisor,) = lab._supervisors
        reap = slow_end(lab)
        replies = [cpu.run(_doubled, k, pure=True) for k in range(4)]

        def cancel() -> None:
            other = threading.Thread(target=replies[1].cancel)
            other.start()
            other.join()

        replies[0].add_waiter(cancel)
        assert supervisor.process is not None
        os.kill(supervisor.process.pid, signal.SIGKILL)
        assert settle(lambda: cpu.state == "circuit open")
        reap()
        for reply in replies:
            with pytest.raises(ContextLost):
                reply.result(WAIT)


def _kill_while(
    monkeypatch: pytest.MonkeyPatch, cpu: Device, seq: int, deed: Callable[[], Any]
) -> None:
    """Lose the context, and do something as the next one is given this request again."""
    resend, done = Connection.resend, list[Any]()

    def late(connection: Connection, link: Any, number: int, *what: Any) -> None:
        if number != seq or done:
            return resend(connection, link, number, *what)
        done.append(deed())
        try:
            return resend(connection, link, number, *what)
        finally:
            with suppress(SystemClosed):
                done.append(cpu._transfers._arena.empty(LARGE.shape, "float64"))
                done[-1][:] = 0.0  # the next array of somebody's

    monkeypatch.setattr(Connection, "resend", late)
    assert cpu._supervisor.process is not None
    os.kill(cpu._supervisor.process.pid, signal.SIGKILL)


def test_an_upload_that_a_lost_context_has_not_got_keeps_its_bytes(
    replaying: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their place in the arena was another array's by then."""
    (cpu,) = replaying.ready(WAIT).devices
    (supervisor,) = replaying._supervisors
    cpu.run(_doubled, 1, pure=True)
    x = cpu.put(LARGE)
    replaying.flush()
    seq = max(cpu._requests.answers.pending)

    def lose() -> None:
        supervisor._lose(Reason("lost once more"), of=supervisor._link)

    _kill_while(monkeypatch, cpu, seq, lose)
    np.testing.assert_array_equal(cpu.get(x).result(WAIT), LARGE)
    assert cpu.generation == 3


def test_what_is_run_again_is_answered_when_the_system_closes(
    nothing_left: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = System("host", recover="replay", max_restarts=1000).ready(WAIT)
    (cpu,) = lab.devices
    recovery = lab._supervisors[0].recovery
    assert recovery is not None
    reply = cpu.run(_doubled, 1, pure=True)
    (seq,) = cpu._requests.answers.pending

    def close() -> None:
        threading.Thread(target=lab.close).start()
        assert settle(lambda: cpu.state == "stopped" and recovery._turn > 1)

    _kill_while(monkeypatch, cpu, seq, close)
    with pytest.raises((SystemClosed, ContextLost)):
        reply.result(WAIT)
    lab.close()


class Slow:
    """Takes its time to be made in the notebook."""

    begun, goes_on = threading.Event(), threading.Event()

    def __setstate__(self, _: object) -> None:
        self.begun.set()
        self.goes_on.wait(2 * WAIT)


def slow() -> Slow:
    made = Slow()
    made.__dict__["x"] = 1
    return made


def test_a_context_is_replaced_while_an_answer_of_it_is_still_being_made_here(
    nothing_left: None,
) -> None:
    """No device of the system could be, before."""
    with System("host", devices=2, recover="stale") as lab, ThreadPoolExecutor() as pool:
        cpu, other = lab.ready(WAIT).devices
        waiting = pool.submit(cpu.run(slow).result, WAIT)
        assert Slow.begun.wait(WAIT)
        try:
            for device in (cpu, other):
                os.kill(pid_of(lab, device), signal.SIGKILL)
                assert settle(lambda d=device: d.generation == 2 and works(d))  # type: ignore[misc]
            assert not waiting.done()
        finally:
            Slow.goes_on.set()
        assert isinstance(waiting.result(WAIT), Slow)
