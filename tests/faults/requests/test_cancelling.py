"""Taking requests back: in the queue, behind others, at work, and done at the same moment."""

import asyncio
import os
import signal
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, Device, System, array, blas, solver
from accel_lab.actor.reply import Reply
from accel_lab.compute.actors.fault import Inject
from accel_lab.compute.output.cell_origin import Origin
from accel_lab.errors import (
    AccelError,
    Cancelled,
    ContextLost,
    DependencyFailed,
    Interrupted,
    OutOfMemory,
    StaleRef,
)
from tests.faults.campaign.gate import holdings
from tests.faults.conftest import pid_of, settle

WAIT = 30.0
ONES = np.ones((8, 8), np.float32)


class Latch:
    """A request that runs until it is released."""

    def __init__(self, device: Device, gate: Path) -> None:
        self._gate = gate

        def wait_for(name: str) -> None:
            while not os.path.exists(name):  # noqa: PTH110 - pickled into the context
                time.sleep(0.001)

        self.reply: Reply[None] = device.run(wait_for, str(gate))

    def release(self) -> None:
        """Let it go on."""
        self._gate.touch()


@pytest.fixture
def latch(cpu: Device, tmp_path: Path) -> Latch:
    """Keep the device busy."""
    return Latch(cpu, tmp_path / "gate")


def let_control_be_first(lab: System) -> bool:
    """The control channel is beside the wire; what it answers here was asked after the rest."""
    return settle(lambda: bool(list(lab.look(memory=True, work=False))))


def cause_of(error: AccelError | None) -> BaseException | None:
    assert isinstance(error, DependencyFailed)
    return error.__cause__


