"""Messages to several devices, in a copy of the project that has the library `grouped`."""

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accel_lab.libraries.grouped import CannotSum, ExtremesAll, Meet, SumAborted, SumAll

from accel_lab import System
from accel_lab.compute.device import Device
from accel_lab.compute.events.samples import WorkTraced
from accel_lab.compute.world.group_reply import GroupReply
from accel_lab.errors import (
    AccelError,
    Cancelled,
    ContextLost,
    DeadlineExceeded,
    DependencyFailed,
    GroupAborted,
    InvalidArgument,
    StaleRef,
    SystemClosed,
)
from accel_lab.journal.entries.entry import Entry
from accel_lab.journal.journal import Journal
from accel_lab.libraries import blas

BACKEND = os.environ.get("TRIAL_BACKEND", "host")
DEVICES = int(os.environ.get("TRIAL_DEVICES", "3"))
WAIT = 60
SOON_S = 1.5
"""What takes milliseconds, where others use the cores."""
LATE_S = 20.0
"""What is taken away from a part in the end, where nothing else has."""
OTHERS = tuple(rank for rank in range(DEVICES) if rank != 1)
three = pytest.mark.skipif(DEVICES < 3, reason="it needs three devices")
WAYS = ("poll", "blocking", "handler")


@pytest.fixture(scope="module")
def opened() -> Iterator[System]:
    with System(BACKEND, DEVICES, max_restarts=1000) as system:
        yield system


@pytest.fixture
def lab(opened: System) -> System:
    """Return a system that is at nothing, and of which nobody has to be told anything."""
    opened.ready()
    settle(lambda: not any(one.in_flight for one in opened.devices))
    with contextlib.suppress(AccelError, ExceptionGroup):
        opened.check()
    return opened


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path)


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    """Name a file that `held` waits for, and is there at the end."""
    path = tmp_path / "gate"
    yield path
    path.touch()


def wait_for(path: Path) -> None:
    """Run until a file is there, in a context."""
    while not path.exists():
        time.sleep(0.001)


def held(device: Device, gate: Path) -> None:
    """Keep a device's dispatcher busy until the gate is there."""
    began = gate.with_name(f"{device.name} is busy")

    def stay(began: Path, gate: Path) -> None:
        began.touch()
        while not gate.exists():
            time.sleep(0.001)

    device.run(stay, began, gate)
    settle(began.exists)


def settle(predicate: Callable[[], bool]) -> None:
    """Poll until it holds."""
    until = time.monotonic() + LATE_S
    while not predicate():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.002)


def ones(lab: System, count: int = DEVICES) -> list[Any]:
    """Return a buffer on each device: 1, 2, … ."""
    return [one.put(np.full(3, 1.0 + i)) for i, one in enumerate(lab.devices[:count])]


def sums(lab: System, xs: list[Any], folder: str, timeout_s: float = WAIT, **by: Any) -> GroupReply:
    """Send the sum of these; `by` has what differs, by rank, as `stuck=[0]`."""
    way = by.pop("way", "poll")
    parts = [
        (x.device, SumAll(x, folder, way=way, **{name: r in ranks for name, ranks in by.items()}))
        for r, x in enumerate(xs)
    ]
    return lab.group(parts, timeout_s=timeout_s)


def begun(reply: GroupReply, *ranks: int) -> None:
    """Wait until these parts have begun."""
    settle(lambda: set(ranks) <= set(reply._began))


def stand_in(reply: GroupReply, folder: str, *, of: int, by: int) -> None:
    """Tell a rank what another has not told yet: the same as it has told itself."""
    mine, others = (Path(folder) / f"{reply.id}-{rank}.npy" for rank in (of, by))
    settle(mine.exists)
    others.write_bytes(mine.read_bytes())


def failure(reply: Any, timeout_s: float = SOON_S) -> AccelError:
    """Return what it fails with, soon."""
    with pytest.raises(AccelError) as caught:
        reply.result(timeout_s)
    return caught.value


def all_fail(reply: GroupReply) -> GroupAborted:
    """Return what all handles fail with, soon."""
    errors = [failure(one) for one in (reply, *reply.results)]
    first = errors[0]
    assert isinstance(first, GroupAborted)
    for other in errors:
        assert type(other) is type(first)
        assert vars(other).items() >= {n: getattr(first, n) for n in type(first).fields[1:]}.items()
    return first


