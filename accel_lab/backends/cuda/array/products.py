"""Products as NumPy's `@` has them, by cuBLAS.

CuPy refuses its own calls of cuBLAS while a stream is captured, so a graph could not have them.
This module has no CUDA: the device and what multiplies are given to it.
"""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

_OF_CUBLAS = frozenset({"float16", "float32", "float64", "complex64", "complex128"})


class CudaMatmul:
    """Enqueues on the device's active stream; used by the dispatcher thread."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device

    @cached_property
    def _blas(self) -> Any:
        """A `blas` of its own, which has a handle and a workspace: made when first needed."""
        return self._device.libraries["blas"]()

    def matmul(self, a: Any, b: Any) -> Any:
        """Return a @ b of two arrays of any dtypes."""
        arrays: Any = self._device.arrays
        dtype = np.promote_types(a.dtype, b.dtype)
        if dtype.name not in _OF_CUBLAS:
            return arrays.matmul(a, b)  # by kernels of CuPy's
        left = a.astype(dtype, copy=False).reshape(a.shape if a.ndim > 1 else (1, *a.shape))
        right = b.astype(dtype, copy=False).reshape(b.shape if b.ndim > 1 else (*b.shape, 1))
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        left = arrays.broadcast_to(left, (*batch, *left.shape[-2:]))
        right = arrays.broadcast_to(right, (*batch, *right.shape[-2:]))
        rows, columns = left.shape[-2:-1], right.shape[-1:]
        made = arrays.ndarray((*batch, *rows, *columns), dtype)
        self._each(left, right, made)
        return made.reshape(batch + (rows if a.ndim > 1 else ()) + (columns if b.ndim > 1 else ()))

    def _each(self, left: Any, right: Any, made: Any) -> None:
        """Multiply, in parts where cuBLAS would need a copy of what was stretched."""
        if any(map(_is_stretched, (left, right))):
            for some in zip(left, right, made, strict=True):
                self._each(*some)
        else:
            self._blas.matmul(left, right, made)

    def close(self) -> None:
        """Destroy the handle, if there is one; waits for the device."""
        if "_blas" in vars(self):
            self._blas.close()


def _is_stretched(x: Any) -> bool:
    """Whether a stack repeats some matrices, and has others beside them: no one step walks it."""
    steps = [step for extent, step in zip(x.shape[:-2], x.strides[:-2], strict=True) if extent > 1]
    return 0 in steps and any(steps)