def test_an_interrupt_says_which_cell_has_sent_what_it_takes_back(
    lab: System,
    cpu: Device,
    latch: Latch,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A cell may wait for what another has sent."""
    monkeypatch.setattr("accel_lab.compute.output.cell_origin._current", Origin(5))
    sent = cpu.ping()
    monkeypatch.setattr("accel_lab.compute.output.cell_origin._current", Origin(6))
    outlast = cpu._requests.stop_button.stop(sent.origin)
    assert let_control_be_first(lab)
    latch.release()
    outlast()
    with pytest.raises(Cancelled):
        sent.result(WAIT)
    said = "accel_lab: interrupted; 1 request of cell 5 to cpu0 was cancelled.\n"
    assert said in capsys.readouterr().err


def test_what_has_not_begun_is_never_run_and_what_needs_it_says_why(
    lab: System, cpu: Device, latch: Latch
) -> None:
    """The answer is there at once, although the context is busy."""
    a = cpu.put(ONES)
    before, doubled = blas.gemm(a, a), blas.scal(a, 2.0, out=a)
    needs = [blas.gemm(doubled, a), blas.nrm2(blas.scal(before, 2.0))]
    begun = time.perf_counter()
    doubled.cancel()
    before.cancel()
    for reply in (doubled, before):
        with pytest.raises(Cancelled, match=r"request \d was cancelled"):
            reply.result(WAIT)
    assert time.perf_counter() - begun < WAIT / 2  # the latch is held for as long as it takes
    for late in (blas.gemm(before, a), blas.scal(doubled, 2.0)):
        assert isinstance(cause_of(late.error), Cancelled)
    assert let_control_be_first(lab)
    latch.release()
    with pytest.raises(DependencyFailed) as caught:
        needs[1].result(WAIT)
    assert isinstance(caught.value.__cause__, Cancelled)
    assert (cpu.get(a).result(WAIT) == 1.0).all()
    assert cpu.in_flight == 0


def test_what_waits_for_a_context_is_taken_out_of_the_queue(lab: System, cpu: Device) -> None:
    """And what needs it fails with its cause, whatever it is."""
    notice, go = threading.Event(), threading.Event()
    cpu._supervisor._services.event_loop.call_soon(notice.wait, WAIT)
    killed = lab.inject("kill", cpu)
    killed.add_waiter(partial(go.wait, WAIT))  # in the same thread, which connects the next one
    notice.set()
    assert settle(lambda: killed.done)
    a = cpu.put(ONES)
    never = blas.gemm(a, a)
    told: list[int] = []
    plain = cpu.run(told.append, 1)
    needs = blas.scal(never, 2.0)
    never.cancel()
    plain.cancel()
    assert cpu.state == "restarting"
    for reply in (never, plain):
        assert isinstance(reply.error, Cancelled)
    go.set()
    with pytest.raises(DependencyFailed) as caught:
        needs.result(WAIT)
    assert isinstance(caught.value.__cause__, Cancelled)
    assert (cpu.get(a).result(WAIT) == 1.0).all()
    assert settle(lambda: (cpu.in_flight, cpu._requests.queued) == (0, 0))


def test_results_that_nobody_asked_for_leave_no_trace(cpu: Device) -> None:
    """Of several results the context forgets those that were to be made, when they are freed."""
    x = cpu.put(np.ones((4, 4)))
    x.result(WAIT)
    cpu.replace()  # from here on messages wait for the next context
    found = solver.svd(cpu.put(np.ones((4, 4))), vectors=False)
    found.s.cancel()
    with pytest.raises(Cancelled):
        found.s.result(WAIT)
    del x, found
    cpu.ping().result(WAIT)
    assert settle(lambda: cpu.run(holdings).result(WAIT) == (0, 0, ()))


def test_the_result_of_what_was_at_work_is_freed_when_it_is_done(
    nothing_left: None, tmp_path: Path
) -> None:
    """Though its failed handle lives on; there is room for one of them only."""
    with System("host", memory_bytes=1 << 20, spill=False) as lab:
        (cpu,) = lab.devices
        kept: list[object] = []
        for turn in range(20):
            begun, gate = tmp_path / f"begun-{turn}", tmp_path / f"gate-{turn}"
            made = cpu.run(_slow_array, str(begun), str(gate))
            assert settle(begun.exists)
            made.cancel()
            assert isinstance(made.error, Cancelled)
            gate.touch()
            kept.append(made)
            assert settle(lambda: cpu.in_flight == 0)
        for _ in range(100):
            try:
                array.zeros(cpu, (700, 1024), dtype="uint8").result(WAIT)
                break
            except OutOfMemory:  # the free travels behind
                time.sleep(0.02)
        else:
            pytest.fail("the results are still there")
        assert len(kept) == 20


def _slow_array(begun: str, gate: str) -> object:
    Path(begun).touch()
    while not Path(gate).exists():
        time.sleep(0.001)
    return np.zeros(700 << 10, np.uint8)


def test_a_waiting_thread_and_a_waiting_loop_are_woken(cpu: Device, latch: Latch) -> None:
    """Also while nothing comes on the wire."""
    first = cpu.put(ONES)
    answers: list[BaseException] = []

    def wait() -> None:
        try:
            first.result(WAIT)
        except BaseException as error:  # noqa: BLE001
            answers.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    time.sleep(0.1)
    first.cancel()
    waiter.join(WAIT)
    assert [type(a) for a in answers] == [Cancelled]

    async def both() -> None:
        second = cpu.put(ONES)
        task = asyncio.ensure_future(_await(second))
        await asyncio.sleep(0.05)
        second.cancel()
        with pytest.raises(Cancelled):
            await asyncio.wait_for(task, WAIT)

    asyncio.run(both())
    latch.release()
    assert cpu.run(int).result(WAIT) == 0


async def _await(reply: Reply[Any]) -> Any:
    return await reply


def test_memory_of_the_arena_stays_until_the_context_is_done_with_it(
    lab: System, cpu: Device, latch: Latch
) -> None:
    """A transfer that was taken back may still read and write there."""
    a = cpu.put(np.ones(100_000))
    got = cpu.get(a)
    blocks = lab.arena().blocks
    assert blocks >= 2
    a.cancel()
    got.cancel()
    assert isinstance(got.error, Cancelled)
    assert lab.arena().blocks == blocks
    latch.release()
    assert settle(lambda: lab.arena().blocks == 0)


def test_a_context_that_is_lost_lets_go_of_what_was_taken_back(
    lab: System, cpu: Device, latch: Latch
) -> None:
    """Each request keeps its one answer."""
    a = cpu.put(np.ones(100_000))
    got = cpu.get(a)
    got.cancel()
    os.kill(pid_of(lab, cpu), signal.SIGKILL)
    with pytest.raises(ContextLost):
        latch.reply.result(WAIT)
    assert isinstance(got.error, Cancelled)
    assert settle(lambda: (lab.arena().blocks, cpu.in_flight) == (0, 0))


def _send_something(cpu: Device, a: AccelRef, turn: int) -> Reply[Any]:
    if turn % 20 == 0:
        cpu.run(time.sleep, 0.005)  # on a busy machine the answer would always be first
    if turn % 3:
        return blas.gemm(a, a)
    return cpu.get(a) if turn % 2 else cpu.run(int)


def test_taking_back_and_answering_at_once_gives_one_answer(cpu: Device) -> None:
    """A thousand races: the value or Cancelled, nothing left, and the device as it was."""
    a = cpu.put(ONES).result(WAIT)
    dice = np.random.default_rng(7)
    ends = {"value": 0, "cancelled": 0}
    asked: list[Reply[Any]] = []
    ready, go = threading.Barrier(2), threading.Barrier(2)
    current: list[Reply[Any]] = []
    usual_s = [0.0002]  # made longer and shorter until both ends come about as often

    def take_back() -> None:
        for part in dice.uniform(0.0, 2.0, 1000):
            ready.wait(WAIT)
            reply = current[0]
            go.wait(WAIT)
            until = time.perf_counter() + part * usual_s[0]
            while time.perf_counter() < until:
                pass
            reply.cancel()

    other = threading.Thread(target=take_back)
    other.start()
    for turn in range(1000):
        reply = _send_something(cpu, a, turn)
        current[:] = [reply]
        ready.wait(WAIT)
        go.wait(WAIT)
        try:
            value = reply.result(WAIT)
        except Cancelled:
            ends["cancelled"] += 1
            usual_s[0] = min(1.1 * usual_s[0], 0.05)
            assert (reply.done, reply.failed) == (True, True)
        else:
            ends["value"] += 1
            usual_s[0] /= 1.1
            assert not reply.failed
            if turn % 3:
                assert value is reply
        asked.append(reply)
    other.join(WAIT)
    assert min(ends.values()) > 10, ends
    for turn, reply in enumerate(asked):
        if turn % 50 == 1 and isinstance(reply, AccelRef) and not reply.failed:
            assert (cpu.get(reply).result(WAIT) == 8.0).all()
    assert settle(lambda: cpu.in_flight == 0)
    assert not cpu._requests.answers.withdrawn
    assert cpu.generation == 1


@pytest.mark.parametrize("taken_back", ["by itself", "by a cell"])
def test_what_an_interrupted_function_had_written_is_not_taken_for_what_was_there(
    tmp_path: Path, taken_back: str
) -> None:
    """After the next loss the buffer is lost: to make it again would be a guess."""

    def write(array: Any, begun: str) -> None:
        array[0] = 99.0
        Path(begun).touch()
        time.sleep(WAIT)

    begun = tmp_path / "begun"
    with System("host") as lab:
        cpu = lab.devices[0]
        a = cpu.put(np.ones(4, np.float32)).result(WAIT)
        reply = cpu.run(write, a, str(begun))
        assert settle(begun.exists)
        if taken_back == "by a cell":
            cpu._requests.cancellation.cancel_of(reply.origin)
        else:
            reply.cancel()
        with pytest.raises(Cancelled):
            reply.result(WAIT)
        assert cpu.get(a).result(WAIT).tolist() == [99.0, 1.0, 1.0, 1.0]
        if taken_back == "by a cell":  # otherwise what the context says may come first, or not
            assert isinstance(reply.error, Interrupted)
        assert a.durability == "lost on fault"
        with pytest.raises(ContextLost):
            cpu.ask(Inject("kill")).result(WAIT)
        lab.ready(timeout_s=WAIT)
        with pytest.raises(StaleRef, match="may have changed it"):
            cpu.get(a).result(WAIT)


def test_taking_back_what_is_done_or_failed_changes_nothing(lab: System, cpu: Device) -> None:
    """Nor does doing it twice."""
    a = cpu.put(ONES).result(WAIT)
    a.cancel()
    assert not a.failed
    with pytest.raises(ContextLost):
        (lost := cpu.ask(Inject("kill"))).result(WAIT)
    lost.cancel()
    lost.cancel()
    assert isinstance(lost.error, ContextLost)
    lab.check()


def test_code_that_is_about_to_begin_is_interrupted_too(cpu: Device) -> None:
    """What was taken back while its operands were made ready ran to its end."""

    def slowly() -> None:
        from accel_lab.compute.actors.run import RunActor

        before = RunActor._operands

        def slow(actor: Any, m: Any, launch: Any) -> list[Any]:
            if m.called == "busy":
                time.sleep(0.5)
            return before(actor, m, launch)

        RunActor._operands = slow  # type: ignore[method-assign,assignment]

    def busy() -> None:
        until = time.monotonic() + WAIT
        while time.monotonic() < until:
            pass

    cpu.run(slowly).result(WAIT)
    reply = cpu.run(busy, called="busy")
    assert settle(lambda: cpu._supervisor.process is not None)
    time.sleep(0.2)
    reply.cancel()
    began = time.monotonic()
    cpu.ping().result(WAIT)
    assert time.monotonic() - began < WAIT / 2


def test_code_that_does_not_hear_the_first_signal_hears_the_next(cpu: Device) -> None:
    """One that comes between the last look of Python and a wait in the kernel ends neither.

    `time.sleep` and its like were not interrupted by one stop in a thousand.
    """

    def deaf_at_first() -> None:
        heard: list[int] = []
        takes = signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
        while not heard:
            time.sleep(0.001)
        signal.signal(signal.SIGUSR1, takes)
        time.sleep(2 * WAIT)

    reply = cpu.run(deaf_at_first)
    assert settle(lambda: cpu.in_flight == 1 and cpu._supervisor.process is not None)
    time.sleep(0.2)
    reply.cancel()
    began = time.monotonic()
    cpu.ping().result(WAIT)
    assert time.monotonic() - began < WAIT / 2


def test_a_stop_reaches_what_a_suspension_waits_for(cpu: Device, tmp_path: Path) -> None:
    """The device takes no messages then, and its context has not ended.

    The suspension is stopped too: what it asks of the device is taken back as the rest is.
    """
    begun = tmp_path / "begun"

    def sleep_long(name: str) -> None:
        from pathlib import Path

        Path(name).touch()
        time.sleep(2 * WAIT)

    running = cpu.run(sleep_long, str(begun))
    assert settle(begun.exists)

    def suspend() -> None:
        with pytest.raises(Cancelled):
            cpu.suspend(timeout_s=WAIT)

    suspending = threading.Thread(target=suspend)
    suspending.start()
    assert settle(lambda: cpu._supervisor.requests.connection.link is None)
    began = time.monotonic()
    cpu.stop()
    suspending.join(WAIT)
    assert not suspending.is_alive()
    assert time.monotonic() - began < WAIT / 2
    with pytest.raises(Cancelled):
        running.result(WAIT)
    assert cpu.run(pow, 2, 3).result(WAIT) == 8
