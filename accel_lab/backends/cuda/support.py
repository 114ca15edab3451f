"""Which operations cuda has for which dtypes: the one table.

cuBLAS multiplies these floats exactly as the messages promise, in float32 or wider. It has no
products of integers, bool or float8 that do; cast first.
"""

from collections.abc import Mapping

from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype

_ALL = frozenset(NAMES)
_BLAS = frozenset({"float16", "bfloat16", "float32", "float64", "complex64", "complex128"})
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
    "blas.Gemm": _BLAS,
    "blas.GemmStridedBatched": _BLAS,
    "blas.Gemv": _BLAS,
    "blas.Axpy": _BLAS,
    "blas.Scal": _BLAS,
    "blas.Dot": _BLAS,
    "blas.Nrm2": _BLAS,
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