def well(lab: System, folder: str, generations: list[int] | None = None) -> None:
    """See that all devices work, together too, in these generations."""
    if generations is not None:
        assert [one.generation for one in lab.devices] == generations
    reply = sums(lab, ones(lab), folder)
    for ref in reply.result(WAIT):
        np.testing.assert_array_equal(ref.get(), np.full(3, sum(range(1, DEVICES + 1))))


def generations(lab: System) -> list[int]:
    return [one.generation for one in lab.devices]


# What is asked for.


@pytest.mark.parametrize("way", WAYS)
def test_each_rank_has_the_sum(lab: System, folder: str, way: str) -> None:
    reply = sums(lab, ones(lab, 2), folder, way=way)
    twice = [ref * 2 for ref in reply.results]
    assert reply.result(WAIT) == reply.results
    for ref, double in zip(reply.results, twice, strict=True):
        np.testing.assert_array_equal(ref.get(), [3, 3, 3])
        np.testing.assert_array_equal(double.get(), [6, 6, 6])
    well(lab, folder)


def test_it_comes_soon(lab: System, folder: str) -> None:
    """The wires are read while somebody waits for one of them."""
    xs = ones(lab)
    sums(lab, xs, folder).result(WAIT)
    took = []
    for _ in range(20):
        began = time.monotonic()
        sums(lab, xs, folder).results[-1].result(WAIT)
        took.append(time.monotonic() - began)
    assert sorted(took)[10] < 0.04


def test_results_are_operands_of_the_next(lab: System, folder: str) -> None:
    xs = ones(lab)
    for _ in range(4):
        xs = list(sums(lab, xs, folder).results)
    total = sum(range(1, DEVICES + 1)) * DEVICES**3
    for x in xs:
        np.testing.assert_array_equal(x.get(), np.full(3, total))


def test_one_is_awaited(lab: System, folder: str) -> None:
    async def both() -> Any:
        reply = sums(lab, ones(lab, 2), folder)
        first = await reply.results[1]
        return first, await reply

    first, results = asyncio.run(both())
    assert results[1] is first
    np.testing.assert_array_equal(first.get(), [3, 3, 3])


def test_several_results_of_unknown_shape(lab: System, folder: str) -> None:
    xs = [one.put(np.array([-1.0, 4 + i, 2 + i])) for i, one in enumerate(lab.devices)]
    reply = lab.group({x.device: ExtremesAll(x, folder) for x in xs})
    least, greatest = reply.results[1]
    doubled = least * 2
    assert least.shape == (DEVICES,)
    np.testing.assert_array_equal(least.get(), np.arange(2.0, 2 + DEVICES))
    np.testing.assert_array_equal(doubled.get(), 2 * np.arange(2.0, 2 + DEVICES))
    np.testing.assert_array_equal(greatest.get(), [3 + DEVICES])


def test_an_answer_may_be_nothing(lab: System, folder: str) -> None:
    reply = lab.group([(one, Meet(folder)) for one in reversed(lab.devices)])
    assert reply.result(WAIT) == (None,) * DEVICES


def test_out_is_written_in_place(lab: System, folder: str) -> None:
    xs = ones(lab, 2)
    parts = [(x.device, SumAll(x, folder, out=x)) for x in xs]
    assert [ref.id for ref in lab.group(parts).results] == [x.id for x in xs]
    for x in xs:
        np.testing.assert_array_equal(x.get(), [3, 3, 3])


def test_one_device_may_be_alone(lab: System, folder: str) -> None:
    reply = sums(lab, ones(lab, 1), folder)
    np.testing.assert_array_equal(reply.results[0].get(), [1, 1, 1])


# What is refused at the call: nothing is sent to anybody.


def refused(lab: System, parts: Any, kind: type[AccelError], text: str) -> None:
    before = [entry.number for entry in lab.journal if entry.place is not None]
    with pytest.raises(kind, match=text):
        lab.group(parts)
    assert [entry.number for entry in lab.journal if entry.place is not None] == before
    settle(lambda: not any(one.in_flight for one in lab.devices))


