"""Operands as CUB takes them: without gaps, with NaN that sorts last, with offsets in range."""

from typing import Any

import cupy

from accel_lab.backends.cuda.primitives.kernels import wrong_offsets_kernel


def whole(x: Any, dtype: Any = None) -> Any:
    """Return a vector without gaps, in a dtype; the same where it is one."""
    return cupy.ascontiguousarray(x, dtype)


def sortable(x: Any) -> Any:
    """Return keys without gaps, whose NaN have no sign: CUB has those with one come first."""
    if x.dtype.kind != "f":
        return whole(x)
    return cupy.where(cupy.isnan(x), x.dtype.type("nan"), x)


def ranks(x: Any) -> Any:
    """Return keys as whole numbers in the same order.

    CUB compares the elements of a short segment as floats, to which a NaN has no place.
    """
    if x.dtype.kind != "f":
        return x
    bits = x.view(f"i{x.itemsize}")
    return cupy.where(bits < 0, bits ^ bits.dtype.type(cupy.iinfo(bits.dtype).max), bits)


def unranked(keys: Any, dtype: Any) -> Any:
    """Return what has these ranks: taken twice, the rank of a float has its bits."""
    return ranks(keys.view(dtype)).view(dtype)


def segments(offsets: Any, extent: int) -> tuple[Any, Any, Any]:
    """Return where segments begin and end, within `extent`, and which offsets are wrong."""
    given = whole(offsets, cupy.int64)
    last = given.size - 1
    wrong = cupy.empty(given.size, cupy.int64)
    wrong_offsets_kernel()(given, extent, last, wrong)
    inside = cupy.clip(given, 0, extent)
    starts = inside[:-1].copy()
    return starts, cupy.maximum(starts, inside[1:]), wrong.sum().reshape(1)


def count_of(total: Any) -> int:
    """Return a number that the device has; waits for it."""
    return int(total.get())
