"""Products with an end of their own, on the host: NumPy, in the dtype of the sums."""

import math
from typing import Any

import numpy as np

from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.execution.worker import Worker
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.cutlass.library import SUMS, Epilogue, Gemm

_SCALE, _CUBIC = math.sqrt(2 / math.pi), 0.044715


class HostCutlass:
    """Calls NumPy at once: on the host, what is enqueued is done."""

    def missing(self, m: Gemm, a: Any, b: Any) -> None:
        """Return None: there is nothing to compile."""

    def has_searched(self, m: Gemm, a: Any, b: Any) -> bool:
        """Return True: there is one way to do it."""
        del m, a, b
        return True

    def search(self, m: Gemm, a: Any, b: Any, bias: Any, worker: Worker) -> None:
        """Time nothing."""

    @np.errstate(all="ignore")
    def gemm(self, m: Gemm, a: Any, b: Any, bias: Any, out: Any, scale: Number) -> None:
        """Write epilogue(scale a @ b + bias)."""
        if m.a.dtype == "int8":  # float64 holds such sums exactly, and BLAS is quick
            product = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int32)
            product *= np.int32(scale.real)
        else:
            wide = numpy_dtype(SUMS.get(m.a.dtype, m.a.dtype))
            product = np.matmul(a.astype(wide, copy=False), b.astype(wide, copy=False))
            product *= wide.type(scale)
        if bias is not None:
            product += bias.astype(product.dtype, copy=False)
        out[...] = finished(m.epilogue, product)


def finished(epilogue: Epilogue, x: Any) -> Any:
    """Return the end of each element."""
    if epilogue == "relu":
        return np.maximum(x, 0)
    if epilogue == "gelu":
        return 0.5 * x * (1 + np.tanh(_SCALE * (x + _CUBIC * x * x * x)))
    return x
