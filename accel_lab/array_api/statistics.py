"""Sums, means and extremes along axes, and what is true of all or any elements."""

import math
from typing import Any

from accel_lab.array_api.dtypes import dtype_or
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array import library as array
from accel_lab.libraries.array.message import axis_of
from accel_lab.libraries.array.reduction import ReduceOp, reduce
from accel_lab.libraries.array.scanning import ScanOp, scan
from accel_lab.libraries.authoring.operand import describe
from accel_lab.libraries.authoring.shape import Integers

# ruff: noqa: A001 - the standard's names

__all__ = [
    "all",
    "any",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]


def all(x: AccelRef, /, *, axis: Integers | None = None, keepdims: bool = False) -> AccelRef:
    """Return whether no element is zero; does not block."""
    return reduce("all", x, axis, keepdims=keepdims)


def any(x: AccelRef, /, *, axis: Integers | None = None, keepdims: bool = False) -> AccelRef:
    """Return whether an element is not zero; does not block."""
    return reduce("any", x, axis, keepdims=keepdims)


def max(x: AccelRef, /, *, axis: Integers | None = None, keepdims: bool = False) -> AccelRef:
    """Return the largest element; NaN if one is. Does not block."""
    return reduce("max", x, axis, keepdims=keepdims)


def min(x: AccelRef, /, *, axis: Integers | None = None, keepdims: bool = False) -> AccelRef:
    """Return the smallest element; NaN if one is. Does not block."""
    return reduce("min", x, axis, keepdims=keepdims)


def mean(x: AccelRef, /, *, axis: Integers | None = None, keepdims: bool = False) -> AccelRef:
    """Return the mean, of nothing NaN; does not block."""
    return reduce("mean", x, axis, keepdims=keepdims)


def sum(
    x: AccelRef, /, *, axis: Integers | None = None, dtype: object = None, keepdims: bool = False
) -> AccelRef:
    """Return the sum, of bool and small integers in 64 bits; does not block."""
    return reduce("sum", x, axis, dtype=dtype, keepdims=keepdims)


def prod(
    x: AccelRef, /, *, axis: Integers | None = None, dtype: object = None, keepdims: bool = False
) -> AccelRef:
    """Return the product, of bool and small integers in 64 bits; does not block."""
    return reduce("prod", x, axis, dtype=dtype, keepdims=keepdims)


def std(
    x: AccelRef,
    /,
    *,
    axis: Integers | None = None,
    correction: float = 0.0,
    keepdims: bool = False,
) -> AccelRef:
    """Return the standard deviation, by n - correction; does not block."""
    return _spread("std", x, axis, correction, keepdims=keepdims)


def var(
    x: AccelRef,
    /,
    *,
    axis: Integers | None = None,
    correction: float = 0.0,
    keepdims: bool = False,
) -> AccelRef:
    """Return the variance, by n - correction; does not block."""
    return _spread("var", x, axis, correction, keepdims=keepdims)


def cumulative_sum(
    x: AccelRef,
    /,
    *,
    axis: int | None = None,
    dtype: object = None,
    include_initial: bool = False,
) -> AccelRef:
    """Return the sums up to each element along an axis, after a 0 if asked for; does not block.

    Raises:
        InvalidArgument: there is no axis, and `x` has several.
    """
    return _scanned("cumsum", x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: AccelRef,
    /,
    *,
    axis: int | None = None,
    dtype: object = None,
    include_initial: bool = False,
) -> AccelRef:
    """Return the products up to each element along an axis, after a 1 if asked for.

    Raises:
        InvalidArgument: there is no axis, and `x` has several.
    """
    return _scanned("cumprod", x, axis, dtype, 1 if include_initial else None)


def diff(
    x: AccelRef,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: AccelRef | None = None,
    append: AccelRef | None = None,
) -> AccelRef:
    """Return the differences of neighbours along an axis, `n` times over; does not block."""
    return array.diff(x, n, axis, prepend, append)


def _spread(
    op: ReduceOp, x: AccelRef, axis: Integers | None, correction: Any, *, keepdims: bool
) -> AccelRef:
    if not isinstance(correction, int | float) or not math.isfinite(correction):
        raise InvalidArgument(f"{op}: correction must be a finite number, not {correction!r}")
    if (whole := int(correction)) == correction:
        return reduce(op, x, axis, keepdims=keepdims, ddof=whole)
    made = reduce(op, x, axis, keepdims=keepdims)
    count = x.size // math.prod(made.shape) if made.size else 0
    left = count - correction
    factor = math.nan if left <= 0 else count / left
    return made * (factor if op == "var" else math.sqrt(factor))


def _scanned(
    op: ScanOp, x: AccelRef, axis: int | None, dtype: object, initial: int | None
) -> AccelRef:
    name = f"cumulative_{op.removeprefix('cum')}"
    if axis is None and x.ndim != 1:
        raise InvalidArgument(f"{name}: x is {describe(x)}: only of a vector is the axis clear")
    at = axis_of(name, x, 0 if axis is None else axis)
    made = scan(op, x, at, dtype=None if dtype is None else dtype_or(dtype, ""))
    if initial is None:
        return made
    shape = (*made.shape[:at], 1, *made.shape[at + 1 :])
    first = array.full(x.device, shape, initial, made.dtype)
    return array.concatenate([first, made], at)