def test_a_part_that_does_not_fit(lab: System, folder: str) -> None:
    x, y = ones(lab, 2)
    a, b = lab.devices[:2]
    good = SumAll(x, folder)
    refused(lab, {a: good, b: SumAll(y, folder, way="by post")}, InvalidArgument, "by post")
    refused(lab, {a: good, b: SumAll(x, folder)}, InvalidArgument, "is not on")
    refused(lab, {a: good, b: blas.Dot(y, y)}, InvalidArgument, r"Dot is a message to one device")
    refused(lab, [(a, good), (a, good)], InvalidArgument, "gets two parts")
    refused(lab, {}, InvalidArgument, "a message for each device")
    refused(lab, {a: good, b: y}, InvalidArgument, "gets a message, not a")
    refused(lab, {a: good, b: SumAll(y, "x" * (2 << 20))}, InvalidArgument, "SumAll takes")
    y.free()
    refused(lab, {a: good, b: SumAll(y, folder)}, StaleRef, "was freed")
    with System(BACKEND, 1) as other:
        refused(lab, {a: good, other.devices[0]: good}, InvalidArgument, "no device of this")
    well(lab, folder)


def test_a_part_is_not_sent_alone(lab: System, folder: str) -> None:
    (x,) = ones(lab, 1)
    for send in (x.device.ask, x.device.tell):
        with pytest.raises(InvalidArgument, match=r"lab\.group\(\{gpu0: SumAll\(…\)"):
            send(SumAll(x, folder))


def test_a_device_that_takes_nothing(lab: System, folder: str) -> None:
    xs = ones(lab, 2)
    with System(BACKEND, 2) as other:
        ys = [one.put(np.ones(3)) for one in other.devices]
    with pytest.raises(SystemClosed):
        other.group({y.device: SumAll(y, folder) for y in ys})
    del xs
    well(lab, folder)


def test_an_operand_that_was_never_made(lab: System, folder: str) -> None:
    xs = ones(lab)
    xs[1] = blas.dot(xs[1], xs[1]).reshape(1)
    never = lab.inject("library", 1)
    failure(never, WAIT)
    lost = sums(lab, ones(lab), folder, fails=[1])
    all_fail(lost)
    settle(lambda: not any(one.in_flight for one in lab.devices))
    before = [one.in_flight for one in lab.devices]
    reply = sums(lab, [xs[0], lost.results[1], *xs[2:]], folder)
    assert reply.done
    assert before == [one.in_flight for one in lab.devices]
    error = all_fail(reply)
    assert error.rank == 1
    assert isinstance(error.__cause__, DependencyFailed)
    well(lab, folder)


# What fails on one fails on all.


@pytest.mark.parametrize("way", WAYS)
def test_a_handler_that_raises(lab: System, folder: str, way: str) -> None:
    was = generations(lab)
    reply = sums(lab, ones(lab), folder, way=way, fails=[1])
    behind = [ref * 2 for ref in reply.results]
    error = all_fail(reply)
    assert type(error) is SumAborted
    assert (error.rank, error.device) == (1, lab.devices[1].name)
    assert "this rank cannot" in error.reason
    assert isinstance(error.__cause__, CannotSum)
    assert error.waited_s < SOON_S
    for ref in behind:
        cause = failure(ref)
        assert isinstance(cause, DependencyFailed)
        assert isinstance(cause.__cause__, GroupAborted | CannotSum)
    well(lab, folder, was)
    with pytest.raises(DependencyFailed):
        (reply.results[0] + 1).result(WAIT)


@three
def test_an_operand_that_fails_meanwhile(lab: System, folder: str) -> None:
    xs = ones(lab)
    bad = sums(lab, xs, folder, fails=[2])
    reply = sums(lab, [xs[0], xs[1], bad.results[2]], folder)
    error = all_fail(reply)
    assert error.rank == 2
    assert isinstance(error.__cause__, DependencyFailed)
    well(lab, folder)


def test_what_it_should_have_written_is_refused(lab: System, folder: str) -> None:
    xs = ones(lab, 2)
    parts = [(x.device, SumAll(x, folder, fails=r == 1, out=x)) for r, x in enumerate(xs)]
    reply = lab.group(parts)
    behind = [x * 2 for x in xs]
    for ref in behind:
        assert isinstance(failure(ref, WAIT), DependencyFailed)
    error = all_fail(reply)
    assert error.rank == 1
    np.testing.assert_array_equal(xs[0].get(), [1, 1, 1])  # whoever sends knows by now
    well(lab, folder)


