"""The arrays that benchmarks compute with."""

from typing import Any

import numpy as np

from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef

SMALL = 64


def squares(device: Device, size: int) -> tuple[AccelRef, AccelRef, AccelRef]:
    """Put three square float32 matrices on a device."""
    random = np.random.default_rng(0)
    a: Any = random.standard_normal((size, size)).astype(np.float32)
    return device.put(a), device.put(a.T), device.put(np.zeros_like(a))
