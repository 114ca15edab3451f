"""Products and sums whose factors are on the device: cuBLAS reads them there, or CuPy's kernels."""

from typing import Any

import cupy

from accel_lab.backends.cuda.array.elementwise import update_kernel
from accel_lab.backends.cuda.blas.products import CudaProducts
from accel_lab.backends.cuda.blas.update import UpdateName
from accel_lab.libraries.blas.scaled import AxpyBy, GemvBy, ProductBy, ScalBy


class CudaScaled(CudaProducts):
    """What is scaled by numbers that nobody fetches."""

    def gemm_by(
        self, m: ProductBy, a: Any, b: Any, alpha: Any, c: Any, beta: Any, out: Any
    ) -> None:
        """Write alpha op(a) @ op(b) + beta c (cublasGemmEx, …StridedBatchedEx)."""
        if not out.size:
            return
        dtype = m.a.dtype
        first, second = _factor(dtype, alpha), _factor(dtype, beta)
        if a.size:
            how = (dtype, m.trans_a, m.trans_b, m.compute)
            self._multiply(how, a, b, c, out, first, second)
        else:
            self._added_only(dtype, c, second, out)

    gemm_strided_batched_by = gemm_by

    def gemv_by(self, m: GemvBy, a: Any, x: Any, alpha: Any, y: Any, beta: Any, out: Any) -> None:
        """Write alpha op(a) @ x + beta y, as the product with a matrix of one column."""
        if not out.size:
            return
        dtype = m.a.dtype
        first, second = _factor(dtype, alpha), _factor(dtype, beta)
        if a.size:
            self._multiply_vector(dtype, m.trans, (a, x, y, out), first, second)
        else:
            self._added_only(dtype, y, second, out)

    def axpy_by(self, m: AxpyBy, x: Any, y: Any, alpha: Any, out: Any) -> None:
        """Write alpha x + y."""
        dtype = m.x.dtype
        self._kernel("axpy", dtype)(x, y, _factor(dtype, alpha), out)

    def scal_by(self, m: ScalBy, x: Any, alpha: Any, out: Any) -> None:
        """Write alpha x."""
        dtype = m.x.dtype
        self._kernel("scal", dtype)(x, _factor(dtype, alpha), out)

    def _added_only(self, dtype: str, c: Any, beta: Any, out: Any) -> None:
        """Write beta c: there is no product. Where beta is 0, `c` does not count."""
        if c is None:
            out.fill(0)
            return
        self._kernel("scal", dtype)(c, beta, out)
        # A narrow float's bits are 0 where it is.
        cupy.copyto(out, cupy.where(beta != 0, out, out.dtype.type(0)))

    def _kernel(self, name: UpdateName, dtype: str) -> Any:
        kernel = self._kernels.get((name, dtype))
        if kernel is None:
            kernel = self._kernels[name, dtype] = update_kernel(name, dtype)
        return kernel


def _factor(dtype: str, factor: Any) -> Any:
    """Return a 0-d array as cuBLAS reads it: narrow floats are scaled by float32. None is 0."""
    if factor is None:
        return cupy.zeros((), _WIDE.get(dtype, dtype))
    if dtype == "bfloat16":  # an array of bits
        return cupy.left_shift(factor.astype(cupy.uint32), 16).astype(cupy.uint32).view("float32")
    return factor.astype("float32") if dtype == "float16" else factor


_WIDE = {"float16": "float32", "bfloat16": "float32"}
