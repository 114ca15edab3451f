"""What layers made is there again after its context died, and the actor has its plans again."""

from collections.abc import Iterator
from typing import Any

import pytest

from accel_lab import AccelRef, System, dnn
from accel_lab.compute.actors.fault import Inject
from accel_lab.errors import ContextLost
from tests.contract.samples import assert_same, reals, value

WAIT_S = 60.0


@pytest.fixture
def lab(backend: Any) -> Iterator[System]:
    with System(backend.__name__.rpartition(".")[2], devices=1, recover="replay") as system:
        yield system


def every_result(x: AccelRef, w: AccelRef, scale: AccelRef) -> list[AccelRef]:
    """Send messages of every kind, of which one feeds another."""
    y = dnn.conv(x, w, padding=1, activation="relu")
    normed = dnn.batch_norm(y, scale, scale, scale, scale)
    small = dnn.max_pool(dnn.gelu(normed.y), (2, 2))
    dy = dnn.max_pool_gradient(normed.y, dnn.softmax(small, 1), (2, 2))
    back = dnn.batch_norm_gradient(y, dy, scale)
    steps, weights = x.reshape(4, 24, 8), w.reshape(-1)[: dnn.Weights("gru", 8, 3).size]
    told: Any = {"lengths": (5, 24, 1, 9), "layout": "batch_first"}
    states = dnn.gru(steps, weights, 3, training=True, **told)
    assert states.reserve is not None
    graph = dnn.Graph(2)
    graph.apply("tanh", graph.conv(*graph.operands, padding=1))
    return [
        *states[:2],
        *dnn.gru_gradient(steps, weights, states.reserve, 3, states.y, **told),
        graph(dnn.local_response_norm(x, 2), w),
        *normed,
        *back,
        dnn.conv_data_gradient(back.x, w, (8, 8), padding=1),
        dnn.conv_filter_gradient(x, back.x, (3, 3), padding=1),
        dnn.average_pool(dnn.rms_norm(y), (2, 2)),
    ]


def test_results_around_a_kill_are_what_they_would_have_been(lab: System) -> None:
    (device,) = lab.devices
    x, w, scale = (
        device.put(reals(seed, shape, "float32"))
        for seed, shape in enumerate([(4, 3, 8, 8), (6, 3, 3, 3), (6,)])
    )
    calm = [value(device, ref) for ref in every_result(x, w, scale)]
    generation = device.generation
    before = every_result(x, w, scale)
    lost = device.ask(Inject("kill"))
    after = every_result(x, w, scale)
    with pytest.raises(ContextLost):
        lost.result(timeout_s=WAIT_S)
    for made in (before, after):
        for ref, expected in zip(made, calm, strict=True):
            assert_same(value(device, ref), expected)
    assert device.generation == generation + 1
