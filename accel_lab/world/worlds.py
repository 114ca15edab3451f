"""The worlds of a system."""

import itertools
import threading
import weakref
from collections.abc import Sequence

from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from accel_lab.world.communicator import OnLoss
from accel_lab.world.world import Services, World


class Worlds:
    """Opens worlds, and knows those that are in use."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._numbers = itertools.count(1)
        self._open: weakref.WeakSet[World] = weakref.WeakSet()
        self._lock = threading.Lock()

    def open(self, devices: Sequence[Device], name: str | None, on_loss: OnLoss) -> World:
        """Return a new world, as `System.world` says."""
        ranks = list(devices)
        if not ranks:
            raise InvalidArgument("a world has one device at least")
        for at, device in enumerate(ranks):
            if not isinstance(device, Device) or not device.is_beside(ranks[0]):
                raise InvalidArgument(f"{device!r} is no device of this system")
            if device in ranks[:at]:
                raise InvalidArgument(f"{device.name} is there twice; each rank has a device")
        world = World(name or f"world{next(self._numbers)}", ranks, self._services, on_loss=on_loss)
        with self._lock:
            self._open.add(world)
        return world

    def opened(self) -> list[World]:
        """Return those in use, by name; any thread."""
        with self._lock:
            opened = list(self._open)
        return sorted(opened, key=lambda one: one.name)
