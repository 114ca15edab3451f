"""Symmetric, Hermitian and banded matrices, outer products and sums of matrices: cuBLAS.

What cuBLAS writes is the transposed result, read column by column: a product's sides are swapped.
"""

from typing import Any

import cupy

from accel_lab.backends.cuda.blas.layout import increment
from accel_lab.backends.cuda.blas.names import SIDES, fill, routines
from accel_lab.backends.cuda.blas.operands import in_rows, layout, target, turnable
from accel_lab.backends.cuda.blas.precision import PRECISIONS
from accel_lab.backends.cuda.blas.products import CudaProducts, How
from accel_lab.compute.arrays.dtypes import is_complex, real_of
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.blas.level3 import HalfUpdate
from accel_lab.libraries.blas.library import (
    Dgmm,
    Gbmv,
    Geam,
    Ger,
    Hemm,
    Hemv,
    Herk,
    Symm,
    Symv,
    Syrk,
)

_SYMM, _SYRK = routines("{}symm"), routines("{}syrk")
_GEAM, _GBMV = routines("{}geam"), routines("{}gbmv")
# A Hermitian matrix of real numbers is a symmetric one.
_HEMM = {**_SYMM, **routines("{}hemm", of=("complex64", "complex128"))}
_HERK = {**_SYRK, **routines("{}herk", of=("complex64", "complex128"))}
_OPERATIONS = {"n": 0, "t": 1, "c": 2}


