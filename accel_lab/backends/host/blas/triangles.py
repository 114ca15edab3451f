"""Triangular matrices on the host, by SciPy's BLAS."""

from typing import Any

import numpy as np

from accel_lab.backends.host.blas.routines import routine
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.blas.level3 import TriangularTimes
from accel_lab.libraries.blas.library import Trmm, Trmv, Trsm, Trsv

_TRANS = {"n": 0, "t": 1, "c": 2}
_TURNED = {"n": 1, "t": 0, "c": 0}  # of real numbers


class HostTriangles:
    """Products with triangular matrices, and systems of them."""

    def trmv(self, m: Trmv, a: Any, x: Any, out: Any) -> None:
        """Write op(a) @ x (BLAS's trmv)."""
        _vector("trmv", m, a, x, out)

    def trsv(self, m: Trsv, a: Any, b: Any, out: Any) -> None:
        """Write x of op(a) @ x = b (BLAS's trsv)."""
        _vector("trsv", m, a, b, out)

    def trmm(self, m: Trmm, a: Any, b: Any, out: Any, alpha: Number) -> None:
        """Write alpha op(a) @ b or alpha b @ op(a), one matrix after the other (BLAS's trmm)."""
        _matrices("trmm", m, a, b, out, alpha)

    def trsm(self, m: Trsm, a: Any, b: Any, out: Any, alpha: Number) -> None:
        """Write x of op(a) @ x = alpha b or x @ op(a) = alpha b, one after the other (trsm)."""
        _matrices("trsm", m, a, b, out, alpha)


@np.errstate(all="ignore")
def _vector(name: str, m: Trmv | Trsv, a: Any, x: Any, out: Any) -> None:
    if not out.size:
        return
    lower, trans = m.uplo == "l", _TRANS[m.trans]
    if a.dtype.kind != "c" and a.flags.c_contiguous:  # BLAS takes its memory as it is
        a, lower, trans = a.T, not lower, _TURNED[m.trans]
    out[...] = routine(name, a.dtype)(a, x, lower=lower, trans=trans, diag=m.unit)


@np.errstate(all="ignore")
def _matrices(name: str, m: TriangularTimes, a: Any, b: Any, out: Any, alpha: Number) -> None:
    if alpha == 0 or not out.size:
        out[...] = 0
        return
    stack = out.shape[:-2]
    a = np.broadcast_to(a, (*stack, *a.shape[-2:]))
    b = np.broadcast_to(b, out.shape)
    apply = routine(name, out.dtype)
    for at in np.ndindex(stack):
        out[at] = apply(
            alpha,
            a[at],
            b[at],
            side=m.side == "r",
            lower=m.uplo == "l",
            trans_a=_TRANS[m.trans],
            diag=m.unit,
        )