@pytest.mark.parametrize("way", WAYS)
def test_a_context_that_is_killed(lab: System, folder: str, way: str) -> None:
    xs, was = ones(lab), generations(lab)
    pid = lab.devices[1].run(os.getpid).result(WAIT)
    os.kill(pid, signal.SIGSTOP)
    reply = sums(lab, xs, folder, way=way)
    begun(reply, *OTHERS)
    behind = reply.results[0] * 2
    os.kill(pid, signal.SIGKILL)
    error = all_fail(reply)
    assert (error.rank, error.missing) == (1, ())
    assert error.unfinished == OTHERS
    assert isinstance(error.__cause__, ContextLost)
    assert isinstance(failure(behind), DependencyFailed)
    for rank in OTHERS:  # the other contexts have been told
        settle((Path(folder) / f"aborted-{reply.id}-{rank}").exists)
    well(lab, folder, [was[0], was[1] + 1, *was[2:]])


def test_a_context_that_is_killed_when_its_part_is_done(
    lab: System, folder: str, gate: Path
) -> None:
    """It has answered, and the others have not."""
    xs = ones(lab, 2)
    held(lab.devices[1], gate)
    pid = lab.devices[0].run(os.getpid).result(WAIT)
    reply = lab.group({x.device: Meet(folder) for x in xs})
    begun(reply, 0)
    stand_in(reply, folder, of=0, by=1)
    settle(lambda: 0 in reply._ready)
    assert not reply.results[0].done
    os.kill(pid, signal.SIGKILL)
    error = all_fail(reply)
    assert (error.rank, error.missing) == (0, (1,))
    gate.touch()
    well(lab, folder)


def test_what_depends_on_a_part_that_was_done_fails_too(
    lab: System, folder: str, gate: Path
) -> None:
    """It has been computed, and nobody has seen it."""
    xs = ones(lab, 2)
    held(lab.devices[1], gate)
    pid = lab.devices[0].run(os.getpid).result(WAIT)
    reply = sums(lab, [xs[1], xs[0]], folder)
    begun(reply, 1)
    stand_in(reply, folder, of=1, by=0)
    behind = reply.results[1] * 2
    fetched, called = lab.devices[0].get(behind), lab.devices[0].run(np.sum, behind)
    settle(lambda: 1 in reply._ready)
    with pytest.raises(TimeoutError):
        fetched.result(0.2)
    lab.devices[1].replace()
    assert all_fail(reply).rank == 0
    for one in (behind, fetched, called):
        assert isinstance(failure(one), DependencyFailed)
    assert lab.devices[0].run(os.getpid).result(WAIT) == pid
    gate.touch()
    well(lab, folder)


