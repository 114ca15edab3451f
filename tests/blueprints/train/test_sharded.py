"""A trainer whose ranks share the optimizer's state: the others' curve, whatever is lost."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import System
from accel_lab.blueprints import train
from accel_lab.blueprints.train.exchange.buckets import Buckets
from accel_lab.blueprints.train.exchange.pieces import Scatters, filled, piece
from accel_lab.blueprints.train.faults import Hearing
from accel_lab.errors import ContextLost, InvalidArgument
from accel_lab.world.world import World
from tests.blueprints.train.digits import Killing, batches, loss, parameters, torch_curve

STEPS = 9


def trainer(world: World, of_step: Any = None, **options: Any) -> train.ShardedTrainer:
    return train.ShardedTrainer(
        world,
        loss,
        parameters(),
        options.pop("optimizer", None) or train.AdamW(0.01),
        of_step or batches(),
        **{"clip_norm": 1.0, "bucket_bytes": 2000, **options},
    )


def test_it_learns_the_digits_as_a_plain_pytorch_script(
    undisturbed: tuple[list[float], dict[str, Any]],
) -> None:
    torch = pytest.importorskip("torch")
    theirs = torch_curve(torch, STEPS, lambda tensors: torch.optim.AdamW(tensors, lr=0.01), 1.0)
    np.testing.assert_allclose(undisturbed[0], theirs, rtol=1e-3)


@pytest.mark.parametrize(
    "optimizer",
    [train.SGD(0.1, momentum=0.9, nesterov=True), train.Lion(0.001)],
    ids=lambda one: type(one).__name__,
)
def test_it_has_the_numbers_of_a_data_parallel_trainer(lab: System, optimizer: Any) -> None:
    """Of three ranks, which no parameter's size is a multiple of."""
    shared = train.DataParallelTrainer(
        lab.world(), loss, parameters(), optimizer, batches(), clip_norm=1.0
    )
    made = trainer(lab.world(), optimizer=optimizer)
    np.testing.assert_allclose(made.run(4), shared.run(4), rtol=1e-6)
    np.testing.assert_allclose(made.norms, shared.norms, rtol=1e-5)
    wanted = shared.parameters()
    for name, x in made.parameters().items():
        np.testing.assert_allclose(x, wanted[name], rtol=1e-3, atol=1e-4)
    for name, ref in made.states[0].items():
        if ":" not in name:  # all ranks have the same bits of the parameters
            np.testing.assert_array_equal(ref.get(), made.states[2][name].get())


def test_each_rank_has_a_third_of_the_optimizers_state(lab: System) -> None:
    made = trainer(lab.world())
    whole = sum(x.nbytes for x in parameters().values())
    for state in made.states:
        slots = sum(ref.nbytes for name, ref in state.items() if ":" in name)
        assert 2 * whole / 3 <= slots < 2 * whole / 3 + 100


def test_after_a_rank_is_lost_the_curve_is_the_same_to_the_last_bit(
    lab: System, undisturbed: tuple[list[float], dict[str, Any]]
) -> None:
    killing = Killing(lab, 2, 1, 7)
    made = trainer(lab.world(), killing, every=4)
    assert made.run(STEPS) == undisturbed[0]
    for name, x in made.parameters().items():
        np.testing.assert_array_equal(x, undisturbed[1][name])
    assert made.faults
    for fault in killing.faults:
        with pytest.raises(ContextLost):
            fault.result()
    lab.check()


def test_it_goes_on_from_the_disk_on_another_number_of_devices(
    lab: System, undisturbed: tuple[list[float], dict[str, Any]], tmp_path: Path
) -> None:
    trainer(lab.world(), snapshots=train.Checkpoints(tmp_path)).run(5)
    made = trainer(lab.world(lab.devices[:2]), snapshots=train.Checkpoints(tmp_path))
    assert made.resume() == 5
    np.testing.assert_allclose(made.run(STEPS), undisturbed[0], rtol=1e-4)


def test_a_checkpoint_goes_from_trainer_to_trainer(
    lab: System, undisturbed: tuple[list[float], dict[str, Any]], tmp_path: Path
) -> None:
    def alone() -> train.Trainer:
        return train.Trainer(
            lab.devices[0],
            loss,
            parameters(),
            train.AdamW(0.01),
            batches(),
            clip_norm=1.0,
            snapshots=train.Checkpoints(tmp_path),
        )

    alone().run(3)
    made = trainer(lab.world(), snapshots=train.Checkpoints(tmp_path))
    made.resume()
    made.run(6)
    last = alone()
    assert last.resume() == 6
    np.testing.assert_allclose(last.run(STEPS), undisturbed[0], rtol=1e-4)


def test_a_world_that_shrinks_trains_on(undisturbed: tuple[list[float], dict[str, Any]]) -> None:
    with System("host", 3, max_restarts=0) as lab:
        killing = Killing(lab, 1, 5)
        made = trainer(lab.world(on_loss="shrink"), killing, every=4)
        losses = made.run(STEPS)
        assert [device.name for device in made.devices] == ["cpu0", "cpu2"]
        for fault in killing.faults:
            fault.add_waiter(lambda: None)
    np.testing.assert_allclose(losses, undisturbed[0], rtol=1e-4)


def test_a_step_whose_gradients_are_not_finite_on_one_rank_is_left_out(lab: System) -> None:
    of_step = batches()

    def spoiled(step: int) -> Any:
        images, labels = of_step(step)
        if step == 2:
            images = images.copy()
            images[-1] = np.inf  # a row of the last rank
        return images, labels

    made = trainer(lab.world(), spoiled, loss_scale=train.LossScale(1024.0))
    made.run(4)
    assert made.updates == 3
    assert made.scale is not None
    assert made.scale.scale == 512
    assert all(np.isfinite(x).all() for x in made.parameters().values())


@settings(max_examples=10, deadline=None)
@given(
    shapes=st.lists(st.lists(st.integers(0, 5), max_size=3).map(tuple), min_size=1, max_size=4),
    seed=st.integers(0, 99),
)
def test_pieces_are_those_of_the_sums(lab: System, shapes: Any, seed: int) -> None:
    """And what NumPy cuts is what a device cuts."""
    world = lab.world()
    random = np.random.default_rng(seed)
    buckets = Buckets(world, 40, Hearing(world.devices), Scatters(3))
    wanted = {}
    for at, shape in enumerate(shapes):
        row = [random.integers(-9, 9, shape).astype("float32") for _ in world.devices]
        refs = [device.put(x) for device, x in zip(world.devices, row, strict=True)]
        buckets.add(str(at), refs)
        wanted[str(at)] = np.split(filled(np.asarray(sum(row)), 3), 3)
        for rank, (x, ref) in enumerate(zip(row, refs, strict=True)):
            np.testing.assert_array_equal(
                piece(ref, rank, 3).get(), np.split(filled(x, 3), 3)[rank]
            )
    for rank, found in enumerate(buckets.done()):
        for name, ref in found.items():
            np.testing.assert_array_equal(ref.get(), wanted[name][rank])


def test_a_mistake_is_refused_at_the_call(lab: System) -> None:
    with pytest.raises(InvalidArgument, match="bucket_bytes is 0"):
        trainer(lab.world(), bucket_bytes=0)
    with pytest.raises(InvalidArgument, match="Adafactor looks at whole parameters"):
        trainer(lab.world(), optimizer=train.Adafactor())
