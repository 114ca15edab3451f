"""Sums and products of sparse matrices on the host, by SciPy."""

from typing import Any

import numpy as np
import scipy.sparse

from accel_lab.backends.host.sparse.scipys import sparse_array
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.sparse.algebra import Spadd, Spgemm

Arrays = tuple[Any, Any, Any]


class HostAlgebra:
    """Sums and products, computed at once; where they store depends on no value."""

    @np.errstate(all="ignore")
    def spgemm(self, m: Spgemm, a: Arrays, b: Arrays, alpha: Number) -> Arrays:
        """Return alpha a @ b (SciPy's product), with what is 0 stored, too."""
        dtype = m.values.dtype
        left = sparse_array("csr", m.shape, *a, dtype=dtype)
        right = sparse_array("csr", m.b_shape, *b, dtype=dtype)
        made = left @ right
        where = _ones(left) @ _ones(right)  # SciPy leaves out a sum that is 0, and this has none
        where.sort_indices()
        values = np.zeros(where.nnz, made.dtype)
        if where.nnz == made.nnz:
            made.sort_indices()
            values[...] = made.data
        else:
            places = scipy.sparse.csr_array(
                (np.arange(1, where.nnz + 1), where.indices, where.indptr), shape=made.shape
            )
            made.sort_indices()
            values[places.multiply(_ones(made)).data - 1] = made.data
        values *= values.dtype.type(alpha)
        return values, _as(where.indices, m), _as(where.indptr, m)

    @np.errstate(all="ignore")
    def spadd(self, m: Spadd, a: Arrays, b: Arrays, alpha: Number, beta: Number) -> Arrays:
        """Return alpha a + beta b: all that both store, where they meet added up."""
        parts = []
        for (values, indices, pointers), factor in ((a, alpha), (b, beta)):
            rows = np.repeat(np.arange(m.shape[0], dtype=indices.dtype), np.diff(pointers))
            parts.append((values * values.dtype.type(factor), indices, rows))
        values, columns, rows = (np.concatenate(pair) for pair in zip(*parts, strict=True))
        made = scipy.sparse.coo_array((values, (rows, columns)), shape=m.shape).tocsr()
        made.sort_indices()
        return made.data, _as(made.indices, m), _as(made.indptr, m)


def _ones(a: Any) -> Any:
    """Return a matrix of True where another stores."""
    return scipy.sparse.csr_array((np.ones(a.nnz, bool), a.indices, a.indptr), shape=a.shape)


def _as(indices: Any, m: Any) -> Any:
    return indices.astype(m.indices.dtype, copy=False)
