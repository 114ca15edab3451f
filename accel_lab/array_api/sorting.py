"""Arrays in order. Every sort is stable."""

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.array import library as array

__all__ = ["argsort", "sort"]


def sort(
    x: AccelRef, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> AccelRef:
    """Return the elements along an axis in order, NaN last, or in reverse; does not block."""
    del stable  # it always is
    ordered = array.sort(x, axis)
    return array.flip(ordered, axis) if descending else ordered


def argsort(
    x: AccelRef, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> AccelRef:
    """Return where the elements along an axis are that `sort` makes; does not block.

    Of equal ones the first comes first, in either order.
    """
    del stable  # as above
    if not descending:
        return array.argsort(x, axis)
    # From the end the last of equal ones is found first: counted from the front, and turned.
    last = x.shape[axis] - 1
    return array.flip(last - array.argsort(array.flip(x, axis), axis), axis)
