"""Where elements are, and elements at places."""

from typing import Any, Literal

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array import library as array
from accel_lab.libraries.array.elementwise import Operand
from accel_lab.libraries.authoring.operand import describe
from accel_lab.libraries.authoring.shape import Integers

__all__ = [
    "argmax",
    "argmin",
    "count_nonzero",
    "nonzero",
    "searchsorted",
    "take",
    "take_along_axis",
    "where",
]


def argmax(x: AccelRef, /, *, axis: int | None = None, keepdims: bool = False) -> AccelRef:
    """Return where the first largest element is; does not block."""
    return array.argmax(x, axis, keepdims=keepdims)


def argmin(x: AccelRef, /, *, axis: int | None = None, keepdims: bool = False) -> AccelRef:
    """Return where the first smallest element is; does not block."""
    return array.argmin(x, axis, keepdims=keepdims)


def count_nonzero(
    x: AccelRef, /, *, axis: Integers | None = None, keepdims: bool = False
) -> AccelRef:
    """Return how many elements are not zero, as int64; does not block."""
    return array.sum(x != 0, axis, dtype="int64", keepdims=keepdims)


def nonzero(x: AccelRef, /) -> tuple[AccelRef, ...]:
    """Return where `x` is not zero: a vector of integers for each axis; does not block."""
    return array.nonzero(x)


def searchsorted(
    x1: AccelRef,
    x2: Operand,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: AccelRef | None = None,
) -> AccelRef:
    """Return where in `x1`, a vector in order, each element of `x2` belongs; does not block."""
    return array.searchsorted(x1, x2, side, sorter)


def where(condition: AccelRef, x1: Operand, x2: Operand, /) -> AccelRef:
    """Return elements of `x1` where the condition is True, else of `x2`; does not block."""
    return array.where(condition, x1, x2)


def take(x: AccelRef, indices: Any, /, *, axis: int | None = None) -> AccelRef:
    """Return the elements of `x` at `indices` along an axis; does not block.

    Raises:
        InvalidArgument: there is no axis, and `x` has several.
    """
    if axis is None and x.ndim != 1:
        raise InvalidArgument(f"take: x is {describe(x)}: only of a vector is the axis clear")
    return array.take(x, indices, 0 if axis is None else axis)


def take_along_axis(x: AccelRef, indices: AccelRef, /, *, axis: int = -1) -> AccelRef:
    """Return an element of `x` for each index along an axis; does not block."""
    return array.take_along_axis(x, indices, axis)
