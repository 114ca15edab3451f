"""Replicas that are slow, dead, added and taken away: each request is answered once."""

import threading
import time
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import Device, System
from accel_lab.blueprints.patterns import ModelReplicaPool, NoReplica, stage
from accel_lab.blueprints.patterns.base.record import PatternDecided
from accel_lab.errors import Cancelled, ContextLost, InvalidArgument, QueueFull, StageFailed
from accel_lab.testing import Bench, Faults
from tests.blueprints.patterns.load import adds_up, load


def same(value: Any) -> Any:
    return value


def replicas(bench: Bench, *seconds: float, **options: Any) -> list[Any]:
    return [bench.stage(same, seconds=one, **options) for one in seconds]


def sent(pool: ModelReplicaPool) -> list[str]:
    """Name the replica of each sending, in order."""
    return [one.why.split()[1] + one.why.split()[2] for one in _decided(pool, "sent")]


def _decided(pool: ModelReplicaPool, what: str) -> list[PatternDecided]:
    return [one for one in pool.decisions if one.decision == what]


def test_round_robin_takes_each_in_turn(bench: Bench) -> None:
    pool = ModelReplicaPool(bench, replicas(bench, 1, 1, 1), policy="round_robin")
    for n in range(9):
        pool.ask(n)
    bench.run(20)
    assert sent(pool) == ["replica0", "replica1", "replica2"] * 3


@pytest.mark.parametrize("policy", ["least_loaded", "two_choices"])
def test_a_faster_replica_gets_more(bench: Bench, policy: Any) -> None:
    """Twice as fast is not slow: by completions it has about twice as many."""
    pool = ModelReplicaPool(bench, replicas(bench, 1.0, 2.0), policy=policy, max_running=4, seed=1)
    replies = []
    for n in range(120):
        replies.append(pool.ask(n))
        bench.run(0.17)
    answers = [bench.answer(one) for one in replies]
    assert answers == list(range(120))
    counts = Counter(sent(pool))
    assert 1.5 < counts["replica0"] / counts["replica1"] < 3


def test_a_slow_replica_is_avoided_and_tried_now_and_then(bench: Bench) -> None:
    pool = ModelReplicaPool(
        bench, replicas(bench, 0.1, 0.1, 2.0), policy="round_robin", rest_s=10, max_running=8
    )
    for n in range(200):
        pool.ask(n)
        bench.run(0.2)
    counts = Counter(sent(pool)[60:])
    assert 1 <= counts["replica2"] <= 5
    assert min(counts["replica0"], counts["replica1"]) > 50


def test_two_choices_never_takes_the_fullest(bench: Bench) -> None:
    """Requests that never end: of any two that are drawn, the emptier one is taken."""
    never = replicas(bench, *[float("inf")] * 4)
    pool = ModelReplicaPool(bench, never, policy="two_choices", max_running=50, seed=3)
    for n in range(100):
        pool.ask(n)
    bench.run()
    counts = Counter(sent(pool)).values()
    assert len(counts) == 4
    assert max(counts) - min(counts) <= 6, "drawing one alone would spread them by about 17"


