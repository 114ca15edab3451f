"""2:4 structured matrices on cuda, by CuPy's arrays.

The product is a dense one, of the whole matrix: the tensor cores' own for 2:4 is not used.
"""

from typing import Any

import cupy

from accel_lab.backends.two_of_four import columns, crowded, places, pruned, whole
from accel_lab.libraries.sparse.structured import Check24, Compress24, Matmul24, Prune24


class CudaStructured:
    """Enqueues on the device's active stream; used by the dispatcher thread."""

    def prune24(self, _: Prune24, x: Any, out: Any) -> None:
        """Write the largest two of each four."""
        if out.size:
            cupy.copyto(out, cupy.where(pruned(cupy, x), x, x.dtype.type(0)))

    def check24(self, _: Check24, x: Any, out: Any) -> None:
        """Write whether no four has more than two."""
        cupy.copyto(out, crowded(cupy, x)[0] < 0)

    def compress24(self, _: Compress24, x: Any, out: Any) -> Any:
        """Write what is kept, and return the first row that has more."""
        if out.values.size:
            cupy.copyto(out.places, places(cupy, x))
            kept = cupy.take_along_axis(x, columns(cupy, out.places), axis=1)
            cupy.copyto(out.values, kept)
        return crowded(cupy, x)

    def matmul24(self, _: Matmul24, values: Any, places: Any, b: Any, out: Any) -> None:
        """Write the product."""
        if not out.size:
            return
        a = whole(cupy, values, places)
        if a.itemsize == 2:  # noqa: PLR2004 - CuPy adds the products of one row in half precision
            a, b = a.astype("float32"), b.astype("float32")
        cupy.copyto(out, a @ b, casting="same_kind")
