"""A hundred small operations of five kinds, one call after the other."""

import itertools

import numpy as np

from accel_lab.backends.eager import hundred
from accel_lab.backends.host.baseline import Call, nothing


class Functions:
    """The operations as NumPy's calls."""

    tanh = staticmethod(np.tanh)
    rfft = staticmethod(np.fft.rfft)


def operations(n: int) -> Call:
    """Prepare the loop over matrices (n, n), of which two change each time."""
    drawn = np.random.default_rng(0).standard_normal((2, 2, n, n)).astype(np.float32) / n
    pairs = itertools.cycle([(x, w) for x, w in drawn])
    return "numpy, call by call", lambda: hundred(Functions, *next(pairs)), nothing
