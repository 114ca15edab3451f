"""Batches against a plain simulation, and on devices that are killed."""

import asyncio
import threading
import time
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import Device, System
from accel_lab.actor.actor import ActorRef
from accel_lab.blueprints.patterns import (
    DynamicBatchingServer,
    Infer,
    PatternDecided,
    RequestExpired,
    WrongAnswer,
    stage,
)
from accel_lab.errors import (
    AccelError,
    ActorFailed,
    ActorStopped,
    Cancelled,
    ContextLost,
    InvalidArgument,
    QueueFull,
    StageFailed,
)
from accel_lab.testing import Bench, Faults
from tests.blueprints.patterns.load import adds_up, load


def doubled(values: list[Any]) -> list[Any]:
    return [2 * one for one in values]


def batches(server: DynamicBatchingServer) -> list[tuple[tuple[int, ...], str]]:
    return [(one.requests, one.why) for one in server.decisions if one.decision == "batch"]


def simulated(
    arrivals: list[int], max_batch: int, max_wait: int, takes: int, hands: int
) -> list[tuple[int, tuple[int, ...]]]:
    """Walk through time tick by tick; return when each batch begins, and whom it has."""
    waiting: list[int] = []
    busy: list[int] = []
    begun: list[tuple[int, tuple[int, ...]]] = []
    tick = 0
    while tick <= max(arrivals) or waiting:
        busy = [end for end in busy if end > tick]
        waiting += [number for number, at in enumerate(arrivals, 1) if at == tick]
        while waiting and len(busy) < hands:
            oldest = tick - arrivals[waiting[0] - 1]
            if len(waiting) < max_batch and oldest < max_wait:
                break
            begun.append((tick, tuple(waiting[:max_batch])))
            waiting = waiting[max_batch:]
            busy.append(tick + takes)
        tick += 1
    return begun


@settings(max_examples=40)
@given(
    gaps=st.lists(st.integers(0, 6), min_size=1, max_size=25),
    max_batch=st.integers(1, 5),
    max_wait=st.integers(1, 8),
    takes=st.integers(1, 12),
    hands=st.integers(1, 3),
)
def test_batches_are_those_of_a_plain_simulation(
    gaps: list[int], max_batch: int, max_wait: int, takes: int, hands: int
) -> None:
    # Arrivals, ends and deadlines never fall on one tick, where their order would be anybody's.
    arrivals = [100 * at for at in np.cumsum(gaps).tolist()]
    max_wait, takes = 100 * max_wait + 50, 100 * takes + 1
    seen: list[tuple[int, tuple[int, ...]]] = []
    with Bench() as bench:

        def call(values: list[int]) -> list[int]:
            seen.append((round(bench.clock.now() - takes), tuple(values)))
            return doubled(values)

        server = DynamicBatchingServer(
            bench,
            bench.stage(call, seconds=takes, parallelism=hands),
            max_batch=max_batch,
            max_wait_s=max_wait,
        )
        replies = []
        for number, at in enumerate(arrivals, 1):
            bench.run(at - bench.clock.now())
            replies.append(server.ask(number))
            if number == len(arrivals) or arrivals[number] != at:
                bench.run()
        answers = [bench.answer(one) for one in replies]
        found = server.statistics
    assert answers == [2 * number for number in range(1, len(arrivals) + 1)]
    assert sorted(seen) == sorted(simulated(arrivals, max_batch, max_wait, takes, hands))
    assert adds_up(found)
    assert found.members == len(arrivals)


def test_a_batch_begins_when_it_is_full_and_when_one_has_waited_and_when_flushed(
    bench: Bench,
) -> None:
    server = DynamicBatchingServer(bench, bench.stage(doubled), max_batch=2, max_wait_s=5)
    first = [server.ask(n) for n in range(3)]
    bench.run()
    assert [one.done for one in first] == [True, True, False]
    bench.run(4.999)
    assert not first[2].done
    bench.run(0.001)
    assert first[2].result(0) == 4
    late = server.ask(7)
    assert bench.answer(server.flush_now()) == 1
    assert late.result(0) == 14
    assert batches(server) == [((1, 2), "full"), ((3,), "waited"), ((4,), "flushed")]
    assert bench.events.history(PatternDecided)[0].pattern == "doubled"


