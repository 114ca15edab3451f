"""Tokens go to their experts as in a plain simulation, over one device and over a world."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import System
from accel_lab.blueprints.patterns import DynamicBatchingServer, MoeRouter, route
from accel_lab.blueprints.patterns.base.routing import Full
from accel_lab.errors import InvalidArgument, StageFailed
from accel_lab.libraries import array, blas
from tests.faults.conftest import census, settle

WIDTH, FEATURES, COUNT = 4, 3, 5


def simulated(
    gates: Any, k: int, factor: float | None, full: str
) -> tuple[list[list[int]], int, list[int]]:
    """Return each token's experts, the capacity and the loads, token by token."""
    tokens, count = gates.shape
    capacity = tokens if factor is None else math.ceil(factor * k * tokens / count)
    ranked = [np.lexsort((np.arange(count), -row)).tolist() for row in gates]
    got: list[list[int]] = [[] for _ in range(tokens)]
    loads = [0] * count
    for place in range(k if full == "drop" else count):
        for token in range(tokens):
            expert = ranked[token][place]
            if len(got[token]) < k and loads[expert] < capacity:
                got[token].append(expert)
                loads[expert] += 1
    return got, capacity, loads


def mixed(x: Any, gate: Any, experts: Any, k: int, factor: float | None, full: str) -> Any:
    """Return the answer of a mixture by its definition."""
    gates = softmax(x.astype("f8") @ gate)
    got, _, _ = simulated(gates, k, factor, full)
    total = np.zeros((len(x), experts[0].shape[1]))
    for token, chosen in enumerate(got):
        best = sum(sorted(gates[token])[-k:])
        for expert in chosen:
            total[token] += gates[token, expert] / best * (x[token].astype("f8") @ experts[expert])
    return total


def softmax(x: Any) -> Any:
    raised = np.exp(x - x.max(1, keepdims=True))
    return raised / raised.sum(1, keepdims=True)


def whole(rng: Any, *shape: int) -> Any:
    """Return small whole numbers: their sums are exact, and often equal."""
    return rng.integers(-2, 3, shape).astype("f4")


@pytest.fixture(scope="module", autouse=True)
def _no_threads_left() -> Iterator[None]:
    """Look after the last test: the system is one for all, and has more threads as it works."""
    before = census()
    yield
    assert settle(lambda: census().threads <= before.threads), census()


@pytest.fixture(scope="module")
def worlds() -> Iterator[tuple[System, Any]]:
    with System("host", 3, max_restarts=1000) as lab:
        yield lab, lab.world()


@given(
    seed=st.integers(0, 2**32 - 1),
    tokens=st.integers(1, 12),
    count=st.integers(1, 6),
    k=st.integers(1, 6),
    factor=st.sampled_from([None, 0.1, 0.5, 1.0, 1.25, 4.0]),
    full=st.sampled_from(["drop", "next"]),
    normalize=st.booleans(),
)
def test_routes_are_those_of_a_loop_over_tokens(
    seed: int, tokens: int, count: int, k: int, factor: float | None, full: Full, *, normalize: bool
) -> None:
    k = min(k, count)
    logits = np.random.default_rng(seed).integers(-2, 3, (tokens, count)).astype("f8")
    found = route(logits, k, factor, full, normalize=normalize)
    gates = softmax(logits)
    got, capacity, loads = simulated(gates, k, factor, full)
    assert [[one for one in row if one >= 0] for row in found.experts.tolist()] == got
    assert found.balance[:3] == (tuple(loads), capacity, tokens * k - sum(loads))
    assert max(found.balance.loads) <= capacity
    for token, chosen in enumerate(got):
        by = sum(sorted(gates[token])[-k:]) if normalize else 1
        wanted = [gates[token, one] / by for one in chosen] + [0.0] * (k - len(chosen))
        np.testing.assert_allclose(found.weights[token], wanted)
    if factor is None:
        assert found.balance.dropped == 0
    if count == 1:
        assert found.balance.loss == pytest.approx(1)


