"""Stages that are asked in turn, against asking each of them by hand."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import Device, System
from accel_lab.blueprints.patterns import InferenceCascade, Judged, Step, stage
from accel_lab.errors import Cancelled, ContextLost, InvalidArgument, StageFailed
from accel_lab.testing import Bench, Faults
from tests.blueprints.patterns.load import adds_up, load


def judge(position: int, value: int) -> tuple[str, float]:
    """Answer as stage `position` does: the larger the value, the less sure, and the later surer."""
    return f"{position}:{value}", max(0.0, min(1.0, 1.0 - value / 100 + 0.25 * position))


def by_hand(value: int, thresholds: list[float], costs: list[float]) -> Judged:
    spent = 0.0
    for position, (threshold, cost) in enumerate(zip(thresholds, costs, strict=True)):
        answer, confidence = judge(position, value)
        spent += cost
        if confidence >= threshold or position + 1 == len(costs):
            return Judged(answer, position, confidence, spent)
    raise AssertionError(value)


def steps(
    bench: Bench, thresholds: list[float], costs: list[float], seconds: float = 1.0
) -> list[Step]:
    def function(position: int) -> Any:
        return lambda values: [judge(position, one) for one in values]

    return [
        Step(bench.stage(function(n), seconds=seconds, name=f"model{n}"), threshold, cost)
        for n, (threshold, cost) in enumerate(zip(thresholds, costs, strict=True))
    ]


@settings(max_examples=40)
@given(
    values=st.lists(st.integers(0, 120), min_size=1, max_size=30),
    stages=st.lists(
        st.tuples(st.floats(0, 1), st.sampled_from([0.0, 1.0, 4.0, 20.0])), min_size=1, max_size=4
    ),
    max_batch=st.integers(1, 6),
)
def test_answers_stages_and_costs_are_those_by_hand(
    values: list[int], stages: list[tuple[float, float]], max_batch: int
) -> None:
    thresholds, costs = [one for one, _ in stages], [one for _, one in stages]
    with Bench() as bench:
        cascade = InferenceCascade(
            bench, steps(bench, thresholds, costs), max_batch=max_batch, max_wait_s=0.5
        )
        replies = [cascade.ask(one) for one in values]
        answers = [bench.answer(one) for one in replies]
        found = cascade.statistics
    expected = [by_hand(one, thresholds, costs) for one in values]
    assert answers == expected
    assert found.more["cost"] == pytest.approx(sum(one.cost for one in expected))
    for position in range(len(stages)):
        counted = sum(one.stage == position for one in expected)
        assert found.more.get(f"answered by model{position}", 0) == counted
    if whole := costs[-1] * len(values):
        share = found.more["share of the last stage's cost"]
        assert share == pytest.approx(found.more["cost"] / whole)
    assert adds_up(found)


def test_each_stage_has_batches_of_its_own(bench: Bench) -> None:
    cascade = InferenceCascade(
        bench, steps(bench, [0.9, 0.0], [1, 10]), max_batch=4, max_wait_s=0.5
    )
    replies = [cascade.ask(one) for one in (0, 50, 1, 60)]
    bench.run(1)
    assert [one.done for one in replies] == [True, False, True, False]
    bench.run(1.5)
    assert [one.result(0).stage for one in replies] == [0, 1, 0, 1]
    batches = [one.requests for one in cascade.decisions if one.decision == "batch"]
    assert batches == [(1, 2, 3, 4), (2, 4)]


def test_one_may_leave_at_any_stage(bench: Bench) -> None:
    cascade = InferenceCascade(bench, steps(bench, [0.9, 0.9, 0], [1, 1, 1]), max_wait_s=0.5)
    replies = [cascade.ask(80) for _ in range(4)]
    for reply, at in zip(replies, (0.2, 0.8, 1.2, 1.8), strict=True):
        bench.run(at - bench.clock.now())
        reply.cancel()
    bench.run(10)
    assert all(isinstance(one.error, Cancelled) for one in replies)
    assert adds_up(cascade.statistics)
    assert bench.answer(cascade.ask(0)).stage == 0


def test_a_stage_that_judges_in_another_form_fails_that_request(bench: Bench) -> None:
    odd = bench.stage(lambda values: [("a", 1.0) if one else 5 for one in values], name="odd")
    cascade = InferenceCascade(bench, [Step(odd)])
    good, bad = cascade.ask(1), cascade.ask(0)
    bench.run(1)
    assert good.result(0).value == "a"
    with pytest.raises(StageFailed, match=r"\(answer, confidence\)"):
        bad.result(0)
    for wrong in ([], [Step(odd, threshold=2)], [Step(odd, cost=-1)]):
        with pytest.raises(InvalidArgument):
            InferenceCascade(bench, wrong)


def test_a_fault_in_a_stage_runs_that_stage_again(bench: Bench) -> None:
    faults = Faults({1: ContextLost("gone")})
    sure = bench.stage(faults.into(lambda values: [(one, 1.0) for one in values]), name="sure")
    unsure = bench.stage(lambda values: [(one, 0.0) for one in values], name="unsure")
    cascade = InferenceCascade(bench, [Step(unsure), Step(sure, cost=9)])
    assert bench.answer(cascade.ask(3)) == Judged(3, 1, 1.0, 10.0)
    assert cascade.statistics.reruns == 1


def small(values: list[int]) -> list[tuple[str, float]]:
    return [judge(0, one) for one in values]


def large(values: list[int]) -> list[tuple[str, float]]:
    return [judge(1, one) for one in values]


def test_each_request_is_judged_once_while_contexts_are_killed(lab: System) -> None:
    first, second = lab.devices
    one, other = Faults({3: "kill"}), Faults({2: "kill"})

    def on_first(device: Device, values: list[int]) -> Any:
        return device.run(small, values)

    def on_second(device: Device, values: list[int]) -> Any:
        return device.run(large, values)

    cascade = InferenceCascade(
        lab,
        [
            Step(stage(devices=first)(one.into(on_first)), 0.7, 1.0),
            Step(stage(devices=second)(other.into(on_second)), 0.0, 5.0),
        ],
        max_batch=8,
    )
    with cascade:
        found = load(cascade.ask, 96)
        assert found == {n: by_hand(n, [0.7, 0.0], [1.0, 5.0]) for n in range(96)}
        assert cascade.statistics.reruns >= 2
    assert (one.struck, other.struck) == ([3], [2])
    lab.check()