@pytest.mark.parametrize(
    "returned", [[1], [1, 2, 3], "ab", {0: 1, 1: 2}, 5, None, np.float64(1)], ids=repr
)
def test_a_wrong_length_answer_fails_each_member_and_nothing_else(
    bench: Bench, returned: Any
) -> None:
    calls: list[int] = []

    def wrong_once(values: list[int]) -> Any:
        calls.append(1)
        return returned if len(calls) == 1 else doubled(values)

    server = DynamicBatchingServer(bench, bench.stage(wrong_once), max_batch=2)
    replies = [server.ask(n) for n in range(4)]
    bench.run(1)
    for one in replies[:2]:
        with pytest.raises(WrongAnswer, match="2 answers") as caught:
            one.result(0)
        assert caught.value.expected == "sequence of 2 answers, one for each request"
    assert [one.result(0) for one in replies[2:]] == [4, 6]
    assert server.statistics.failed == 2
    assert adds_up(server.statistics)
    assert server.ref.restarts == 0


def test_an_exception_in_place_of_an_answer_fails_that_request_alone(bench: Bench) -> None:
    def some(values: list[int]) -> list[Any]:
        return [ValueError("odd") if one % 2 else one for one in values]

    server = DynamicBatchingServer(bench, bench.stage(some), max_batch=3)
    replies = [server.ask(n) for n in range(3)]
    bench.run(1)
    assert (replies[0].result(0), replies[2].result(0)) == (0, 2)
    with pytest.raises(StageFailed, match="ValueError: odd") as caught:
        replies[1].result(0)
    assert (caught.value.item, caught.value.stage) == (2, "some")


def test_an_error_of_the_function_fails_its_batch_and_a_fault_runs_it_again(bench: Bench) -> None:
    script = Faults({1: ContextLost("gone"), 3: KeyError("mine")})
    server = DynamicBatchingServer(bench, bench.stage(script.into(doubled)), max_batch=2)
    replies = [server.ask(n) for n in range(4)]
    bench.run(1)
    assert [one.result(0) for one in replies[:2]] == [0, 2]
    for one in replies[2:]:
        with pytest.raises(StageFailed, match="mine"):
            one.result(0)
    assert (server.statistics.reruns, script.struck) == (1, [1, 3])


def test_a_fault_is_met_as_often_as_retries_say(bench: Bench) -> None:
    always = Faults({n: ContextLost("gone") for n in range(1, 20)})
    server = DynamicBatchingServer(bench, bench.stage(always.into(doubled), retries=2))
    with pytest.raises(StageFailed, match="failed 3 times on request 1: ContextLost") as caught:
        bench.answer(server.ask(1))
    assert isinstance(caught.value.__cause__, ContextLost)
    once = Faults({1: ContextLost("gone")})
    unsafe = bench.stage(once.into(doubled), repeatable=False)
    with pytest.raises(StageFailed):
        bench.answer(DynamicBatchingServer(bench, unsafe).ask(1))
    assert once.calls == 1


def test_what_has_more_priority_goes_first_and_else_in_order(bench: Bench) -> None:
    seen: list[list[int]] = []

    def note(values: list[int]) -> list[int]:
        seen.append(values)
        return values

    server = DynamicBatchingServer(bench, bench.stage(note, seconds=1), max_batch=2, max_wait_s=0)
    replies = [server.ask(0)]
    bench.run(0.5)
    replies += [server.ask(n, priority=n % 3) for n in range(1, 7)]
    for one in replies:
        bench.answer(one)
    assert seen == [[0], [2, 5], [1, 4], [3, 6]]


def test_a_request_has_its_answer_or_an_error_by_its_deadline(bench: Bench) -> None:
    server = DynamicBatchingServer(bench, bench.stage(doubled, seconds=3), max_wait_s=1)
    mate, running = server.ask(1), server.ask(1, timeout_s=2)
    bench.run(1.5)
    waiting = server.ask(2, timeout_s=2)
    bench.run(0.499)
    assert not running.done
    bench.run(0.001)
    with pytest.raises(RequestExpired, match="runs still") as caught:
        running.result(0)
    assert caught.value.began
    assert caught.value.waited_s == pytest.approx(2)
    bench.run(1.5)
    with pytest.raises(RequestExpired, match="not begun") as caught:
        waiting.result(0)
    assert not caught.value.began
    assert bench.answer(mate) == 2
    assert bench.answer(server.ask(3)) == 6
    assert server.statistics.expired == 2
    assert adds_up(server.statistics)


