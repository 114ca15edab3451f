"""Systems with a sparse matrix on the host: by iteration, and directly by SuperLU."""

from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import splu

from accel_lab.backends.host.sparse.scipys import sparse_array
from accel_lab.backends.krylov import Found, Map, System, bicgstab, cg, gmres
from accel_lab.libraries.sparse.pivots import BadPivot
from accel_lab.libraries.sparse.systems import Bicgstab, Cg, Gmres, Iteration, Spsolve

_MOST = 2**31 - 1
Arrays = tuple[Any, Any, Any]


class HostSystems:
    """Solutions, computed at once."""

    def cg(self, m: Cg, a: Arrays, b: Any, x0: Any, factor: Any) -> Found:
        """Return what conjugate gradients find."""
        return _system(m, a, b, x0, factor).solved(cg)

    def gmres(self, m: Gmres, a: Arrays, b: Any, x0: Any, factor: Any) -> Found:
        """Return what minimal residuals find."""
        return _system(m, a, b, x0, factor).solved(gmres(m.restart))

    def bicgstab(self, m: Bicgstab, a: Arrays, b: Any, x0: Any, factor: Any) -> Found:
        """Return what stabilized biconjugate gradients find."""
        return _system(m, a, b, x0, factor).solved(bicgstab)

    @np.errstate(all="ignore")
    def spsolve(self, m: Spsolve, a: Arrays, b: Any) -> Any:
        """Return the solution (SuperLU).

        Raises:
            BadPivot: the matrix is singular.
        """
        if not b.size:
            return b.copy()
        try:
            return lu_of(sparse_array("csr", m.shape, *a, dtype=m.values.dtype)).solve(b)
        except RuntimeError as error:
            text = f"Spsolve: {error}"
            raise BadPivot(text) from None


def _system(m: Iteration, a: Arrays, b: Any, x0: Any, factor: Any) -> System:
    matrix = sparse_array("csr", m.shape, *a, dtype=m.values.dtype)
    x = np.zeros_like(b) if x0 is None else x0.copy()
    precondition = _preconditioner(m, matrix, factor)
    return System(np, lambda x: matrix @ x, precondition, b.copy(), x, float(m.rtol), m.most)


def _preconditioner(m: Iteration, matrix: Any, factor: Any) -> Map:
    """Return what about solves the system.

    Raises:
        BadPivot: a diagonal element that divides is 0.
    """
    if m.preconditioner == "none" or not m.shape[0]:
        return lambda r: r
    if m.preconditioner == "jacobi":
        diagonal = matrix.diagonal()
        if not diagonal.all():
            row = int(np.argmin(diagonal != 0))
            text = f"{type(m).__name__}: the diagonal of row {row} is zero or not stored"
            raise BadPivot(text, row=row)
        return lambda r: r / diagonal
    made = scipy.sparse.csr_array((factor, matrix.indices, matrix.indptr), shape=m.shape)
    if m.preconditioner == "ic0":
        lower = lu_of(scipy.sparse.tril(made), in_order=True)
        return lambda r: lower.solve(lower.solve(r), trans="H")
    ones = scipy.sparse.eye_array(m.shape[0], dtype=made.dtype)
    lower = lu_of(scipy.sparse.tril(made, -1) + ones, in_order=True)
    upper = lu_of(scipy.sparse.triu(made), in_order=True)
    return lambda r: upper.solve(lower.solve(r))


def lu_of(a: Any, *, in_order: bool = False) -> Any:
    """Return SuperLU's factors; of a triangle in order, which are that and ones."""
    csc = a.tocsc()
    if max(csc.shape[0], csc.nnz) > _MOST:
        text = f"SuperLU counts in 32 bits, and there are {csc.nnz} values"
        raise RuntimeError(text)
    indices, ends = (one.astype(np.int32) for one in (csc.indices, csc.indptr))
    own = scipy.sparse.csc_array((csc.data, indices, ends), shape=csc.shape)
    if in_order:
        return splu(own, permc_spec="NATURAL", diag_pivot_thresh=0.0)
    return splu(own)
