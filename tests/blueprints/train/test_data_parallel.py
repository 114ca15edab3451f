"""A trainer on several devices: one device's curve, whatever is lost on the way."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.blueprints import train
from accel_lab.blueprints.train.exchange.buckets import Buckets
from accel_lab.blueprints.train.faults import Hearing
from accel_lab.errors import ContextLost, InvalidArgument
from accel_lab.world.world import World
from tests.blueprints.train.digits import Killing, batches, loss, parameters, torch_curve

STEPS = 14


def trainer(world: World, of_step: Any = None, **options: Any) -> train.DataParallelTrainer:
    return train.DataParallelTrainer(
        world,
        loss,
        parameters(),
        train.AdamW(0.01),
        of_step or batches(),
        **({"clip_norm": 1.0, "bucket_bytes": 2000} | options),
    )


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", 2, max_restarts=1000, within_s=0.2) as opened:
        yield opened


def test_two_devices_learn_the_digits_as_a_plain_pytorch_script(lab: System) -> None:
    torch = pytest.importorskip("torch")
    ours = trainer(lab.world()).run(25)
    theirs = torch_curve(torch, 25, lambda tensors: torch.optim.AdamW(tensors, lr=0.01), 1.0)
    np.testing.assert_allclose(ours, theirs, rtol=2e-3)


@pytest.mark.parametrize("bucket_bytes", [1, 300, 1 << 20])
def test_one_device_and_two_are_alike(
    lab: System, undisturbed: tuple[list[float], dict[str, Any]], bucket_bytes: int
) -> None:
    made = trainer(lab.world(), bucket_bytes=bucket_bytes)
    np.testing.assert_allclose(made.run(5), undisturbed[0][:5], rtol=1e-6)
    alone = train.Trainer(
        lab.devices[0], loss, parameters(), train.AdamW(0.01), batches(), clip_norm=1.0
    )
    np.testing.assert_allclose(alone.run(5), undisturbed[0][:5], rtol=1e-6)
    ours, others = (made.states[rank] for rank in (0, 1))
    for name, ref in ours.items():  # all ranks have the same bits
        np.testing.assert_array_equal(ref.get(), others[name].get())


def test_rows_that_do_not_share_out_evenly_count_alike(lab: System) -> None:
    of_step = batches(61)
    alone = train.Trainer(lab.devices[0], loss, parameters(), train.SGD(0.1), of_step)
    both = train.DataParallelTrainer(lab.world(), loss, parameters(), train.SGD(0.1), of_step)
    np.testing.assert_allclose(both.run(4), alone.run(4), rtol=1e-6)
    for name, x in both.parameters().items():
        np.testing.assert_allclose(x, alone.parameters()[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("rank", [0, 1])
def test_after_a_rank_is_lost_the_curve_is_the_same_to_the_last_bit(
    lab: System, undisturbed: tuple[list[float], dict[str, Any]], rank: int
) -> None:
    killing = Killing(lab, rank, 0, 6, 7)
    made = trainer(lab.world(), killing)
    assert made.run(STEPS) == undisturbed[0]
    for name, x in made.parameters().items():
        np.testing.assert_array_equal(x, undisturbed[1][name])
    for fault in killing.faults:
        with pytest.raises(ContextLost):
            fault.result()
    lab.check()


def test_after_all_ranks_are_lost_it_goes_back_to_a_snapshot(
    undisturbed: tuple[list[float], dict[str, Any]], tmp_path: Path
) -> None:
    with System("host", 2, recover="stale", max_restarts=1000, within_s=0.2) as lab:
        asked = []

        def of_step(step: int) -> Any:
            asked.append(step)
            if step == 7 and asked.count(7) == 1:
                for device in lab.devices:
                    device.replace()
            return batches()(step)

        made = trainer(lab.world(), of_step, snapshots=train.Checkpoints(tmp_path), every=5)
        assert made.run(STEPS) == undisturbed[0]
    assert [asked.count(step) for step in (4, 5, 6)] == [1, 2, 2]


def test_it_goes_on_from_the_disk_on_another_number_of_devices(
    lab: System, undisturbed: tuple[list[float], dict[str, Any]], tmp_path: Path
) -> None:
    alone = train.Trainer(
        lab.devices[0],
        loss,
        parameters(),
        train.AdamW(0.01),
        batches(),
        clip_norm=1.0,
        snapshots=train.Checkpoints(tmp_path),
    )
    alone.run(6)
    made = trainer(lab.world(), snapshots=train.Checkpoints(tmp_path))
    assert made.resume() == 6
    np.testing.assert_allclose(made.run(STEPS), undisturbed[0], rtol=1e-5)


def test_a_world_that_shrinks_trains_on(undisturbed: tuple[list[float], dict[str, Any]]) -> None:
    with System("host", 2, max_restarts=0) as lab:
        killing = Killing(lab, 1, 5)
        made = trainer(lab.world(on_loss="shrink"), killing)
        losses = made.run(STEPS)
        assert [device.name for device in made.devices] == ["cpu0"]
        for fault in killing.faults:
            fault.add_waiter(lambda: None)
    np.testing.assert_allclose(losses, undisturbed[0], rtol=1e-5)


def test_sums_come_back_in_their_places_and_shapes(lab: System) -> None:
    """Also of several dtypes, of which each bucket has one."""
    world = lab.world()
    random = np.random.default_rng(0)
    given = [
        [random.integers(-9, 9, shape).astype(dtype) for _ in world.devices]
        for shape, dtype in [
            ((2, 3), "float32"),
            ((), "float32"),
            ((4,), "float64"),
            ((5, 1), "f4"),
        ]
    ]
    buckets = Buckets(world, 24, Hearing(world.devices))
    for place, row in enumerate(given):
        refs = [device.put(x) for device, x in zip(world.devices, row, strict=True)]
        buckets.add(f"w{place}", refs)
    for rank in buckets.done():
        assert list(rank) == ["w0", "w1", "w2", "w3"]
        for row, ref in zip(given, rank.values(), strict=True):
            wanted = sum(row)
            assert ref.shape == np.shape(wanted)
            np.testing.assert_array_equal(ref.get(), wanted)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda world: trainer(world, bucket_bytes=0), "bucket_bytes is 0"),
        (lambda world: trainer(world, lambda _: (np.ones((1, 64)),)).run(1), "[1] rows"),
        (
            lambda world: trainer(world, lambda _: (np.ones((4, 64)), np.ones(3))).run(1),
            "[3, 4] rows, and there are 2 ranks",
        ),
    ],
)
def test_a_mistake_is_refused_at_the_call(lab: System, call: Any, words: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call(lab.world())
    assert words in str(caught.value)