def test_one_with_a_deadline_waits_for_others_half_its_time(bench: Bench) -> None:
    server = DynamicBatchingServer(bench, bench.stage(doubled, seconds=0.5), max_wait_s=60)
    assert bench.answer(server.ask(1, timeout_s=2)) == 2
    assert bench.clock.now() == pytest.approx(1.5)


def test_a_request_that_is_cancelled_leaves_its_batch_wherever_it_is(bench: Bench) -> None:
    seen: list[list[int]] = []

    def note(values: list[int]) -> list[int]:
        seen.append(values)
        return values

    server = DynamicBatchingServer(bench, bench.stage(note, seconds=2), max_batch=2, max_wait_s=1)
    early, queued, mate = server.ask(0), server.ask(1), server.ask(2)
    early.cancel()  # still in the mailbox
    bench.run(0.5)
    assert server.statistics.running == 2
    queued.cancel()
    bench.run()
    for one in (early, queued):
        with pytest.raises(Cancelled):
            one.result(0)
    assert bench.answer(mate) == 2
    waiting = server.ask(3)
    bench.run(0.5)
    waiting.cancel()
    bench.run(10)
    assert seen == [[1, 2]]
    assert waiting.failed
    found = server.statistics
    assert (found.asked, found.cancelled, found.answered) == (3, 2, 1)


def test_a_call_that_nobody_waits_for_is_taken_back(bench: Bench) -> None:
    server = DynamicBatchingServer(bench, bench.stage(doubled, seconds=float("inf")), max_wait_s=0)
    lost = [server.ask(n) for n in range(3)]
    bench.run()
    for one in lost:
        one.cancel()
    bench.run()
    assert all(one.failed for one in lost)
    with pytest.raises(TimeoutError):
        bench.answer(server.ask(1), seconds=1)  # its call never ends, and yet it began
    assert (server.statistics.calls, server.statistics.running) == (2, 1)


# What becomes of too many.


def full(bench: Bench, **options: Any) -> tuple[DynamicBatchingServer, list[Any]]:
    slow = bench.stage(doubled, seconds=1)
    server = DynamicBatchingServer(bench, slow, max_batch=1, max_wait_s=0, capacity=2, **options)
    replies = [server.ask(n) for n in range(3)]
    bench.run()
    assert (server.statistics.running, server.statistics.waiting) == (1, 2)
    return server, replies


def test_one_too_many_is_rejected(bench: Bench) -> None:
    server, replies = full(bench)
    with pytest.raises(QueueFull, match="2 of 2"):
        bench.answer(server.ask(9))
    assert [bench.answer(one) for one in replies] == [0, 2, 4]
    assert server.statistics.refused == 1


def test_the_oldest_of_least_priority_gives_way(bench: Bench) -> None:
    server, replies = full(bench, overflow="drop_oldest")
    kept = server.ask(9, priority=1)
    bench.run()
    with pytest.raises(QueueFull, match="dropped it for request 4"):
        replies[1].result(0)
    lower = server.ask(5, priority=-1)
    bench.run()
    assert isinstance(lower.error, QueueFull)
    assert [bench.answer(one) for one in (replies[0], kept, replies[2])] == [0, 18, 4]
    assert adds_up(server.statistics)


def test_who_waits_for_room_gets_it_in_order_or_is_told(bench: Bench) -> None:
    server, replies = full(bench, overflow="wait", wait_s=1.5)
    more = [server.ask(n) for n in range(3, 6)]
    bench.run(1.4)
    assert server.statistics.waiting == 4
    assert [bench.answer(one) for one in (*replies, more[0])] == [0, 2, 4, 6]
    for one in more[1:]:
        with pytest.raises(QueueFull, match=r"within 1\.5 s"):
            bench.answer(one)
    assert adds_up(server.statistics)


