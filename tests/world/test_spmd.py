"""Functions that all ranks run at once."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.errors import (
    AccelError,
    Cancelled,
    ContextLost,
    GroupAborted,
    InvalidArgument,
    UserCodeError,
)
from accel_lab.world import spmd
from accel_lab.world.world import World
from tests.conftest import require

WAIT = 90
SCRIPT = Path(__file__).with_name("train_ddp.py")


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", 2, max_restarts=100, within_s=0.2) as system:
        yield system


@pytest.fixture
def world(lab: System) -> World:
    return lab.world()


@pytest.fixture
def torch() -> None:
    require("torch")


def place() -> tuple[str, str]:
    return os.environ["RANK"], os.environ["WORLD_SIZE"]


def test_each_rank_runs_it_with_its_own_number(world: World) -> None:
    assert world.run(place, torch=False).result(WAIT) == [("0", "2"), ("1", "2")]
    assert "RANK" not in world.devices[0].run(lambda: dict(os.environ)).result(WAIT)


def test_arrays_stay_where_they_are(world: World) -> None:
    def own_rank() -> Any:
        return np.full(3, float(os.environ["RANK"]))

    found = world.run(own_rank, torch=False).result(WAIT)
    assert [ref.device for ref in found] == list(world.devices)
    assert world.all_reduce(found).get().tolist() == [1, 1, 1]


def test_the_first_to_fail_is_named_and_the_others_are_interrupted(world: World) -> None:
    def fail() -> None:
        if os.environ["RANK"] == "1":
            raise ValueError("rank one is unwell")
        time.sleep(WAIT)

    began = time.monotonic()
    with pytest.raises(GroupAborted, match=r"rank 1 on cpu1 failed.*rank one is unwell") as caught:
        world.run(fail, torch=False).result(WAIT)
    assert time.monotonic() - began < WAIT / 3
    assert isinstance(caught.value.__cause__, UserCodeError)
    assert caught.value.unfinished == (0,)
    generations = [device.generation for device in world.devices]
    assert world.run(place, torch=False).result(WAIT)
    assert [device.generation for device in world.devices] == generations


def test_what_takes_too_long_or_is_cancelled_ends_on_all_ranks(world: World) -> None:
    with pytest.raises(GroupAborted, match=r"was not done after 0\.2 s"):
        world.run(time.sleep, WAIT, timeout_s=0.2, torch=False).result(WAIT)
    reply = world.run(time.sleep, WAIT, torch=False)
    reply.cancel()
    with pytest.raises(Cancelled):
        reply.result(WAIT)
    assert world.run(place, torch=False).result(WAIT / 3)


def test_a_rank_that_does_not_end_gets_another_context(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spmd, "GRACE_S", 0.3)

    def stubborn() -> None:
        if os.environ["RANK"] == "0":
            raise ValueError
        until = time.monotonic() + WAIT
        while time.monotonic() < until:
            try:
                time.sleep(WAIT)
            except KeyboardInterrupt:
                continue

    before = [device.generation for device in world.devices]
    with pytest.raises(GroupAborted):
        world.run(stubborn, torch=False).result(WAIT)
    assert world.run(place, torch=False).result(WAIT / 3)
    assert [device.generation for device in world.devices] == [before[0], before[1] + 1]


def test_what_cannot_be_sent_is_refused(world: World, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="cannot be sent"):
        world.run(threading.Lock().acquire, torch=False)
    with pytest.raises(InvalidArgument, match="no file"):
        world.run_script(tmp_path / "train.py")


@pytest.mark.usefixtures("torch")
def test_a_process_group_is_ready_and_one_may_make_it_oneself(world: World) -> None:
    def ready() -> tuple[float, int]:
        import torch
        import torch.distributed as dist

        found = torch.tensor([float(dist.get_rank() + 1)])
        dist.all_reduce(found)
        return found.item(), dist.get_world_size()

    def made() -> int:
        import torch.distributed as dist

        for _ in range(2):
            dist.init_process_group("gloo")
            dist.barrier()
            rank = dist.get_rank()
            dist.destroy_process_group()
        return rank

    assert world.run(ready).result(WAIT) == [(3.0, 2), (3.0, 2)]
    assert world.run(made).result(WAIT) == [0, 1]
    assert world.run(ready).result(WAIT) == [(3.0, 2), (3.0, 2)]


@pytest.mark.usefixtures("torch")
def test_what_waits_in_the_process_group_ends_with_the_rank_that_it_waits_for(
    world: World,
) -> None:
    def wait_for(what: str) -> None:
        import torch
        import torch.distributed as dist

        if dist.get_rank() == 0:
            dist.all_reduce(torch.zeros(3))
        elif what == "raises":
            raise ValueError("rank one is unwell")
        elif what == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            time.sleep(WAIT)

    for what, cause in (("raises", UserCodeError), ("killed", ContextLost)):
        with pytest.raises(GroupAborted, match="rank 1 on cpu1 failed") as caught:
            world.run(wait_for, what).result(WAIT)
        assert isinstance(caught.value.__cause__, cause), what
    before = [device.generation for device in world.devices]
    with pytest.raises(GroupAborted, match="was not done"):
        world.run(wait_for, "late", timeout_s=0.5).result(WAIT)
    assert world.run(place).result(WAIT / 3)
    assert [device.generation for device in world.devices] == before


@pytest.mark.usefixtures("torch")
def test_a_script_of_torchruns_loses_a_rank_and_ends_with_the_same_curve(
    world: World, tmp_path: Path
) -> None:
    whole, hurt = tmp_path / "whole", tmp_path / "hurt"
    whole.mkdir()
    hurt.mkdir()
    world.run_script(SCRIPT, str(whole)).result(WAIT)
    with pytest.raises(GroupAborted, match="rank 1 on cpu1 failed: ContextLost"):
        world.run_script(SCRIPT, str(hurt), "--die-at", "3").result(WAIT)
    world.run_script(SCRIPT, str(hurt), "--die-at", "3").result(WAIT)
    curves = [json.loads((one / "curve-0.json").read_text()) for one in (whole, hurt)]
    assert curves[0] == curves[1]
    assert len(curves[0]) == 6
    assert curves[0][-1] < curves[0][0]


def test_a_reply_that_nobody_takes_is_told_of(lab: System, world: World) -> None:
    def fail() -> None:
        raise ValueError("unwell")

    reply = world.run(fail, torch=False)
    until = time.monotonic() + WAIT
    while not reply.done:
        assert time.monotonic() < until
        time.sleep(0.01)
    with pytest.raises((AccelError, ExceptionGroup)) as caught:
        lab.check()
    assert "unwell" in str(caught.value) + str(getattr(caught.value, "exceptions", ""))
