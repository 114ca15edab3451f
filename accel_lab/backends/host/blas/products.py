"""General products, sums and norms on the host, by NumPy's products and SciPy's norms.

Overflow and invalid operations give infinities and NaNs without a warning, as on a GPU.
"""

import math
from typing import Any

import numpy as np
from scipy.linalg import blas

from accel_lab.compute.arrays.dtypes import NAMES, is_float, itemsize
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.blas.library import (
    Axpy,
    AxpyBy,
    Dot,
    GemmGrouped,
    Gemv,
    GemvBy,
    Nrm2,
    Product,
    ProductBy,
    Scal,
    ScalBy,
    Trans,
)

_NARROW = frozenset(
    name for name in NAMES if is_float(name) and itemsize(name) < itemsize("float32")
)
_NORMS = {"f": blas.snrm2, "d": blas.dnrm2, "F": blas.scnrm2, "D": blas.dznrm2}
_NORM_CHUNK = 1 << 30  # elements; SciPy's BLAS counts in 32 bits


class HostProducts:
    """General products, sums and norms."""

    @np.errstate(all="ignore")
    def gemm(
        self, m: Product | ProductBy, a: Any, b: Any, c: Any, out: Any, alpha: Number, beta: Number
    ) -> None:
        """Write alpha op(a) @ op(b) + beta c, for one product or a batch."""
        _multiply(m.a.dtype, turned(a, m.trans_a), turned(b, m.trans_b), c, out, alpha, beta)

    gemm_strided_batched = gemm

    @np.errstate(all="ignore")
    def gemm_grouped(
        self, m: GemmGrouped, a: list[Any], b: list[Any], out: list[Any], alpha: Number
    ) -> None:
        """Write alpha op(a[i]) @ op(b[i]), one product after the other."""
        dtype = m.a[0].dtype
        for left, right, to in zip(a, b, out, strict=True):
            _multiply(dtype, turned(left, m.trans_a), turned(right, m.trans_b), None, to, alpha, 0)

    @np.errstate(all="ignore")
    def gemv(
        self, m: Gemv | GemvBy, a: Any, x: Any, y: Any, out: Any, alpha: Number, beta: Number
    ) -> None:
        """Write alpha op(a) @ x + beta y."""
        _multiply(m.a.dtype, turned(a, m.trans), x, y, out, alpha, beta)

    @np.errstate(all="ignore")
    def axpy(self, m: Axpy | AxpyBy, x: Any, y: Any, out: Any, alpha: Number) -> None:
        """Write alpha x + y."""
        dtype = m.x.dtype
        if dtype in _NARROW:
            out[...] = _wide(x, dtype) * alpha + _wide(y, dtype)
        else:
            np.add(x if alpha == 1 else np.multiply(x, alpha), y, out=out)

    @np.errstate(all="ignore")
    def scal(self, m: Scal | ScalBy, x: Any, out: Any, alpha: Number) -> None:
        """Write alpha x."""
        dtype = m.x.dtype
        if dtype in _NARROW:
            out[...] = _wide(x, dtype) * alpha
        else:
            np.multiply(x, alpha, out=out)

    @np.errstate(all="ignore")
    def dot(self, m: Dot, x: Any, y: Any, out: Any) -> None:
        """Write the sum of products."""
        multiply = np.vdot if m.conjugate else np.dot
        out[...] = multiply(_wide(x, m.x.dtype), _wide(y, m.x.dtype))

    @np.errstate(all="ignore")
    def nrm2(self, m: Nrm2, x: Any, out: Any) -> None:
        """Write the norm by BLAS's own nrm2, which scales; the chunks' norms join likewise."""
        flat = _wide(x, m.x.dtype).reshape(-1)
        norm = _NORMS[flat.dtype.char]
        chunks = range(0, flat.size, _NORM_CHUNK)
        out[...] = math.hypot(*(norm(flat[start : start + _NORM_CHUNK]) for start in chunks))


def _multiply(
    dtype: str, a: Any, b: Any, c: Any | None, out: Any, alpha: Number, beta: Number
) -> None:
    if alpha == 0:  # the BLAS does not read a and b then, nor may what is in them count
        out[...] = 0 if c is None else np.multiply(_wide(c, dtype), beta)
        return
    if alpha == 1 and c is None and dtype not in _NARROW:
        np.matmul(a, b, out=out)
        return
    product = np.matmul(_wide(a, dtype), _wide(b, dtype))
    if alpha != 1:
        np.multiply(product, alpha, out=product)
    if c is not None:
        np.add(product, np.multiply(_wide(c, dtype), beta), out=product)
    out[...] = product


def turned(a: Any, trans: Trans) -> Any:
    """Return op(a), conjugated only where that changes it."""
    if trans == "n":
        return a
    turned = a.swapaxes(-1, -2)
    return turned.conj() if trans == "c" and a.dtype.kind == "c" else turned


def _wide(x: Any, dtype: str) -> Any:
    """Widen narrow floats to the precision they are computed in."""
    return x.astype(np.float32) if dtype in _NARROW else x
