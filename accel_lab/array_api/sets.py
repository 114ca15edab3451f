"""Elements as sets: each once, and which are among others. NaN is never equal to itself."""

from typing import NamedTuple

import numpy as np

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.array import library as array
from accel_lab.libraries.array.elementwise import Operand, binary, device_among

__all__ = ["isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"]


class UniqueAll(NamedTuple):
    """Each element once, where each is first, which of them each one is, and how often it is."""

    values: AccelRef
    indices: AccelRef
    inverse_indices: AccelRef
    counts: AccelRef


class UniqueCounts(NamedTuple):
    """Each element once, and how often it is there."""

    values: AccelRef
    counts: AccelRef


class UniqueInverse(NamedTuple):
    """Each element once, and which of them each element of the array is."""

    values: AccelRef
    inverse_indices: AccelRef


def unique_all(x: AccelRef, /) -> UniqueAll:
    """Return each element once, in order, with all that is known of it; does not block.

    What asks for a shape waits.
    """
    found = array.unique(x, True, True, True, equal_nan=False)  # noqa: FBT003 - NumPy's signature
    return UniqueAll(*found)


def unique_counts(x: AccelRef, /) -> UniqueCounts:
    """Return each element once, in order, and how often it is there; does not block."""
    return UniqueCounts(*array.unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: AccelRef, /) -> UniqueInverse:
    """Return each element once, in order, and which of them each one is; does not block."""
    return UniqueInverse(*array.unique(x, return_inverse=True, equal_nan=False))


def unique_values(x: AccelRef, /) -> AccelRef:
    """Return each element once, in order; does not block. What asks for a shape waits."""
    found: AccelRef = array.unique(x, equal_nan=False)
    return found


def isin(x1: Operand, x2: Operand, /, *, invert: bool = False) -> AccelRef:
    """Return for each element of `x1` whether it is one of `x2`, or is not; does not block."""
    device = device_among(x1, x2)
    one, other = (x if isinstance(x, AccelRef) else device.put(np.asarray(x)) for x in (x1, x2))
    if not other.size:
        return array.full(device, one.shape, invert, "bool")
    among = array.sort(other, None)
    # Behind the last there is none: what belongs there is compared with the last, and is not it.
    at = array.clip(array.searchsorted(among, one), None, among.size - 1)
    return binary("not_equal" if invert else "equal", array.take(among, at, 0), one)
