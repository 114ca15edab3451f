"""The dtypes that operations have on every backend; a backend's own table adds what differs."""

from collections.abc import Mapping

from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype

ALL = frozenset(NAMES)
_INTEGERS = frozenset(name for name in NAMES if numpy_dtype(name).kind in "biu")
_RANDOM = frozenset({"float16", "bfloat16", "float32", "float64"})
_FOURIER = frozenset({"float32", "float64", "complex64", "complex128"})

COMMON: Mapping[str, frozenset[str]] = {
    "array.Zeros": ALL,
    "array.Full": ALL,
    "array.Copy": ALL,
    "array.Cast": ALL,
    "array.Slice": ALL,
    "array.Reshape": ALL,
    "array.Transpose": ALL,
    "array.Unary": ALL,
    "array.Binary": ALL,
    "array.Where": ALL,
    "array.Reduce": ALL,
    "array.Matmul": ALL,
    "array.Take": ALL,
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
