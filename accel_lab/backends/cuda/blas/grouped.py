"""Products of many shapes in one call of cuBLAS, where it has that and its rules fit."""

from typing import Any

import cupy
import numpy as np
from nvmath.bindings import cublas

from accel_lab.backends.cuda.blas.precision import PRECISIONS
from accel_lab.backends.cuda.blas.products import CudaProducts
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.blas.library import GemmGrouped

_TOGETHER = frozenset({"float32", "float64"})
"""cuBLAS has no complex ones, and asks more of the addresses of narrow ones than a part has."""
_OPERATIONS = {"n": 0, "t": 1, "c": 1}  # of real numbers


class CudaGrouped(CudaProducts):
    """Products of pairs of matrices."""

    def gemm_grouped(
        self, m: GemmGrouped, a: list[Any], b: list[Any], out: list[Any], alpha: Number
    ) -> None:
        """Write alpha op(a[i]) @ op(b[i]) (cublasGemmGroupedBatchedEx, else cublasGemmEx)."""
        dtype = m.a[0].dtype
        some = [one for one in zip(a, b, out, strict=True) if one[2].size]
        inner = 1 if m.trans_a == "n" else 0
        if dtype in _TOGETHER and alpha and all(left.shape[inner] for left, _, _ in some):
            if some:
                self._multiply_together(m, dtype, some, alpha)
            return
        for left, right, to in some:
            if alpha and left.size:
                self._multiply((dtype, m.trans_a, m.trans_b, ""), left, right, None, to, alpha, 0)
            else:
                self._update_only(None, to, dtype, 0)

    def _multiply_together(
        self, m: GemmGrouped, dtype: str, some: list[tuple[Any, Any, Any]], alpha: Number
    ) -> None:
        """Enqueue one call: of rows it makes the columns of the transposed result, b first."""
        p, count = PRECISIONS[dtype], len(some)
        some = [(cupy.ascontiguousarray(a), cupy.ascontiguousarray(b), to) for a, b, to in some]
        addresses = np.array([[one.data.ptr for one in three] for three in some], np.uint64)
        at = cupy.asarray(np.ascontiguousarray(addresses.T))
        factors = np.full(count, p.scalar(alpha)), np.zeros(count, p.scalar_type)
        inner = [a.shape[1 if m.trans_a == "n" else 0] for a, _, _ in some]
        self._bind()
        self._device.active.enqueuing()
        cublas.gemm_grouped_batched_ex(
            self._handle,
            [_OPERATIONS[m.trans_b]] * count,
            [_OPERATIONS[m.trans_a]] * count,
            [to.shape[1] for _, _, to in some],
            [to.shape[0] for _, _, to in some],
            inner,
            factors[0].ctypes.data,
            at[1].data.ptr,
            p.element,
            [b.shape[1] for _, b, _ in some],
            at[0].data.ptr,
            p.element,
            [a.shape[1] for a, _, _ in some],
            factors[1].ctypes.data,
            at[2].data.ptr,
            p.element,
            [to.shape[1] for _, _, to in some],
            count,
            [1] * count,
            p.compute,
        )
