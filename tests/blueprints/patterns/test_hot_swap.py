"""A model is replaced while it serves: no request is lost, and each has one generation's answer."""

import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import Device, System
from accel_lab.blueprints.patterns import ModelHotSwapServer, Served, Swapped, SwapRefused, stage
from accel_lab.blueprints.patterns.base.equality import equal
from accel_lab.errors import Cancelled, ContextLost, InvalidArgument, StageFailed
from accel_lab.testing import Bench, Faults
from tests.blueprints.patterns.load import adds_up, load


def model(bench: Bench, factor: int, seconds: float = 1.0, **options: Any) -> Any:
    return bench.stage(
        lambda value: factor * value, seconds=seconds, name=f"times{factor}", **options
    )


def decided(server: ModelHotSwapServer) -> list[str]:
    return [one.decision for one in server.decisions]


def test_it_switches_between_two_requests_and_the_old_one_drains(bench: Bench) -> None:
    server = ModelHotSwapServer(bench, model(bench, 2, seconds=3, parallelism=2))
    running = [server.ask(n) for n in range(2)]
    waiting = [server.ask(n) for n in range(2, 4)]
    bench.run(0.5)
    swap = server.swap(model(bench, 10))
    bench.run(0.9)
    assert not swap.done, "it answers the newest value first, to warm up"
    assert bench.answer(swap) == Swapped(2, 0, 0)
    assert [bench.answer(one) for one in running] == [Served(0, 1), Served(2, 1)]
    assert [bench.answer(one) for one in waiting] == [Served(20, 2), Served(30, 2)]
    assert bench.clock.now() == pytest.approx(3.5)
    assert decided(server) == ["loading", "switched"]


def test_it_rolls_back_at_once_and_retires_what_is_not_needed(bench: Bench) -> None:
    server = ModelHotSwapServer(bench, model(bench, 2))
    with pytest.raises(InvalidArgument, match="before 1"):
        bench.answer(server.roll_back())
    for number, factor in ((2, 3), (3, 4)):
        assert bench.answer(server.swap(model(bench, factor))).generation == number
    assert bench.answer(server.roll_back()) == 2
    assert bench.answer(server.ask(1)) == Served(3, 2)
    with pytest.raises(InvalidArgument):
        bench.answer(server.roll_back())
    retired = [one.why for one in server.decisions if one.decision == "retired"]
    assert retired == ["generation 1", "generation 3"]
    assert bench.answer(server.swap(model(bench, 5))).generation == 4
    assert server.statistics.more["generation"] == 4


@pytest.mark.parametrize(("share", "compare"), [(1.0, 3), (0.5, 3), (0.25, 2)])
def test_a_share_of_requests_is_compared_before_the_switch(
    bench: Bench, share: float, compare: int
) -> None:
    seen: list[int] = []

    def candidate(value: int) -> int:
        seen.append(value)
        return 2 * value

    server = ModelHotSwapServer(bench, model(bench, 2))
    new = bench.stage(candidate, seconds=0.5)
    swap = server.swap(new, shadow=share, compare=compare)
    answers = [bench.answer(server.ask(n)) for n in range(20)]
    assert swap.result(0) == Swapped(2, compare, 0)
    every = round(1 / share)
    assert seen[:compare] == [every * (n + 1) - 1 for n in range(compare)]
    switched = every * compare
    assert answers == [Served(2 * n, 1 if n < switched else 2) for n in range(20)]


def test_one_that_answers_otherwise_is_refused_and_the_old_one_serves_on(bench: Bench) -> None:
    server = ModelHotSwapServer(bench, model(bench, 2))
    swap = server.swap(model(bench, 3), shadow=1.0, compare=4, most_differing=0.5)
    answers = [bench.answer(server.ask(n)) for n in (0, 1, 2, 3, 4)]
    assert answers == [Served(2 * n, 1) for n in (0, 1, 2, 3, 4)]
    with pytest.raises(SwapRefused, match="3 of 4 answers differ") as caught:
        swap.result(0)
    assert (caught.value.compared, caught.value.differing) == (4, 3)
    near = server.swap(
        model(bench, 3), shadow=1.0, compare=2, agree=lambda old, new: abs(old - new) < 9
    )
    bench.run(2)  # it warms up
    assert [bench.answer(server.ask(n)) for n in range(2)] == [Served(0, 1), Served(2, 1)]
    assert near.result(0) == Swapped(3, 2, 0)


def test_one_that_fails_is_refused(bench: Bench) -> None:
    def broken(value: int) -> int:
        raise KeyError(value)

    server = ModelHotSwapServer(bench, model(bench, 2))
    cold = server.swap(bench.stage(broken), warm_up=[1])
    with pytest.raises(SwapRefused, match="warmed up") as caught:
        bench.answer(cold)
    assert caught.value.__cause__ is not None
    shadowed = server.swap(bench.stage(broken), shadow=1.0, compare=1)
    assert bench.answer(server.ask(4)) == Served(8, 1)
    with pytest.raises(SwapRefused, match="failed on request 1"):
        bench.answer(shadowed)
    odd = server.swap(
        model(bench, 2), shadow=1.0, compare=1, agree=lambda old, new: old.missing == new
    )
    bench.run(2)
    assert bench.answer(server.ask(4)) == Served(8, 1)
    with pytest.raises(SwapRefused, match="agree"):
        bench.answer(odd)
    assert server.ref.restarts == 0


