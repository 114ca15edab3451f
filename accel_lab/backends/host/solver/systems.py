"""Systems, inverses, determinants and least squares on the host, by SciPy's LAPACK."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from accel_lab.backends.host.solver.routines import best_lwork, enough, no_errors, routine
from accel_lab.libraries.authoring.operand import arrived
from accel_lab.libraries.solver.library import (
    CholeskySolve,
    Det,
    Inv,
    Lstsq,
    LuSolve,
    Slogdet,
    Solve,
)
from accel_lab.libraries.solver.message import NOT_FINITE

_TRANS = {"n": 0, "t": 1, "c": 2}


class HostSystems:
    """Solves one system after the other."""

    def solve(self, _: Solve, a: Any, b: Any, out: Any) -> Any:
        """Write the solutions and return where a pivot is 0 (LAPACK's getrf and getrs)."""
        info = no_errors(a)
        if not a.size:
            return info
        factor, apply = routine("getrf", a.dtype), routine("getrs", a.dtype)
        for at in np.ndindex(info.shape):
            lu, pivots, info[at] = factor(a[at])
            if not info[at]:
                _apply(partial(_first, apply, lu, pivots), at, b, out)
        return info

    def lu_solve(self, m: LuSolve, lu: Any, pivots: Any, b: Any, out: Any) -> None:
        """Write the solutions (LAPACK's getrs)."""
        if not out.size:
            return
        apply, trans = routine("getrs", lu.dtype), _TRANS[m.trans]
        pivots = pivots.clip(0, lu.shape[-1] - 1)
        for at in np.ndindex(lu.shape[:-2]):
            turned = partial(_first, apply, lu[at], pivots[at], trans=trans)
            _apply(turned, at, b, out)

    def cholesky_solve(self, m: CholeskySolve, c: Any, b: Any, out: Any) -> None:
        """Write the solutions (LAPACK's potrs)."""
        if not out.size:
            return
        apply = routine("potrs", c.dtype)
        for at in np.ndindex(c.shape[:-2]):
            _apply(partial(_first, apply, c[at], lower=m.lower), at, b, out)

    def inv(self, _: Inv, a: Any, out: Any) -> Any:
        """Write the inverses and return where a pivot is 0 (LAPACK's getrf and getri)."""
        info = no_errors(a)
        if not a.size:
            return info
        factor, invert = routine("getrf", a.dtype), routine("getri", a.dtype)
        lwork = best_lwork("getri", a.dtype, a.shape[-1])
        for at in np.ndindex(info.shape):
            lu, pivots, info[at] = factor(a[at])
            if not info[at]:
                out[at] = invert(lu, pivots, lwork=lwork, overwrite_lu=True)[0]
        return info

    @np.errstate(all="ignore")
    def det(self, _: Det, a: Any, out: Any) -> None:
        """Write the products of the pivots (LAPACK's getrf)."""
        for at in np.ndindex(out.shape):
            diagonal, sign = _pivots(a[at])
            out[at] = diagonal.prod() * sign

    @np.errstate(all="ignore")
    def slogdet(self, _: Slogdet, a: Any, out: Any) -> None:
        """Write signs and sums of logarithms of the pivots (LAPACK's getrf)."""
        for at in np.ndindex(out.sign.shape):
            diagonal, sign = _pivots(a[at])
            size = np.abs(diagonal)
            out.logabsdet[at] = np.log(size).sum()
            out.sign[at] = (diagonal / size).prod() * sign if (size != 0).all() else 0

    def lstsq(self, m: Lstsq, a: Any, b: Any, out: Any, _: Any) -> Any:
        """Write the solutions and return what did not converge (LAPACK's gelsd)."""
        info = no_errors(a)
        (rows, columns), right = a.shape[-2:], b.shape[-1]
        if not a.size:
            out.x[...], out.rank[...] = 0, 0
            return info
        rcond = least_of(m, a)
        # Without a right side there is still a rank to find.
        many, wide = max(rows, columns), max(right, 1)
        work, *sizes, _ = routine("gelsd_lwork", a.dtype)(rows, columns, wide, rcond)
        counts = [enough(work), *(int(size) for size in sizes)]
        solve = routine("gelsd", a.dtype)
        for at in np.ndindex(info.shape):
            if not (np.isfinite(a[at]).all() and np.isfinite(b[at]).all()):
                info[at] = NOT_FINITE
                continue
            padded = np.zeros((many, wide), a.dtype, order="F")
            padded[:rows, :right] = b[at]
            x, out.s[at], out.rank[at], info[at] = solve(a[at], padded, *counts, cond=rcond)
            out.x[at] = x[:columns, :right]
        return info


def least_of(m: Lstsq, a: Any) -> float:
    """Return the part of the largest singular value below which one counts as 0."""
    rcond = arrived(m.rcond)
    return float(max(a.shape[-2:]) * np.finfo(a.dtype).eps if rcond is None else rcond)


def _first(solve: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """Return the first result of a routine; the second says that the arguments are right."""
    return solve(*operands, **options)[0]


def _apply(solve: Callable[[Any], Any], at: tuple[int, ...], b: Any, out: Any) -> None:
    """Solve with the matrix at this place of its stack for what there is on the right.

    One matrix serves the whole stack on the right, and one right side all matrices.
    """
    if not out.size:
        return
    if at or b.ndim == len("nr"):
        out[at] = solve(b[at] if b.ndim > len("nr") else b)
        return
    for place in np.ndindex(b.shape[:-2]):
        out[place] = solve(b[place])


def _pivots(a: Any) -> tuple[Any, int]:
    """Return the pivots of a matrix, and -1 if rows were exchanged an odd number of times."""
    if not a.size:
        return np.ones(0, a.dtype), 1
    lu, pivots, _ = routine("getrf", a.dtype)(a)
    exchanged = np.count_nonzero(pivots != np.arange(len(a)))
    return lu.diagonal(), -1 if exchanged % 2 else 1
