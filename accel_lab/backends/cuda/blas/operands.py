"""CuPy's arrays as cuBLAS addresses them, or copies that it can address."""

from typing import Any, TypeAlias

import cupy

from accel_lab.backends.cuda.blas.layout import Axes, Matrices, matrices, operation

Layout: TypeAlias = tuple[Axes, Axes]


def layout(x: Any) -> Layout:
    """Return shape and strides."""
    return x.shape, x.strides


def as_column(x: Any) -> Layout:
    """Return the layout of a vector as a matrix of one column."""
    return (*x.shape, 1), (*x.strides, x.itemsize)


def addressable(x: Any, *, conjugated: bool) -> Any:
    """Return a matrix that cuBLAS can address: itself, or a contiguous copy."""
    found = matrices(*layout(x), x.itemsize)
    # What lies in memory by columns cannot be conjugated without being turned.
    if found is None or (conjugated and not found.by_rows):
        return cupy.ascontiguousarray(x)
    return x


def turnable(x: Any, trans: str) -> tuple[Any, Matrices, int]:
    """Return a matrix of which cuBLAS can take op(x)', how it is addressed, and its operation.

    It is `x` or a contiguous copy. A "c" of real numbers must be given as "t".
    """
    found = matrices(*layout(x), x.itemsize)
    op = None if found is None else operation(found, trans)
    if found is None or op is None:
        x, found = _copied(x)
        op = operation(found, trans)
    assert op is not None, trans
    return x, found, op


def in_rows(x: Any) -> tuple[Any, Matrices]:
    """Return a matrix whose rows are adjacent in memory, `x` or a copy, and its addressing."""
    found = matrices(*layout(x), x.itemsize)
    if found is None or not found.by_rows:
        return _copied(x)
    return x, found


def target(out: Any) -> tuple[Any, Matrices]:
    """Return where cuBLAS can write the rows of what `out` is to become, `out` itself if it can."""
    found = matrices(*layout(out), out.itemsize)
    stacked = any(extent > 1 for extent in out.shape[:-2])
    if found is None or not found.by_rows or (stacked and found.step == 0):
        return _addressed(cupy.ndarray(out.shape, out.dtype))
    return out, found


def _copied(x: Any) -> tuple[Any, Matrices]:
    # A copy for sure: an array of one row or column may be contiguous whatever its strides are.
    held = cupy.ndarray(x.shape, x.dtype)
    cupy.copyto(held, x)
    return _addressed(held)


def _addressed(x: Any) -> tuple[Any, Matrices]:
    found = matrices(*layout(x), x.itemsize)
    assert found is not None, x.strides
    return x, found
