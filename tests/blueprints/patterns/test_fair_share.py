"""Tenants that share by weight: the law of start-time fair queueing, and a plain simulation."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import Device, System
from accel_lab.blueprints.patterns import FairShareScheduler, Tenant, stage
from accel_lab.errors import Cancelled, ContextLost, InvalidArgument, QueueFull, StageFailed
from accel_lab.testing import Bench, Faults
from tests.blueprints.patterns.load import adds_up, load


def same(value: Any) -> Any:
    return value


def cost_of(value: tuple[str, float]) -> float:
    return value[1]


@settings(max_examples=50)
@given(
    weights=st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=2, max_size=4),
    costs=st.lists(st.sampled_from([0.5, 1.0, 2.0, 5.0]), min_size=4, max_size=20),
)
def test_backlogged_tenants_never_drift_apart_by_more_than_one_request_each(
    weights: list[float], costs: list[float]
) -> None:
    """|Wi/wi - Wj/wj| <= li/wi + lj/wj in any interval where both have requests (Goyal, 1996)."""
    names = [f"t{n}" for n in range(len(weights))]
    served: list[tuple[str, float]] = []

    def note(value: tuple[str, float]) -> None:
        served.append(value)

    with Bench() as bench:
        scheduler = FairShareScheduler(
            bench,
            bench.stage(note, seconds=cost_of),
            dict(zip(names, weights, strict=True)),
            cost=cost_of,
        )
        for cost in costs:
            for name in names:
                scheduler.ask((name, cost), tenant=name)
        bench.run(10_000)
        assert adds_up(scheduler.statistics)
    assert len(served) == len(costs) * len(names)
    left = Counter({name: len(costs) for name in names})
    work = dict.fromkeys(names, 0.0)
    longest = max(costs)
    for name, cost in served:
        work[name] += cost / weights[names.index(name)]
        left[name] -= 1
        busy = [n for n, one in enumerate(names) if left[one]]
        for i in busy:
            for j in busy:
                gap = abs(work[names[i]] - work[names[j]])
                assert gap <= longest / weights[i] + longest / weights[j] + 1e-9


def test_a_tenant_that_was_idle_has_neither_credit_nor_debt(bench: Bench) -> None:
    order: list[str] = []

    def note(value: str) -> None:
        order.append(value)

    scheduler = FairShareScheduler(bench, bench.stage(note, seconds=1), {"a": 1.0, "b": 1.0})
    for _ in range(10):
        scheduler.ask("a", tenant="a")
    bench.run(5.5)
    for _ in range(4):
        scheduler.ask("b", tenant="b")
    bench.run(20)
    assert order[:6] == ["a"] * 6
    assert order[6:] == ["b", "a", "b", "a", "b", "a", "b", "a"]
    order.clear()
    scheduler.ask("a", tenant="a")
    bench.run(5)
    for _ in range(2):
        scheduler.ask("a", tenant="a")
        scheduler.ask("b", tenant="b")
    bench.run(10)
    assert Counter(order[1:3]) == {"a": 1, "b": 1}, "who was alone before owes nothing"


def test_who_used_much_while_nobody_else_asked_owes_nothing_later(bench: Bench) -> None:
    order: list[str] = []

    def note(value: str) -> None:
        order.append(value)

    scheduler = FairShareScheduler(bench, bench.stage(note, seconds=1), {"a": 1.0, "b": 1.0})
    bench.answer(scheduler.ask("long", tenant="a", cost=100))
    bench.run(5)
    for _ in range(3):
        scheduler.ask("b", tenant="b")
        scheduler.ask("a", tenant="a")
    bench.run(20)
    assert order == ["long", "b", "a", "a", "b", "a", "b"]


def test_twice_the_weight_is_twice_the_share(bench: Bench) -> None:
    order: list[str] = []

    def note(value: str) -> None:
        order.append(value)

    scheduler = FairShareScheduler(bench, bench.stage(note, seconds=1), {"big": 2.0, "small": 1})
    for _ in range(30):
        scheduler.ask("big", tenant="big")
        scheduler.ask("small", tenant="small")
    bench.run(30.5)
    assert Counter(order[:30]) == {"big": 20, "small": 10}
    more = scheduler.statistics.more
    assert more["cost of big"] == pytest.approx(2 * more["cost of small"], abs=2)


def test_what_is_cancelled_costs_its_tenant_nothing(bench: Bench) -> None:
    order: list[str] = []

    def note(value: str) -> None:
        order.append(value)

    scheduler = FairShareScheduler(bench, bench.stage(note, seconds=1), {"a": 1.0, "b": 1.0})
    scheduler.ask("first", tenant="a")
    gone = [scheduler.ask("gone", tenant="a", cost=100) for _ in range(5)]
    kept = [scheduler.ask(who, tenant=who) for who in "abab"]
    bench.run(0.5)
    for one in gone:
        one.cancel()
    bench.run(20)
    assert order == ["first", "b", "a", "b", "a"]
    assert all(one.done for one in kept)
    assert all(isinstance(one.error, Cancelled) for one in gone)


def test_limits_of_a_tenant_hold_for_it_alone(bench: Bench) -> None:
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()

    def takes(value: str) -> float:
        running[value] += 1
        most[value] = max(most[value], running[value])
        return 1.0

    def ended(value: str) -> str:
        running[value] -= 1
        return value

    scheduler = FairShareScheduler(
        bench,
        bench.stage(ended, seconds=takes, parallelism=4),
        {"held": Tenant(max_running=1, max_waiting=2), "free": 1.0},
    )
    held = [scheduler.ask("held", tenant="held") for _ in range(5)]
    free = [scheduler.ask("free", tenant="free") for _ in range(5)]
    bench.run(20)
    assert [isinstance(one.error, QueueFull) for one in held] == [False] * 3 + [True] * 2
    assert all(one.result(0) == "free" for one in free)
    assert (most["held"], most["free"]) == (1, 3)
    assert scheduler.statistics.refused == 2
    assert adds_up(scheduler.statistics)


def test_unknown_tenants_are_refused_and_bad_costs_too(bench: Bench) -> None:
    scheduler = FairShareScheduler(bench, bench.stage(same), {"a": 1.0})
    with pytest.raises(InvalidArgument, match="no tenant 'x'; it has 'a'"):
        bench.answer(scheduler.ask(1, tenant="x"))
    with pytest.raises(InvalidArgument, match="no tenant ''"):
        bench.answer(scheduler.ask(1))
    for cost in (0, -1, float("nan"), float("inf"), True):
        with pytest.raises(InvalidArgument, match="cost"):
            scheduler.ask(1, tenant="a", cost=cost)
    with pytest.raises(InvalidArgument, match="weight"):
        FairShareScheduler(bench, same, {"a": 0})
    with pytest.raises(InvalidArgument, match="tenants"):
        FairShareScheduler(bench, same, {})
    assert scheduler.ref.restarts == 0
    assert bench.answer(scheduler.ask(5, tenant="a")) == 5


def test_priority_is_among_a_tenants_own(bench: Bench) -> None:
    order: list[Any] = []

    def note(value: Any) -> None:
        order.append(value)

    scheduler = FairShareScheduler(bench, bench.stage(note, seconds=1), {"a": 1.0, "b": 1.0})
    scheduler.ask("run", tenant="b")
    for n in range(4):
        scheduler.ask(n, tenant="a", priority=n)
    scheduler.ask("b", tenant="b")
    bench.run(20)
    assert [one for one in order if isinstance(one, int)] == [3, 2, 1, 0]
    assert order.index("b") <= 3


@settings(max_examples=30)
@given(
    script=st.lists(
        st.tuples(
            st.sampled_from(["ask", "ask", "cancel", "run"]),
            st.integers(0, 9),
            st.sampled_from("abc"),
            st.sampled_from([None, 2.0]),
        ),
        max_size=40,
    ),
    faulty=st.sets(st.integers(1, 12)),
)
def test_each_request_is_answered_once_and_counted_once(
    script: list[tuple[str, int, str, float | None]], faulty: set[int]
) -> None:
    faults = Faults({n: ContextLost("gone") if n % 2 else KeyError(n) for n in faulty})
    with Bench() as bench:
        scheduler = FairShareScheduler(
            bench,
            bench.stage(faults.into(same), seconds=1, parallelism=2),
            {"a": 1.0, "b": Tenant(weight=3, max_running=1), "c": Tenant(max_waiting=1)},
            capacity=5,
        )
        told: list[int] = []
        replies: list[Any] = []
        for what, number, tenant, timeout_s in script:
            if what == "ask":
                reply = scheduler.ask(number, tenant=tenant, timeout_s=timeout_s, cost=number + 1)
                place = len(replies)
                reply.add_waiter(lambda place=place: told.append(place))  # type: ignore[misc]
                replies.append(reply)
            elif what == "cancel" and replies:
                replies[number % len(replies)].cancel()
            bench.run(number / 4 if what == "run" else 0)
            assert adds_up(scheduler.statistics)
        bench.run(200)
        found = scheduler.statistics
    assert sorted(told) == list(range(len(replies)))
    assert found.waiting == found.running == 0


def square(value: int) -> int:
    return value * value


def test_each_request_is_answered_once_while_contexts_are_killed(lab: System) -> None:
    faults = Faults({10: "kill", 40: "kill"})

    def on_device(device: Device, value: int) -> Any:
        return device.run(square, value)

    served = stage(devices=lab, retries=5)(faults.into(on_device))
    with FairShareScheduler(lab, served, {"even": 1.0, "odd": 2.0}) as scheduler:
        found = load(lambda n: scheduler.ask(n, tenant=("even", "odd")[n % 2]), 100)
        assert found == {n: n * n for n in range(100)}
        assert scheduler.statistics.reruns >= 2
        failing = scheduler.ask("x", tenant="odd")
        with pytest.raises(StageFailed, match="TypeError"):
            failing.result(30)
    lab.check()
