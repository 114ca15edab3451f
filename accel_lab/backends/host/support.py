"""Which operations the host has for which dtypes.

A norm needs a square root, which bool and the integers do not have.
"""

from collections.abc import Mapping

from accel_lab.backends.support import ALL, COMMON
from accel_lab.compute.arrays.dtypes import NAMES, is_complex, is_float

_INEXACT = frozenset(name for name in NAMES if is_float(name) or is_complex(name))

SUPPORT: Mapping[str, frozenset[str]] = {
    **COMMON,
    "blas.Gemm": ALL,
    "blas.GemmStridedBatched": ALL,
    "blas.Gemv": ALL,
    "blas.Axpy": ALL,
    "blas.Scal": ALL,
    "blas.Dot": ALL,
    "blas.Nrm2": _INEXACT,
}
