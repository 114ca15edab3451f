"""2:4 structured matrices on the host, by NumPy."""

from typing import Any

import numpy as np

from accel_lab.backends.host.sparse.scipys import wide
from accel_lab.backends.two_of_four import columns, crowded, places, pruned, whole
from accel_lab.libraries.sparse.structured import Check24, Compress24, Matmul24, Prune24


class HostStructured:
    """Keeps two of each four, and multiplies as if the others were there."""

    def prune24(self, m: Prune24, x: Any, out: Any) -> None:
        """Write the largest two of each four."""
        out[...] = np.where(pruned(np, wide(x, m.x.dtype)), x, np.zeros((), x.dtype))

    def check24(self, _: Check24, x: Any, out: Any) -> None:
        """Write whether no four has more than two."""
        out[...] = crowded(np, x)[0] < 0

    def compress24(self, _: Compress24, x: Any, out: Any) -> Any:
        """Write what is kept, and return the first row that has more."""
        out.places[...] = places(np, x)
        out.values[...] = np.take_along_axis(x, columns(np, out.places), axis=1)
        return crowded(np, x)

    @np.errstate(all="ignore")
    def matmul24(self, m: Matmul24, values: Any, places: Any, b: Any, out: Any) -> None:
        """Write the product."""
        dtype = m.values.dtype
        out[...] = whole(np, wide(values, dtype), places) @ wide(b, dtype)
