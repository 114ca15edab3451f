"""Sums and products of sparse matrices on cuda: cuSPARSE's SpGEMM and SpGEAM, through CuPy."""

from typing import Any

import cupy
from cupyx import cusparse

from accel_lab.backends.cuda.sparse.matrices import Arrays, bound_handle, by_rows, in_32_bits
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.sparse.algebra import Spadd, Spgemm


class CudaAlgebra:
    """Waits for how much the result stores: for work beside the dispatcher."""

    def spgemm(self, m: Spgemm, a: Arrays, b: Arrays, alpha: Number) -> Arrays:
        """Return alpha a @ b (cusparseSpGEMM)."""
        if not (a[0].size and b[0].size):
            return _nothing(m)
        bound_handle()
        made = cusparse.spgemm(*_both(m, a, b), alpha)
        return _parts(m, made)

    def spadd(self, m: Spadd, a: Arrays, b: Arrays, alpha: Number, beta: Number) -> Arrays:
        """Return alpha a + beta b (cusparseSpGEAM, or csrgeam2 before it)."""
        for (values, indices, pointers), factor, other in ((a, alpha, b), (b, beta, a)):
            if not other[0].size:
                scaled = values * values.dtype.type(factor)
                return scaled, indices.copy(), pointers.copy()
        made = cusparse.spgeam(*_both(m, a, b), alpha, beta)
        return _parts(m, made)


def _both(m: Spgemm | Spadd, a: Arrays, b: Arrays) -> tuple[Any, Any]:
    """Return both with 32-bit indices: SpGEMM with 64 was seen to be wrong most often.

    Raises:
        InvalidArgument: 32 bits do not suffice.
    """
    what = type(m).__name__
    return (
        by_rows(m.shape, *in_32_bits(what, m.shape, *a)),
        by_rows(m.b_shape, *in_32_bits(what, m.b_shape, *b)),
    )


def _parts(m: Spgemm | Spadd, made: Any) -> Arrays:
    dtype = m.indices.dtype
    indices = made.indices.astype(dtype, copy=False)
    return made.data, indices, made.indptr.astype(dtype, copy=False)


def _nothing(m: Spgemm) -> Arrays:
    dtype = m.indices.dtype
    values = cupy.zeros(0, m.values.dtype)
    return values, cupy.zeros(0, dtype), cupy.zeros(m.shape[0] + 1, dtype)
