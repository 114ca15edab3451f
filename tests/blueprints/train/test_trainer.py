"""A trainer on one device: PyTorch's curve, and the same one to the last bit after faults."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.actor.reply import Reply
from accel_lab.blueprints import train
from accel_lab.blueprints.train.snapshots.snapshot import Asked
from accel_lab.blueprints.train.trainers.training import ATTEMPTS
from accel_lab.compute.assembly import Recover
from accel_lab.compute.device import Device
from accel_lab.errors import (
    AccelError,
    ContextLost,
    DependencyFailed,
    InvalidArgument,
    OutOfBounds,
    StaleRef,
)
from tests.blueprints.train.digits import Killing, batches, loss, parameters, torch_curve
from tests.project import ROOT

STEPS = 24


def trainer(device: Device, of_step: Any = None, **options: Any) -> train.Trainer:
    optimizer = train.AdamW(train.Cosine(0.01, STEPS))
    given = of_step or batches()
    return train.Trainer(device, loss, parameters(), optimizer, given, clip_norm=1.0, **options)


@pytest.fixture(scope="module")
def host() -> Iterator[System]:
    """Run a host device that may be lost as often as a test likes."""
    with System("host", 1, max_restarts=1000, within_s=0.2) as lab:
        yield lab


@pytest.fixture(scope="module")
def undisturbed(host: System) -> tuple[list[float], dict[str, Any]]:
    made = trainer(host.devices[0])
    return made.run(STEPS), made.parameters()


def test_the_digits_are_learned_as_by_a_plain_pytorch_script(device: Device) -> None:
    torch = pytest.importorskip("torch")

    def make(tensors: list[Any]) -> Any:
        return torch.optim.AdamW(tensors, lr=0.01)

    ours = train.Trainer(
        device, loss, parameters(), train.AdamW(0.01), batches(), clip_norm=1.0
    ).run(40)
    theirs = torch_curve(torch, 40, make, 1.0)
    np.testing.assert_allclose(ours, theirs, rtol=2e-3)
    assert ours[-1] < 0.5 * ours[0]


@pytest.mark.parametrize("recover", ["replay", "stale"])
def test_after_kills_the_curve_is_the_same_to_the_last_bit(
    recover: Recover, undisturbed: tuple[list[float], dict[str, Any]]
) -> None:
    with System("host", 1, recover=recover, max_restarts=1000, within_s=0.2) as lab:
        killing = Killing(lab, 0, 0, 9, 17)
        made = trainer(lab.devices[0], killing, every=4)
        losses = made.run(STEPS)
        for fault in killing.faults:
            with pytest.raises(ContextLost):
                fault.result()
        lab.check()
    assert losses == undisturbed[0]
    assert made.step == STEPS
    assert lab.devices[0].generation == 4
    if recover == "stale":  # what was lost goes back to a snapshot
        assert len(made.faults) == 3
        assert [killing.asked.count(step) for step in (7, 8, 9, 10)] == [1, 2, 2, 1]


def test_after_kills_the_parameters_are_the_same_to_the_last_bit(
    host: System, undisturbed: tuple[list[float], dict[str, Any]]
) -> None:
    killing = Killing(host, 0, 5)
    made = trainer(host.devices[0], killing)
    made.run(STEPS)
    for name, x in made.parameters().items():
        np.testing.assert_array_equal(x, undisturbed[1][name])
    with pytest.raises(ContextLost):
        killing.faults[0].result()


def test_a_step_that_is_lost_each_time_is_told() -> None:
    faults: list[Any] = []
    with System("host", 1, recover="stale", max_restarts=1000, within_s=0.2) as lab:

        def of_step(step: int) -> Any:
            if step == 2 and len(faults) < ATTEMPTS:
                faults.append(lab.inject("kill", 0))
            return batches()(step)

        made = trainer(lab.devices[0], of_step)
        with pytest.raises((ContextLost, DependencyFailed, StaleRef)):
            made.run(STEPS)
        assert len(faults) == ATTEMPTS
        assert len(made.faults) == ATTEMPTS - 1
        assert len(made.run(4)) == 4  # nobody kills it any more
        for fault in faults:
            with pytest.raises(ContextLost):
                fault.result()
        lab.check()


def test_a_mistake_is_raised_at_once_and_costs_nothing(host: System) -> None:
    wrong = [True]

    def with_a_wrong_label(step: int) -> Any:
        images, labels = batches()(step)
        if step == 3 and wrong:
            labels = labels.copy()
            labels[0] = 99
        return images, labels

    made = trainer(host.devices[0], with_a_wrong_label)
    with pytest.raises(OutOfBounds, match="labels"):
        made.run(STEPS)
    assert made.step == 3
    assert made.faults == []
    wrong.clear()
    right = trainer(host.devices[0])
    assert made.run(6) == right.run(6)
    host.check()


def test_steps_whose_gradients_are_not_finite_are_left_out_as_pytorch_does(host: System) -> None:
    torch = pytest.importorskip("torch")
    rows = np.ones((8, 2, 3), "float32") * np.arange(1, 9, dtype="float32")[:, None, None]
    rows[2] = np.inf
    rows[5, 0, 0] = np.nan
    start = np.array([0.3, -0.2, 0.1], "float32")

    def line(p: dict[str, train.Variable], x: Any) -> train.Variable:
        return (train.linear(x, p["w"].reshape(1, 3)) ** 2).mean()

    made = train.Trainer(
        host.devices[0],
        line,
        {"w": start},
        train.Adam(0.01),
        lambda step: (rows[step],),
        loss_scale=train.LossScale(1024.0, every=3),
        clip_norm=1.0,
    )
    w = torch.tensor(start, requires_grad=True)
    optimizer = torch.optim.Adam([w], lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
    for step in range(8):
        made.run(step + 1)
        optimizer.zero_grad()
        scaler.scale((torch.tensor(rows[step]) @ w).square().mean()).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_([w], 1.0)
        scaler.step(optimizer)
        scaler.update()
        np.testing.assert_allclose(made.parameters()["w"], w.detach().numpy(), rtol=1e-5)
        assert made.scale is not None
        assert made.scale.scale == scaler.get_scale()
    assert made.updates == 6


def test_parameters_stay_wide_where_halves_are_computed_with(device: Device) -> None:
    made = trainer(device, compute="float16", loss_scale=train.LossScale())
    wide = trainer(device)
    losses, others = made.run(STEPS), wide.run(STEPS)
    assert {str(x.dtype) for x in made.parameters().values()} == {"float32"}
    np.testing.assert_allclose(losses, others, rtol=0.02)
    assert losses != others


def test_memory_stays_flat(host: System) -> None:
    made = trainer(host.devices[0])
    held = []
    for until in (3, 9, STEPS):
        made.run(until)
        held.append(len(list(host.devices[0].resident)))
    assert held[0] == held[1] == held[2] >= 9  # of both vectors there is one buffer


def test_the_norm_before_clipping_is_told(host: System) -> None:
    made = trainer(host.devices[0])
    made.run(3)
    assert len(made.norms) == 3
    assert min(made.norms) > 0


def test_a_trainer_goes_on_from_the_disk(
    host: System, tmp_path: Path, undisturbed: tuple[list[float], dict[str, Any]]
) -> None:
    first = trainer(host.devices[0], snapshots=train.Checkpoints(tmp_path), every=5)
    assert first.resume() == 0
    first.run(12)
    second = trainer(host.devices[0], snapshots=train.Checkpoints(tmp_path), every=5)
    assert second.resume() == 12
    assert second.norms == first.norms
    assert second.run(STEPS) == undisturbed[0]
    assert train.Checkpoints(tmp_path).steps == [15, 20, 24]


def test_a_program_that_is_killed_goes_on_where_it_was(
    tmp_path: Path, host: System, undisturbed: tuple[list[float], dict[str, Any]]
) -> None:
    """Also if that was while it wrote."""
    program = """
