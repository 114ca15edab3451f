"""Where elements are in order, complex ones too, among which CuPy has NaN anywhere."""

from typing import Any

import cupy


def argsort(x: Any, axis: int | None) -> Any:
    """Return the places of the elements in NumPy's order; equal ones keep theirs.

    Complex ones are in the order of their real parts and then of their imaginary ones; behind these
    come those with an imaginary part that is NaN, with such a real part, and with both.
    """
    if x.dtype.kind != "c":
        return cupy.argsort(x, axis)
    if axis is None:
        x, axis = x.ravel(), 0
    real, imaginary = x.real, x.imag
    nan = 2 * cupy.isnan(real).astype("int8") + cupy.isnan(imaginary)
    places = cupy.argsort(imaginary, axis)
    for key in (real, nan):  # each sort is stable, so the last key comes first
        then = cupy.argsort(cupy.take_along_axis(key, places, axis), axis)
        places = cupy.take_along_axis(places, then, axis)
    return places
