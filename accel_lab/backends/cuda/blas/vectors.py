"""Level 1 of BLAS beside sums and norms: cuBLAS on vectors, and on what lies densely in memory."""

from typing import Any

import cupy
from nvmath.bindings import cublas

from accel_lab.backends.cuda.blas.names import routines
from accel_lab.backends.cuda.blas.products import CudaProducts
from accel_lab.backends.cuda.blas.strides import common_walk, dense_walk
from accel_lab.compute.arrays.dtypes import real_of
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.blas.library import Asum, Iamax, Iamin, Rot, Rotg, Swap

_SWAP, _ROT, _ROTG = routines("{}swap"), routines("{}rot"), routines("{}rotg", "")
_IAMAX, _IAMIN = routines("i{}amax"), routines("i{}amin")
_ASUM = {
    "float32": cublas.sasum_64,
    "float64": cublas.dasum_64,
    "complex64": cublas.scasum_64,
    "complex128": cublas.dzasum_64,
}


class CudaVectors(CudaProducts):
    """Exchange, absolute sums, extremes and plane rotations."""

    def swap(self, m: Swap, x: Any, y: Any) -> None:
        """Exchange the elements (cublasSswap), through a copy where there is no common stride."""
        if not x.size:
            return
        dtype = m.pair[0].dtype
        walk = common_walk(x, y, itemsize=x.itemsize) if dtype in _SWAP else None
        if walk is None:
            held = cupy.ndarray(x.shape, x.dtype)
            cupy.copyto(held, x)
            cupy.copyto(x, y)
            cupy.copyto(y, held)
            return
        self._bind()
        step_x, step_y = walk.steps
        _SWAP[dtype](self._handle, x.size, x.data.ptr, step_x, y.data.ptr, step_y)

    def asum(self, m: Asum, x: Any, out: Any) -> None:
        """Write the sum of magnitudes into 0-d `out` (cublasSasum)."""
        if not x.size:
            out.fill(0)
            return
        walk = common_walk(x, itemsize=x.itemsize)
        if walk is None:
            x = cupy.ascontiguousarray(x)
            walk = dense_walk(x)
        with self._answers_on_device():
            _ASUM[m.x.dtype](self._handle, x.size, x.data.ptr, walk.steps[0], out.data.ptr)

    def iamax(self, m: Iamax, x: Any, out: Any) -> None:
        """Write the index of the first largest magnitude (cublasIsamax)."""
        self._find(_IAMAX[m.x.dtype], x, out)

    def iamin(self, m: Iamin, x: Any, out: Any) -> None:
        """Write the index of the first least magnitude (cublasIsamin)."""
        self._find(_IAMIN[m.x.dtype], x, out)

    def _find(self, find: Any, x: Any, out: Any) -> None:
        # Indices are in C order, which a walk through Fortran's is not.
        walk = common_walk(x, itemsize=x.itemsize) if x.ndim == 1 else None
        if walk is None:
            x = cupy.ascontiguousarray(x)
            walk = dense_walk(x)
        with self._answers_on_device():
            find(self._handle, x.size, x.data.ptr, walk.steps[0], out.data.ptr)
        cupy.subtract(out, 1, out=out)  # cuBLAS counts from 1

    def rot(self, m: Rot, x: Any, y: Any, out: Any, c: Number, s: Number) -> None:
        """Write c x + s y and c y - conj(s) x (cublasSrot) on copies."""
        if not x.size:
            return
        dtype = m.x.dtype
        cupy.copyto(out.x, x)
        cupy.copyto(out.y, y)
        self._bind()
        at_c, _held_c = self._factor(real_of(dtype), c.real)
        at_s, _held_s = self._factor(dtype, s)
        _ROT[dtype](self._handle, x.size, out.x.data.ptr, 1, out.y.data.ptr, 1, at_c, at_s)

    def rotg(self, m: Rotg, a: Any, b: Any, out: Any) -> None:
        """Write the rotation (cublasSrotg), which has its operands where it writes r and more."""
        dtype = m.a.dtype
        more = cupy.ndarray((), b.dtype)
        cupy.copyto(out.r, a)
        cupy.copyto(more, b)
        with self._answers_on_device():
            at = (out.r.data.ptr, more.data.ptr, out.c.data.ptr, out.s.data.ptr)
            _ROTG[dtype](self._handle, *at)
