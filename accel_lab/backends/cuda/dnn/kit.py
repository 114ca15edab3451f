"""CuPy's arrays and functions, for what is evaluated alike on both backends."""

from functools import lru_cache
from typing import Any

import cupy
import cupyx.scipy.special
import numpy as np

from accel_lab.backends.cuda.array import narrow
from accel_lab.backends.cuda.rng import philox
from accel_lab.libraries.dnn.message import computed_in


class CudaKit:
    """CuPy's arrays; narrow floats that it lacks are arrays of their bits."""

    xp = cupy

    def widened(self, x: Any, dtype: str) -> Any:
        """Return an operand in the dtype that is computed in; None stays."""
        return narrow.widened(x, dtype, computed_in(dtype))

    def store(self, value: Any, out: Any, dtype: str) -> None:
        """Write a result, rounded."""
        narrow.store(value, out, dtype)

    def matmul(self, a: Any, b: Any) -> Any:
        """Return the products of two stacks; refused while a graph is captured."""
        return cupy.matmul(a, b)

    def erf(self, x: Any) -> Any:
        """Return the error function of each element."""
        return cupyx.scipy.special.erf(x)

    def kept(self, seed: int, offset: int, count: int, threshold: int) -> Any:
        """Return which words are at least a threshold."""
        made = cupy.ndarray((count,), "?")
        given = (np.uint64(seed), np.uint64(offset), np.uint64(threshold))
        return _kept_kernel()(*given, made)

    def summed(self, x: Any, places: Any, rows: int) -> Any:
        """Return the sums of rows, each by one thread, so that they are the same each time."""
        order = cupy.argsort(places, kind="stable")
        begins = cupy.searchsorted(places[order], cupy.arange(rows + 1, dtype=places.dtype))
        made = cupy.ndarray((rows, x.shape[1]), x.dtype)
        x = cupy.ascontiguousarray(x)
        return _sum_kernel()(x, order, begins, np.int64(x.shape[1]), made)


@lru_cache(maxsize=1)
def _kept_kernel() -> Any:
    return cupy.ElementwiseKernel(
        "uint64 seed, uint64 first, uint64 threshold",
        "bool kept",
        "kept = philox::word(seed, 0, first + i) >= threshold",
        "accel_lab_dropout",
        preamble=philox.SOURCE,
    )


@lru_cache(maxsize=1)
def _sum_kernel() -> Any:
    return cupy.ElementwiseKernel(
        "raw T x, raw int64 order, raw int64 begins, int64 columns",
        "T sum",
        """
        long long row = i / columns, column = i % columns;
        sum = 0;
        for (long long at = begins[row]; at < begins[row + 1]; ++at)
          sum += x[order[at] * columns + column];
        """,
        "accel_lab_embedding_gradient",
    )
