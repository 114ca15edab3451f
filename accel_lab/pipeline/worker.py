"""Running the items of one stage: on which device, in which thread, and how many at a time."""

import asyncio
import inspect
from typing import Any

from accel_lab.actor.reply import Reply
from accel_lab.compute.device import Device
from accel_lab.pipeline.handles import let_go, moved, settled
from accel_lab.pipeline.stage import Choice, Functions, Stage
from accel_lab.pipeline.threads import Threads


class Worker:
    """What runs the items of one stage.

    A device has one thread for them, so that it gets what they send in the order of the items; the
    host has as many as may run.
    """

    def __init__(self, pipeline: str, stage: Stage) -> None:
        self.functions = Functions(stage)
        self.choice = Choice(stage)
        self._gate = asyncio.Semaphore(stage.parallelism)
        name = f"{pipeline} {stage.name}"
        self.threads: dict[Device | None, Threads] = {
            device: Threads(f"{name} {device.name}", 1, let_go) for device in stage.devices
        } or {None: Threads(name, stage.parallelism, let_go)}

    async def work(self, value: Any) -> Any:
        """Run one item, as soon as fewer than `parallelism` run; return what comes of it."""
        async with self._gate:
            device = self.choice.take(value)
            try:
                outcome = await self.threads[device].call(self._call, device, value)
                if inspect.isawaitable(outcome) and not isinstance(outcome, Reply):
                    outcome = await outcome
                return await settled(outcome)
            finally:
                self.choice.give_back(device)

    def _call(self, device: Device | None, value: Any) -> Any:
        return self.functions.call(device, moved(value, device))
