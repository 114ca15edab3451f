"""The dtypes that messages say they have: `dtypes` of a message, and of the library's base."""

from accel_lab.compute.arrays.dtypes import NAMES, is_complex, is_float, numpy_dtype

ALL = frozenset(NAMES)
INTEGERS = frozenset(name for name in NAMES if numpy_dtype(name).kind in "biu")
INEXACT = frozenset(name for name in NAMES if is_float(name) or is_complex(name))
REAL_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})
REAL_SINGLE_AND_DOUBLE = frozenset({"float32", "float64"})
SINGLE_AND_DOUBLE = REAL_SINGLE_AND_DOUBLE | {"complex64", "complex128"}
