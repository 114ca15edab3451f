"""Which operations cuda has for which dtypes.

cuBLAS multiplies these floats exactly as the messages promise, in float32 or wider. It has no
products of integers, bool or float8 that do; cast first. cuSPARSE's sampled products have no narrow
floats for all operands alike, and CuPy has no bfloat16 to prune.
"""

from collections.abc import Mapping

from accel_lab.backends.support import COMMON
from accel_lab.libraries.authoring.dtype_sets import SINGLE_AND_DOUBLE

_BLAS = frozenset({"float16", "bfloat16", "float32", "float64", "complex64", "complex128"})

_STRUCTURED = ("sparse.Prune24", "sparse.Check24", "sparse.Compress24", "sparse.Matmul24")

SUPPORT: Mapping[str, frozenset[str]] = {
    **COMMON,
    **{name: COMMON[name] & _BLAS for name in COMMON if name.startswith("blas.")},
    "sparse.Sddmm": SINGLE_AND_DOUBLE,
    **{name: COMMON[name] - {"bfloat16"} for name in _STRUCTURED},
}
