"""Sending never waits for the device, order is the program's, and nothing piles up."""

import asyncio
import gc
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from accel_lab import AccelRef, Device, System, array, blas, jit
from accel_lab.compute.events.lifecycle import ContextStarted
from accel_lab.compute.message.builtin import Ping
from accel_lab.display.progress import REFRESH_S
from accel_lab.errors import (
    Cancelled,
    ContextLost,
    InvalidArgument,
    QueueFull,
    UnsupportedDtype,
)
from tests.faults.conftest import settle, turns_are_usual

WAIT = 60.0


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", max_restarts=1000) as system:
        yield system


@pytest.fixture
def cpu(lab: System) -> Device:
    return lab.devices[0]


class Latch:
    """Holds a device: a function in its context that returns when the test says so."""

    def __init__(self, device: Device, path: Path) -> None:
        os.mkfifo(path)
        self._path = path
        self.reply = device.run(_hold, str(path))

    def release(self) -> None:
        with self._path.open("w"):
            pass


def _hold(path: str) -> None:
    with open(path) as gate:  # noqa: PTH123 - by value into a context: no imports
        gate.read()


_hold.__module__ = "__main__"  # so that it travels by value: the context cannot import tests


def test_a_thousand_dependent_sends_return_while_none_has_completed(
    cpu: Device, tmp_path: Path
) -> None:
    latch = Latch(cpu, tmp_path / "gate")
    one = cpu.put(np.ones(4))
    x = one
    refs: list[AccelRef] = []
    for _ in range(1000):
        x = blas.axpy(one, x)
        refs.append(x)
    assert not any(ref.done for ref in refs)
    assert x.shape == (4,)
    latch.release()
    assert (cpu.get(x).result(WAIT) == 1001.0).all()
    assert all(ref.done for ref in refs)


def test_a_loop_goes_on_for_as_long_as_it_awaits_handles(cpu: Device, tmp_path: Path) -> None:
    """Whatever looks after the wait takes no handle for a bool, which would fetch it."""
    latch = Latch(cpu, tmp_path / "gate")
    x = blas.scal(cpu.put(np.ones((2, 2))), 2.0)
    rescue = threading.Timer(WAIT / 4, latch.release)
    rescue.start()

    async def both() -> None:
        complaints: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: complaints.append(what))
        awaited = asyncio.gather(latch.reply, x)
        for _ in range(5):
            await asyncio.sleep(REFRESH_S)
        assert not x.done
        assert not complaints
        rescue.cancel()
        latch.release()
        await awaited

    asyncio.run(both())


def test_what_is_sent_past_the_limit_waits_or_is_refused(cpu: Device, tmp_path: Path) -> None:
    latch = Latch(cpu, tmp_path / "gate")
    one = cpu.put(np.ones(1))
    for _ in range(8192 - 2):
        blas.scal(one, 1.0, out=one)
    with pytest.raises(QueueFull, match="8192"):
        cpu.ask(blas.Scal(one, 1.0, out=one), nowait=True)
    threading.Timer(0.2, latch.release).start()
    cpu.ask(blas.Scal(one, 3.0, out=one)).result(WAIT)
    assert cpu.get(one).result(WAIT).tolist() == [3.0]


def test_handles_that_are_dropped_free_their_memory(lab: System, cpu: Device) -> None:
    def used() -> int:
        return int(cpu.run(_used_bytes).result(WAIT))

    gc.collect()
    cpu.run(int).result(WAIT)  # what is freed travels behind the next request
    before = used()
    kept = array.zeros(cpu, (1 << 20,), dtype="uint8")
    kept.result(WAIT)
    assert used() == before + (1 << 20)
    del kept
    gc.collect()
    cpu.run(int).result(WAIT)
    assert used() == before


def _used_bytes() -> int:
    import gc as collector

    from accel_lab.compute.execution.buffer_table import BufferTable

    (table,) = [o for o in collector.get_objects() if type(o) is BufferTable]
    return table.used_bytes


_used_bytes.__module__ = "__main__"


