"""Products of sparse and dense matrices on the host, by SciPy."""

from typing import Any

import numpy as np

from accel_lab.backends.host.sparse.scipys import narrow, sparse_array, wide
from accel_lab.backends.sparse_structure import rows_of
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.sparse.products import Sddmm, Spmm, Spmv

_CHUNK = 1 << 16  # entries, so that what is gathered stays in the cache


class HostProducts:
    """Products, computed at once."""

    @np.errstate(all="ignore")
    def spmv(
        self,
        m: Spmv,
        values: Any,
        indices: Any,
        pointers: Any,
        x: Any,
        y: Any,
        out: Any,
        alpha: Number,
        beta: Number,
    ) -> None:
        """Write alpha op(a) @ x + beta y (SciPy's product)."""
        _multiply(m, (values, indices, pointers), x, y, out, alpha, beta)

    @np.errstate(all="ignore")
    def spmm(
        self,
        m: Spmm,
        values: Any,
        indices: Any,
        pointers: Any,
        b: Any,
        c: Any,
        out: Any,
        alpha: Number,
        beta: Number,
    ) -> None:
        """Write alpha op(a) @ b + beta c (SciPy's product)."""
        _multiply(m, (values, indices, pointers), b, c, out, alpha, beta)

    @np.errstate(all="ignore")
    def sddmm(
        self,
        m: Sddmm,
        values: Any,
        indices: Any,
        pointers: Any,
        x: Any,
        y: Any,
        out: Any,
        alpha: Number,
        beta: Number,
    ) -> None:
        """Write alpha times the products of rows and columns + beta times the values."""
        dtype = m.values.dtype
        rows = rows_of(np, pointers, values.size)
        left, right = wide(x, dtype), wide(y, dtype).T
        made = np.zeros(values.shape, left.dtype)
        for begin in range(0, values.size if alpha else 0, _CHUNK):
            part = slice(begin, begin + _CHUNK)
            np.einsum("nk,nk->n", left[rows[part]], right[indices[part]], out=made[part])
        made *= made.dtype.type(alpha)
        if beta:
            made += wide(values, dtype) * made.dtype.type(beta)
        out[...] = made


def _multiply(
    m: Spmv | Spmm,
    parts: tuple[Any, Any, Any],
    dense: Any,
    added: Any,
    out: Any,
    alpha: Number,
    beta: Number,
) -> None:
    dtype = m.values.dtype
    if alpha:
        a = sparse_array(m.format, m.shape, *parts, dtype=dtype)
        if m.trans != "n":
            a = a.T if m.trans == "t" or a.dtype.kind != "c" else a.T.conj()
        made = a @ wide(dense, dtype)
        if alpha != 1:
            made *= made.dtype.type(alpha)
    else:
        made = np.zeros(out.shape, narrow(dtype))
    if added is not None:
        made += wide(added, dtype) * made.dtype.type(beta)
    out[...] = made
