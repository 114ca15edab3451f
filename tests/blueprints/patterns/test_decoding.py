"""Sequences that join and leave one batch between its steps."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import Device, System
from accel_lab.blueprints.patterns import (
    END,
    DecodingServer,
    FairShareScheduler,
    Last,
    ModelReplicaPool,
    RequestExpired,
    Sequence,
    Stage,
    WrongAnswer,
    stage,
)
from accel_lab.errors import Cancelled, ContextLost, InvalidArgument, StageFailed
from accel_lab.testing import Bench, Faults
from tests.blueprints.patterns.load import adds_up, load
from tests.faults.conftest import settle


def counting(sequences: list[Sequence]) -> list[Any]:
    """Give value, value + 1, …; a cache in memory says how many are there."""
    parts: list[Any] = []
    for one in sequences:
        known = one.memory.setdefault("seen", len(one.parts))
        assert known == len(one.parts)
        one.memory["seen"] += 1
        parts.append(one.value + known)
    return parts


def plain(wants: list[tuple[int, int]], most: int) -> list[int]:
    """Return after which step each of (arrives before step, length) is done, in a plain loop."""
    left = [length for _, length in wants]
    active: list[int] = []
    done = [0] * len(wants)
    step = 0
    while any(left):
        arrived = [n for n, (at, _) in enumerate(wants) if at <= step and left[n]]
        active += [n for n in arrived if n not in active][: most - len(active)]
        step += 1
        for n in active:
            left[n] -= 1
            if not left[n]:
                done[n] = step
        active = [n for n in active if left[n]]
    return done


@settings(max_examples=40)
@given(
    wants=st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), min_size=1, max_size=10),
    most=st.integers(1, 4),
)
def test_sequences_join_and_leave_as_in_a_plain_loop(
    wants: list[tuple[int, int]], most: int
) -> None:
    wants = sorted((max(1, at) if n else 0, length) for n, (at, length) in enumerate(sorted(wants)))
    sizes: list[int] = []
    with Bench() as bench:

        def step(sequences: list[Sequence]) -> list[Any]:
            sizes.append(len(sequences))
            return counting(sequences)

        server = DecodingServer(bench, bench.stage(step, seconds=1), max_active=most)
        replies, ends = [], []
        for number, (at, length) in enumerate(wants):
            bench.run(max(0.0, at - 0.5 - bench.clock.now()))
            reply = server.ask(100 * number, limit=length)
            reply.add_waiter(lambda: ends.append(bench.clock.now()))
            replies.append(reply)
        answers = [bench.answer(one) for one in replies]
        first_gap = any(
            at > 0 and at > max(plain(wants[:n], most)) for n, (at, _) in enumerate(wants) if n
        )
    assert answers == [
        [100 * number + n for n in range(length)] for number, (_, length) in enumerate(wants)
    ]
    assert max(sizes) <= most
    assert sum(sizes) == sum(length for _, length in wants)
    if not first_gap:  # else the steps begin anew, at half a second
        assert sorted(ends) == sorted(map(float, plain(wants, most)))


def test_parts_are_streamed_after_each_step(bench: Bench) -> None:
    server = DecodingServer(bench, bench.stage(counting, seconds=1))
    stream = server.stream(5, limit=3)
    parts = iter(stream)
    bench.run(1)
    assert next(parts) == 5
    bench.run(2)
    assert list(parts) == [6, 7]
    assert stream.reply.result(0) == [5, 6, 7]


def test_a_step_says_where_a_sequence_ends(bench: Bench) -> None:
    def step(sequences: list[Sequence]) -> list[Any]:
        ends = {1: END, 2: Last("bye"), 3: ValueError("odd")}
        return [ends.get(one.value, "x") if one.parts else "x" for one in sequences]

    server = DecodingServer(bench, bench.stage(step), limit=4)
    replies = [server.ask(n) for n in range(4)]
    bench.run(1)
    assert [one.result(0) for one in replies[:3]] == [["x"] * 4, ["x"], ["x", "bye"]]
    with pytest.raises(StageFailed, match="odd"):
        replies[3].result(0)
    assert adds_up(server.statistics)


def test_who_is_cancelled_or_late_leaves_after_the_step(bench: Bench) -> None:
    sizes: list[int] = []

    def step(sequences: list[Sequence]) -> list[Any]:
        sizes.append(len(sequences))
        return counting(sequences)

    server = DecodingServer(bench, bench.stage(step, seconds=1), max_active=3)
    kept, late, gone = server.ask(0, limit=4), server.ask(0, timeout_s=1.5), server.ask(0)
    waiting = server.ask(7, limit=1)
    bench.run(1.4)
    gone.cancel()
    assert bench.answer(kept) == [0, 1, 2, 3]
    assert bench.answer(waiting) == [7]
    assert isinstance(gone.error, Cancelled)
    assert isinstance(late.error, RequestExpired)
    assert sizes == [1, 3, 2, 1]


def test_a_fault_empties_the_memories_and_gives_no_part_twice(bench: Bench) -> None:
    faults = Faults({3: ContextLost("gone"), 6: ContextLost("gone")})
    seen: list[bool] = []

    def step(sequences: list[Sequence]) -> list[Any]:
        seen.append("seen" in sequences[0].memory)
        return counting(sequences)

    server = DecodingServer(bench, bench.stage(faults.into(step)))
    stream = server.stream(0, limit=5)
    bench.run(1)
    assert list(stream) == [0, 1, 2, 3, 4]
    assert server.statistics.reruns == 2
    assert seen == [False, True, False, True, False]


@pytest.mark.parametrize("returned", [[], [1, 2], 3, None])
def test_a_step_of_another_length_fails_the_active_ones_alone(bench: Bench, returned: Any) -> None:
    calls: list[int] = []

    def step(sequences: list[Sequence]) -> Any:
        calls.append(len(sequences))
        return returned if len(calls) == 1 else counting(sequences)

    server = DecodingServer(bench, bench.stage(step), max_active=1, limit=2)
    wrong, right = server.ask(1), server.ask(5)
    bench.run(1)
    with pytest.raises(WrongAnswer, match="sequence of 1 parts"):
        wrong.result(0)
    assert right.result(0) == [5, 6]


def test_what_has_more_priority_joins_first(bench: Bench) -> None:
    server = DecodingServer(bench, bench.stage(counting, seconds=1), max_active=1, limit=1)
    ends: list[int] = []
    for n in range(5):
        server.ask(n, priority=n % 2).add_waiter(lambda n=n: ends.append(n))  # type: ignore[misc]
    bench.run(10)
    assert ends == [0, 1, 3, 2, 4]


def test_a_step_has_one_device_at_most(lab: System) -> None:
    with pytest.raises(InvalidArgument, match="cpu0, cpu1"):
        DecodingServer(lab, stage(devices=lab)(counting))
    with pytest.raises(InvalidArgument, match="limit"):
        DecodingServer(lab, counting, limit=0)


def run_step(states: Any, fed: list[int]) -> Any:
    """Add what each was fed to its state; in a context."""
    return states + np.array(fed)


class Adder:
    """A decoder with its state on the device: it gives the sums of what it has given so far."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def __call__(self, sequences: list[Sequence]) -> list[int]:
        sums = []
        for one in sequences:
            if "state" not in one.memory:
                one.memory["state"] = self.device.put(np.array([one.value + sum(one.parts)]))
            state, fed = one.memory["state"], one.parts[-1:] if "fed" in one.memory else [0]
            one.memory["fed"] = True
            one.memory["state"] = self.device.run(run_step, state, fed)
            sums.append(self.device.get(one.memory["state"]))
        return [int(one.result()[0]) for one in sums]