def test_one_prefix_has_one_replica_and_few_move_when_there_are_more(bench: Bench) -> None:
    stages = replicas(bench, 0.0, 0.0, 0.0)
    pool = ModelReplicaPool(bench, stages, policy="prefix", prefix=lambda one: one // 10)
    homes: list[dict[int, str]] = []
    for count in (3, 4):
        bench.answer(pool.scale(count))
        found: dict[int, str] = {}
        for value in range(400):
            bench.answer(pool.ask(value))
            assert found.setdefault(value // 10, sent(pool)[-1]) == sent(pool)[-1]
        homes.append(found)
    before, after = homes
    assert len(set(before.values())) == 3
    moved = [key for key in before if before[key] != after[key]]
    assert moved
    assert {after[key] for key in moved} == {"replica3"}
    assert len(moved) < len(before) / 2


def test_a_prefix_that_raises_fails_its_request_alone(bench: Bench) -> None:
    pool = ModelReplicaPool(
        bench, replicas(bench, 1.0), policy="prefix", prefix=lambda one: one["user"]
    )
    good, bad = pool.ask({"user": 1}), pool.ask(5)
    with pytest.raises(InvalidArgument, match="TypeError"):
        bench.answer(bad)
    assert bench.answer(good) == {"user": 1}
    assert pool.ref.restarts == 0


def test_a_request_that_meets_a_fault_is_sent_once_more_elsewhere(bench: Bench) -> None:
    faults = Faults({1: ContextLost("gone"), 2: ContextLost("gone")})
    broken, whole = bench.stage(faults.into(same)), bench.stage(same)
    pool = ModelReplicaPool(bench, [broken, whole], policy="round_robin", rest_s=5)
    assert bench.answer(pool.ask(7)) == 7
    assert sent(pool) == ["replica0", "replica1"]
    assert _decided(pool, "moved")[0].why == "off replica 0: ContextLost"
    for n in range(4):
        assert bench.answer(pool.ask(n)) == n
    assert sent(pool)[2:] == ["replica1"] * 4, "it rests"
    bench.run(5)
    assert [bench.answer(pool.ask(n)) for n in range(2)] == [0, 1]
    assert sent(pool)[6:] == ["replica0", "replica1", "replica1"]
    assert pool.statistics.reruns == 2


def test_it_is_sent_once_more_and_not_twice_and_only_where_that_is_safe(bench: Bench) -> None:
    lost = Faults({n: ContextLost("gone") for n in range(1, 9)})
    broken = [bench.stage(lost.into(same)) for _ in range(3)]
    pool = ModelReplicaPool(bench, broken)
    with pytest.raises(StageFailed, match="failed 2 times on request 1") as caught:
        bench.answer(pool.ask(1))
    assert isinstance(caught.value.__cause__, ContextLost)
    assert lost.calls == 2
    unsafe = [bench.stage(lost.into(same), repeatable=False) for _ in range(2)]
    with pytest.raises(StageFailed):
        bench.answer(ModelReplicaPool(bench, unsafe).ask(1))
    assert lost.calls == 3
    wrong = Faults({1: KeyError("mine")})
    stages = [bench.stage(wrong.into(same)) for _ in range(2)]
    with pytest.raises(StageFailed, match="mine"):
        bench.answer(ModelReplicaPool(bench, stages).ask(1))
    assert wrong.calls == 1


def test_a_request_that_takes_too_long_is_sent_elsewhere_and_the_first_answer_counts(
    bench: Bench,
) -> None:
    stuck = ModelReplicaPool(
        bench, replicas(bench, float("inf"), 1.0), policy="round_robin", patience_s=3, rest_s=100
    )
    assert bench.answer(stuck.ask(1)) == 1
    assert bench.clock.now() == pytest.approx(4)
    assert "longer than 3 s" in _decided(stuck, "moved")[0].why
    late = ModelReplicaPool(
        bench, replicas(bench, 3.5, 9.0), policy="round_robin", patience_s=3, rest_s=100
    )
    at = bench.clock.now()
    assert bench.answer(late.ask(2)) == 2
    assert bench.clock.now() - at == pytest.approx(3.5)
    bench.run(20)
    assert late.statistics.answered == 1
    alone = ModelReplicaPool(bench, replicas(bench, 5.0), patience_s=3)
    assert bench.answer(alone.ask(3)) == 3
    assert alone.statistics.reruns == 0


def test_it_grows_and_shrinks_while_it_serves(bench: Bench) -> None:
    stages = replicas(bench, 1.0)
    pool = ModelReplicaPool(bench, stages, max_running=1)
    replies = [pool.ask(n) for n in range(12)]
    bench.run(2.5)
    assert bench.answer(pool.scale(4), 0.1) == 1
    assert pool.statistics.running == 4
    bench.run(0.2)
    assert bench.answer(pool.scale(2), 0.1) == 4
    assert pool.statistics.running == 4, "those that go finish what they have"
    bench.run(1)
    assert pool.statistics.running == 2
    assert [bench.answer(one) for one in replies] == list(range(12))
    found = pool.statistics
    assert (found.answered, found.calls, found.more["replicas"]) == (12, 12, 2)
    assert sum(name.startswith("replica ") for name in found.more) == 2
    with pytest.raises(InvalidArgument, match="count"):
        pool.scale(0)


@settings(max_examples=30)
@given(
    script=st.lists(
        st.tuples(st.sampled_from(["ask", "ask", "cancel", "run", "scale"]), st.integers(0, 9)),
        max_size=40,
    ),
    faulty=st.sets(st.integers(1, 15)),
    policy=st.sampled_from(["round_robin", "least_loaded", "two_choices", "prefix"]),
    patience_s=st.sampled_from([None, 1.5]),
)
def test_each_request_is_answered_once_and_counted_once(
    script: list[tuple[str, int]], faulty: set[int], policy: Any, patience_s: float | None
) -> None:
    faults = Faults({n: ContextLost("gone") if n % 3 else KeyError(n) for n in faulty})
    with Bench() as bench:
        pool = ModelReplicaPool(
            bench,
            [bench.stage(faults.into(same), seconds=one) for one in (1.0, 2.0, 0.5)],
            policy=policy,
            patience_s=patience_s,
            capacity=5,
            seed=0,
        )
        told: list[int] = []
        replies: list[tuple[int, Any]] = []
        for what, number in script:
            if what == "ask":
                reply = pool.ask(number, priority=number % 2, timeout_s=None if number % 4 else 3)
                place = len(replies)
                reply.add_waiter(lambda place=place: told.append(place))  # type: ignore[misc]
                replies.append((number, reply))
            elif what == "cancel" and replies:
                replies[number % len(replies)][1].cancel()
            elif what == "scale":
                pool.scale(1 + number % 4)
            bench.run(number / 4 if what == "run" else 0)
            assert adds_up(pool.statistics)
        bench.run(200)
        found = pool.statistics
    assert sorted(told) == list(range(len(replies)))
    for number, reply in replies:
        if reply.error is None:
            assert reply.result(0) == number
        else:
            assert isinstance(reply.error, StageFailed | Cancelled | QueueFull | TimeoutError), (
                reply
            )
    assert found.waiting == found.running == 0
    assert adds_up(found)


def test_a_request_is_streamed_by_one_replica_alone(lab: System) -> None:
    """The first is slow to speak, so the other one is asked, too; then both would speak."""
    turn: list[int] = []
    go_on = threading.Event()

    def letters(word: str) -> Any:
        turn.append(1)
        if len(turn) == 1:
            assert go_on.wait(30)
        for letter in word:
            yield letter
            go_on.set()
            time.sleep(0.02)

    pool = ModelReplicaPool(lab, letters, replicas=2, patience_s=0.05)
    with pool:
        stream = pool.stream("word")
        assert list(stream) == list("word")
        assert stream.reply.result(30) == list("word")
        assert len(turn) == 2
        assert list(pool.stream("")) == []
        plain = ModelReplicaPool(lab, same)
        assert list(plain.stream(5)) == [5], "who yields nothing gives all at once"


@pytest.mark.parametrize(
    "options", [{"replicas": 0}, {"policy": "best"}, {"max_running": 0}, {"rest_s": 0}]
)
def test_a_bad_option_is_refused(bench: Bench, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        ModelReplicaPool(bench, replicas(bench, 1), **options)
    with pytest.raises(InvalidArgument, match="empty"):
        ModelReplicaPool(bench, [])


def square(value: int) -> int:
    return value * value


def test_each_request_is_answered_once_while_contexts_are_killed(lab: System) -> None:
    faults = Faults({15: "kill", 50: "kill"})

    @stage(devices=lab)
    class Model:
        def __init__(self, device: Device) -> None:
            self.call = faults.into(lambda device, value: device.run(square, value))
            self.device = device

        def __call__(self, value: int) -> Any:
            return self.call(self.device, value)

    with ModelReplicaPool(lab, Model, max_running=2) as pool:
        found = load(pool.ask, 100)
        # One that two kills have hit was sent once more, and no oftener.
        assert all(found[n] == n * n or isinstance(found[n], StageFailed) for n in found)
        assert sum(isinstance(one, StageFailed) for one in found.values()) <= 2
        assert pool.statistics.reruns >= 2
        assert faults.struck == [15, 50]
    lab.check()


def test_without_a_device_that_takes_work_it_says_why() -> None:
    with (
        System("host", max_restarts=0) as lab,
        ModelReplicaPool(lab, stage(devices=lab)(_on_device)) as pool,
    ):
        assert pool.ask(3).result(30) == 9
        lab.inject("kill").add_waiter(lambda: None)
        failures: list[BaseException] = []
        while not isinstance(failures[-1] if failures else None, NoReplica):
            with pytest.raises((NoReplica, StageFailed)) as caught:
                pool.ask(3).result(30)
            failures.append(caught.value)
        last = failures[-1]
        assert isinstance(last, NoReplica)
        assert last.why == {"replica 0": "its device takes no work"}


def _on_device(device: Device, value: int) -> Any:
    return device.run(square, value)