import os, signal, sys
from accel_lab import System
from accel_lab.blueprints import train
from tests.blueprints.train.digits import batches
from tests.blueprints.train.test_trainer import trainer

def of_step(step):
    if step == 6:
        os.kill(os.getpid(), signal.SIGKILL)
    return batches()(step)

with System("host", 1) as lab:
    trainer(lab.devices[0], of_step, snapshots=train.Checkpoints(sys.argv[1]), every=1).run(8)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, check=False, timeout=60
    )
    assert done.returncode == -9
    made = trainer(host.devices[0], snapshots=train.Checkpoints(tmp_path))
    assert 4 <= made.resume() <= 6
    assert made.run(STEPS) == undisturbed[0]


def test_the_steps_of_another_run_are_not_written_over(host: System, tmp_path: Path) -> None:
    trainer(host.devices[0], snapshots=train.Checkpoints(tmp_path)).run(3)
    made = trainer(host.devices[0], snapshots=train.Checkpoints(tmp_path))
    with pytest.raises(InvalidArgument, match=r"has the steps \[3\] of another run: resume"):
        made.run(1)
    assert made.resume() == 3
    made.run(4)
    assert train.Checkpoints(tmp_path).steps == [3, 4]


@pytest.mark.parametrize("why", ["damaged", "of another network", "looked at", "given again"])
def test_nor_are_they_where_nobody_has_gone_on_from_them(
    host: System, tmp_path: Path, why: str
) -> None:
    """A second trainer's first snapshots would remove all that are later."""
    kept = train.Checkpoints(tmp_path)
    trainer(host.devices[0], snapshots=kept).run(3)
    if why == "damaged":
        (tmp_path / "step-000000003.json").write_text("{")
    if why != "given again":
        kept = train.Checkpoints(tmp_path)
    made = trainer(host.devices[0], snapshots=kept)
    if why == "of another network":
        made = _of(host.devices[0], {"w": np.ones(3)}, snapshots=kept)
    if why == "looked at":
        kept.load(3)
    elif why != "given again":
        with pytest.raises(AccelError, match=r"no checkpoint|does not fit"):
            made.resume()
    with pytest.raises(InvalidArgument, match=r"has the steps \[3\] of another run: resume"):
        made.run(1)
    assert kept.steps == [3]


