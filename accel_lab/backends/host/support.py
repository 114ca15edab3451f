"""Which operations the host has for which dtypes: the one table.

A norm needs a square root, which bool and the integers do not have.
"""

from collections.abc import Mapping

from accel_lab.compute.arrays.dtypes import NAMES, is_complex, is_float, numpy_dtype

_ALL = frozenset(NAMES)
_INEXACT = frozenset(name for name in NAMES if is_float(name) or is_complex(name))
_INTEGERS = frozenset(name for name in NAMES if numpy_dtype(name).kind in "biu")
_RANDOM = frozenset({"float16", "bfloat16", "float32", "float64"})
_FOURIER = frozenset({"float32", "float64", "complex64", "complex128"})

SUPPORT: Mapping[str, frozenset[str]] = {
    "array.Zeros": _ALL,
    "array.Full": _ALL,
    "array.Copy": _ALL,
    "array.Cast": _ALL,
    "array.Slice": _ALL,
    "array.Reshape": _ALL,
    "array.Transpose": _ALL,
    "array.Unary": _ALL,
    "array.Binary": _ALL,
    "array.Where": _ALL,
    "array.Reduce": _ALL,
    "array.Matmul": _ALL,
    "array.Take": _ALL,
    "blas.Gemm": _ALL,
    "blas.GemmStridedBatched": _ALL,
    "blas.Gemv": _ALL,
    "blas.Axpy": _ALL,
    "blas.Scal": _ALL,
    "blas.Dot": _ALL,
    "blas.Nrm2": _INEXACT,
    "fft.C2C": _FOURIER,
    "fft.R2C": frozenset({"float32", "float64"}),
    "fft.C2R": _FOURIER,
    "jit.Compile": frozenset({""}),
    "jit.LaunchKernel": frozenset({"kernel"}),
    "jit.InspectKernel": frozenset({"kernel"}),
    "rng.Words": frozenset({"uint32", "uint64"}),
    "rng.Integers": _INTEGERS,
    "rng.Uniform": _RANDOM,
    "rng.Normal": _RANDOM,
}