class CudaHalves(CudaProducts):
    """Products with matrices of which one triangle or band is read; updates, sums, scalings."""

    def symm(self, m: Symm, a: Any, b: Any, c: Any, out: Any, alpha: Number, beta: Number) -> None:
        """Write alpha a @ b + beta c, or b @ a, for symmetric a (cublasSsymm)."""
        self._times(_SYMM, (m.a.dtype, m.side, m.uplo), (a, b, c, out), alpha, beta)

    def hemm(self, m: Hemm, a: Any, b: Any, c: Any, out: Any, alpha: Number, beta: Number) -> None:
        """Write alpha a @ b + beta c, or b @ a, for Hermitian a (cublasChemm)."""
        self._times(_HEMM, (m.a.dtype, m.side, m.uplo), (a, b, c, out), alpha, beta)

    def symv(self, m: Symv, a: Any, x: Any, y: Any, out: Any, alpha: Number, beta: Number) -> None:
        """Write alpha a @ x + beta y for symmetric a, as `symm` with a matrix of one column."""
        columns = _columns(x, y, out)
        self._times(_SYMM, (m.a.dtype, "l", m.uplo), (a, *columns), alpha, beta)

    def hemv(self, m: Hemv, a: Any, x: Any, y: Any, out: Any, alpha: Number, beta: Number) -> None:
        """Write alpha a @ x + beta y for Hermitian a, as `hemm` with a matrix of one column."""
        columns = _columns(x, y, out)
        self._times(_HEMM, (m.a.dtype, "l", m.uplo), (a, *columns), alpha, beta)

    def _times(
        self,
        routine: Any,
        how: tuple[str, str, str],
        operands: tuple[Any, Any, Any, Any],
        alpha: Number,
        beta: Number,
    ) -> None:
        dtype, side, uplo = how
        a, b, c, out = operands
        if not alpha or not out.size:
            self._update_only(c, out, dtype, beta)
            return
        # The transpose of a Hermitian matrix is another one, and lies in memory where a is by rows.
        if routine is _HEMM and is_complex(dtype):
            a, of_a = in_rows(a)
        else:
            a, of_a, _ = turnable(a, "n")
        b, of_b = in_rows(b)
        to, of_to = target(out)
        if c is not None and c is not to:
            cupy.copyto(to, c)
        rows, columns = out.shape
        self._bind()
        at_alpha, _held_alpha = self._factor(dtype, alpha)
        at_beta, _held_beta = self._factor(dtype, beta)
        routine[dtype](
            self._handle,
            SIDES[side],
            fill(uplo, by_rows=of_a.by_rows),
            columns,
            rows,
            at_alpha,
            a.data.ptr,
            of_a.leading,
            b.data.ptr,
            of_b.leading,
            at_beta,
            to.data.ptr,
            of_to.leading,
        )
        if to is not out:
            cupy.copyto(out, to)

    def syrk(self, m: Syrk, a: Any, c: Any, out: Any, alpha: Number, beta: Number) -> None:
        """Write a triangle of alpha op(a) @ op(a)ᵀ + beta c (cublasSsyrk), the other one of c."""
        dtype = m.a.dtype
        if m.trans == "c" and is_complex(dtype):  # BLAS turns without conjugates
            a = cupy.conjugate(a)
        self._update_half(_SYRK, m, (a, c, out), dtype, alpha, beta)

    def herk(self, m: Herk, a: Any, c: Any, out: Any, alpha: Number, beta: Number) -> None:
        """Write a triangle of alpha op(a) @ op(a)ᴴ + beta c (cublasCherk), the other one of c."""
        dtype = m.a.dtype
        if m.trans == "t" and is_complex(dtype):  # BLAS turns with conjugates
            a = cupy.conjugate(a)
        self._update_half(_HERK, m, (a, c, out), real_of(dtype), alpha.real, beta.real)

    def _update_half(
        self,
        routine: Any,
        m: HalfUpdate,
        arrays: tuple[Any, Any, Any],
        factor: str,
        alpha: Number,
        beta: Number,
    ) -> None:
        a, c, out = arrays
        if not out.size:
            return
        dtype, turned = m.a.dtype, m.trans != "n"
        adjoint = routine is _HERK and is_complex(dtype)
        if not alpha or not a.size:
            _scale_half(c, out, PRECISIONS[factor].scalar(beta), m.uplo, adjoint=adjoint)
            return
        # By columns the adjoint would be of conjugates.
        a, of_a = in_rows(a) if adjoint else turnable(a, "n")[:2]
        to, of_to = target(out)
        if c is None:
            to.fill(0)
        elif c is not to:
            cupy.copyto(to, c)
        inner = a.shape[0 if turned else 1]
        # By rows op(a)' lies there: what is not turned is multiplied as transposed or adjoint.
        op = _OPERATIONS["c" if adjoint else "t"] if turned != of_a.by_rows else _OPERATIONS["n"]
        self._bind()
        at_alpha, _held_alpha = self._factor(factor, alpha)
        at_beta, _held_beta = self._factor(factor, beta)
        routine[dtype](
            self._handle,
            fill(m.uplo, by_rows=True),
            op,
            out.shape[0],
            inner,
            at_alpha,
            a.data.ptr,
            of_a.leading,
            at_beta,
            to.data.ptr,
            of_to.leading,
        )
        if to is not out:
            cupy.copyto(out, to)

    def geam(self, m: Geam, a: Any, b: Any, out: Any, alpha: Number, beta: Number) -> None:
        """Write alpha op(a) + beta op(b) (cublasSgeam)."""
        if not out.size:
            return
        dtype = m.a.dtype
        if not alpha or not beta:
            one, trans, factor = (a, m.trans_a, alpha) if alpha else (b, m.trans_b, beta)
            self._scale_turned(dtype, one, trans, out, factor)
            return
        trans_a, trans_b = (
            "t" if trans == "c" and not is_complex(dtype) else trans
            for trans in (m.trans_a, m.trans_b)
        )
        a, of_a, op_a = turnable(a, trans_a)
        b, of_b, op_b = turnable(b, trans_b)
        to, of_to = target(out)
        rows, columns = out.shape
        self._bind()
        at_alpha, _held_alpha = self._factor(dtype, alpha)
        at_beta, _held_beta = self._factor(dtype, beta)
        _GEAM[dtype](
            self._handle,
            op_a,
            op_b,
            columns,
            rows,
            at_alpha,
            a.data.ptr,
            of_a.leading,
            at_beta,
            b.data.ptr,
            of_b.leading,
            to.data.ptr,
            of_to.leading,
        )
        if to is not out:
            cupy.copyto(out, to)

    def _scale_turned(self, dtype: str, x: Any, trans: str, out: Any, factor: Number) -> None:
        """Write factor op(x); an operand whose factor is 0 is not read."""
        if not factor:
            out.fill(0)
            return
        turned = x if trans == "n" else x.T
        if trans == "c" and is_complex(dtype):
            cupy.conjugate(turned, out=out)
        else:
            cupy.copyto(out, turned)
        self._scale(dtype, out, out, factor)

    def dgmm(self, m: Dgmm, x: Any, a: Any, out: Any) -> None:
        """Write diag(x) @ a or a @ diag(x), element by element: any strides will do."""
        if out.size:
            cupy.multiply(a, x[:, None] if m.side == "l" else x, out=out)

    def ger(self, m: Ger, x: Any, y: Any, a: Any, out: Any, alpha: Number) -> None:
        """Write alpha x yᵀ + a, as the product of a column and a row."""
        dtype = m.x.dtype
        if not alpha or not out.size:
            self._update_only(a, out, dtype, 1.0)
            return
        beta = 0.0 if a is None else 1.0
        how: How = (dtype, "n", "c" if m.conjugate else "t", "")
        self._multiply(how, x[:, None], y[:, None], a, out, alpha, beta)

    def gbmv(self, m: Gbmv, a: Any, x: Any, y: Any, out: Any, alpha: Number, beta: Number) -> None:
        """Write alpha op(A) @ x + beta y (cublasSgbmv).

        Read by columns, the rows of A's band are those of its transpose.
        """
        dtype = m.a.dtype
        if not alpha or not a.size or not x.size or not out.size:
            self._update_only(y, out, dtype, beta)
            return
        if m.trans == "c" and is_complex(dtype):  # what lies there is not conjugated unturned
            a = cupy.conjugate(a)
        a, of_a = in_rows(a)
        step_x, step_to = (increment(*layout(one), one.itemsize) for one in (x, out))
        if step_x is None:
            x, step_x = cupy.ascontiguousarray(x), 1
        to = out
        if step_to is None:
            to, step_to = cupy.ndarray(out.shape, out.dtype), 1
        if y is not None and y is not to:
            cupy.copyto(to, y)
        rows, diagonals = a.shape
        self._bind()
        at_alpha, _held_alpha = self._factor(dtype, alpha)
        at_beta, _held_beta = self._factor(dtype, beta)
        _GBMV[dtype](
            self._handle,
            _OPERATIONS["t" if m.trans == "n" else "n"],
            m.columns(),
            rows,
            diagonals - 1 - m.kl,
            m.kl,
            at_alpha,
            a.data.ptr,
            of_a.leading,
            x.data.ptr,
            step_x,
            at_beta,
            to.data.ptr,
            step_to,
        )
        if to is not out:
            cupy.copyto(out, to)


def _columns(x: Any, y: Any, out: Any) -> tuple[Any, Any, Any]:
    """Return vectors as matrices of one column; what is one array stays one."""
    column = out[:, None]
    return x[:, None], None if y is None else column if y is out else y[:, None], column


def _scale_half(c: Any, out: Any, beta: Any, uplo: str, *, adjoint: bool) -> None:
    """Write a triangle of beta c, and the other one of c; the product counts for nothing."""
    if c is None:
        out.fill(0)
        return
    triangle = cupy.tri(out.shape[0], dtype=bool)
    scaled = c * beta
    if adjoint:
        scaled = cupy.where(cupy.eye(out.shape[0], dtype=bool), scaled.real, scaled)
    cupy.copyto(out, cupy.where(triangle if uplo == "l" else triangle.T, scaled, c))
