"""Checkpoints of a simulation's buffers."""

from collections.abc import Iterable
from contextlib import suppress

from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import ArenaFull, InvalidArgument


def keep(device: Device, refs: Iterable[AccelRef]) -> None:
    """Have buffers rebuilt from what they hold now; does not wait for the copies.

    What cannot be kept, for want of room, is rebuilt from the checkpoint before.
    """
    with suppress(InvalidArgument, ArenaFull):  # recover="stale" keeps nothing
        for ref in refs:
            # With a waiter a failure is not told as one that nobody has heard of.
            device.checkpoint(ref).add_waiter(lambda: None)
