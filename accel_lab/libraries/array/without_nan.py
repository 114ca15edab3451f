"""Reductions that leave out NaN, made of `isnan`, `where` and the reductions of the rest.

What has no NaN, as integers, is reduced as it is. Nothing warns where nothing is left.
"""

import math
from typing import Any

from accel_lab.compute.arrays.dtypes import is_complex, is_float
from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array.elementwise import binary, unary, where
from accel_lab.libraries.array.reduction import ReduceOp, reduce
from accel_lab.libraries.authoring.function import named
from accel_lab.libraries.authoring.operand import describe
from accel_lab.libraries.authoring.shape import Integers

__all__ = [
    "count_nonzero",
    "nan_to_num",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]

_HALVES = frozenset({"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"})
_HELP = "Return {text}, without NaN; does not block."


def _filled_up(
    name: str, x: AccelRef, axis: Integers | None = None, *, keepdims: bool = False
) -> AccelRef:
    op: ReduceOp = "sum" if name == "nansum" else "prod"
    return reduce(op, _filled(x, 1 if op == "prod" else 0), axis, keepdims=keepdims)


def _extreme(
    name: str, x: AccelRef, axis: Integers | None = None, *, keepdims: bool = False
) -> AccelRef:
    device_of(x)
    if is_complex(x.dtype):
        raise InvalidArgument(f"{name}: x {describe(x)} has no order; take array.abs first")
    op: ReduceOp = "max" if name == "nanmax" else "min"
    if not is_float(x.dtype):
        return reduce(op, x, axis, keepdims=keepdims)
    far = _filled(x, -math.inf if op == "max" else math.inf)
    found = reduce(op, far, axis, keepdims=keepdims)
    is_none = reduce("all", unary("isnan", x), axis, keepdims=keepdims)
    return _as(x.dtype, where(is_none, math.nan, found))


_sums, _extremes = named(_filled_up, _HELP), named(_extreme, _HELP)
nansum = _sums("nansum", "the sum; 0 where nothing is left")
nanprod = _sums("nanprod", "the product; 1 where nothing is left")
nanmax = _extremes("nanmax", "the largest element; NaN where nothing is left")
nanmin = _extremes("nanmin", "the smallest element; NaN where nothing is left")


def nanmean(x: AccelRef, axis: Integers | None = None, *, keepdims: bool = False) -> AccelRef:
    """Return the mean, without NaN; does not block. It is NaN where nothing is left.

    Narrow floats are computed in float32 and rounded once.
    """
    device_of(x)
    if not _has_nan(x):
        return reduce("mean", x, axis, keepdims=keepdims)
    wide = _wide(x)
    total = reduce("sum", _filled(wide, 0), axis, keepdims=keepdims)
    return _as(x.dtype, total / _as(str(wide.dtype), _count(x, axis, keepdims=keepdims)))


def nanvar(
    x: AccelRef, axis: Integers | None = None, *, ddof: int = 0, keepdims: bool = False
) -> AccelRef:
    """Return the variance, by n - ddof for the n that are left, without NaN; does not block.

    It is NaN where that is not above 0.
    """
    device_of(x)
    if not _has_nan(x):
        return reduce("var", x, axis, ddof=ddof, keepdims=keepdims)
    wide = _wide(x)
    apart = unary("absolute", _filled(wide - nanmean(wide, axis, keepdims=True), 0))
    total = reduce("sum", unary("square", apart), axis, keepdims=keepdims)
    freedom = _as(str(total.dtype), _count(x, axis, keepdims=keepdims)) - ddof
    made = where(binary("greater", freedom, 0), total / freedom, math.nan)
    return made if is_complex(x.dtype) else _as(x.dtype, made)


def nanstd(
    x: AccelRef, axis: Integers | None = None, *, ddof: int = 0, keepdims: bool = False
) -> AccelRef:
    """Return the square root of `nanvar`; does not block."""
    return unary("sqrt", nanvar(x, axis, ddof=ddof, keepdims=keepdims))


def nan_to_num(x: AccelRef, nan: complex = 0.0) -> AccelRef:
    """Return `x` with a number in place of each NaN; does not block. Infinities stay."""
    device_of(x)
    return _as(x.dtype, _filled(x, nan)) if _has_nan(x) else x.copy()


def count_nonzero(x: AccelRef, axis: Integers | None = None, *, keepdims: bool = False) -> AccelRef:
    """Return how many elements are not zero, as int64; does not block."""
    device_of(x)
    return reduce("sum", binary("not_equal", x, 0), axis, keepdims=keepdims)


def _has_nan(x: AccelRef) -> bool:
    return is_float(x.dtype) or is_complex(x.dtype)


def _filled(x: AccelRef, number: complex) -> AccelRef:
    device_of(x)
    return where(unary("isnan", x), number, x) if _has_nan(x) else x


def _wide(x: AccelRef) -> AccelRef:
    return x.astype("float32") if x.dtype in _HALVES else x


def _count(x: AccelRef, axis: Any, *, keepdims: bool) -> AccelRef:
    """Return how many elements are no NaN."""
    is_there = unary("logical_not", unary("isnan", x))
    return reduce("sum", is_there, axis, keepdims=keepdims)


def _as(dtype: str, x: AccelRef) -> AccelRef:
    return x if x.dtype == dtype else x.astype(dtype)
