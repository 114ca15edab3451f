"""Sums and products of square matrices, into a third."""

from functools import partial
from typing import Any

import cupy
import numpy as np

from accel_lab.backends.cuda.baseline import Call


def axpy(size: int) -> Call:
    """Prepare a sum."""
    x, y, out = _squares(size)
    stream = cupy.cuda.get_current_stream()
    return "cupy.add", partial(cupy.add, x, y, out=out), stream.synchronize


def gemm(size: int) -> Call:
    """Prepare a product."""
    a, b, out = _squares(size)
    stream = cupy.cuda.get_current_stream()
    return "cupy.matmul", partial(cupy.matmul, a, b, out=out), stream.synchronize


def _squares(size: int) -> tuple[Any, Any, Any]:
    a = cupy.asarray(np.random.default_rng(0).standard_normal((size, size)).astype(np.float32))
    return a, cupy.ascontiguousarray(a.T), cupy.empty_like(a)
