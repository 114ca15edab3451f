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
        made = _in_order(left @ right)
        where = _ones(left) @ _ones(right)  # SciPy leaves out a sum that is 0, and this has none
        if where.nnz != made.nnz:
            made = _spread(made, _in_order(where))
        made.data *= made.dtype.type(alpha)
        return made.data, _as(made.indices, m), _as(made.indptr, m)

    @np.errstate(all="ignore")
    def spadd(self, m: Spadd, a: Arrays, b: Arrays, alpha: Number, beta: Number) -> Arrays:
        """Return alpha a + beta b (SciPy's sum), with what is 0 stored, too."""
        one, other = (
            sparse_array(
                "csr", m.shape, part[0] * part[0].dtype.type(by), *part[1:], dtype=m.values.dtype
            )
            for part, by in ((a, alpha), (b, beta))
        )
        made = one + other
        both = _ones(one).multiply(_ones(other)).nnz
        if made.nnz != one.nnz + other.nnz - both:
            made = _spread(made, _ones(one) + _ones(other))
        return made.data, _as(made.indices, m), _as(made.indptr, m)


def _in_order(a: Any) -> Any:
    """Return a matrix with its columns in order; to turn it twice is faster than to sort it."""
    return a if a.has_sorted_indices else a.tocsc().tocsr()


def _spread(a: Any, where: Any) -> Any:
    """Return a matrix with all places of another, among which its own are."""
    count = np.arange(1, where.nnz + 1)
    places = scipy.sparse.csr_array((count, where.indices, where.indptr), shape=a.shape)
    values = np.zeros(where.nnz, a.dtype)
    values[places.multiply(_ones(a)).data - 1] = a.data
    return scipy.sparse.csr_array((values, where.indices, where.indptr), shape=a.shape)


def _ones(a: Any) -> Any:
    """Return a matrix of True where another stores."""
    return scipy.sparse.csr_array((np.ones(a.nnz, bool), a.indices, a.indptr), shape=a.shape)


def _as(indices: Any, m: Any) -> Any:
    return indices.astype(m.indices.dtype, copy=False)
