"""A trainer with its layers on several devices: one device's curve, whatever is lost."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab import System
from accel_lab.blueprints import train
from accel_lab.blueprints.train.exchange import schedule
from accel_lab.blueprints.train.exchange.schedule import Work, in_turn, of_stage
from accel_lab.errors import ContextLost, InvalidArgument
from accel_lab.libraries.array import Arange
from accel_lab.world.world import World
from tests.blueprints.train.digits import Killing, batches, loss, parameters, torch_curve

STEPS = 10
FIRST = parameters()


def first(p: dict[str, train.Variable], images: Any) -> train.Variable:
    return train.relu(train.linear(images, p["w1"], p["b1"]))


def second(p: dict[str, train.Variable], hidden: Any) -> train.Variable:
    return train.linear(hidden, p["w2"])


def third(p: dict[str, train.Variable], hidden: Any, labels: Any) -> train.Variable:
    return train.cross_entropy((hidden + p["b2"]).astype("float32"), labels)


def stages() -> list[train.Stage]:
    functions: list[Any] = [first, second, third]
    names = [("w1", "b1"), ("w2",), ("b2",)]
    return [
        train.Stage(function, {name: FIRST[name] for name in own})
        for function, own in zip(functions, names, strict=True)
    ]


def trainer(world: World, of_step: Any = None, **options: Any) -> train.PipelineParallelTrainer:
    return train.PipelineParallelTrainer(
        world,
        options.pop("stages", None) or stages(),
        train.AdamW(0.01),
        of_step or batches(),
        **{"clip_norm": 1.0, "micro_batches": 4, **options},
    )


def test_it_learns_the_digits_as_a_plain_pytorch_script(
    undisturbed: tuple[list[float], dict[str, Any]],
) -> None:
    torch = pytest.importorskip("torch")
    theirs = torch_curve(torch, STEPS, lambda tensors: torch.optim.AdamW(tensors, lr=0.01), 1.0)
    np.testing.assert_allclose(undisturbed[0], theirs, rtol=1e-3)


@pytest.mark.parametrize("micro_batches", [1, 2, 7])
def test_it_has_the_numbers_of_one_device(lab: System, micro_batches: int) -> None:
    """Also where micro-batches have not all as many rows."""
    alone = train.Trainer(
        lab.devices[0], loss, FIRST, train.Adafactor(0.01), batches(), clip_norm=1.0
    )
    made = train.PipelineParallelTrainer(
        lab.world(),
        stages(),
        train.Adafactor(0.01),
        batches(),
        micro_batches=micro_batches,
        clip_norm=1.0,
    )
    np.testing.assert_allclose(made.run(4), alone.run(4), rtol=1e-5)
    np.testing.assert_allclose(made.norms, alone.norms, rtol=1e-4)
    wanted = alone.parameters()
    for name, x in made.parameters().items():
        np.testing.assert_allclose(x, wanted[name], rtol=1e-3, atol=1e-5)


def test_half_precision_learns_alike_and_leaves_out_what_is_not_finite(lab: System) -> None:
    options: Any = {"compute": "float16", "loss_scale": train.LossScale(2.0**24)}
    alone = train.Trainer(
        lab.devices[0], loss, FIRST, train.AdamW(0.01), batches(), clip_norm=1.0, **options
    )
    made = trainer(lab.world(), **options)
    np.testing.assert_allclose(made.run(8), alone.run(8), rtol=2e-2)
    assert made.scale == alone.scale
    assert made.updates == alone.updates < 8


@pytest.mark.parametrize("rank", [0, 2])
def test_after_a_rank_is_lost_the_curve_is_the_same_to_the_last_bit(
    lab: System, undisturbed: tuple[list[float], dict[str, Any]], rank: int
) -> None:
    killing = Killing(lab, rank, 1, 6)
    made = trainer(lab.world(), killing, every=4)
    assert made.run(STEPS) == undisturbed[0]
    for name, x in made.parameters().items():
        np.testing.assert_array_equal(x, undisturbed[1][name])
    for fault in killing.faults:
        with pytest.raises(ContextLost):
            fault.result()
    lab.check()


def test_a_checkpoint_goes_to_one_device_and_back(
    lab: System, undisturbed: tuple[list[float], dict[str, Any]], tmp_path: Path
) -> None:
    trainer(lab.world(), snapshots=train.Checkpoints(tmp_path)).run(3)
    alone = train.Trainer(
        lab.devices[1],
        loss,
        FIRST,
        train.AdamW(0.01),
        batches(),
        clip_norm=1.0,
        snapshots=train.Checkpoints(tmp_path),
    )
    assert alone.resume() == 3
    alone.run(6)
    made = trainer(lab.world(), snapshots=train.Checkpoints(tmp_path))
    assert made.resume() == 6
    np.testing.assert_allclose(made.run(STEPS), undisturbed[0], rtol=1e-4)


def test_what_is_idle_is_measured(lab: System) -> None:
    """One micro-batch is on one stage at a time, so that two of three are idle."""
    made = trainer(lab.world(), micro_batches=1)
    with pytest.raises(InvalidArgument, match="no step was done"):
        made.statistics()
    made.run(2)
    found = made.statistics()
    assert found.at_best == pytest.approx(2 / 3)
    assert found.idle == pytest.approx(2 / 3, abs=1e-6)
    several = trainer(lab.world(), micro_batches=6)
    several.run(1)
    found = several.statistics()
    assert (found.stages, found.micro_batches, found.at_best) == (3, 6, 0.25)
    assert 0 <= found.idle < 1
    assert sum(found.busy_s) == pytest.approx((1 - found.idle) * 3 * found.seconds)
    assert "3 stages, 6 micro-batches" in repr(found)


def test_a_step_that_is_not_whole_has_no_bubble(
    lab: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "_BEHIND_S", 0.01)
    watch = schedule.Stopwatch(1, 1)
    watch.sent(Work(0, 0, is_forward=True), lab.devices[0])
    with pytest.raises(InvalidArgument, match="the last step is not whole"):
        watch.bubble()
    monkeypatch.undo()
    for _ in range(300):  # that many answers at once are let go where nobody holds them
        lab.devices[0].tell(Arange(100_000))
    watch.sent(Work(0, 0, is_forward=False), lab.devices[0])
    assert watch.bubble().idle == pytest.approx(0)


@given(stages=st.integers(1, 6), micros=st.integers(1, 9))
def test_the_schedule_is_one_forward_one_backward(stages: int, micros: int) -> None:
    order = in_turn(stages, micros)
    at = {work: place for place, work in enumerate(order)}
    every = {
        Work(stage, micro, is_forward)
        for stage in range(stages)
        for micro in range(micros)
        for is_forward in (True, False)
    }
    assert {*order} == every
    assert len(order) == len(every)
    for work in order:
        before = work.waits_for(stages)
        assert before is None or at[before] < at[work]
    for stage in range(stages):
        own = [work for work in order if work.stage == stage]
        assert own == of_stage(stage, stages, micros)
        kept = most = 0
        for work in own:
            kept += 1 if work.is_forward else -1
            most = max(most, kept)
        assert most == min(micros, stages - stage)  # activations that a stage keeps


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda world: trainer(world, micro_batches=0), "micro_batches is 0"),
        (lambda world: trainer(world, stages=stages()[:2]), "there are 2 stages, and the world"),
        (
            lambda world: trainer(world, stages=[*stages()[:2], train.Stage(third, {})]),
            "stage 2 has no parameters",
        ),
        (
            lambda world: trainer(world, stages=[*stages()[:2], stages()[0]]),
            "parameter 'w1' is in stage 2, and in one before",
        ),
        (lambda world: trainer(world, micro_batches=61).run(1), "there are 61 micro-batches"),
    ],
)
def test_a_mistake_is_refused_at_the_call(lab: System, call: Any, words: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call(lab.world())
    assert words in str(caught.value)


def test_a_world_that_has_shrunk_has_too_few_ranks() -> None:
    with System("host", 3, max_restarts=0) as lab:
        killing = Killing(lab, 1, 2)
        made = trainer(lab.world(on_loss="shrink"), killing)
        with pytest.raises(InvalidArgument, match="there are 3 stages, and the world has 2 ranks"):
            made.run(4)
        for fault in killing.faults:
            fault.add_waiter(lambda: None)
