"""Which operations cuda has for which dtypes.

cuBLAS multiplies these floats exactly as the messages promise, in float32 or wider. It has no
products of integers, bool or float8 that do; cast first.
"""

from collections.abc import Mapping

from accel_lab.backends.support import COMMON

_BLAS = frozenset({"float16", "bfloat16", "float32", "float64", "complex64", "complex128"})

SUPPORT: Mapping[str, frozenset[str]] = {
    **COMMON,
    "blas.Gemm": _BLAS,
    "blas.GemmStridedBatched": _BLAS,
    "blas.Gemv": _BLAS,
    "blas.Axpy": _BLAS,
    "blas.Scal": _BLAS,
    "blas.Dot": _BLAS,
    "blas.Nrm2": _BLAS,
}
