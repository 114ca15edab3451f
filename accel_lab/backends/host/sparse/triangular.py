"""Sparse triangular systems on the host, by SciPy; incomplete factorizations row by row."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import spsolve_triangular

from accel_lab.backends.host.sparse.scipys import sparse_array
from accel_lab.backends.sparse_structure import bad_diagonal, unpacked
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.sparse.pivots import BadPivot
from accel_lab.libraries.sparse.triangular import Ic0, Ilu0, Spsm, Spsv


class HostTriangular:
    """Solutions, computed at once."""

    def spsv(
        self,
        m: Spsv,
        values: Any,
        indices: Any,
        pointers: Any,
        b: Any,
        out: Any,
        alpha: Number,
    ) -> Any:
        """Write x of op(a) @ x = alpha b, and return the first bad pivot."""
        return _solve(m, (values, indices, pointers), b, out, alpha)

    def spsm(
        self,
        m: Spsm,
        values: Any,
        indices: Any,
        pointers: Any,
        b: Any,
        out: Any,
        alpha: Number,
    ) -> Any:
        """Write x of op(a) @ x = alpha b for each column, and return the first bad pivot."""
        return _solve(m, (values, indices, pointers), b, out, alpha)

    def ilu0(self, _: Ilu0, values: Any, indices: Any, pointers: Any) -> Any:
        """Return the values of L and U (Saad, Iterative Methods, algorithm 10.4).

        Raises:
            BadPivot: one is zero.
        """
        rows = _rows_of(values, indices, pointers)
        for at, row in enumerate(rows):
            for column in list(row):  # in order
                if column >= at:
                    break
                row[column] /= rows[column][column]
                factor = row[column]
                for other, value in rows[column].items():
                    if other > column and other in row:
                        row[other] -= factor * value
            if not row.get(at, 0):
                text = f"Ilu0: the pivot of row {at} is zero or not stored"
                raise BadPivot(text, row=at)
        return _values_of(rows, values.dtype)

    def ic0(self, _: Ic0, values: Any, indices: Any, pointers: Any) -> Any:
        """Return the values of L, and zeros above (Saad, section 10.3).

        Raises:
            BadPivot: one is not positive.
        """
        rows = _rows_of(values, indices, pointers)
        for at, row in enumerate(rows):
            for column in list(row):
                if column > at:
                    row[column] = 0
                    continue
                other = rows[column]
                total = row[column]
                for place, value in other.items():
                    if place >= column:
                        break
                    if place in row:
                        total -= row[place] * value.conjugate()
                if column < at:
                    row[column] = total / other[column]
                elif total.real > 0:
                    row[at] = math.sqrt(total.real)
                else:
                    row[at] = 0
            if not row.get(at, 0):
                text = f"Ic0: the pivot of row {at} is not positive or not stored"
                raise BadPivot(text, row=at)
        return _values_of(rows, values.dtype)


@np.errstate(all="ignore")
def _solve(m: Spsv | Spsm, parts: tuple[Any, Any, Any], b: Any, out: Any, alpha: Number) -> Any:
    order = m.shape[0]
    stored = unpacked(np, "csr", *parts)
    bad = np.full(1, -1, np.int64) if m.unit else bad_diagonal(np, stored, order)
    if bad[0] >= 0 or not out.size:
        out[...] = np.nan
        return bad
    a = sparse_array("csr", m.shape, *parts, dtype=m.values.dtype)
    half = scipy.sparse.tril(a) if m.uplo == "l" else scipy.sparse.triu(a)
    lower = m.uplo == "l"
    if m.trans != "n":
        half, lower = half.T.conj() if m.trans == "c" else half.T, not lower
    solution = spsolve_triangular(half.tocsc(), b, lower=lower, unit_diagonal=m.unit)
    np.multiply(solution, alpha, out=out, casting="unsafe")
    return bad


def _rows_of(values: Any, indices: Any, pointers: Any) -> list[dict[int, Any]]:
    """Return each row as columns and values, in double precision."""
    wide = np.complex128 if values.dtype.kind == "c" else np.float64
    columns, stored = indices.tolist(), values.astype(wide).tolist()
    ends = pointers.tolist()
    return [
        dict(zip(columns[begin:end], stored[begin:end], strict=True))
        for begin, end in pairwise(ends)
    ]


@np.errstate(all="ignore")
def _values_of(rows: list[dict[int, Any]], dtype: Any) -> Any:
    return np.array([value for row in rows for value in row.values()]).astype(dtype)