def test_a_fork_ends_nothing(lab: System, folder: str, gate: Path) -> None:
    """Its copies of the handles fail there; the parts go on."""
    xs = ones(lab, 2)
    held(lab.devices[1], gate)
    reply = sums(lab, xs, folder)
    begun(reply, 0)
    child = os.fork()
    if not child:
        lost = [isinstance(one.error, SystemClosed) for one in (reply, *reply.results)]
        os._exit(0 if all(lost) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    gate.touch()
    for ref in reply.result(WAIT):
        np.testing.assert_array_equal(ref.get(), [3, 3, 3])


def test_a_part_that_never_comes(lab: System, folder: str, gate: Path) -> None:
    xs, was = ones(lab), generations(lab)
    held(lab.devices[1], gate)
    began = time.monotonic()
    reply = sums(lab, xs, folder, timeout_s=0.5)
    behind = reply.results[0] * 2
    with pytest.raises(SumAborted, match="had not begun") as caught:
        reply.result(WAIT)
    assert 0.5 <= time.monotonic() - began < 0.5 + SOON_S
    error = caught.value
    assert (error.rank, error.missing, error.unfinished) == (-1, (1,), OTHERS)
    assert 0.5 <= error.waited_s < 0.5 + SOON_S
    assert "0.5 s" in error.reason
    all_fail(reply)
    assert isinstance(failure(behind), DependencyFailed)
    gate.touch()
    well(lab, folder, was)
    assert not (Path(folder) / f"{reply.id}-1.npy").exists()  # its part was never begun


def test_waiting_in_a_queue_does_not_count(lab: System, folder: str, gate: Path) -> None:
    for device in lab.devices:
        held(device, gate)
    reply = sums(lab, ones(lab), folder, timeout_s=0.3)
    with pytest.raises(TimeoutError):
        reply.result(0.6)
    gate.touch()
    reply.result(WAIT)


@three
def test_a_busy_device_is_told_at_once(lab: System, folder: str, gate: Path) -> None:
    """Its part is done with when its dispatcher comes to it; the others wait for nothing."""
    xs, was = ones(lab), generations(lab)
    blocked = sums(lab, xs[:2], folder, way="handler")  # rank 0 of the next is busy in this
    held_up = sums(lab, [xs[0], xs[2]], folder, fails=[1])
    all_fail(held_up)
    blocked.result(WAIT)
    held(lab.devices[0], gate)
    reply = sums(lab, xs, folder, fails=[2])
    error = all_fail(reply)
    assert error.rank == 2
    gate.touch()
    well(lab, folder, was)


def test_a_handler_that_blocks_hears_of_it(lab: System, folder: str, gate: Path) -> None:
    """While its dispatcher can do nothing."""
    xs, was = ones(lab, 2), generations(lab)
    held(lab.devices[1], gate)
    reply = sums(lab, xs, folder, way="handler")
    begun(reply, 0)
    reply.cancel()
    settle((Path(folder) / f"aborted-{reply.id}-0").exists)
    np.testing.assert_array_equal(xs[0].get(), [1, 1, 1])
    gate.touch()
    well(lab, folder, was)


@pytest.mark.parametrize("way", WAYS)
def test_one_that_does_not_end_loses_its_context(
    lab: System, folder: str, gate: Path, way: str
) -> None:
    xs, was = ones(lab), generations(lab)
    held(lab.devices[1], gate)
    reply = sums(lab, xs, folder, way=way, stuck=[0], fails=[1])
    begun(reply, *OTHERS)
    gate.touch()
    assert all_fail(reply).rank == 1
    settle(lambda: lab.devices[0].generation == was[0] + 1)
    well(lab, folder, [was[0] + 1, *was[1:]])


def test_one_that_has_ended_keeps_its_context(lab: System, folder: str, gate: Path) -> None:
    """However long its dispatcher is busy with something else."""
    xs, was = ones(lab, 2), generations(lab)
    pid = lab.devices[1].run(os.getpid).result(WAIT)
    os.kill(pid, signal.SIGSTOP)
    reply = sums(lab, xs, folder)
    begun(reply, 0)
    held(lab.devices[0], gate)
    os.kill(pid, signal.SIGKILL)
    all_fail(reply)
    time.sleep(1.2)  # more than twice what it may take
    gate.touch()
    well(lab, folder, [was[0], was[1] + 1, *was[2:]])


# Taken back by whoever sent it.


@pytest.mark.parametrize("by", ["reply", "handle"])
def test_a_cancelled_one_is_on_no_device(lab: System, folder: str, gate: Path, by: str) -> None:
    xs, was = ones(lab), generations(lab)
    held(lab.devices[1], gate)
    reply = sums(lab, xs, folder)
    begun(reply, *OTHERS)
    behind = reply.results[0] * 2
    (reply if by == "reply" else reply.results[1]).cancel()
    for one in (reply, *reply.results):
        assert isinstance(failure(one), Cancelled)
    assert isinstance(failure(behind), DependencyFailed)
    gate.touch()
    well(lab, folder, was)
    lab.check()


def test_one_that_is_done_is_not_cancelled(lab: System, folder: str) -> None:
    reply = sums(lab, ones(lab), folder)
    reply.result(WAIT)
    reply.cancel()
    np.testing.assert_array_equal(reply.results[0].get(), np.full(3, sum(range(1, DEVICES + 1))))


def test_an_interrupt_takes_all_parts_back(lab: System, folder: str, gate: Path) -> None:
    xs, was = ones(lab), generations(lab)
    held(lab.devices[1], gate)
    reply = sums(lab, xs, folder)
    begun(reply, *OTHERS)
    began = time.monotonic()
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        reply.results[OTHERS[-1]].result(WAIT)
    assert time.monotonic() - began < 0.2 + SOON_S  # a cell whose work goes on waits for 3 s
    for one in (reply, *reply.results):
        assert isinstance(one.error, Cancelled)
    gate.touch()
    well(lab, folder, was)


def test_a_task_that_is_cancelled_takes_all_parts_back(
    lab: System, folder: str, gate: Path
) -> None:
    xs = ones(lab)
    held(lab.devices[1], gate)

    async def give_up() -> GroupReply:
        reply = sums(lab, xs, folder)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_awaited(reply), 0.2)
        return reply

    reply = asyncio.run(give_up())
    for one in (reply, *reply.results):
        assert isinstance(failure(one), Cancelled)
    gate.touch()
    well(lab, folder)