def test_a_mistake_that_only_the_context_can_see_costs_nothing(cpu: Device, tmp_path: Path) -> None:
    latch = Latch(cpu, tmp_path / "gate")
    integers = cpu.run(np.arange, 4)
    halved = blas.scal(square := cpu.run(np.ones, (2, 2)), 0.5, out=square)
    norms = [blas.nrm2(integers) for _ in range(6)]
    product = blas.gemm(square, integers)
    assert "unknown yet" in repr(integers)
    latch.release()
    for norm in norms:
        with pytest.raises(UnsupportedDtype, match="int64"):
            norm.result(WAIT)
    with pytest.raises(InvalidArgument):
        product.result(WAIT)
    assert integers.shape == (4,)
    assert halved.shape == (2, 2)
    assert blas.nrm2(square).result(WAIT).shape == ()
    assert cpu.generation == 1


@pytest.mark.slow
def test_a_hundred_thousand_dropped_replies_leave_memory_flat() -> None:
    """Without a record, which grows up to limits of its own."""

    def resident(lab: System) -> tuple[int, int]:
        pids = (os.getpid(), lab.events.history(ContextStarted)[-1].pid)
        return tuple(  # type: ignore[return-value]
            int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 for pid in pids
        )

    def send(cpu: Device, x: AccelRef, count: int) -> None:
        for _ in range(count):
            blas.scal(x, 0.5)
        cpu.get(x).result(WAIT)
        gc.collect()

    with System("host", journal=None, recover="stale") as lab:
        cpu = lab.devices[0]
        x = cpu.put(np.ones((8, 8), np.float32))
        send(cpu, x, 20_000)
        before = resident(lab)
        send(cpu, x, 90_000)
        after = resident(lab)
    grown = [(b - a) / 2**20 for a, b in zip(before, after, strict=True)]
    assert max(grown) <= 8.0, f"MiB grown in notebook and context: {grown}"


def test_answers_arrive_in_awaiting_tasks_and_waiting_threads_at_once(cpu: Device) -> None:
    one = cpu.put(np.ones(3))

    async def task(count: int) -> int:
        for _ in range(count):
            await blas.axpy(one, one)
        return count

    async def many() -> list[int]:
        return await asyncio.gather(*(task(50) for _ in range(5)))

    def thread(done: list[int]) -> None:
        for _ in range(200):
            blas.axpy(one, one).result(WAIT)
        done.append(200)

    done: list[int] = []
    threads = [threading.Thread(target=thread, args=(done,)) for _ in range(3)]
    for t in threads:
        t.start()
    assert asyncio.run(many()) == [50] * 5
    for t in threads:
        t.join(WAIT)
    assert done == [200] * 3


def test_result_with_a_timeout_gives_up_waiting_and_the_request_goes_on(
    cpu: Device, tmp_path: Path
) -> None:
    latch = Latch(cpu, tmp_path / "gate")
    with pytest.raises(TimeoutError):
        latch.reply.result(0.05)
    latch.release()
    assert latch.reply.result(WAIT) is None


def test_a_cancelled_await_takes_its_queued_request_back(
    lab: System, cpu: Device, tmp_path: Path
) -> None:
    latch = Latch(cpu, tmp_path / "gate")
    value = cpu.put(np.ones(2))

    async def impatient() -> None:
        await asyncio.wait_for(_await(waiting), 0.05)

    waiting = blas.scal(value, 2.0, out=value)
    with pytest.raises(TimeoutError):
        asyncio.run(impatient())
    cpu.run(int)
    # The control channel is beside the wire: let it be first. What it answers now was asked after.
    assert settle(lambda: bool(list(lab.look(memory=True, work=False))))
    latch.release()
    with pytest.raises(Cancelled):
        waiting.result(WAIT)
    assert cpu.get(value).result(WAIT).tolist() == [1.0, 1.0]


async def _await(ref: AccelRef) -> AccelRef:
    return await ref


