"""Pipelines over two host devices: where their items are, and what a lost context costs them."""

import asyncio
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, Device, System
from accel_lab.actor.supervision import RestForOne
from accel_lab.compute.actors.fault import Inject
from accel_lab.errors import ContextLost, InvalidArgument, StageFailed, UserCodeError
from accel_lab.libraries.jit.messages import Compile
from accel_lab.pipeline import Source
from accel_lab.pipeline import events as facts
from tests.conftest import require
from tests.faults.conftest import settle

COUNT = 24
both_ways = pytest.mark.parametrize("lab", ["replay", "stale"], indirect=True)
"""With buffers that are rebuilt after a loss, and without."""


def put(device: Device, item: int) -> AccelRef:
    return device.put(np.full(4, item, np.float32))


def doubled(x: Any) -> Any:
    return 2 * x


def double(device: Device, ref: AccelRef) -> Any:
    return device.run(doubled, ref)  # is not pure: what was in flight is lost with its context


def get(device: Device, ref: AccelRef) -> Any:
    return device.get(ref)


def meet(mine: str, other: str) -> int:
    """Run until another function runs, in another context; in a context."""
    Path(mine).touch()
    until = time.monotonic() + 60
    while not Path(other).exists():
        if time.monotonic() > until:
            raise TimeoutError(f"{other} never began")
        time.sleep(0.001)
    return 1


def expected() -> list[float]:
    return [2.0 * item for item in range(COUNT)]


@both_ways
@pytest.mark.parametrize("victim", [0, 1])
async def test_a_context_killed_in_the_middle_costs_no_item(lab: System, victim: int) -> None:
    first, second = lab.devices
    found: list[float] = []
    calls: Counter[int] = Counter()

    def kill(device: Device, ref: AccelRef) -> Any:
        calls[0] += 1
        if calls[0] in (8, 16):
            lab.devices[victim].ask(Inject("kill")).add_waiter(lambda: None)
        return double(device, ref)

    pipeline = (
        Source(range(COUNT))
        .stage(put, devices=first)
        .stage(kill, devices=[first, second], parallelism=4, name="double")
        .stage(get, devices=second)
        .sink(lambda array: found.append(float(array[0])))
    )
    progress = await asyncio.wait_for(pipeline.run(), 60)
    assert found == expected()
    assert lab.devices[victim].generation == 3
    restarts = lab.events.history(facts.StageRestarted)
    # What was computed by a function that is not pure is not made again; its stages begin anew.
    assert re.search("ContextLost|could not be rebuilt", restarts[0].cause)
    assert restarts[0].again >= 1
    assert sum(one.reruns for one in progress.stages) >= 2
    assert not lab.events.history(facts.StageFailed)
    lab.check()  # what was lost was told to the pipeline, and to nobody else


@both_ways
async def test_what_stays_on_a_lost_device_is_computed_again_from_the_source(lab: System) -> None:
    """The last stage has no room, so the items before it are done, and lost."""
    first, second = lab.devices
    gate = asyncio.Event()
    found: list[float] = []

    async def hold(ref: AccelRef) -> None:
        await gate.wait()
        found.append(float((await ref.device.get(ref))[0]))

    pipeline = (
        Source(range(COUNT))
        .stage(put, devices=first, capacity=4)
        .stage(double, devices=first, capacity=4)
        .sink(hold)
    )
    running = asyncio.create_task(pipeline.run())
    assert await asyncio.to_thread(settle, lambda: pipeline.progress.stages[2].done == 4)
    with pytest.raises(ContextLost):
        await first.ask(Inject("kill"))
    gate.set()
    progress = await asyncio.wait_for(running, 60)
    assert found == expected()
    assert sum(one.reruns for one in progress.stages) > 0
    assert second.generation == 1


@both_ways
async def test_a_handle_that_comes_out_is_there(lab: System) -> None:
    """Also when its context was lost while it waited to be taken."""
    first, _ = lab.devices
    pipeline = Source(range(6)).stage(put, devices=first).stage(double, devices=first)
    found = []
    async for ref in pipeline:
        found.append(float(ref.get()[0]))
        if len(found) == 1:
            settled = asyncio.to_thread(settle, lambda: pipeline.progress.stages[2].done == 4)
            assert await settled
            with pytest.raises(ContextLost):
                await first.ask(Inject("kill"))
    assert found == expected()[:6]


async def test_handles_stay_on_their_device_and_are_copied_to_the_next(lab: System) -> None:
    first, second = lab.devices
    where: list[list[str]] = [[], []]

    def see(device: Device, both: tuple[AccelRef, AccelRef]) -> dict[str, Any]:
        where[second is device] += [ref.device.name for ref in both]
        return {"sum": both[0] + both[1], "number": 3}

    def pair(device: Device, item: int) -> tuple[AccelRef, AccelRef]:
        return put(device, item), put(device, 1)

    staged = (
        Source(range(4))
        .stage(pair, devices=first)
        .stage(see, devices=lab, policy=lambda d, _: d[1])
    )
    found = [float(one["sum"].get()[0]) async for one in staged]
    assert found == [1.0, 2.0, 3.0, 4.0]
    assert where == [[], [second.name] * 8]


