"""Medians and quantiles that leave out NaN, which comes last in order; the device counts it."""

from typing import Any

import numpy as np

from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.array.elementwise import binary, unary
from accel_lab.libraries.array.indexing import take_along_axis
from accel_lab.libraries.array.joining import stack
from accel_lab.libraries.array.ordering import (
    along_last,
    between,
    kept,
    median,
    parts_of,
    quantile,
    sort,
    to_the_front,
)
from accel_lab.libraries.array.reduction import reduce
from accel_lab.libraries.authoring.shape import Integers

__all__ = ["nanmedian", "nanpercentile", "nanquantile"]


def nanmedian(x: AccelRef, axis: Integers | None = None, *, keepdims: bool = False) -> AccelRef:
    """Return the median, without NaN; does not block. It is NaN where nothing is left.

    Raises:
        InvalidArgument: there is no such axis.
    """
    device_of(x)
    if not _has_nan(x):
        return median(x, axis, keepdims=keepdims)
    flat, axes = along_last("nanmedian", x, axis)
    if not flat.shape[-1]:
        return reduce("mean", x, axis, keepdims=keepdims)
    ordered, count = sort(flat), _count(flat)
    lower = binary("maximum", (count - 1) // 2, 0)
    pair = take_along_axis(ordered, stack([lower, count // 2 * (count > 0)], -1), -1)
    return kept(reduce("mean", pair, -1), axes, keepdims=keepdims)


def nanquantile(
    x: AccelRef, q: Any, axis: Integers | None = None, *, keepdims: bool = False
) -> AccelRef:
    """Return `quantile` without NaN; does not block. It is NaN where nothing is left.

    Raises:
        InvalidArgument: there is no such axis, nothing in it, or `q` is not from 0 to 1.
    """
    return _quantile("nanquantile", x, q, 1, axis, keepdims=keepdims)


def nanpercentile(
    x: AccelRef, q: Any, axis: Integers | None = None, *, keepdims: bool = False
) -> AccelRef:
    """Return `nanquantile` of q / 100; does not block.

    Raises:
        InvalidArgument: there is no such axis, nothing in it, or `q` is not from 0 to 100.
    """
    return _quantile("nanpercentile", x, q, 100, axis, keepdims=keepdims)


def _quantile(
    name: str, x: AccelRef, q: Any, whole: int, axis: Integers | None, *, keepdims: bool
) -> AccelRef:
    parts, made = parts_of(name, x, q, whole)
    if not _has_nan(x):
        return quantile(x, parts / whole, axis, keepdims=keepdims).astype(made)
    flat, axes = along_last(name, x, axis, check=True)
    ordered, count = sort(flat), _count(flat)
    last = binary("maximum", count - 1, 0)[..., None]
    fractions = device_of(x).put(parts.astype(np.float64).reshape(-1) / whole)
    places = last.astype("float64") * fractions
    below = unary("floor", places).astype("int64")
    above = binary("minimum", below + 1, last)
    part = (places - below).astype(made)
    one, other = (take_along_axis(ordered, at, -1).astype(made) for at in (below, above))
    line = to_the_front(between(one, other, part), parts)
    return kept(line, [at + parts.ndim for at in axes], keepdims=keepdims)


def _has_nan(x: AccelRef) -> bool:
    return numpy_dtype(x.dtype).kind in "fc"


def _count(flat: AccelRef) -> AccelRef:
    """Return how many elements along the last axis are no NaN."""
    return reduce("sum", unary("logical_not", unary("isnan", flat)), -1)
