"""CuPy's arrays as cuBLASLt takes them."""

from typing import Any

import cupy

from accel_lab.backends.cuda.blas_lt.call import Memory, T, memory


def placed(x: Any, *, turned: bool, operation: int | None = None) -> tuple[Any, Memory]:
    """Return a matrix, or a copy, that cuBLASLt can address, and how it lies.

    Parameters:
        turned: whether op transposes it.
        operation: what cuBLASLt is to make of it, if not every one will do.
    """
    found = memory(x.shape, x.strides, x.itemsize)
    if found is not None and operation in (None, found.operation(turned=turned)):
        return x, found
    by_rows = True if operation is None else turned == (operation == T)
    held = _empty(x.shape, x.dtype, by_rows=by_rows)
    cupy.copyto(held, x)
    rows, columns = x.shape[-2:]
    step = rows * columns if held.ndim > len("mn") else 0
    lies = Memory(columns, rows, columns, step, by_rows=True)
    return held, lies if by_rows else Memory(rows, columns, rows, step, by_rows=False)


def target(out: Any) -> tuple[Any, Memory]:
    """Return where cuBLASLt can write the rows of `out`: itself, or an array of its shape."""
    found = memory(out.shape, out.strides, out.itemsize)
    stacked = any(extent > 1 for extent in out.shape[:-2])
    if found is None or not found.by_rows or (stacked and found.step == 0):
        out = cupy.ndarray(out.shape, out.dtype)
        found = memory(out.shape, out.strides, out.itemsize)
    assert found is not None
    return out, found


def _empty(shape: tuple[int, ...], dtype: Any, *, by_rows: bool) -> Any:
    if by_rows:
        return cupy.ndarray(shape, dtype)
    return cupy.ndarray((*shape[:-2], shape[-1], shape[-2]), dtype).swapaxes(-1, -2)
