"""Symmetric and Hermitian matrices on the host, of which one triangle is read or written."""

from typing import Any

import numpy as np

from accel_lab.backends.host.blas.products import turned
from accel_lab.backends.host.blas.routines import routine
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.blas.level2 import HalfProduct
from accel_lab.libraries.blas.level3 import HalfTimes, HalfUpdate
from accel_lab.libraries.blas.library import Hemm, Hemv, Herk, Symm, Symv, Syrk


class HostHalves:
    """Products with half matrices by SciPy's BLAS, and updates of such by NumPy's products."""

    def symv(self, m: Symv, a: Any, x: Any, y: Any, out: Any, alpha: Number, beta: Number) -> None:
        """Write alpha a @ x + beta y for symmetric a (BLAS's symv, symm for complex numbers)."""
        if a.dtype.kind == "c":  # BLAS has no symv of these
            added = None if y is None else y[:, None]
            _times("symm", m, (a, x[:, None], added), out[:, None], alpha, beta)
        else:
            _times("symv", m, (a, x, y), out, alpha, beta)

    def hemv(self, m: Hemv, a: Any, x: Any, y: Any, out: Any, alpha: Number, beta: Number) -> None:
        """Write alpha a @ x + beta y for Hermitian a (BLAS's hemv)."""
        _times("hemv", m, (a, x, y), out, alpha, beta)

    def symm(self, m: Symm, a: Any, b: Any, c: Any, out: Any, alpha: Number, beta: Number) -> None:
        """Write alpha a @ b + beta c, or b @ a, for symmetric a (BLAS's symm)."""
        _times("symm", m, (a, b, c), out, alpha, beta, side=m.side == "r")

    def hemm(self, m: Hemm, a: Any, b: Any, c: Any, out: Any, alpha: Number, beta: Number) -> None:
        """Write alpha a @ b + beta c, or b @ a, for Hermitian a (BLAS's hemm)."""
        _times("hemm", m, (a, b, c), out, alpha, beta, side=m.side == "r")

    def syrk(self, m: Syrk, a: Any, c: Any, out: Any, alpha: Number, beta: Number) -> None:
        """Write a triangle of alpha op(a) @ op(a)ᵀ + beta c, and the other one of c."""
        _update(m, a, c, out, alpha, beta, adjoint=False)

    def herk(self, m: Herk, a: Any, c: Any, out: Any, alpha: Number, beta: Number) -> None:
        """Write a triangle of alpha op(a) @ op(a)ᴴ + beta c, and the other one of c."""
        _update(m, a, c, out, alpha.real, beta.real, adjoint=True)


@np.errstate(all="ignore")
def _times(
    name: str,
    m: HalfProduct | HalfTimes,
    operands: tuple[Any, Any, Any],
    out: Any,
    alpha: Number,
    beta: Number,
    **side: bool,
) -> None:
    a, b, c = operands
    added = 0 if c is None else np.multiply(c, beta)
    if alpha == 0 or not out.size:
        out[...] = added
        return
    lower = m.uplo == "l"
    if a.dtype.kind != "c" and a.flags.c_contiguous:  # BLAS takes its memory as it is
        a, lower = a.T, not lower
    out[...] = routine(name, a.dtype)(alpha, a, b, lower=lower, **side) + added


@np.errstate(all="ignore")
def _update(
    m: HalfUpdate, a: Any, c: Any, out: Any, alpha: Number, beta: Number, *, adjoint: bool
) -> None:
    triangle = np.tri(out.shape[0], dtype=np.bool_)
    if m.uplo == "u":
        triangle = triangle.T
    made = np.zeros(out.shape, out.dtype)
    if alpha:
        left = turned(a, m.trans)
        np.matmul(left, turned(left, "c" if adjoint else "t"), out=made)
        np.multiply(made, alpha, out=made)
    if c is not None:
        np.add(made, np.multiply(c, beta), out=made)
    if adjoint and made.dtype.kind == "c":
        np.fill_diagonal(made, made.diagonal().real.copy())
    out[...] = np.where(triangle, made, 0 if c is None else c)
