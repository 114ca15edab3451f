"""Sparse factors on cuda: SuperLU finds them on the processor, cuSPARSE's SpSM solves with them."""

from typing import Any

import cupy
import numpy as np
import scipy.sparse
from scipy.sparse.linalg import splu

from accel_lab.backends.cuda.sparse.matrices import Arrays, in_32_bits
from accel_lab.backends.cuda.sparse.triangle import triangle
from accel_lab.libraries.sparse.factors import Factorize, FactorSolve
from accel_lab.libraries.sparse.matrix import Trans, Uplo
from accel_lab.libraries.sparse.pivots import BadPivot


class CudaSparseFactors:
    """The factors of one matrix, on the device; None stands for those of one without rows.

    With SciPy's permutations, `rows` and `columns`: L @ U is solved for what is `b` at [rows], and
    the solution is that at [columns].

    Attributes:
        order, dtype: of the matrix.
    """

    def __init__(self, order: int, dtype: str, factors: Any) -> None:
        self.order, self.dtype = order, dtype
        self._lower: Arrays | None = None
        self._upper: Arrays | None = None
        self._rows: Any = None
        self._columns: Any = None
        if factors is not None:
            self._lower, self._upper = _on_device(factors.L), _on_device(factors.U)
            self._rows = cupy.asarray(factors.perm_r.astype(np.int64))
            self._columns = cupy.asarray(factors.perm_c.astype(np.int64))

    @property
    def nbytes(self) -> int:
        """How much of the device's memory they take."""
        if self._lower is None or self._upper is None:
            return 0
        arrays = (*self._lower, *self._upper, self._rows, self._columns)
        return sum(int(one.nbytes) for one in arrays)

    def solve(self, b: Any, trans: Trans) -> Any:
        """Return the solution; nothing waits."""
        if self._lower is None or not b.size:
            return b.copy()
        right = b.reshape(self.order, -1)
        before, behind = (self._rows, self._columns)
        if trans != "n":
            before, behind = behind, before
        x = cupy.empty_like(right)
        x[before] = right
        halves: list[tuple[Any, Uplo]] = [(self._lower, "l"), (self._upper, "u")]
        for parts, uplo in halves if trans == "n" else halves[::-1]:
            with triangle(parts, right.shape[1], uplo=uplo, trans=trans) as solve:
                x = solve(x).copy()
        return x[behind].reshape(b.shape)

    def close(self) -> None:
        """Give the memory back."""
        self._lower = self._upper = self._rows = self._columns = None


class CudaFactorizations:
    """Factorizations wait, and are for work beside the dispatcher; solutions are enqueued."""

    def factorize(self, m: Factorize, a: Arrays) -> CudaSparseFactors:
        """Return the factors (SuperLU on the processor).

        Raises:
            BadPivot: the matrix is singular.
        """
        order, dtype = m.shape[0], m.values.dtype
        if not order:
            return CudaSparseFactors(order, dtype, None)
        values, indices, pointers = (one.get() for one in in_32_bits("Factorize", m.shape, *a))
        matrix = scipy.sparse.csr_array((values, indices, pointers), shape=m.shape)
        try:
            return CudaSparseFactors(order, dtype, splu(matrix.tocsc()))
        except RuntimeError as error:
            text = f"Factorize: {error}"
            raise BadPivot(text) from None

    def factor_solve(self, m: FactorSolve, factors: CudaSparseFactors, b: Any) -> Any:
        """Return the solution (cusparseSpSM, twice)."""
        return factors.solve(b, m.trans)


def _on_device(factor: Any) -> Arrays:
    """Return a factor by compressed rows."""
    by_rows = factor.tocsr()
    by_rows.sort_indices()
    parts = (by_rows.data, by_rows.indices.astype(np.int32), by_rows.indptr.astype(np.int32))
    values, indices, pointers = map(cupy.asarray, parts)
    return values, indices, pointers
