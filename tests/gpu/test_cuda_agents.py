"""Agents over a card, also while its context is lost."""

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import Device, System
from accel_lab.blueprints.agents import (
    END,
    START,
    AgentGraph,
    GraphAgent,
    SharedGpuStateCoordinator,
    VectorIndex,
)
from accel_lab.blueprints.patterns import stage
from accel_lab.testing import Faults

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

WAIT = 60


@pytest.fixture
def lab() -> Iterator[System]:
    with System("cuda", 1, max_restarts=1000, within_s=0.2) as system:
        yield system


@pytest.mark.parametrize("lists", [None, 8])
def test_an_index_ranks_as_numpy_does_on_a_card(lab: System, lists: int | None) -> None:
    (device,) = lab.devices
    rng = np.random.default_rng(1)
    vectors = rng.integers(-3, 4, (500, 16)).astype(np.float32)  # whole: products are exact
    queries = rng.integers(-3, 4, (9, 16)).astype(np.float32)
    index = VectorIndex(device, lists=lists, probes=8, cosine=False)
    index.add(vectors)
    expected = np.argsort(-(queries @ vectors.T), axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(index.search(queries, 5).indices, expected)
    lab.inject("kill").add_waiter(lambda: None)
    np.testing.assert_array_equal(index.search(queries, 5).indices, expected)


def test_a_shared_state_outlives_the_context(lab: System) -> None:
    (device,) = lab.devices
    with SharedGpuStateCoordinator(lab, device, {"x": np.zeros(4)}) as state:
        with state.writing() as held:
            held["x"][1:] = 2.0
        lab.inject("kill").add_waiter(lambda: None)
        lab.ready()
        np.testing.assert_array_equal(state.snapshot().state["x"].get(), [0, 2, 2, 2])
        np.testing.assert_array_equal(state.snapshot(1).state["x"].get(), np.zeros(4))


def test_a_graph_goes_on_while_the_context_is_lost(lab: System) -> None:
    (device,) = lab.devices
    faults = Faults({2: "kill"})

    def doubled(device: Device, state: dict[str, Any]) -> Any:
        return {"x": device.run(lambda x: 2 * x, device.put(state["x"])), "n": 1}

    graph = AgentGraph({"n": operator.add}).edge(START, "double")
    graph.node("double", stage(devices=device)(faults.into(doubled)), visits=4)
    graph.branch("double", lambda state: END if state["n"] == 4 else "double", ["double", END])
    with GraphAgent(lab, graph) as agent:
        found = agent.ask({"x": np.ones(3), "n": 0}, run="one").result(WAIT)
        np.testing.assert_array_equal(found["x"], np.full(3, 16.0))
