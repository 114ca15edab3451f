"""Transforms along the last axis, in single precision; CuPy keeps the plans."""

from functools import partial

import cupy
import numpy as np

from accel_lab.backends.cuda.baseline import Call


def c2c(*shape: int) -> Call:
    """Prepare a transform of complex numbers."""
    pairs = np.random.default_rng(0).standard_normal((*shape, 2)).astype(np.float32)
    x = cupy.asarray(pairs.view(np.complex64)[..., 0])
    return "cupy.fft.fft", partial(cupy.fft.fft, x), cupy.cuda.get_current_stream().synchronize


def r2c(*shape: int) -> Call:
    """Prepare a transform of real numbers."""
    x = cupy.asarray(np.random.default_rng(0).standard_normal(shape).astype(np.float32))
    return "cupy.fft.rfft", partial(cupy.fft.rfft, x), cupy.cuda.get_current_stream().synchronize
