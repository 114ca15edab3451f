"""A hundred small operations of five kinds, one call after the other."""

import itertools

import cupy
import numpy as np

from accel_lab.backends.cuda.baseline import Call
from accel_lab.backends.eager import hundred


class Functions:
    """The operations as CuPy's calls."""

    tanh = staticmethod(cupy.tanh)
    rfft = staticmethod(cupy.fft.rfft)


def operations(n: int) -> Call:
    """Prepare the loop over matrices (n, n), of which two change each time."""
    drawn = np.random.default_rng(0).standard_normal((2, 2, n, n)).astype(np.float32) / n
    pairs = itertools.cycle([(cupy.asarray(x), cupy.asarray(w)) for x, w in drawn])
    wait = cupy.cuda.get_current_stream().synchronize
    return "cupy, call by call", lambda: hundred(Functions, *next(pairs)), wait
