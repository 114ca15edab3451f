"""Following the generation of a device."""

import asyncio
import gc

import pytest

from accel_lab import Device, System
from accel_lab.actor.events import Event
from accel_lab.compute.events.lifecycle import ContextStarted, GenerationChanged
from accel_lab.errors import ContextLost
from tests.faults.conftest import settle

WAIT = 30.0


def lose(lab: System, device: Device) -> int:
    """Lose the device's context; return the generation that the next one has."""
    with pytest.raises(ContextLost):
        lab.inject("kill", device).result(WAIT)
    return device.generation


def replace(lab: System, device: Device) -> None:
    """Lose the device's context, and wait until the next one is up and has been told of."""
    lose(lab, device)
    name, now = device.name, device.generation

    def changed(event: Event) -> bool:
        return isinstance(event, GenerationChanged) and (event.device, event.after) == (name, now)

    def started(event: Event) -> bool:
        return isinstance(event, ContextStarted) and (event.device, event.generation) == (name, now)

    lab.events.wait_for(changed, WAIT, since=0)
    lab.events.wait_for(started, WAIT, since=0)


async def test_a_loop_is_told_each_generation_and_ends_with_the_system(nothing_left: None) -> None:
    """As `async for generation in gpu.watch()` in a cell."""
    told: asyncio.Queue[int] = asyncio.Queue()
    lab = await asyncio.to_thread(System("host", max_restarts=1000).ready)
    (cpu,) = lab.devices

    async def follow() -> None:
        async for generation in cpu.watch():
            await told.put(generation)

    following = asyncio.create_task(follow())
    await asyncio.sleep(0)
    for expected in (2, 3):
        await asyncio.to_thread(lose, lab, cpu)
        assert await asyncio.wait_for(told.get(), WAIT) == expected
    await asyncio.to_thread(lab.close)
    await asyncio.wait_for(following, WAIT)
    assert told.empty()
    assert [g async for g in cpu.watch()] == []


async def test_a_slow_loop_is_told_the_newest_generation_once(nothing_left: None) -> None:
    """Latest value wins, and another device's losses displace nothing."""
    lab = await asyncio.to_thread(System("host", 2, max_restarts=1000).ready)
    one, two = lab.devices
    async with one.watch() as watch:
        for device in (one, one, two):
            await asyncio.to_thread(replace, lab, device)
        assert await asyncio.wait_for(anext(watch), WAIT) == 3
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(watch), 0.05)
        await asyncio.to_thread(lose, lab, one)
        assert await asyncio.wait_for(anext(watch), WAIT) == 4
    assert [g async for g in watch] == []
    await asyncio.to_thread(lab.close)


def test_a_callback_is_told_each_generation_until_it_is_closed(lab: System, cpu: Device) -> None:
    """One that raises is a warning and harms nobody."""
    told: list[int] = []

    def refuse(generation: int) -> None:
        raise ValueError(generation)

    watch = cpu.watch(told.append)
    with cpu.watch(refuse), pytest.warns(RuntimeWarning, match="ValueError"):
        replace(lab, cpu)
    assert told == [2]
    watch.close()
    replace(lab, cpu)
    assert told == [2]


def test_a_watch_that_is_dropped_leaves_nothing_in_the_stream(lab: System, cpu: Device) -> None:
    """Its subscription goes with it."""
    watch = cpu.watch()
    before = len(lab.events._subscriptions)
    del watch
    gc.collect()
    assert settle(lambda: len(lab.events._subscriptions) == before - 1)
