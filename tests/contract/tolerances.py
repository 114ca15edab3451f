"""How far a result may be from the exact one, per dtype; the only place that says so."""

from typing import Any

import numpy as np

from accel_lab.compute.arrays.dtypes import NAMES, is_complex, is_float

EPS = {
    "float8_e4m3fn": 2.0**-3,
    "float8_e5m2": 2.0**-2,
    "bfloat16": 2.0**-7,
    "float16": 2.0**-10,
    "float32": 2.0**-23,
    "float64": 2.0**-52,
    "complex64": 2.0**-23,
    "complex128": 2.0**-52,
}
"""The distance from 1 to the next number; a stored result is rounded by half of it."""

SMALLEST = {
    "float8_e4m3fn": 2.0**-9,
    "float8_e5m2": 2.0**-16,
    "bfloat16": 2.0**-133,
    "float16": 2.0**-24,
    "float32": 2.0**-149,
    "float64": 2.0**-1074,
    "complex64": 2.0**-149,
    "complex128": 2.0**-1074,
}
"""The least positive number, below which rounding is absolute."""

COMPUTED_IN = {
    "float8_e4m3fn": "float32",
    "float8_e5m2": "float32",
    "bfloat16": "float32",
    "float16": "float32",
}
"""Where sums are formed, if not in the dtype itself."""

FLOATS = tuple(name for name in NAMES if is_float(name))
INEXACT = tuple(name for name in NAMES if is_float(name) or is_complex(name))
WIDE = ("float32", "float64", "complex64", "complex128")


def assert_near(
    got: Any, exact: Any, dtype: str, *, magnitude: Any = 0.0, operations: float = 0
) -> None:
    """Compare with the bound of a sum in any order (Higham, Accuracy and Stability, section 3.1).

    `magnitude` is the sum of the absolute values of all terms and `operations` the number of
    roundings on the way to one element; a complex operation counts as four real ones. The last
    rounding, to the dtype itself, is relative to the exact result.
    """
    steps = (4 if is_complex(dtype) else 1) * operations
    bound = (
        EPS[dtype] * np.abs(exact)
        + 2 * SMALLEST[dtype]
        + steps * EPS[COMPUTED_IN.get(dtype, dtype)] * np.abs(magnitude)
    )
    error = np.abs(wide(got) - exact)
    assert np.all(error <= bound), f"{dtype}: off by {np.max(error / bound):.3g} of what may be"


def assert_transformed(got: Any, exact: Any, dtype: str, *, points: int) -> None:
    """Compare with the bound of a fast Fourier transform (Higham, section 24.1).

    The error of all elements together, as a Euclidean norm, is some eps times log2 of the points,
    relative to the norm of the result. `dtype` is what is computed in. A prime number of points
    takes three transforms of at least twice as many (Bluestein), which the factor covers.
    """
    assert got.shape == exact.shape
    error = np.linalg.norm((wide(got) - exact).ravel())
    bound = 16 * EPS[dtype] * (1 + np.log2(points)) * np.linalg.norm(exact.ravel())
    assert error <= bound, f"{dtype}: off by {error / bound:.3g} of what may be"


def wide(x: Any) -> Any:
    """Return an array in the widest precision there is, to compute exact results in."""
    x = np.asarray(x)
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)
