"""A pipeline that runs stands in the tree of its devices' system."""

import asyncio
import threading
import time
from typing import Any

from accel_lab import System
from accel_lab.compute.events.tree import Node
from accel_lab.pipeline import Pipeline, Source
from accel_lab.views.tree import TreeView

WAIT = 30.0


def pipelines(lab: System) -> list[Node]:
    return [node for node in lab.tree().children if node.detail.startswith("pipeline of")]


def held_up(lab: System, gate: threading.Event, name: str = "loading") -> Pipeline:
    """Return a pipeline whose last stage takes nothing more until the gate is open."""

    def wait(item: int) -> int:
        assert gate.wait(WAIT)
        return item

    source = Source(range(20), name=name)
    return source.stage(lambda _, item: item, devices=lab.devices, name="work").stage(
        wait, name="out", capacity=2
    )


async def started(pipeline: Pipeline, wanted: Any) -> "asyncio.Task[list[Any]]":
    async def collect() -> list[Any]:
        return [item async for item in pipeline]

    task = asyncio.create_task(collect())
    until = time.monotonic() + WAIT
    while not wanted():
        assert time.monotonic() < until
        await asyncio.sleep(0.01)
    return task


async def test_its_stages_and_what_they_hold_are_seen_while_it_runs(lab: System) -> None:
    gate = threading.Event()
    assert pipelines(lab) == []

    def is_full() -> bool:
        return any("no room behind it" in one.children[1].detail for one in pipelines(lab))

    task = await started(held_up(lab, gate), is_full)
    (node,) = pipelines(lab)
    assert (node.name, node.path, node.kind) == ("loading", f"{lab.name}/loading", "actor")
    assert [stage.name for stage in node.children][1:] == ["work", "out"]
    _, work, out = node.children
    assert "on cpu0, cpu1" in work.detail
    assert "2 of 2 seats" in out.detail
    assert out.mailbox + out.in_flight == 2
    drawn = TreeView(lab).text(TreeView(lab).sample())
    assert "loading" in drawn
    root = lab.tree()
    assert root.in_flight == sum(one.in_flight for one in root.children[:2]), "counted once"
    gate.set()
    assert await task == list(range(20))
    assert pipelines(lab) == []


async def test_two_of_one_name_and_one_with_that_of_a_device_are_told_apart(lab: System) -> None:
    gate = threading.Event()
    named = [held_up(lab, gate, name) for name in ("cpu0", "same", "same")]
    tasks = [await started(one, lambda n=n: len(pipelines(lab)) > n) for n, one in enumerate(named)]
    names = [node.name for node in pipelines(lab)]
    assert names == ["cpu0 2", "same", "same 2"]
    assert len({node.path for node in lab.tree().walk()}) == len(list(lab.tree().walk()))
    gate.set()
    await asyncio.gather(*tasks)


async def test_one_that_is_left_is_gone_from_the_tree(lab: System) -> None:
    gate = threading.Event()
    task = await started(held_up(lab, gate), lambda: bool(pipelines(lab)))
    task.cancel()
    gate.set()
    await asyncio.gather(task, return_exceptions=True)
    assert pipelines(lab) == []
