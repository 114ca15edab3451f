"""Systems, inverses and determinants on cuda, by LU and Cholesky's factors."""

from typing import Any

import cupy
from nvmath.bindings import cusolverDn

from accel_lab.backends.cuda.solver.columns import by_columns, no_errors, place, rows_of, write
from accel_lab.backends.cuda.solver.factors import CudaFactors
from accel_lab.backends.cuda.solver.handle import type_of
from accel_lab.libraries.solver.library import CholeskySolve, Det, Inv, LuSolve, Slogdet, Solve

_POTRS = cusolverDn.xpotrs
_TRANS = {"n": 0, "t": 1, "c": 2}  # cublasOperation_t
_FILL_LOWER, _FILL_UPPER = 0, 1  # cublasFillMode_t


class CudaSystems(CudaFactors):
    """Solves with what is factored."""

    def solve(self, _: Solve, a: Any, b: Any, out: Any) -> Any:
        """Write the solutions and return where a pivot is 0 (cusolverDnXgetrf, …Xgetrs)."""
        stack = a.shape[:-2]
        if not a.size:
            return no_errors(stack)
        lu, pivots, info = self._factored(a)
        right = _right(b, out)
        self._apply(lu, pivots, right)
        write(out, rows_of(right))
        return info.reshape(stack)

    def lu_solve(self, m: LuSolve, lu: Any, pivots: Any, b: Any, out: Any) -> None:
        """Write the solutions (cusolverDnXgetrs)."""
        if not out.size:
            return
        n, right = lu.shape[-1], _right(b, out)
        counted = cupy.clip(pivots, 0, n - 1).reshape(-1, n) + 1
        self._apply(by_columns(lu), counted, right, _TRANS[m.trans])
        write(out, rows_of(right))

    def cholesky_solve(self, m: CholeskySolve, c: Any, b: Any, out: Any) -> None:
        """Write the solutions (cusolverDnXpotrs)."""
        if not out.size:
            return
        handle = self._own_solver()
        held, right, info = by_columns(c), _right(b, out), no_errors((1,))
        count, n, kind = len(held), c.shape[-1], type_of(c)
        columns = right.reshape(1, -1, n) if count == 1 else right
        fill = _FILL_LOWER if m.lower else _FILL_UPPER
        for i in range(count):
            factor = fill, n, columns.shape[1], kind, place(held, i), n
            handle.call_plain(_POTRS, *factor, kind, place(columns, i), n, info.data.ptr)
        write(out, rows_of(right))

    def inv(self, _: Inv, a: Any, out: Any) -> Any:
        """Write the inverses and return where a pivot is 0, by solving for the identity."""
        stack, n = a.shape[:-2], a.shape[-1]
        if not a.size:
            return no_errors(stack)
        lu, pivots, info = self._factored(a)
        right = by_columns(cupy.broadcast_to(cupy.eye(n, dtype=a.dtype), a.shape))
        self._apply(lu, pivots, right)
        write(out, rows_of(right))
        return info.reshape(stack)

    def det(self, _: Det, a: Any, out: Any) -> None:
        """Write the products of the pivots (cusolverDnXgetrf)."""
        if not a.size:
            out.fill(1)
            return
        diagonal, sign = self._pivots(a)
        write(out, diagonal.prod(axis=-1) * sign)

    def slogdet(self, _: Slogdet, a: Any, out: Any) -> None:
        """Write signs and sums of logarithms of the pivots (cusolverDnXgetrf)."""
        if not a.size:
            out.sign.fill(1)
            out.logabsdet.fill(0)
            return
        diagonal, sign = self._pivots(a)
        size = cupy.abs(diagonal)
        write(out.logabsdet, cupy.log(size).sum(axis=-1))
        phases = (diagonal / size).prod(axis=-1) * sign
        is_singular = (size == 0).any(axis=-1)
        write(out.sign, cupy.where(is_singular, a.dtype.type(0), phases))

    def _pivots(self, a: Any) -> tuple[Any, Any]:
        """Return the pivots, and -1 where rows were exchanged an odd number of times, else 1."""
        lu, pivots, _ = self._factored(a)
        exchanged = pivots != cupy.arange(1, a.shape[-1] + 1)
        sign = 1 - 2 * (exchanged.sum(axis=-1) % 2)
        return cupy.diagonal(lu, axis1=-2, axis2=-1), sign.astype(lu.real.dtype)


def _right(b: Any, out: Any) -> Any:
    """Return a copy of the right sides, one for each solution, held by columns."""
    return by_columns(cupy.broadcast_to(b, out.shape))
