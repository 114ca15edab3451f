"""Sparse factors on the host: SuperLU's."""

from typing import Any

import numpy as np

from accel_lab.backends.host.sparse.scipys import sparse_array
from accel_lab.backends.host.sparse.systems import Arrays, lu_of
from accel_lab.libraries.sparse.factors import Factorize, FactorSolve
from accel_lab.libraries.sparse.matrix import Trans
from accel_lab.libraries.sparse.pivots import BadPivot

_WORDS = {"n": "N", "t": "T", "c": "H"}


class HostSparseFactors:
    """The factors of one matrix; None stands for those of a matrix without rows.

    Attributes:
        order, dtype: of the matrix.
    """

    def __init__(self, order: int, dtype: str, factors: Any) -> None:
        self.order, self.dtype = order, dtype
        self._factors = factors

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        stored = 0 if self._factors is None else int(self._factors.nnz)
        return stored * np.dtype(self.dtype).itemsize

    @np.errstate(all="ignore")
    def solve(self, b: Any, trans: Trans) -> Any:
        """Return the solution."""
        if self._factors is None or not b.size:
            return b.copy()
        return self._factors.solve(b, trans=_WORDS[trans])


class HostFactorizations:
    """Computed at once."""

    def factorize(self, m: Factorize, a: Arrays) -> HostSparseFactors:
        """Return the factors (SuperLU).

        Raises:
            BadPivot: the matrix is singular.
        """
        order, dtype = m.shape[0], m.values.dtype
        if not order:
            return HostSparseFactors(order, dtype, None)
        try:
            found = lu_of(sparse_array("csr", m.shape, *a, dtype=dtype))
        except RuntimeError as error:
            text = f"Factorize: {error}"
            raise BadPivot(text) from None
        return HostSparseFactors(order, dtype, found)

    def factor_solve(self, m: FactorSolve, factors: HostSparseFactors, b: Any) -> Any:
        """Return the solution."""
        return factors.solve(b, m.trans)