@settings(max_examples=30)
@given(
    script=st.lists(
        st.tuples(
            st.sampled_from(["ask", "cancel", "run", "flush"]),
            st.integers(0, 9),
            st.sampled_from([None, 1.0, 4.0]),
        ),
        max_size=40,
    ),
    overflow=st.sampled_from(["reject", "drop_oldest", "wait"]),
    faulty=st.sets(st.integers(1, 12)),
)
def test_each_request_is_answered_once_and_counted_once(
    script: list[tuple[str, int, float | None]], overflow: Any, faulty: set[int]
) -> None:
    faults = Faults({n: ContextLost("gone") if n % 2 else KeyError(n) for n in faulty})
    with Bench() as bench:
        server = DynamicBatchingServer(
            bench,
            bench.stage(faults.into(doubled), seconds=2, parallelism=2),
            max_batch=3,
            max_wait_s=1,
            capacity=4,
            overflow=overflow,
            wait_s=3,
            bucket=lambda value: value % 2,
        )
        replies: list[tuple[int, Any]] = []
        told: list[int] = []
        for what, number, timeout_s in script:
            if what == "ask":
                reply = server.ask(number, priority=number % 3, timeout_s=timeout_s)
                reply.add_waiter(partial(told.append, len(replies)))
                replies.append((number, reply))
            elif what == "cancel" and replies:
                replies[number % len(replies)][1].cancel()
            elif what == "flush":
                server.flush_now()
            bench.run(number / 4 if what == "run" else 0)
            assert adds_up(server.statistics)
        bench.run(100)
        found = server.statistics
    assert sorted(told) == list(range(len(replies)))
    for number, reply in replies:
        if reply.error is None:
            assert reply.result(0) == 2 * number
        else:
            kinds = StageFailed, Cancelled, QueueFull, RequestExpired
            assert isinstance(reply.error, kinds), reply.error
    assert found.waiting == found.running == 0
    assert adds_up(found)


# How values are put together.


def test_values_of_one_shape_are_stacked(bench: Bench) -> None:
    shapes: list[tuple[int, ...]] = []

    def total(stacked: Any) -> Any:
        shapes.append(stacked.shape)
        return stacked.sum(axis=1)

    server = DynamicBatchingServer(bench, bench.stage(total), stack=True, max_wait_s=1)
    values = [np.arange(3.0), np.arange(5.0), np.ones(3)]
    replies = [server.ask(one) for one in values]
    bench.run(1)
    assert [one.result(0) for one in replies] == [3.0, 10.0, 3.0]
    assert sorted(shapes) == [(1, 5), (2, 3)]
    with pytest.raises(InvalidArgument, match="object"):
        bench.answer(server.ask(object()))
    assert server.ref.restarts == 0


@given(lengths=st.lists(st.integers(0, 8), min_size=1, max_size=8))
def test_padding_changes_no_answer(lengths: list[int]) -> None:
    def running(padded: tuple[Any, Any]) -> Any:
        array, sizes = padded
        for row, size in zip(array, sizes, strict=True):
            assert (row[size:] == -7).all()
        return np.cumsum(array, axis=1)

    with Bench() as bench:
        server = DynamicBatchingServer(
            bench, bench.stage(running), pad_to=(2, 4, 8), pad_value=-7, cut=True, max_wait_s=1
        )
        values = [np.arange(length, dtype=np.int64) + 1 for length in lengths]
        replies = [server.ask(one) for one in values]
        bench.run(1)
        for value, reply in zip(values, replies, strict=True):
            np.testing.assert_array_equal(reply.result(0), np.cumsum(value))
        with pytest.raises(InvalidArgument, match="at most 8"):
            bench.answer(server.ask(np.zeros(9)))
        sizes = [len(one.requests) for one in server.decisions if one.decision == "batch"]
    buckets = [min(size for size in (2, 4, 8) if size >= length) for length in lengths]
    assert sorted(sizes) == sorted(buckets.count(one) for one in set(buckets))