async def _awaited(reply: GroupReply) -> Any:
    return await reply


# Two senders.


def group_of(entry: Entry, device: Device) -> int:
    """Return the message of which an entry is the part of this device; 0 if it is none."""
    return entry.place.group if entry.place and entry.device == device.name else 0


def test_groups_come_in_one_order_to_all_devices(lab: System, folder: str) -> None:
    """Parts that wait in their handlers would wait for ever otherwise."""
    go = threading.Barrier(4)
    replies: list[GroupReply] = []

    def send(number: int) -> None:
        devices = lab.devices[:: 1 if number % 2 else -1]
        go.wait()
        for turn in range(25):
            parts = [(one, Meet(folder, f"{number}.{turn}")) for one in devices]
            replies.append(lab.group(parts, timeout_s=LATE_S))

    senders = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for one in senders:
        one.start()
    for one in senders:
        one.join()
    for reply in replies:
        reply.result(WAIT)
    ids = [reply.id for reply in replies]
    assert len(set(ids)) == 100
    orders = [
        [group for entry in lab.journal if (group := group_of(entry, one)) in ids]
        for one in lab.devices
    ]
    assert orders == [sorted(ids)] * DEVICES


@three
def test_one_that_waits_to_begin_is_not_overtaken(lab: System, folder: str, gate: Path) -> None:
    """By one whose operands are there: on the other device it comes second."""
    xs, ys = ones(lab, 2), ones(lab, 2)
    slow = SumAll(xs[0], folder)  # of this device alone
    first = lab.group({xs[0].device: slow, lab.devices[2]: SumAll(ones(lab)[2], folder)})
    del first
    pid = lab.devices[2].run(os.getpid).result(WAIT)
    os.kill(pid, signal.SIGSTOP)
    behind = lab.group(
        {xs[0].device: SumAll(xs[0], folder), lab.devices[2]: SumAll(ones(lab)[2], folder)}
    )
    begun(behind, 0)
    second = sums(lab, [behind.results[0], xs[1]], folder)
    third = sums(lab, ys, folder)
    begun(second, 1)
    begun(third, 1)
    lab.devices[0].ping().result(WAIT)
    assert 0 not in second._began
    assert 0 not in third._began
    os.kill(pid, signal.SIGCONT)
    second.result(WAIT)
    third.result(WAIT)
    assert second._began[0] <= third._began[0]


# The devices' own ends.


def test_closing_in_the_middle(folder: str, tmp_path: Path) -> None:
    lab = System(BACKEND, 2).ready()
    gate = tmp_path / "gate"
    xs = ones(lab, 2)
    held(lab.devices[1], gate)
    reply = sums(lab, xs, folder)
    begun(reply, 0)
    lab.close()
    for one in (reply, *reply.results):
        assert isinstance(failure(one), SystemClosed)


def test_replacing_in_the_middle(lab: System, folder: str, gate: Path) -> None:
    xs = ones(lab)
    held(lab.devices[1], gate)
    reply = sums(lab, xs, folder)
    begun(reply, *OTHERS)
    lab.devices[OTHERS[-1]].replace()
    assert all_fail(reply).rank == OTHERS[-1]
    gate.touch()
    well(lab, folder)


def test_a_suspended_device_comes_back_for_its_part(lab: System, folder: str) -> None:
    xs = ones(lab)
    lab.devices[1].suspend()
    reply = sums(lab, xs, folder)
    for ref in reply.result(WAIT):
        np.testing.assert_array_equal(ref.get(), np.full(3, sum(range(1, DEVICES + 1))))
    lab.devices[0].suspend()
    for ref in reply.results:
        np.testing.assert_array_equal(ref.get(), np.full(3, sum(range(1, DEVICES + 1))))


