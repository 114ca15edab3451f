"""Fourier transforms, of one line and of a thousand."""

from collections.abc import Callable

import numpy as np

from accel_lab.bench.case import Case, Send
from accel_lab.compute.device import Device
from accel_lab.libraries.fft import library as fft


def c2c(*shape: int) -> Callable[[Device], Send]:
    """Prepare transforms of complex numbers into one buffer."""

    def prepare(device: Device) -> Send:
        pairs = np.random.default_rng(0).standard_normal((*shape, 2)).astype(np.float32)
        x = device.put(pairs.view(np.complex64)[..., 0])
        out = fft.c2c(x, axes=-1)
        return lambda: fft.c2c(x, axes=-1, out=out)

    return prepare


def r2c(*shape: int) -> Callable[[Device], Send]:
    """Prepare transforms of real numbers into one buffer."""

    def prepare(device: Device) -> Send:
        x = device.put(np.random.default_rng(0).standard_normal(shape).astype(np.float32))
        out = fft.r2c(x, axes=-1)
        return lambda: fft.r2c(x, axes=-1, out=out)

    return prepare


LINE, BATCH = (4096,), (1024, 1024)
CASES = (
    Case("c2c-4096", "C2C 4096", "c2c", LINE, c2c(*LINE), ask=1.7, torch="torch.c2c"),
    Case("r2c-1024x1024", "R2C 1024x1024", "r2c", BATCH, r2c(*BATCH), torch="torch.r2c"),
)