def test_a_bucket_of_the_users_that_raises_fails_that_request_alone(bench: Bench) -> None:
    server = DynamicBatchingServer(bench, bench.stage(doubled), bucket=lambda one: one["kind"])
    good, bad = server.ask({"kind": 1}), server.ask(5)
    bench.run(1)
    with pytest.raises(InvalidArgument, match="TypeError"):
        bad.result(0)
    assert good.done
    lists: Any = lambda one: [one]  # noqa: E731 - no bucket, as a type checker would say
    unhashable = DynamicBatchingServer(bench, bench.stage(doubled), bucket=lists)
    with pytest.raises(InvalidArgument, match="unhashable"):
        bench.answer(unhashable.ask(1))
    assert adds_up(unhashable.statistics)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_batch": 0}, "max_batch is a whole number of at least 1"),
        ({"max_wait_s": -1}, "max_wait_s"),
        ({"capacity": 0}, "capacity"),
        ({"overflow": "explode"}, "overflow"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"cut": True}, "pad_to"),
        ({"pad_to": [0]}, "pad_to"),
    ],
)
def test_a_bad_option_is_refused(bench: Bench, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        DynamicBatchingServer(bench, doubled, **options)
    with pytest.raises(InvalidArgument, match="async"):

        @stage
        async def later(values: Any) -> Any:
            return values


# Streams.


def test_what_a_function_yields_is_streamed_to_each(lab: System) -> None:
    def counting(values: list[int]) -> Any:
        for n in range(3):
            yield [one * 10 + n for one in values]

    with DynamicBatchingServer(lab, counting, max_batch=2) as server:
        streams = [server.stream(1), server.stream(2)]
        assert [list(one) for one in streams] == [[10, 11, 12], [20, 21, 22]]
        assert streams[0].reply.result() == [10, 11, 12]
        assert list(server.stream(5)) == [50, 51, 52]
        plain = DynamicBatchingServer(lab, doubled)
        assert list(plain.stream(4)) == [8]

        async def awaited() -> list[int]:
            return [part async for part in server.stream(3)]

        assert asyncio.run(awaited()) == [30, 31, 32]


def test_a_stream_ends_as_its_request_does(lab: System) -> None:
    def breaks(values: list[int]) -> Any:
        yield values
        raise KeyError("broken")

    with DynamicBatchingServer(lab, breaks) as server:
        parts = []
        with pytest.raises(StageFailed, match="broken"):
            parts += list(iter(server.stream(3)))
        found = iter(server.stream(3))
        assert next(found) == 3
        with pytest.raises(StageFailed):
            next(found)


# On devices.


def on_device(values: list[int]) -> list[int]:
    return [one * one for one in values]


def square(device: Device, values: list[int]) -> Any:
    return device.run(on_device, values)


def test_each_request_is_answered_once_while_contexts_are_killed(lab: System) -> None:
    faults = Faults({4: "kill", 12: "kill"})
    served = stage(devices=lab, retries=5)(faults.into(square))
    with DynamicBatchingServer(lab, served, max_batch=8, max_wait_s=0.002) as server:
        found = load(server.ask, 200)
        assert found == {n: n * n for n in range(200)}
        assert faults.struck == [4, 12]
        counted = server.statistics
        assert counted.answered == 200
        assert counted.reruns >= 2
        tree = lab.tree()
        assert tree.in_flight == sum(one.in_flight for one in tree.children[:2]), "counted once"
        node = next(one for one in tree.walk() if one.name == "square")
        assert "200 answered" in node.detail
        assert "reruns" in node.detail
    lab.check()


def test_arrays_on_a_device_are_fetched_and_split(lab: System) -> None:
    @stage(devices=lab.devices[0])
    class Model:
        def __init__(self, device: Device) -> None:
            self.device = device
            self.weights = device.put(np.eye(4) * 3)

        def __call__(self, stacked: Any) -> Any:
            return self.device.run(lambda x, w: x @ w, self.device.put(stacked), self.weights)

    with DynamicBatchingServer(lab, Model, stack=True) as server:
        values = [np.full(4, float(n)) for n in range(6)]
        replies = [server.ask(one) for one in values]
        for value, reply in zip(values, replies, strict=True):
            np.testing.assert_array_equal(reply.result(), 3 * value)


def test_max_wait_is_kept_to_a_tenth(lab: System) -> None:
    """The least of several times: this machine may be busy with something else."""
    with DynamicBatchingServer(lab, doubled, max_wait_s=0.0125) as server:
        server.ask(0).result()
        took = []
        for _ in range(12):
            begun = time.perf_counter()
            server.ask(1).result()
            took.append(time.perf_counter() - begun)
    assert 0.0125 <= min(took) < 1.1 * 0.0125


def test_a_pattern_stands_behind_another_one(lab: System) -> None:
    with (
        DynamicBatchingServer(lab, doubled, name="inner") as inner,
        DynamicBatchingServer(
            lab, stage(inline=True)(lambda values: [inner.ask(one) for one in values]), name="outer"
        ) as outer,
    ):
        assert [one.result() for one in [outer.ask(n) for n in range(5)]] == [0, 2, 4, 6, 8]


def test_closing_answers_what_it_holds_and_leaves_no_thread(lab: System) -> None:
    gate = threading.Event()

    def held(values: list[int]) -> list[int]:
        assert gate.wait(30)
        return values

    server = DynamicBatchingServer(lab, held, max_batch=1)
    replies = [server.ask(n) for n in range(3)]
    while server.statistics.running < 1:
        time.sleep(0.001)
    server.close()
    for one in replies:
        with pytest.raises(ActorStopped):
            one.result(10)
    gate.set()
    with pytest.raises(ActorStopped):
        server.ask(1).result(10)
    assert adds_up(server.statistics)


def test_closing_interrupts_what_runs_on_a_device(lab: System) -> None:
    server = DynamicBatchingServer(lab, stage(devices=lab.devices[0])(endless), max_batch=1)
    reply = server.ask(1)
    while not lab.devices[0].in_flight:
        time.sleep(0.001)
    server.close()
    with pytest.raises(ActorStopped):
        reply.result(10)
    assert lab.devices[0].run(abs, -2).result(30) == 2


def endless(device: Device, values: list[int]) -> Any:
    del values
    return device.run(time.sleep, 3600)


def test_an_error_of_the_pattern_itself_fails_what_it_holds_and_restarts_it(bench: Bench) -> None:
    """As if its own code were wrong: its table of queues is broken by hand."""
    server = DynamicBatchingServer(bench, bench.stage(doubled), max_wait_s=5)
    held = server.ask(1)
    bench.run()
    actor = _instance(server.ref)
    actor._batcher._lanes = None
    broken = server.ask(2)
    bench.run()
    for one in (held, broken):
        assert isinstance(one.error, ActorFailed), one
    assert server.ref.restarts == 1
    assert bench.answer(server.ask(3)) == 6
    assert adds_up(server.statistics)


def _instance(ref: ActorRef[Any]) -> Any:
    return ref._cell._instance


def test_its_actor_takes_its_typed_messages(bench: Bench) -> None:
    server = DynamicBatchingServer(bench, bench.stage(doubled))
    assert bench.answer(server.ref.ask(Infer(4, timeout_s=9))) == 8


def test_two_of_one_name_are_told_apart(bench: Bench) -> None:
    names = [DynamicBatchingServer(bench, bench.stage(doubled)).name for _ in range(3)]
    assert names == ["doubled", "doubled 2", "doubled 3"]


def test_an_open_system_waits_at_its_end_for_what_was_asked() -> None:
    with System("host") as lab:
        server = DynamicBatchingServer(lab, doubled, max_wait_s=0.1)
        reply = server.ask(4)
    assert reply.result(0) == 8


async def test_cancelling_an_await_takes_the_request_back(lab: System) -> None:
    with DynamicBatchingServer(lab, doubled, max_wait_s=30) as server:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(_awaited(server), 0.05)
        until = time.monotonic() + 10
        while not server.statistics.cancelled:
            assert time.monotonic() < until
            await asyncio.sleep(0.005)


async def _awaited(server: DynamicBatchingServer) -> Any:
    return await server.ask(1)


def test_errors_are_typed() -> None:
    assert issubclass(RequestExpired, TimeoutError)
    assert issubclass(WrongAnswer, AccelError)