def test_a_queued_part_is_aborted_there(lab: System, folder: str) -> None:
    """What waits for a context is not forgotten, and what waits behind it fails."""
    xs = ones(lab, 2)
    lab.devices[1].suspend()
    out = lab.devices[0].put(np.zeros(3))
    parts = [
        (lab.devices[0], SumAll(xs[0], folder, fails=True, out=out)),
        (lab.devices[1], SumAll(xs[1], folder)),
    ]
    reply = lab.group(parts)
    behind = reply.results[1] * 2
    assert all_fail(reply).rank == 0
    assert isinstance(failure(behind, WAIT), DependencyFailed)
    well(lab, folder)


# What is kept of it.


def test_it_is_lost_on_fault_and_says_why(lab: System, folder: str) -> None:
    reply = sums(lab, ones(lab, 2), folder)
    a, b = reply.result(WAIT)
    assert a.durability == "lost on fault"
    assert "a message to several devices" in a.durability.why
    b.device.checkpoint(b).result(WAIT)
    assert b.durability == "checkpointed"
    for ref in (a, b):
        ref.device.replace()
    np.testing.assert_array_equal(b.get(), [3, 3, 3])
    with pytest.raises(StaleRef, match="a message to several devices"):
        a.get()
    well(lab, folder)


def test_the_journal_has_each_part(folder: str, tmp_path: Path) -> None:
    with System(BACKEND, 2, journal=tmp_path / "j.sqlite", results="digests") as lab:
        xs = ones(lab, 2)
        good = sums(lab, xs, folder)
        good.result(WAIT)
        ys = [one.put(np.array([1.0, 2.0])) for one in lab.devices]
        lab.group({y.device: ExtremesAll(y, folder) for y in ys}).result(WAIT)
        bad = sums(lab, xs, folder, fails=[1])
        all_fail(bad)
    journal = Journal.open(tmp_path / "j.sqlite")
    placed = [(entry.place.group, entry) for entry in journal if entry.place is not None]
    entries = [entry for _, entry in placed]
    # Which device tells first is chance.
    places = {(e.name, e.device): e.place for group, e in placed if group == good.id}
    names = [one.name for one in lab.devices]
    assert places == {("SumAll", n): (good.id, r, 2) for r, n in enumerate(names)}
    outcomes = {entry.device: entry for group, entry in placed if group == bad.id}
    assert f"rank 1 of 2 of group {bad.id}" in str(outcomes[names[1]])
    assert sorted(len(e.makes) for e in entries) == [1, 1, 1, 1, 2, 2]
    failed = outcomes[names[0]].failure
    assert failed is not None
    assert failed.kind == "SumAborted"
    assert failed.fields["rank"] == 1
    assert outcomes[names[1]].outcome.startswith("failed: CannotSum")
    assert "several devices" in entries[0].why
    with System(BACKEND, 2, journal=None) as other:
        report = journal.replay(other)
    assert report.ok, report
    assert len(report.not_run) >= 4


def test_a_failure_is_told_of_once(lab: System, folder: str) -> None:
    reply = sums(lab, ones(lab), folder, fails=[1])
    settle(lambda: bool(reply.done))
    with pytest.raises(SumAborted):
        lab.check()
    lab.check()


def test_views_can_link_the_parts(lab: System, folder: str) -> None:
    lab.look(memory=False, work=True)
    with lab.closely():
        ranks: dict[int, set[tuple[int, int]]] = {}

        def linked() -> bool:
            sums(lab, ones(lab), folder).result(WAIT)
            work = [one for one in lab.look(memory=False, work=True) if isinstance(one, WorkTraced)]
            for one in work:
                for group, rank, size in filter(None, (each.place for each in one.done)):
                    ranks.setdefault(group, set()).add((rank, size))
            return {(rank, DEVICES) for rank in range(DEVICES)} in ranks.values()

        settle(linked)


@three
def test_a_deadline_that_passes_replaces_no_context(lab: System, folder: str, gate: Path) -> None:
    was = generations(lab)
    xs = ones(lab)
    held(lab.devices[2], gate)
    for _ in range(3):
        reply = sums(lab, xs[1:], folder, timeout_s=0.1)
        assert not isinstance(failure(reply, WAIT), DeadlineExceeded)
    gate.touch()
    well(lab, folder, was)
