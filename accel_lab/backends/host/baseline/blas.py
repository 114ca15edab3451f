"""Sums and products of square matrices, into a third."""

from functools import partial
from typing import Any

import numpy as np

from accel_lab.backends.host.baseline import Call, nothing


def axpy(size: int) -> Call:
    """Prepare a sum."""
    x, y, out = _squares(size)
    return "np.add", partial(np.add, x, y, out=out), nothing


def gemm(size: int) -> Call:
    """Prepare a product."""
    a, b, out = _squares(size)
    return "np.matmul", partial(np.matmul, a, b, out=out), nothing


def _squares(size: int) -> tuple[Any, Any, Any]:
    a = np.random.default_rng(0).standard_normal((size, size)).astype(np.float32)
    return a, a.T.copy(), np.empty_like(a)