def test_the_loss_is_1_where_all_is_even_and_greatest_where_one_expert_has_all() -> None:
    even = route(np.kron(np.eye(4), np.ones((3, 1))) * 0, 4, None, "drop", normalize=True)
    assert even.balance.loss == pytest.approx(1)
    one = np.zeros((8, 4))
    one[:, 2] = 50
    assert route(one, 1, None, "drop", normalize=True).balance.loss == pytest.approx(4)


@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32 - 1),
    tokens=st.integers(1, 9),
    count=st.integers(1, 6),
    k=st.integers(1, 3),
    factor=st.sampled_from([None, 0.3, 1.0]),
    full=st.sampled_from(["drop", "next"]),
    spread=st.booleans(),
)
def test_answers_are_those_of_the_definition_on_one_device_and_on_three(
    worlds: tuple[System, Any],
    seed: int,
    tokens: int,
    count: int,
    k: int,
    factor: float | None,
    full: Full,
    *,
    spread: bool,
) -> None:
    lab, world = worlds
    rng, k = np.random.default_rng(seed), min(k, count)
    x, gate = whole(rng, tokens, WIDTH), whole(rng, WIDTH, count)
    experts = [whole(rng, WIDTH, FEATURES) for _ in range(count)]
    on = world if spread else lab.devices[0]
    with MoeRouter(lab, on, gate, experts, k=k, capacity_factor=factor, full=full) as router:
        found = router.ask(x).result(60)
        more = router.statistics.more
    wanted = mixed(x, gate, experts, k, factor, full)
    np.testing.assert_allclose(found.value, wanted, rtol=1e-5, atol=1e-5)
    assert found.value.dtype == np.float32
    assert more["loads"] == list(found.balance.loads)
    assert (more["tokens"], more["dropped"]) == (tokens, found.balance.dropped)


def test_requests_that_come_together_are_one_batch_and_an_expert_computes_once_for_it(
    worlds: tuple[System, Any],
) -> None:
    lab, world = worlds
    rng = np.random.default_rng(4)
    gate, matrices = whole(rng, WIDTH, 2), [whole(rng, WIDTH, FEATURES) for _ in range(2)]
    rows: list[tuple[int, int]] = []

    def expert(number: int) -> Any:
        def build(device: Any) -> Any:
            matrix = device.put(matrices[number])

            def compute(x: Any) -> Any:
                rows.append((number, x.shape[0]))
                return array.maximum(blas.gemm(x, matrix), 0)

            return compute

        return build

    parts = [whole(rng, n, WIDTH) for n in (3, 1, 5)]
    made = [expert(n) for n in range(2)]
    with MoeRouter(lab, world, gate, made, max_batch=3, max_wait_s=30) as router:
        replies = [router.ask(one) for one in parts]
        answers = [one.result(60) for one in replies]
    x = np.concatenate(parts)
    gates = softmax(x @ gate)
    hidden = [np.maximum(x @ one, 0) for one in matrices]
    wanted = sum(gates[:, [n]] * one for n, one in enumerate(hidden))
    np.testing.assert_allclose(np.concatenate([one.value for one in answers]), wanted, rtol=1e-5)
    assert rows == [(0, 9), (1, 9)]
    assert [len(one.experts) for one in answers] == [3, 1, 5]


