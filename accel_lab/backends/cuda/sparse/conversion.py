"""Sparse matrices from and to dense ones and between the formats on cuda, by CuPy's arrays."""

from typing import Any

import cupy

from accel_lab.backends.sparse_structure import packed, pointers_of, problem, unpacked
from accel_lab.libraries.sparse.conversion import Convert, Densify, Sparsify, Verify

Arrays = tuple[Any, Any, Any]
_MAGNITUDE = 0x7FFF  # of the bits of a bfloat16, without its sign


class CudaConversion:
    """Moves values and computes nothing: bfloat16 are as good as any other bits."""

    def densify(self, m: Densify, values: Any, indices: Any, pointers: Any, out: Any) -> None:
        """Write each value to its place, zeros elsewhere."""
        if out.size:
            out.fill(0)
        if values.size:
            stored = unpacked(cupy, m.format, values, indices, pointers)
            out[stored.rows, stored.columns] = stored.values

    def sparsify(self, m: Sparsify, x: Any) -> Arrays:
        """Return what is not zero, by rows; waits for how much that is."""
        if not x.size:
            none = cupy.zeros(0, m.index_dtype)
            return cupy.zeros(0, x.dtype), none, cupy.zeros(x.shape[0] + 1, m.index_dtype)
        rows, columns = cupy.nonzero(x & _MAGNITUDE if m.x.dtype == "bfloat16" else x)
        pointers = pointers_of(cupy, rows.astype(m.index_dtype), x.shape[0])
        return x[rows, columns], columns.astype(m.index_dtype), pointers

    def convert(self, m: Convert, values: Any, indices: Any, pointers: Any) -> Arrays:
        """Return the parts of the other format, as arrays of their own; waits for blocks alone."""
        stored = unpacked(cupy, m.format, values, indices, pointers)
        made = packed(cupy, m.to, m.shape, stored, tuple(m.block))
        given = {one.data.ptr for one in (values, indices, pointers)}
        first, second, third = (one.copy() if one.data.ptr in given else one for one in made)
        return first, second, third

    def verify(self, m: Verify, values: Any, indices: Any, pointers: Any, out: Any) -> Any:
        """Copy indices and pointers, and return what is wrong with them."""
        cupy.copyto(out.indices, indices)
        cupy.copyto(out.pointers, pointers)
        step = values.shape[1:] if m.format == "bsr" else (1, 1)
        return problem(cupy, m.format, m.shape, indices, pointers, step)
