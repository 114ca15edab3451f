"""The worlds of a system."""

import itertools
import weakref
from collections.abc import Mapping, Sequence

from accel_lab.actor.event_loop import EventLoop
from accel_lab.actor.events import EventStream
from accel_lab.compute.device import Device
from accel_lab.compute.world.group_sender import GroupSender
from accel_lab.compute.world.twins import Twins
from accel_lab.errors import InvalidArgument
from accel_lab.world.communicator import OnLoss
from accel_lab.world.world import Services, World


class Worlds:
    """Opens worlds, and knows those that are in use."""

    def __init__(
        self,
        groups: GroupSender,
        events: EventStream,
        event_loop: EventLoop,
        backend: str,
        twins: Twins,
    ) -> None:
        self._open: weakref.WeakSet[World] = weakref.WeakSet()
        self._services = Services(groups, events, event_loop, backend, self._open, twins)
        self._numbers = itertools.count(1)

    def open(
        self,
        devices: Sequence[object],
        name: str | None,
        on_loss: OnLoss,
        shape: Mapping[str, int] | None,
    ) -> World:
        """Return a new world, as `System.world` says."""
        ranks: list[Device] = []
        for device in devices:
            if not isinstance(device, Device) or not (ranks or [device])[0].is_beside(device):
                raise InvalidArgument(f"{device!r} is no device of this system")
            if device in ranks:
                raise InvalidArgument(f"{device.name} is there twice; each rank has a device")
            ranks.append(device)
        if not ranks:
            raise InvalidArgument("a world has one device at least")
        name = name or f"world{next(self._numbers)}"
        world = World(name, ranks, self._services, on_loss=on_loss, shape=shape)
        self._open.add(world)
        return world

    def opened(self) -> list[World]:
        """Return those in use, by name; any thread."""
        while True:
            try:
                return sorted(self._open, key=lambda one: one.name)
            except RuntimeError:  # another thread has opened one meanwhile
                continue