def test_what_is_kept_in_memory_is_of_one_run(
    host: System, undisturbed: tuple[list[float], dict[str, Any]]
) -> None:
    kept = train.InMemory()
    trainer(host.devices[0], snapshots=kept).run(2)
    made = trainer(host.devices[0], snapshots=kept)
    with pytest.raises(InvalidArgument, match="InMemory: it has step 2 of another run"):
        made.run(1)
    assert made.resume() == 2
    assert made.run(4) == undisturbed[0][:4]


class Losing(train.Checkpoints):
    """Checkpoints of which a fault takes the first snapshots."""

    left = 2

    def take(self, asked: Asked) -> None:
        if self.left:
            self.left -= 1
            lost: Reply[Any] = Reply()
            lost.reject(ContextLost("gone", generation=1))
            asked = asked._replace(replies={name: [lost] for name in asked.replies})
        super().take(asked)


@pytest.mark.parametrize("every", [3, 25])
def test_the_end_is_kept_though_a_fault_takes_its_snapshot(
    host: System, tmp_path: Path, every: int
) -> None:
    made = trainer(host.devices[0], snapshots=Losing(tmp_path), every=every)
    losses = made.run(3)
    again = trainer(host.devices[0], snapshots=train.Checkpoints(tmp_path))
    assert again.resume() == 3
    assert again.losses == losses


def test_parameters_outlive_a_fault_after_the_last_step(
    undisturbed: tuple[list[float], dict[str, Any]],
) -> None:
    with System("host", 1, recover="stale") as lab:
        made = trainer(lab.devices[0])
        made.run(7)
        with pytest.raises(ContextLost):
            lab.inject("kill", 0).result()
        before = made.parameters()
        assert made.step == 7
        assert made.losses == undisturbed[0][:7]
        made.run(STEPS)
        assert made.losses == undisturbed[0]
        assert not np.array_equal(before["w1"], made.parameters()["w1"])
        np.testing.assert_array_equal(made.parameters()["w1"], undisturbed[1]["w1"])


