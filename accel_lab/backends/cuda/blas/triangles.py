"""Triangular matrices: cuBLAS's products with them and solutions of their systems.

What cuBLAS writes is the transposed result, read column by column: sides are swapped.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import cupy
import numpy as np

from accel_lab.backends.cuda.blas.names import SIDES, fill, routines
from accel_lab.backends.cuda.blas.operands import target, turnable
from accel_lab.backends.cuda.blas.products import CudaProducts
from accel_lab.compute.arrays.dtypes import is_complex
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.blas.library import Trmm, Trmv, Trsm, Trsv

_TRMM, _TRSM = routines("{}trmm"), routines("{}trsm")
_TRSM_STACK = routines("{}trsm_batched")


class _Triangle(NamedTuple):
    """What is asked for of a triangular matrix."""

    dtype: str
    side: str
    uplo: str
    trans: str
    unit: bool


class CudaTriangles(CudaProducts):
    """Products with triangular matrices, and systems of them."""

    def trmv(self, m: Trmv, a: Any, x: Any, out: Any) -> None:
        """Write op(a) @ x, as `trmm` with a matrix of one column."""
        how = _Triangle(m.a.dtype, "l", m.uplo, m.trans, m.unit)
        column = out[:, None]
        self._triangular(self._multiply_by, how, a, column if x is out else x[:, None], column, 1.0)

    def trsv(self, m: Trsv, a: Any, b: Any, out: Any) -> None:
        """Write x of op(a) @ x = b, as `trsm` with a matrix of one column."""
        how = _Triangle(m.a.dtype, "l", m.uplo, m.trans, m.unit)
        column = out[:, None]
        self._triangular(self._solve, how, a, column if b is out else b[:, None], column, 1.0)

    def trmm(self, m: Trmm, a: Any, b: Any, out: Any, alpha: Number) -> None:
        """Write alpha op(a) @ b or alpha b @ op(a) (cublasStrmm), one matrix after the other."""
        how = _Triangle(m.a.dtype, m.side, m.uplo, m.trans, m.unit)
        self._triangular(self._multiply_by, how, a, b, out, alpha)

    def trsm(self, m: Trsm, a: Any, b: Any, out: Any, alpha: Number) -> None:
        """Write x of op(a) @ x = alpha b or x @ op(a) = alpha b (cublasStrsm, …trsmBatched)."""
        how = _Triangle(m.a.dtype, m.side, m.uplo, m.trans, m.unit)
        self._triangular(self._solve, how, a, b, out, alpha)

    def _triangular(
        self,
        apply: Callable[..., None],
        how: _Triangle,
        a: Any,
        b: Any,
        out: Any,
        alpha: Number,
    ) -> None:
        """Apply a triangular matrix to a copy of b in place, by `apply`."""
        if not alpha or not out.size:
            self._update_only(None, out, how.dtype, 0.0)
            return
        trans = "t" if how.trans == "c" and not is_complex(how.dtype) else how.trans
        a, of_a, op = turnable(a, trans)
        to, of_to = target(out)
        if b is not to:
            cupy.copyto(to, b)
        rows, columns = out.shape[-2:]
        options = (SIDES[how.side], fill(how.uplo, by_rows=of_a.by_rows), op, int(how.unit))
        self._bind()
        at_alpha, _held = self._factor(how.dtype, alpha)
        apply(how.dtype, (*options, columns, rows, at_alpha), (a, of_a), (to, of_to))
        if to is not out:
            cupy.copyto(out, to)

    def _multiply_by(self, dtype: str, asked: Any, left: Any, right: Any) -> None:
        (a, of_a), (to, of_to) = left, right
        for at in range(math.prod(to.shape[:-2])):
            of_b = to.data.ptr + at * of_to.step * to.itemsize, of_to.leading
            at_a = a.data.ptr + at * of_a.step * a.itemsize
            _TRMM[dtype](self._handle, *asked, at_a, of_a.leading, *of_b, *of_b)

    def _solve(self, dtype: str, asked: Any, left: Any, right: Any) -> None:
        (a, of_a), (to, of_to) = left, right
        batch = math.prod(to.shape[:-2])
        if batch == 1:
            at = a.data.ptr, of_a.leading, to.data.ptr, of_to.leading
            _TRSM[dtype](self._handle, *asked, *at)
            return
        places_a, places_to = _places(a, of_a.step, batch), _places(to, of_to.step, batch)
        ats = places_a.data.ptr, of_a.leading, places_to.data.ptr, of_to.leading
        _TRSM_STACK[dtype](self._handle, *asked, *ats, batch)


def _places(x: Any, step: int, batch: int) -> Any:
    """Return the address of each matrix of a stack, on the device."""
    steps = cupy.arange(batch, dtype=np.uint64) * np.uint64(step * x.itemsize)
    return steps + np.uint64(x.data.ptr)
