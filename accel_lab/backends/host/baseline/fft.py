"""Transforms along the last axis, in single precision."""

from functools import partial

import numpy as np
import scipy.fft

from accel_lab.backends.host.baseline import Call, nothing


def c2c(*shape: int) -> Call:
    """Prepare a transform of complex numbers."""
    x = np.random.default_rng(0).standard_normal((*shape, 2)).astype(np.float32).view(np.complex64)
    return "scipy.fft.fft", partial(scipy.fft.fft, x[..., 0]), nothing


def r2c(*shape: int) -> Call:
    """Prepare a transform of real numbers."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return "scipy.fft.rfft", partial(scipy.fft.rfft, x), nothing