def adder(value: int, count: int) -> list[int]:
    parts: list[int] = []
    for _ in range(count):
        parts.append(value + sum(parts))
    return parts


def test_each_sequence_is_whole_while_contexts_are_killed(lab: System) -> None:
    faults = Faults({5: "kill", 11: "kill"})

    class Struck(Adder):
        def __call__(self, sequences: list[Sequence]) -> list[int]:
            called = faults.into(lambda _, given: Adder.__call__(self, given))
            parts: list[int] = called(self.device, sequences)
            return parts

    served = stage(devices=lab.devices[0], retries=4)(Struck)
    with DecodingServer(lab, served, limit=4, max_active=6) as server:
        found = load(server.ask, 24)
        assert found == {n: adder(n, 4) for n in range(24)}
        assert server.statistics.reruns >= 2
        assert server.statistics.mean_size > 2
    lab.check()


def test_the_parts_of_one_pattern_go_through_others_as_they_come(lab: System) -> None:
    inner = DecodingServer(lab, counting, name="inner")
    between = ModelReplicaPool(lab, Stage(lambda n: inner.stream(n, limit=3), inline=True))
    outer = FairShareScheduler(
        lab, Stage(between.stream, inline=True, parallelism=9), {"a": 1.0}, name="outer"
    )
    streams = [outer.stream(n, tenant="a") for n in range(0, 50, 10)]
    assert [list(one) for one in streams] == [[n, n + 1, n + 2] for n in range(0, 50, 10)]
    assert outer.ask(7, tenant="a").result() == [7, 8, 9]
    with pytest.raises(StageFailed) as caught:
        list(outer.stream("no number", tenant="a"))
    cause: BaseException | None = caught.value
    while isinstance(cause, StageFailed):
        cause = cause.__cause__
    assert isinstance(cause, TypeError)
    endless = DecodingServer(lab, counting, name="endless", limit=10**9)
    through = FairShareScheduler(
        lab, Stage(endless.stream, inline=True), {"a": 1.0}, name="through"
    )
    stream = through.stream(0, tenant="a")
    assert next(iter(stream)) == 0
    stream.cancel()
    with pytest.raises(Cancelled):
        list(stream)
    assert settle(lambda: endless.statistics.cancelled == 1)
    assert all(adds_up(one.statistics) for one in (inner, between, outer, endless))


def test_a_pool_sends_what_an_inner_pattern_lost_to_another_one(lab: System) -> None:
    def lost(sequences: list[Sequence]) -> list[Any]:
        raise ContextLost("the context is gone")

    def half(sequences: list[Sequence]) -> list[Any]:
        return lost(sequences) if sequences[0].parts else counting(sequences)

    def pool(first: Any) -> ModelReplicaPool:
        steps = [Stage(first, retries=0), Stage(counting)]
        servers = [DecodingServer(lab, step, limit=3) for step in steps]
        stages = [Stage(one.stream, inline=True, name=one.name) for one in servers]
        return ModelReplicaPool(lab, stages, policy="round_robin")

    moved = pool(lost)
    assert list(moved.stream(5)) == [5, 6, 7]
    assert moved.statistics.reruns == 1
    told = pool(half)
    stream = iter(told.stream(5))
    assert next(stream) == 5
    with pytest.raises(StageFailed):
        next(stream)
    assert told.statistics.reruns == 0
