"""Blocked-ELL matrices on the host, by NumPy."""

from typing import Any

import numpy as np

from accel_lab.backends.host.sparse.scipys import wide
from accel_lab.backends.rows_of_blocks import filled_up, misplaced, product, stored
from accel_lab.libraries.sparse.blocked_ell import Ellify, EllMatmul, Unellify


class HostBlockedEll:
    """Computed at once."""

    def ellify(self, _: Ellify, values: Any, indices: Any, pointers: Any) -> tuple[Any, Any]:
        """Return values and columns."""
        return filled_up(np, values, indices, pointers)

    def unellify(self, m: Unellify, values: Any, columns: Any) -> tuple[Any, Any]:
        """Return the parts of BSR, and the first row whose columns are none."""
        bad = misplaced(np, columns, m.shape[1] // m.block)
        return stored(np, values, columns, m.block), bad

    @np.errstate(all="ignore")
    def ell_matmul(self, m: EllMatmul, values: Any, columns: Any, b: Any, out: Any) -> Any:
        """Write the product, and return the first row whose columns are none."""
        dtype = m.values.dtype
        out[...] = 0

        def write(begin: int, part: Any) -> None:
            out[begin : begin + len(part)] = part

        product(np, wide(values, dtype), columns, wide(b, dtype), m.block, write)
        return misplaced(np, columns, m.shape[1] // m.block)