@pytest.mark.slow
def test_a_busy_cell_delays_neither_restarts_nor_answers_to_other_threads() -> None:  # noqa: C901
    """Ten seconds of pure Python in one thread; three losses; the rest goes on as before."""
    # A window so short that no restart is one of several: none has a back-off.
    with System("host", max_restarts=1000, within_s=0.1) as lab:
        (cpu,) = lab.devices
        stop = threading.Event()
        laps: list[float] = []

        def asker() -> None:
            while not stop.is_set():
                begin = time.perf_counter()
                try:
                    cpu.run(int).result(WAIT)
                except ContextLost:
                    continue
                laps.append(time.perf_counter() - begin)
                stop.wait(0.005)

        def lose(times: list[float]) -> None:
            for _ in range(3):
                stop.wait(1.5)
                begin = time.perf_counter()
                with pytest.raises(ContextLost):
                    lab.inject("kill", cpu).result(WAIT)
                cpu.run(int).result(WAIT)
                times.append(time.perf_counter() - begin)

        def round_of(*, busy: bool) -> tuple[list[float], list[float]]:
            laps.clear()
            stop.clear()
            times: list[float] = []
            workers = [threading.Thread(target=asker), threading.Thread(target=lose, args=(times,))]
            for worker in workers:
                worker.start()
            if busy:
                end = time.perf_counter() + 10.0
                count = 0
                while time.perf_counter() < end:
                    count += 1
            else:
                workers[1].join()
            workers[1].join()
            stop.set()
            workers[0].join()
            return list(laps), times

        excesses = []
        # Whatever else the machine does can only add to a delay, of one restart or of a round.
        for _ in range(3):
            idle_laps, idle_times = round_of(busy=False)
            busy_laps, busy_times = round_of(busy=True)
            delay = float(np.percentile(busy_laps, 99) - np.percentile(idle_laps, 99))
            excesses.append((max(delay, min(busy_times) - min(idle_times)), delay, busy_times))
            if excesses[-1][0] <= 0.05:
                break
    assert min(excess for excess, *_ in excesses) <= 0.05, excesses
    assert turns_are_usual()


def test_a_message_that_is_told_is_done_in_its_turn_and_its_failure_is_known() -> None:
    with System("host", max_restarts=1000) as lab:
        (cpu,) = lab.devices[:1]
        x = cpu.put(np.ones(4))
        for _ in range(300):
            cpu.tell(blas.Scal(x, 2.0, out=x))
            cpu.tell(Ping())
        assert (cpu.get(x).result(WAIT) == 2.0**300).all()
        lab.check()
        broken = jit.compile(cpu, "__global__ void one(int n) {}", "one").result(WAIT)
        cpu.tell(jit.LaunchKernel(broken.ref, (1, 1, 1), (1, 1, 1), (), ("text",)))
        cpu.ping().result(WAIT)
        with pytest.raises(InvalidArgument, match="argument 0 of one"):
            lab.check()


def test_what_is_in_flight_is_counted_by_library(cpu: Device, tmp_path: Path) -> None:
    x = cpu.put(np.ones((4, 4), np.float32))
    load = cpu._requests.load
    assert settle(lambda: load() == ({}, {}))
    latch = Latch(cpu, tmp_path / "gate")
    later = [cpu.run(int)]
    assert settle(lambda: load() == ({"run": 1}, {"run": 1})), "all of them are of one library"
    products = [cpu.ask(blas.Gemm(x, x)) for _ in range(3)]
    copies = [cpu.ask(array.Copy(x)) for _ in range(2)]
    cpu.tell(blas.Gemm(x, x))
    later.append(cpu.run(int))
    assert load() == ({"run": 1}, {"run": 2, "blas": 4, "array": 2})
    latch.release()
    cpu.ping().result(WAIT)
    latch = Latch(cpu, tmp_path / "second")
    assert settle(lambda: load() == ({"run": 1}, {}))
    latch.release()
    assert len(products) + len(copies) + len(later) == 7


