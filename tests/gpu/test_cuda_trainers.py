"""Trainers on two and four cards: one card's curve, also where a card's context is lost."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.backends import cuda
from accel_lab.blueprints import train
from accel_lab.compute.events.training import StepTrained
from tests.blueprints.train import test_grid, test_pipeline
from tests.blueprints.train.digits import Killing, batches, parameters

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

STEPS = 8
OPTIONS: Any = {"clip_norm": 1.0, "every": 4}


@pytest.fixture(scope="module", params=[2, 4])
def lab(request: pytest.FixtureRequest) -> Iterator[System]:
    ranks: int = request.param
    if (found := cuda.device_count()) < ranks:
        pytest.skip(f"this machine shows {found} cards, and not {ranks}")
    with System("cuda", ranks, max_restarts=1000, within_s=0.2) as opened:
        yield opened


def data_parallel(lab: System, of_step: Any) -> Any:
    return train.DataParallelTrainer(
        lab.world(), test_grid.both, parameters(), train.AdamW(0.01), of_step, **OPTIONS
    )


def sharded(lab: System, of_step: Any) -> Any:
    return train.ShardedTrainer(
        lab.world(), test_grid.both, parameters(), train.AdamW(0.01), of_step, **OPTIONS
    )


def pipeline(lab: System, of_step: Any) -> Any:
    one, two, three = test_pipeline.stages()

    def last(p: dict[str, train.Variable], hidden: Any, labels: Any) -> train.Variable:
        return three.function(p, two.function(p, hidden), labels)

    stages = [one, train.Stage(last, {**two.parameters, **three.parameters})]
    world = lab.world(lab.devices[:2])
    return train.PipelineParallelTrainer(world, stages, train.AdamW(0.01), of_step, **OPTIONS)


def tensor_parallel(lab: System, of_step: Any) -> Any:
    return train.TensorParallelTrainer(
        lab.world(),
        test_grid.both,
        parameters(),
        train.AdamW(0.01),
        of_step,
        cuts=test_grid.CUTS,
        **OPTIONS,
    )


def grid(lab: System, of_step: Any) -> Any:
    return test_grid.trainer(lab, len(lab.devices) // 2, 1, 2, of_step, every=4)


@pytest.mark.parametrize("make", [data_parallel, sharded, pipeline, tensor_parallel, grid])
def test_several_cards_have_the_curve_of_one_also_after_a_loss(
    lab: System, make: Callable[[System, Any], Any]
) -> None:
    alone = train.Trainer(
        lab.devices[0], test_grid.both, parameters(), train.AdamW(0.01), batches(), clip_norm=1.0
    )
    wanted = alone.run(STEPS)
    np.testing.assert_allclose(make(lab, batches()).run(STEPS), wanted, rtol=1e-3)
    killing = Killing(lab, 1, 2, 6)
    made = make(lab, killing)
    np.testing.assert_allclose(made.run(STEPS), wanted, rtol=1e-3)
    told = [one for one in lab.events.history(StepTrained) if one.trainer == made.name]
    assert any(one.faults for one in told)
    for one in told:
        for exchanging, waiting in zip(one.exchanging_s, one.waiting_s, strict=True):
            assert exchanging + waiting <= one.seconds + 0.01  # two clocks
    for fault in killing.faults:
        fault.add_waiter(lambda: None)
