"""What a kernel of the user's own does, without compiling one."""

from typing import Any

import numpy as np

from accel_lab.backends.host.baseline import Call, nothing


def saxpy(_: str, size: int) -> Call:
    """Prepare a sum of one square matrix and a multiple of another, into a third."""
    x: Any = np.random.default_rng(0).standard_normal((size, size)).astype(np.float32)
    y, out = x.T.copy(), np.empty_like(x)

    def run() -> None:
        np.multiply(x, np.float32(2.0), out=out)
        np.add(out, y, out=out)

    return "NumPy", run, nothing