def test_a_snapshot_of_another_network_is_refused(host: System, tmp_path: Path) -> None:
    first = trainer(host.devices[0], snapshots=train.Checkpoints(tmp_path))
    first.run(1)
    other = train.Trainer(
        host.devices[0],
        loss,
        parameters(),
        train.SGD(0.1, momentum=0.9),
        batches(),
        snapshots=train.Checkpoints(tmp_path),
    )
    with pytest.raises(InvalidArgument, match="a snapshot of step 1 does not fit"):
        other.resume()
    wide = train.Trainer(
        host.devices[0],
        loss,
        {name: x.astype("float64") for name, x in parameters().items()},
        train.AdamW(0.01),
        batches(),
        snapshots=train.Checkpoints(tmp_path),
    )
    with pytest.raises(InvalidArgument, match=r"does not fit: it has .*float32.*, and .*float64"):
        wide.resume()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda gpu: trainer(gpu, every=0), "every is 0"),
        (lambda gpu: _of(gpu, {}), "there are no parameters"),
        (lambda gpu: _of(gpu, {"w": [1, 2]}), "parameter 'w' is int64[2]; it is to be of floats"),
        (lambda gpu: trainer(gpu, compute="int32"), "compute is 'int32'; it is a float's"),
        (lambda gpu: _with(gpu, lambda *_: 3.0), "loss is to return a variable"),
        (lambda gpu: _with(gpu, lambda p, *_: p["b1"]), "take its sum or mean"),
        (lambda _: train.Batches(np.ones((3, 2)), np.ones(4), size=2), "arrays have [3, 4] rows"),
        (lambda _: train.Batches(np.ones(3), size=4), "size is 4, and there are 3 rows"),
        (lambda _: train.Batches(np.ones(3), size=1.5), "size is 1.5, and there are 3 rows"),  # type: ignore[arg-type]
        (lambda gpu: _of(gpu, parameters(), clip_norm=-1.0), "clip_norm is -1.0"),
        (lambda gpu: _of(gpu, parameters(), clip_norm="1"), "clip_norm is '1'"),
        (lambda gpu: trainer(gpu, loss_scale=1024.0), "loss_scale is 1024.0; it is a LossScale"),
        (lambda gpu: trainer(gpu, loss_scale=train.LossScale(0.0)), "scale is above 0"),
        (lambda gpu: trainer(gpu, loss_scale=train.LossScale(every=0)), "every from 1"),
        (lambda gpu: _with(gpu, lambda _p, x, _y: train.mse(x, x)), "depends on no parameter"),
    ],
)
def test_a_mistake_is_refused_at_the_call(host: System, call: Any, words: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call(host.devices[0])
    assert words in str(caught.value)


def _of(device: Device, given: Any, **options: Any) -> train.Trainer:
    return train.Trainer(device, loss, given, train.SGD(0.1), batches(), **options)


def _with(device: Device, function: Any) -> None:
    made = trainer(device)
    made.loss = function
    made.run(1)


def test_a_steps_batch_depends_on_its_number_alone() -> None:
    rows = np.arange(10)
    one, other = train.Batches(rows, rows * 2, size=3, seed=5), train.Batches(rows, size=3, seed=5)
    steps = [0, 7, 1, 2, 7, 3]
    for step in steps:
        x, y = one(step)
        np.testing.assert_array_equal(y, 2 * x)
        np.testing.assert_array_equal(x, other(step)[0])
    epoch = np.concatenate([one(step)[0] for step in range(one.an_epoch)])
    assert len({*epoch.tolist()}) == 9
    assert one(0)[0].tolist() != one(3)[0].tolist()
    plain = train.Batches(rows, size=5, shuffle=False)
    np.testing.assert_array_equal(plain(3)[0], rows[5:])


def test_batches_are_a_steps_own_though_another_thread_asks_at_any_moment() -> None:
    rows = np.arange(12)
    made = train.Batches(rows, size=3, seed=5)
    first, second = made(0)[0].tolist(), made(made.an_epoch)[0].tolist()
    asked = 0

    def amid(frame: Any, event: str, _: Any) -> Any:
        nonlocal asked
        if event == "line":
            sys.settrace(None)
            assert made(made.an_epoch)[0].tolist() == second
            asked += 1
            sys.settrace(amid)
        return amid if frame.f_code is train.Batches.__call__.__code__ else None

    before = sys.gettrace()
    sys.settrace(amid)
    try:
        found = made(0)[0].tolist()
    finally:
        sys.settrace(before)
    assert asked > 2
    assert found == first