def test_a_swap_can_be_cancelled_and_there_is_one_at_a_time(bench: Bench) -> None:
    server = ModelHotSwapServer(bench, model(bench, 2))
    never = server.swap(model(bench, 3, seconds=float("inf")), warm_up=[1])
    bench.run(1)
    with pytest.raises(InvalidArgument, match="is being swapped to generation 2"):
        bench.answer(server.swap(model(bench, 4)))
    with pytest.raises(InvalidArgument, match="is being swapped"):
        bench.answer(server.roll_back())
    never.cancel()
    bench.run()
    assert isinstance(never.error, Cancelled)
    assert bench.answer(server.swap(model(bench, 4))).generation == 3
    assert bench.answer(server.ask(1)) == Served(4, 3)
    for wrong in ({"shadow": 2.0}, {"shadow": 0.5}, {"compare": 3}, {"most_differing": -1}):
        with pytest.raises(InvalidArgument):
            server.swap(model(bench, 4), **wrong)


@settings(max_examples=30)
@given(
    script=st.lists(
        st.tuples(
            st.sampled_from(["ask", "ask", "run", "swap", "shadow", "back", "cancel"]),
            st.integers(0, 9),
        ),
        max_size=40,
    ),
    faulty=st.sets(st.integers(1, 20)),
)
def test_each_request_has_one_generations_answer(
    script: list[tuple[str, int]], faulty: set[int]
) -> None:
    faults = Faults({n: ContextLost("gone") if n % 2 else KeyError(n) for n in faulty})
    with Bench() as bench:

        def generation(number: int, seconds: float = 1.0) -> Any:
            return bench.stage(
                faults.into(lambda value: (value, number)), seconds=seconds, parallelism=2
            )

        server = ModelHotSwapServer(bench, generation(1))
        replies: list[Any] = []
        swaps: list[Any] = []
        told: list[int] = []
        made = 1
        shadowed = {"shadow": 0.5, "compare": 2, "agree": lambda *_: True}
        compared: dict[str, Any] = {"swap": {}, "shadow": shadowed}
        for what, number in script:
            if what == "ask":
                reply = server.ask(number)
                place = len(replies)
                reply.add_waiter(lambda place=place: told.append(place))  # type: ignore[misc]
                replies.append(reply)
            elif what in ("swap", "shadow"):
                made += all(one.done for one in swaps)  # else it is refused
                swaps.append(server.swap(generation(made, number / 3), **compared[what]))
            elif what == "back":
                swaps.append(server.roll_back())
            elif what == "cancel" and replies:
                (replies + swaps)[number % len(replies + swaps)].cancel()
            bench.run(number / 4 if what == "run" else 0)
            assert adds_up(server.statistics)
        bench.run(200)
        found = server.statistics
    assert sorted(told) == list(range(len(replies)))
    for reply in replies:
        if reply.error is None:
            answer = reply.result(0)
            assert answer.value[1] == answer.generation
        else:
            assert isinstance(reply.error, StageFailed | Cancelled)
    assert found.waiting == found.running == 0


def test_answers_are_compared_by_value() -> None:
    assert equal(np.array([1.0, np.nan]), np.array([1.0 + 1e-7, np.nan]))
    assert not equal(np.ones(2), np.ones(3))
    assert not equal(np.array([1, 2]), np.array([1, 3]))
    assert equal("a", "a")
    assert not equal([1], [2])


def scaled(value: int, factor: int) -> int:
    return value * factor


def test_nothing_is_lost_while_contexts_are_killed_and_models_swapped(lab: System) -> None:
    faults = Faults({10: "kill", 45: "kill"})
    stop = threading.Event()

    def times(factor: int) -> Any:
        def call(device: Device, value: int) -> Any:
            return device.run(scaled, value, factor)

        return stage(devices=lab, retries=5)(faults.into(call))

    swapped: list[Swapped] = []
    with ModelHotSwapServer(lab, times(2)) as server:

        def swap() -> None:
            for factor in (3, 4, 5):
                swapped.append(server.swap(times(factor)).result(60))
                if stop.wait(0.05):
                    return

        swapper = threading.Thread(target=swap)
        swapper.start()
        found = load(server.ask, 120)
        stop.set()
        swapper.join(60)
        for number, served in found.items():
            assert served.value == number * (served.generation + 1)
        assert [one.generation for one in swapped] == list(range(2, 2 + len(swapped)))
        until = time.monotonic() + 30
        while server.statistics.running and time.monotonic() < until:
            time.sleep(0.01)
        assert adds_up(server.statistics)
        assert server.statistics.reruns >= 1
    lab.check()
