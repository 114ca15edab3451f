"""The device on which functions without operands make arrays."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from accel_lab import open_systems
from accel_lab.compute.device import Device
from accel_lab.default import default_system
from accel_lab.errors import InvalidArgument

_chosen: ContextVar[Device | None] = ContextVar("accel_lab.array_api.device", default=None)


def default_device() -> Device:
    """Return the device that `device=None` means.

    It is that of `use_device`; else the first one of the system that was opened first of those that
    are open; else that of `accel_lab.gpu`, which this opens.
    """
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    systems = open_systems.running()
    return (systems[0] if systems else default_system()).devices[0]


def device_or_default(device: object) -> Device:
    """Return the device that an argument `device` means.

    Raises:
        InvalidArgument: it is none.
    """
    if device is None:
        return default_device()
    if not isinstance(device, Device):
        raise InvalidArgument(f"device must be a device, as ref.device, not {device!r}")
    return device


@contextlib.contextmanager
def use_device(device: Device) -> Iterator[Device]:
    """Have functions without operands make arrays on a device, in a `with` block of this thread.

    Raises:
        InvalidArgument: it is no device.
    """
    token = _chosen.set(device_or_default(device))
    try:
        yield device
    finally:
        _chosen.reset(token)
