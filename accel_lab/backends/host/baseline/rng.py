"""Random numbers of Philox."""

from functools import partial

import numpy as np

from accel_lab.backends.host.baseline import Call, nothing


def words(count: int) -> Call:
    """Prepare a draw of 32-bit words; NumPy draws two at a time."""
    bits = np.random.Philox(0)
    return "Philox.random_raw", partial(bits.random_raw, count // 2), nothing


def uniform(count: int) -> Call:
    """Prepare a draw of float32."""
    draw = np.random.Generator(np.random.Philox(0)).random
    out = np.empty(count, np.float32)
    return "Generator.random", partial(draw, dtype=np.float32, out=out), nothing
