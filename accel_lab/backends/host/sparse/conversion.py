"""Sparse matrices from and to dense ones and between the formats on the host."""

from typing import Any

import numpy as np
import scipy.sparse

from accel_lab.backends.sparse_structure import packed, problem, rows_of, unpacked
from accel_lab.libraries.sparse.conversion import Convert, Densify, Sparsify, Verify

Arrays = tuple[Any, Any, Any]


class HostConversion:
    """Conversions, done at once; any dtype, as they move values and compute nothing."""

    def densify(self, m: Densify, values: Any, indices: Any, pointers: Any, out: Any) -> None:
        """Write each value to its place, zeros elsewhere."""
        out[...] = 0
        if m.format == "csr":
            out[rows_of(np, pointers, values.size), indices] = values
            return
        stored = unpacked(np, m.format, values, indices, pointers)
        out[stored.rows, stored.columns] = stored.values

    def sparsify(self, m: Sparsify, x: Any) -> Arrays:
        """Return what is not zero, by rows."""
        rows, columns = np.nonzero(x)
        counts = np.bincount(rows, minlength=x.shape[0])
        pointers = np.concatenate(([0], np.cumsum(counts))).astype(m.index_dtype)
        return x[rows, columns], columns.astype(m.index_dtype), pointers

    def convert(self, m: Convert, values: Any, indices: Any, pointers: Any) -> Arrays:
        """Return the parts of the other format, as arrays of their own."""
        if {m.format, m.to} == {"csr", "csc"}:
            return _compressed_along_the_other(m, values, indices, pointers)
        stored = unpacked(np, m.format, values, indices, pointers)
        made = packed(np, m.to, m.shape, stored, tuple(m.block))
        given = values, indices, pointers
        first, second, third = (
            one.copy() if any(np.may_share_memory(one, other) for other in given) else one
            for one in made
        )
        return first, second, third

    def verify(self, m: Verify, values: Any, indices: Any, pointers: Any, out: Any) -> Any:
        """Copy indices and pointers, and return what is wrong with them."""
        out.indices[...] = indices
        out.pointers[...] = pointers
        step = values.shape[1:] if m.format == "bsr" else (1, 1)
        return problem(np, m.format, m.shape, indices, pointers, step)


def _compressed_along_the_other(m: Convert, values: Any, indices: Any, pointers: Any) -> Arrays:
    """Return CSC of CSR or CSR of CSC, with SciPy's counting sort for the order."""
    kind: Any = getattr(scipy.sparse, f"{m.format}_array")
    places = np.arange(values.size, dtype=pointers.dtype)
    turned = kind((places, indices, pointers), shape=m.shape).asformat(m.to)
    dtype = indices.dtype
    return (
        values[turned.data],
        turned.indices.astype(dtype, copy=False),
        turned.indptr.astype(dtype, copy=False),
    )
