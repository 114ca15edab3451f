"""Patterns that serve functions on a card, also while its context is lost."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import Device, System
from accel_lab.blueprints.patterns import DynamicBatchingServer, ModelReplicaPool, stage
from accel_lab.testing import Faults

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

WAIT = 60


@pytest.fixture
def lab() -> Iterator[System]:
    with System("cuda", 1, max_restarts=1000, within_s=0.2) as system:
        yield system


class Scale:
    """Weights on the card."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.weights = device.put(np.eye(8, dtype=np.float32) * 3)

    def __call__(self, stacked: Any) -> Any:
        return self.device.run(lambda x, w: x @ w, self.device.put(stacked), self.weights)


def test_batches_on_a_card(lab: System) -> None:
    with DynamicBatchingServer(lab, stage(devices=lab)(Scale), stack=True) as server:
        values = [np.full(8, n, np.float32) for n in range(100)]
        replies = [server.ask(one) for one in values]
        for value, reply in zip(values, replies, strict=True):
            np.testing.assert_array_equal(reply.result(WAIT), 3 * value)
        assert server.statistics.mean_size > 1


@pytest.mark.parametrize("fault", ["kill", "trap"])
def test_each_request_is_answered_once_while_the_context_is_lost(lab: System, fault: Any) -> None:
    faults = Faults({3: fault, 7: fault})

    def scale(device: Device, stacked: Any) -> Any:
        return device.run(lambda x: 2 * x, device.put(stacked))

    served = stage(devices=lab, retries=5)(faults.into(scale))
    with DynamicBatchingServer(lab, served, stack=True, max_batch=8) as server:
        values = [np.full(4, n, np.float32) for n in range(80)]
        replies = [server.ask(one) for one in values]
        for value, reply in zip(values, replies, strict=True):
            np.testing.assert_array_equal(reply.result(WAIT), 2 * value)
        assert server.statistics.reruns >= 2


def test_two_replicas_on_one_card(lab: System) -> None:
    with ModelReplicaPool(lab, stage(devices=lab)(Scale), replicas=2) as pool:
        replies = [pool.ask(np.ones((1, 8), np.float32)) for _ in range(20)]
        for reply in replies:
            np.testing.assert_array_equal(reply.result(WAIT), np.full((1, 8), 3, np.float32))