def test_the_tree_tells_what_runs_from_what_waits(tmp_path: Path) -> None:
    """Of 64 messages one runs and 63 wait, and no actor has less than those below it."""
    with System("host", devices=1) as lab:
        gpu = lab.devices[0]
        x = gpu.put(np.ones((4, 4), np.float32))
        latch = Latch(gpu, tmp_path / "gate")
        for _ in range(63):
            x = blas.axpy(x, x)

        def counts(kind: str) -> list[tuple[int, int]]:
            nodes = lab.tree().walk()
            return [(node.mailbox, node.in_flight) for node in nodes if node.kind == kind]

        assert settle(lambda: counts("device") == [(63, 1)])
        for kind in ("system", "device", "context"):
            assert counts(kind) == [(63, 1)]
        assert sum(mailbox for mailbox, _ in counts("library")) == 63
        assert sum(in_flight for _, in_flight in counts("library")) == 1
        assert "1 in flight, 63 waiting" in repr(gpu)
        assert gpu.in_flight == 64
        latch.release()
        gpu.get(x).result(WAIT)


def test_what_is_sent_before_there_is_a_context_waits() -> None:
    with System("host", devices=1) as lab:
        gpu = lab.devices[0]
        replies = [gpu.ping() for _ in range(20)]
        tree = lab.tree()
        for node in tree.walk():
            below = sum(child.mailbox for child in node.children)
            assert node.mailbox >= below
            assert node.in_flight >= sum(child.in_flight for child in node.children)
        assert tree.mailbox + tree.in_flight <= 20
        for reply in replies:
            reply.result(WAIT)
        assert settle(lambda: (lab.tree().mailbox, lab.tree().in_flight) == (0, 0))


def test_telling_more_than_may_be_in_flight_waits_for_room(cpu: Device, tmp_path: Path) -> None:
    latch = Latch(cpu, tmp_path / "gate")
    timer = threading.Timer(0.5, latch.release)
    timer.start()
    for _ in range(8192 + 100):
        cpu.tell(Ping())
    assert latch.reply.done, "the last hundred had to wait for it"
    cpu.ping().result(WAIT)
    timer.join()


def test_telling_more_than_may_be_in_flight_is_refused_if_asked_for(
    cpu: Device, tmp_path: Path
) -> None:
    latch = Latch(cpu, tmp_path / "gate")
    for _ in range(8192 - 1):
        cpu.tell(Ping(), nowait=True)
    with pytest.raises(QueueFull):
        cpu.tell(Ping(), nowait=True)
    latch.release()
    cpu.ping().result(WAIT)


def test_what_was_told_is_lost_with_its_context_and_said(
    cpu: Device, lab: System, tmp_path: Path
) -> None:
    latch = Latch(cpu, tmp_path / "gate")  # what is told now will not run
    for _ in range(5):
        cpu.tell(Ping())
    cpu.replace()
    cpu.ping().result(WAIT)
    assert latch.reply.failed
    with pytest.raises(ContextLost):
        lab.check()


def test_what_is_told_to_a_device_at_work_leaves_at_once_again_and_again(
    cpu: Device, tmp_path: Path
) -> None:
    """And the interpreter's turns are as they were, though nobody waits for an answer."""
    cpu.ping().result(WAIT)
    latch = Latch(cpu, tmp_path / "gate")
    link = cpu._requests.connection.current_link
    assert link is not None
    assert settle(lambda: link._armed), "nobody has waited for a while"
    for _ in range(3):
        for _ in range(2):
            cpu.tell(Ping())
        assert settle(lambda: not link._parts)
        assert turns_are_usual()
    latch.release()
    cpu.ping().result(WAIT)


def test_a_link_that_is_closed_keeps_nothing_short() -> None:
    with System("host") as lab:
        cpu = lab.devices[0]
        link = cpu._requests.connection.current_link
        assert link is not None
        link.close()
        link.send(b"", idle=False)
        assert not link._urgent.made


def test_a_system_that_closes_with_held_back_messages_leaves_the_interpreter_as_it_was() -> None:
    with System("host") as lab:
        for _ in range(10):
            for _ in range(20):
                lab.devices[0].tell(Ping())
    assert turns_are_usual()
