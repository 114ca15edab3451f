"""One block of a kernel on arrays, for the tests of what CUDA C++ means on the host."""

from typing import Any

import numpy as np

from accel_lab import jit
from accel_lab.compute.device import Device

WAIT_S = 60.0


def run(device: Device, source: str, name: str, *args: Any, block: int = 1) -> list[Any]:
    """Launch one block on copies of the arrays among the arguments; return these afterwards."""
    refs = [device.put(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    jit.compile(device, source, name)(1, block, refs).result(WAIT_S)
    return [
        device.get(ref).result(WAIT_S)
        for ref, arg in zip(refs, args, strict=True)
        if isinstance(arg, np.ndarray)
    ]
