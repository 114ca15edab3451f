"""Blocked-ELL matrices on cuda, by CuPy's arrays and cuBLAS's products of stacks.

cuSPARSE's own product, which is for some dtypes and blocks alone, is not used.
"""

from typing import Any

import cupy

from accel_lab.backends.cuda.array.narrow import store, widened
from accel_lab.backends.rows_of_blocks import filled_up, misplaced, product, stored
from accel_lab.libraries.sparse.blocked_ell import Ellify, EllMatmul, Unellify

_WIDE = {"float16": "float32", "bfloat16": "float32"}


class CudaBlockedEll:
    """Products are enqueued; conversions wait, and are for work beside the dispatcher."""

    def ellify(self, _: Ellify, values: Any, indices: Any, pointers: Any) -> tuple[Any, Any]:
        """Return values and columns."""
        return filled_up(cupy, values, indices, pointers)

    def unellify(self, m: Unellify, values: Any, columns: Any) -> tuple[Any, Any]:
        """Return the parts of BSR, and the first row whose columns are none."""
        bad = misplaced(cupy, columns, m.shape[1] // m.block)
        return stored(cupy, values, columns, m.block), bad

    def ell_matmul(self, m: EllMatmul, values: Any, columns: Any, b: Any, out: Any) -> Any:
        """Write the product, and return the first row whose columns are none."""
        dtype = m.values.dtype
        wide = _WIDE.get(dtype, dtype)
        if out.size:
            out.fill(0)

        def write(begin: int, part: Any) -> None:
            store(part, out[begin : begin + len(part)], dtype)

        left, right = widened(values, dtype, wide), widened(b, dtype, wide)
        product(cupy, left, columns, right, m.block, write)
        return misplaced(cupy, columns, m.shape[1] // m.block)
