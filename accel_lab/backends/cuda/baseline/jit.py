"""A kernel of the user's own, compiled and launched by CuPy."""

from functools import partial

import cupy
import numpy as np

from accel_lab.backends.cuda.baseline import Call

THREADS = 256


def saxpy(source: str, size: int) -> Call:
    """Prepare a sum of one square matrix and a multiple of another, into a third."""
    x = cupy.asarray(np.random.default_rng(0).standard_normal((size, size)).astype(np.float32))
    y, out = cupy.ascontiguousarray(x.T), cupy.empty_like(x)
    kernel = cupy.RawKernel(source, "saxpy")
    grid, block = (-(-x.size // THREADS),), (THREADS,)
    run = partial(kernel, grid, block, (np.int32(x.size), np.float32(2.0), x, y, out))
    return "cupy.RawKernel", run, cupy.cuda.get_current_stream().synchronize