@pytest.mark.parametrize(
    ("recover", "on_loss"), [("replay", "rebuild"), ("stale", "rebuild"), ("replay", "shrink")]
)
def test_batches_are_answered_although_ranks_are_lost_in_their_middle(
    recover: Any, on_loss: Any
) -> None:
    rng = np.random.default_rng(1)
    gate, x = whole(rng, WIDTH, COUNT), [whole(rng, 6, WIDTH) for _ in range(10)]
    matrices = [whole(rng, WIDTH, FEATURES) for _ in range(COUNT)]
    calls, kills = itertools.count(), {1} if on_loss == "shrink" else {1, 5, 9}

    def failing(device: Any) -> Any:
        """Build the first expert; as it computes, a rank is killed now and then."""
        matrix = device.put(matrices[0])

        def compute(rows: Any) -> Any:
            if (call := next(calls)) in kills:
                lab.inject("kill", (call + 1) % 3).add_waiter(lambda: None)
            return blas.gemm(rows, matrix)

        return compute

    with System("host", 3, max_restarts=1000, recover=recover) as lab:
        experts = [failing, *matrices[1:]]
        world = lab.world(on_loss=on_loss)
        with MoeRouter(lab, world, gate, experts, max_batch=1, capacity_factor=None) as router:
            replies = [router.ask(one) for one in x]
            for one, reply in zip(x, replies, strict=True):
                wanted = mixed(one, gate, matrices, 2, None, "drop")
                np.testing.assert_allclose(reply.result(60).value, wanted, rtol=1e-5, atol=1e-5)
            found = router.statistics
    assert next(calls) > 4
    assert found.reruns > 0
    assert found.answered == 10
    assert found.more["tokens"] == 60


def test_it_stands_behind_another_pattern(worlds: tuple[System, Any]) -> None:
    lab, _ = worlds
    rng = np.random.default_rng(2)
    gate, experts = whole(rng, WIDTH, 2), [whole(rng, WIDTH, FEATURES) for _ in range(2)]
    with MoeRouter(lab, lab.devices[1], gate, experts) as router:

        def mixture(rows: Any) -> Any:
            return router.ask(rows).result(60).value

        x = whole(rng, WIDTH)
        with DynamicBatchingServer(lab, mixture, stack=True) as batches:
            found = batches.ask(x).result(60)
    np.testing.assert_allclose(found, mixed(x[None], gate, experts, 2, None, "drop")[0], rtol=1e-5)


def test_what_does_not_fit_is_refused(worlds: tuple[System, Any]) -> None:
    lab, _ = worlds
    device, gate = lab.devices[0], np.zeros((WIDTH, 2), "f4")
    matrix = np.zeros((WIDTH, FEATURES), "f4")
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"gate": np.zeros(4, "f4")}, r"gate is \(width, experts\), .* not float32 \(4,\)"),
        ({"gate": np.zeros((4, 2), "i4")}, "not int32"),
        ({"experts": [matrix]}, "each of 2 experts, and there are 1"),
        ({"experts": [matrix, matrix[:, :2]]}, r"expert 1 is \(4, 2\); all are \(4, features\)"),
        ({"experts": [matrix, matrix[0]]}, r"expert 1 is \(3,\)"),
        ({"k": 3}, "k is 3; there are 2 experts"),
        ({"k": 0}, "k is a whole number"),
        ({"capacity_factor": 0}, "capacity_factor is a finite number above 0"),
        ({"full": "spill"}, "full"),
    ]
    for other, text in wrongs:
        options: dict[str, Any] = {"gate": gate, "experts": [matrix, matrix], **other}
        with pytest.raises(InvalidArgument, match=text):
            MoeRouter(lab, device, **options)
    with MoeRouter(lab, device, gate, [matrix, lambda _: lambda rows: rows[:1]]) as router:
        for wrong, text in [(np.zeros((0, 4)), r"\(0, 4\)"), (np.zeros((2, 3)), r"\(tokens, 4\)")]:
            with pytest.raises(InvalidArgument, match=text):
                router.ask(wrong).result(60)
        with pytest.raises(StageFailed, match=r"gets 2 rows returns \(rows, features\), not"):
            router.ask(np.ones((2, 4))).result(60)
        with pytest.raises(StageFailed, match="gates of token 1 of a batch are not finite"):
            router.ask(np.array([[1, 1, 1, 1], [np.nan] * 4])).result(60)