async def test_stages_on_two_devices_overlap(lab: System, tmp_path: Path) -> None:
    """Each item is computed only while the one before it is, on the other device."""
    first, second = lab.devices
    last = 5

    def name(stage: str, item: int) -> str:
        return str(tmp_path / f"{stage}{item}")

    def upload(device: Device, item: int) -> Any:
        other = name("compute", item - 1) if item else name("upload", item)
        return item, device.run(meet, name("upload", item), other)

    def compute(device: Device, item: tuple[int, int]) -> Any:
        other = name("upload", item[0] + 1) if item[0] < last else name("compute", last)
        return device.run(meet, name("compute", item[0]), other)

    staged = Source(range(last + 1)).stage(upload, devices=first).stage(compute, devices=second)
    assert await asyncio.wait_for(staged.run(), 60) == [1] * (last + 1)


async def test_a_function_that_fails_in_a_context_is_not_run_again(lab: System) -> None:
    def divide(device: Device, item: int) -> Any:
        return device.run(lambda n: 1 // n, item)

    with pytest.raises(StageFailed, match="stage divide of pipeline failed on item 2") as caught:
        await Source([2, 1, 0]).stage(divide, devices=lab).run()
    assert isinstance(caught.value.__cause__, UserCodeError)
    (fact,) = lab.events.history(facts.StageFailed)
    assert (fact.stage, fact.item, fact.skipped) == ("divide", 2, False)
    assert not lab.events.history(facts.StageRestarted)


async def test_a_budget_of_restarts_that_is_used_up_fails_the_pipeline(lab: System) -> None:
    def kill(device: Device, _: int) -> Any:
        return device.ask(Inject("kill"))

    source = Source([1], strategy=RestForOne(max_restarts=1))
    with pytest.raises(StageFailed) as caught:
        await source.stage(kill, devices=lab, retries=9).run()
    assert isinstance(caught.value.__cause__, ContextLost)
    assert len(lab.events.history(facts.StageRestarted)) == 1


async def test_leaving_takes_back_what_a_device_is_at(lab: System, tmp_path: Path) -> None:
    never = str(tmp_path / "never")

    def stay(device: Device, item: int) -> Any:
        return device.run(meet, str(tmp_path / f"{item}"), never) if item else item

    async for _ in Source(range(9)).stage(stay, devices=lab, name="stay"):
        assert await asyncio.to_thread(settle, (tmp_path / "1").exists)
        break
    for device in lab.devices:
        assert await device.run(abs, -1) == 1  # nothing runs before it


async def test_a_context_that_somebody_has_replaced_counts_for_nothing(lab: System) -> None:
    runs: list[int] = []

    def work(device: Device, item: int) -> Any:
        runs.append(item)
        reply = device.run(time.sleep, 0 if len(runs) > 2 else 600)
        if len(runs) <= 2:
            device.replace()
        return reply

    strategy = RestForOne(max_restarts=0)
    assert await Source([1], strategy=strategy).stage(work, devices=lab, retries=0).run() == [None]
    assert runs == [1, 1, 1]
    assert [one.attempt for one in lab.events.history(facts.StageRestarted)] == [0, 0]


async def test_a_system_that_is_closed_fails_the_pipeline(lab: System) -> None:
    def close(device: Device, item: int) -> Any:
        reply = device.run(time.sleep, 600)
        lab.close()
        return reply

    with pytest.raises(StageFailed, match="SystemClosed"):
        await Source([1]).stage(close, devices=lab).run()


async def test_a_policy_that_chooses_no_device_of_the_stage_is_refused(lab: System) -> None:
    first, second = lab.devices
    stage = Source([1]).stage(put, devices=first, policy=lambda *_: second)
    with pytest.raises(StageFailed, match="the policy of stage put chose") as caught:
        await stage.run()
    assert isinstance(caught.value.__cause__, InvalidArgument)


async def test_an_object_of_another_device_is_refused(lab: System) -> None:
    """Its buffers could be copied; what it is has no copy."""
    require("compiler")
    first, second = lab.devices
    compiles = Compile("__global__ void nothing() {}", "nothing")
    stage = Source([1]).stage(lambda device, _: device.ask(compiles), devices=first)
    with pytest.raises(StageFailed, match="have both stages use one device") as caught:
        await stage.stage(lambda _, kernel: kernel, devices=second, name="second").run()
    assert caught.value.stage == "second"


async def test_a_device_whose_circuit_is_open_leaves_its_items_to_the_others() -> None:
    with System("host", 2, max_restarts=0) as lab:
        first, second = lab.devices
        seen: list[str] = []

        def work(device: Device, item: int) -> Any:
            if len(seen) == 5:
                first.ask(Inject("kill")).add_waiter(lambda: None)
            seen.append(device.name)
            return put(device, item)

        pipeline = Source(range(COUNT)).stage(work, devices=lab).stage(double, devices=lab)
        got = await asyncio.wait_for(pipeline.stage(get, devices=second).run(), 60)
        assert [float(array[0]) for array in got] == expected()
        assert first.state == "circuit open"
        assert set(seen) == {first.name, second.name}
        assert seen[-1] == second.name
