"""Products of sparse and dense matrices: cuSPARSE's SpMV, SpMM and SDDMM.

Sums of float16 and bfloat16 are formed in float32.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
from nvmath.bindings import cusparse

from accel_lab.backends.cuda.array.elementwise import update_kernel
from accel_lab.backends.cuda.sparse.calls import (
    AS_IT_IS,
    Calls,
    Rows,
    by_rows,
    dense_matrix,
    dense_vector,
    sparse_matrix,
)
from accel_lab.backends.cuda.sparse.values import VALUES
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.sparse.products import Sddmm, Spmm, Spmv

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

# Those that add up in one order.
_SPMV, _SPMM = int(cusparse.SpMVAlg.CSR_ALG2), int(cusparse.SpMMAlg.CSR_ALG3)
_SDDMM = int(cusparse.SDDMMAlg.DEFAULT)
_MOST_COLUMNS = 65535 * 16  # of a dense matrix: beyond, cuSPARSE before 12.7.20 fails (cupy#9850)


class CudaProducts:
    """Enqueues on the device's active stream; used by the dispatcher thread."""

    def __init__(self, device: "CudaDevice") -> None:
        self._calls = Calls(device)

    def lend(self) -> int:
        """Return cuSPARSE's handle on the active stream, for the user's code."""
        return self._calls.lend()

    def take_back(self) -> None:
        """Set the handle as it was made."""
        self._calls.take_back()

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
        """Write alpha op(a) @ x + beta y (cusparseSpMV)."""
        dtype = m.values.dtype
        if not (alpha and values.size and out.size):
            _only_added(y, out, dtype, beta)
            return
        a = by_rows(m.format, m.shape, (values, indices, pointers), m.trans)
        x, made = cupy.ascontiguousarray(x), _target(y, out)
        dtypes = VALUES[dtype]
        first, second = dtypes.factor(alpha), dtypes.factor(beta if y is not None else 0)
        self._calls.bind()
        with (
            sparse_matrix(a, dtype) as on_a,
            dense_vector(x, dtype) as on_x,
            dense_vector(made, dtype) as on_made,
        ):
            how = (
                self._calls.handle,
                AS_IT_IS,
                first.ctypes.data,
                on_a,
                on_x,
                second.ctypes.data,
                on_made,
                dtypes.compute,
                _SPMV,
            )
            space = cupy.empty(cusparse.sp_mv_buffer_size(*how), "B")
            cusparse.sp_mv(*how, space.data.ptr)
        _deliver(made, out)

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
        """Write alpha op(a) @ b + beta c (cusparseSpMM)."""
        dtype = m.values.dtype
        if not (alpha and values.size and out.size):
            _only_added(c, out, dtype, beta)
            return
        a = by_rows(m.format, m.shape, (values, indices, pointers), m.trans)
        beta = beta if c is not None else 0
        for begin in range(0, out.shape[1], _MOST_COLUMNS):
            part = np.s_[:, begin : begin + _MOST_COLUMNS]
            added = None if c is None else out[part] if c is out else c[part]
            self._multiply(a, b[part], added, out[part], dtype, alpha, beta)

    def _multiply(
        self, a: Rows, b: Any, c: Any, out: Any, dtype: str, alpha: Number, beta: Number
    ) -> None:
        b = cupy.ascontiguousarray(b)
        made = _target(c, out)
        dtypes = VALUES[dtype]
        first, second = dtypes.factor(alpha), dtypes.factor(beta)
        self._calls.bind()
        with (
            sparse_matrix(a, dtype) as on_a,
            dense_matrix(b, dtype) as on_b,
            dense_matrix(made, dtype) as on_made,
        ):
            how = (
                self._calls.handle,
                AS_IT_IS,
                AS_IT_IS,
                first.ctypes.data,
                on_a,
                on_b,
                second.ctypes.data,
                on_made,
                dtypes.compute,
                _SPMM,
            )
            space = cupy.empty(cusparse.sp_mm_buffer_size(*how), "B")
            cusparse.sp_mm(*how, space.data.ptr)
        _deliver(made, out)

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
        """Write alpha times products where the matrix stores + beta its values (cusparseSDDMM)."""
        dtype = m.values.dtype
        if not (alpha and out.size and x.size):
            _only_added(values if beta else None, out, dtype, beta)
            return
        if beta:
            cupy.copyto(out, values)
        x, y = cupy.ascontiguousarray(x), cupy.ascontiguousarray(y)
        a = by_rows("csr", m.shape, (out, indices, pointers), "n")
        dtypes = VALUES[dtype]
        first, second = dtypes.factor(alpha), dtypes.factor(beta)
        self._calls.bind()
        with (
            sparse_matrix(a, dtype) as on_a,
            dense_matrix(x, dtype) as on_x,
            dense_matrix(y, dtype) as on_y,
        ):
            how = (
                self._calls.handle,
                AS_IT_IS,
                AS_IT_IS,
                first.ctypes.data,
                on_x,
                on_y,
                second.ctypes.data,
                on_a,
                dtypes.compute,
                _SDDMM,
            )
            size = np.zeros(1, np.uint64)
            cusparse.sddmm_buffer_size(*how, size.ctypes.data)
            space = cupy.empty(int(size[0]), "B")
            cusparse.sddmm(*how, space.data.ptr)

    def close(self) -> None:
        """Destroy the handle; waits for the device."""
        self._calls.close()


_scaling = cache(lambda dtype: update_kernel("scal", dtype))


def _only_added(y: Any, out: Any, dtype: str, beta: Number) -> None:
    """Write beta y, or zeros: the product counts for nothing."""
    if y is None:
        if out.size:
            out.fill(0)
        return
    _scaling(dtype)(y, VALUES[dtype].factor(beta)[()], out)


def _target(y: Any, out: Any) -> Any:
    """Return what cuSPARSE writes: `out` or a contiguous array in its place, with y in it."""
    made = out if out.flags.c_contiguous else cupy.empty(out.shape, out.dtype)
    if y is not None and y is not made:
        cupy.copyto(made, y)
    return made


def _deliver(made: Any, out: Any) -> None:
    if made is not out:
        cupy.copyto(out, made)
