"""A trainer on a grid of ranks: one device's curve, whatever is lost."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.blueprints import train
from accel_lab.errors import ContextLost, InvalidArgument
from tests.blueprints.train.digits import Killing, batches, loss, parameters

STEPS = 8
FIRST = parameters()
CUTS = {"w1": 0, "b1": 0, "w2": 1}


def first(p: dict[str, train.Variable], images: Any) -> train.Variable:
    hidden = train.column_linear(images, p["w1"], p["b1"])
    return train.gathered(train.relu(hidden))


def second(p: dict[str, train.Variable], hidden: Any, labels: Any) -> train.Variable:
    logits = train.column_linear(hidden, p["w2"], p["b2"], gather=True)
    return train.cross_entropy(logits.astype("float32"), labels)


def both(p: dict[str, train.Variable], images: Any, labels: Any) -> train.Variable:
    hidden = train.relu(train.column_linear(images, p["w1"], p["b1"]))
    return train.cross_entropy(train.row_linear(hidden, p["w2"], p["b2"]), labels)


def trainer(
    lab: System, data: int, pipe: int, model: int, of_step: Any = None, **options: Any
) -> train.GridTrainer:
    devices = lab.devices[: data * pipe * model]
    world = lab.world(devices, shape={"data": data, "pipe": pipe, "model": model})
    cuts = {"w1": 0, "b1": 0, "w2": 0, "b2": 0}
    stages = [
        train.Stage(first, {name: FIRST[name] for name in ("w1", "b1")}),
        train.Stage(second, {name: FIRST[name] for name in ("w2", "b2")}),
    ]
    if pipe == 1:
        stages, cuts = [train.Stage(both, FIRST)], CUTS
    return train.GridTrainer(
        world,
        options.pop("stages", stages),
        options.pop("optimizer", train.AdamW(0.01)),
        of_step or batches(),
        **{"clip_norm": 1.0, "micro_batches": 3, "cuts": cuts if model > 1 else None, **options},
    )


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", 4, max_restarts=1000, within_s=0.2) as opened:
        yield opened


@pytest.fixture(scope="module")
def alone(lab: System) -> tuple[train.Trainer, list[float]]:
    made = train.Trainer(lab.devices[0], loss, FIRST, train.AdamW(0.01), batches(), clip_norm=1.0)
    return made, made.run(STEPS)


@pytest.mark.parametrize("shape", [(2, 2, 1), (1, 2, 2), (2, 1, 2), (4, 1, 1), (1, 1, 4)], ids=str)
def test_every_grid_has_the_numbers_of_one_device(
    lab: System, alone: tuple[train.Trainer, list[float]], shape: tuple[int, int, int]
) -> None:
    made = trainer(lab, *shape)
    np.testing.assert_allclose(made.run(STEPS), alone[1], rtol=1e-5)
    np.testing.assert_allclose(made.norms, alone[0].norms, rtol=1e-4)
    wanted = alone[0].parameters()
    for name, x in made.parameters().items():
        np.testing.assert_allclose(x, wanted[name], rtol=1e-3, atol=1e-4)
    assert made.statistics().stages == shape[1]


@pytest.mark.slow
def test_eight_devices_in_all_three_ways_have_the_numbers_of_one(
    alone: tuple[train.Trainer, list[float]],
) -> None:
    with System("host", 8) as eight:
        made = trainer(eight, 2, 2, 2)
        np.testing.assert_allclose(made.run(STEPS), alone[1], rtol=1e-5)


@pytest.mark.parametrize(("shape", "goes_back"), [((2, 1, 2), False), ((1, 2, 2), True)])
def test_after_a_rank_is_lost_the_curve_is_the_same_to_the_last_bit(
    lab: System, shape: tuple[int, int, int], *, goes_back: bool
) -> None:
    """It goes back to a snapshot only where no other rank has the same."""
    undisturbed = trainer(lab, *shape)
    undisturbed.run(STEPS)
    killing = Killing(lab, 1, 2, 6)
    made = trainer(lab, *shape, killing, every=4)
    assert made.run(STEPS) == undisturbed.losses
    wanted = undisturbed.parameters()
    for name, x in made.parameters().items():
        np.testing.assert_array_equal(x, wanted[name])
    assert made.faults
    assert (killing.asked.count(4) > 1) == goes_back
    for fault in killing.faults:
        with pytest.raises(ContextLost):
            fault.result()
    lab.check()


def test_a_checkpoint_goes_to_another_grid_and_to_one_device(
    lab: System, alone: tuple[train.Trainer, list[float]], tmp_path: Path
) -> None:
    trainer(lab, 1, 2, 2, snapshots=train.Checkpoints(tmp_path)).run(3)
    made = trainer(lab, 2, 2, 1, snapshots=train.Checkpoints(tmp_path))
    assert made.resume() == 3
    made.run(5)
    last = train.Trainer(
        lab.devices[3],
        loss,
        FIRST,
        train.AdamW(0.01),
        batches(),
        clip_norm=1.0,
        snapshots=train.Checkpoints(tmp_path),
    )
    assert last.resume() == 5
    np.testing.assert_allclose(last.run(STEPS), alone[1], rtol=1e-4)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda lab: train.GridTrainer(lab.world(), [], train.SGD(1), batches()),
            "the world has the dimensions []",
        ),
        (lambda lab: trainer(lab, 1, 2, 2, stages=[]), "there are 0 stages, and the world has 2"),
        (lambda lab: trainer(lab, 2, 1, 2, cuts=None), "cuts is None, and the world has 2 along"),
        (lambda lab: trainer(lab, 2, 2, 1, cuts=CUTS), "and the world has 1 along 'model'"),
        (lambda lab: trainer(lab, 1, 1, 4, cuts={"w2": 0}), "cannot be cut along axis 0 into 4"),
        (
            lambda lab: trainer(lab, 1, 1, 4, optimizer=train.Adafactor()),
            "Adafactor looks at whole parameters",
        ),
    ],
)
def test_a_mistake_is_refused_at_the_call(lab: System, call: Any, words: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call(lab)
    assert words in str(caught.value)
