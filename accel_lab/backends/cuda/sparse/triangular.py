"""Sparse triangular systems on cuda by cuSPARSE's SpSM; ILU(0) and IC(0) by its legacy routines."""

import re
from typing import Any

import cupy
import numpy as np
from cupy_backends.cuda.libs import cusparse as routines
from cupyx import cusparse

from accel_lab.backends.cuda.sparse.matrices import bound_handle, by_rows, in_32_bits
from accel_lab.backends.cuda.sparse.triangle import triangle
from accel_lab.backends.sparse_structure import bad_diagonal, unpacked
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.sparse.pivots import BadPivot
from accel_lab.libraries.sparse.triangular import Ic0, Ilu0, Spsm, Spsv

_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}


class CudaTriangular:
    """Solutions are enqueued; factorizations wait, and are for work beside the dispatcher."""

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

    def ilu0(self, m: Ilu0, values: Any, indices: Any, pointers: Any) -> Any:
        """Return the values of L and U (cusparse<t>csrilu02).

        Raises:
            BadPivot: one is zero.
        """
        made = values.copy()
        if not m.shape[0]:
            return made
        parts = in_32_bits("Ilu0", m.shape, made, indices, pointers)
        _require_diagonal("Ilu0", "zero", m.shape[0], *parts)
        a = by_rows(m.shape, *parts)
        try:
            cusparse.csrilu02(a)
        except ValueError as error:
            found = re.search(r"\((\d+)", str(error))
            row = int(found[1]) if found else -1
            text = f"Ilu0: the pivot of row {row} is zero or not stored"
            raise BadPivot(text, row=row) from error
        return a.data

    def ic0(self, m: Ic0, values: Any, indices: Any, pointers: Any) -> Any:
        """Return the values of L, and zeros above (cusparse<t>csric02).

        Raises:
            BadPivot: one is not positive.
        """
        made = values.copy()
        if not m.shape[0]:
            return made
        parts = in_32_bits("Ic0", m.shape, made, indices, pointers)
        _require_diagonal("Ic0", "not positive", m.shape[0], *parts)
        _csric02(*parts)
        stored = unpacked(cupy, "csr", *parts)
        return cupy.where(stored.rows >= stored.columns, made, made.dtype.type(0))


def _solve(m: Spsv | Spsm, parts: tuple[Any, Any, Any], b: Any, out: Any, alpha: Number) -> Any:
    order, values = m.shape[0], parts[0]
    if m.unit:
        bad = cupy.full(1, -1, "int64")
    else:
        bad = bad_diagonal(cupy, unpacked(cupy, "csr", *parts), order)
    if not out.size:
        return bad
    if not values.size:  # ones on the diagonal, or nothing at all
        cupy.multiply(b, values.dtype.type(alpha), out=out)
        return bad
    columns = b.shape[1] if b.ndim > 1 else 1
    with triangle(parts, columns, uplo=m.uplo, trans=m.trans, unit=m.unit, alpha=alpha) as solve:
        cupy.copyto(out, solve(b))
    return bad


def _require_diagonal(
    what: str, wrong: str, order: int, values: Any, indices: Any, pointers: Any
) -> None:
    """Refuse a diagonal that is zero somewhere, or not stored; waits.

    Raises:
        BadPivot: it is.
    """
    row = int(bad_diagonal(cupy, unpacked(cupy, "csr", values, indices, pointers), order)[0])
    if row >= 0:
        text = f"{what}: the pivot of row {row} is {wrong} or not stored"
        raise BadPivot(text, row=row)


def _csric02(values: Any, indices: Any, pointers: Any) -> None:
    """Factorize in place, as `cupyx.cusparse.csrilu02` does for LU; waits.

    Raises:
        BadPivot: one is not positive.
    """
    letter, order = _LETTERS[values.dtype.char], pointers.size - 1
    handle, info = bound_handle(), routines.createCsric02Info()
    form = cusparse.MatDescriptor.create()
    policy = routines.CUSPARSE_SOLVE_POLICY_NO_LEVEL
    places = values.data.ptr, pointers.data.ptr, indices.data.ptr
    how = (handle, order, values.size, form.descriptor, *places, info)
    try:
        size = getattr(routines, f"{letter}csric02_bufferSize")(*how)
        space = cupy.empty(size, np.int8)
        getattr(routines, f"{letter}csric02_analysis")(*how, policy, space.data.ptr)
        getattr(routines, f"{letter}csric02")(*how, policy, space.data.ptr)
        row = np.full(1, -1, np.int32)
        # It waits. What it says of a pivot shows nowhere else: the root is of its magnitude.
        try:
            routines.xcsric02_zeroPivot(handle, info, row.ctypes.data)
        except routines.CuSparseError as error:
            text = f"Ic0: the pivot of row {row[0]} is not positive or not stored"
            raise BadPivot(text, row=int(row[0])) from error
    finally:
        routines.destroyCsric02Info(info)
