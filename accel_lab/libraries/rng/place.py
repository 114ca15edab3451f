"""Where a draw begins and what it makes, as whoever calls a function says it."""

import secrets
from typing import SupportsIndex

from accel_lab.compute.arrays.dtypes import canonical
from accel_lab.compute.graph.parameter import as_index
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.shape import Integers as Extents
from accel_lab.libraries.authoring.shape import ints


def placed(
    seed: SupportsIndex | None, stream: SupportsIndex, offset: SupportsIndex
) -> tuple[int, int, int]:
    """Return seed, stream and offset as they travel; a seed of None is made up."""
    return whole(secrets.randbits(64) if seed is None else seed), whole(stream), whole(offset)


def described(
    shape: Extents | None, dtype: object, out: AccelRef | None, usual: str
) -> tuple[tuple[int, ...], str]:
    """Return the shape and dtype to draw, those of `out` or the usual ones where not given.

    Raises:
        InvalidArgument: no such shape or dtype.
    """
    if shape is None:
        shape = () if out is None else out.shape
    if dtype is None:
        dtype = usual if out is None else out.dtype
    return ints("shape", shape), canonical(dtype)


def integer_range(low: SupportsIndex, high: SupportsIndex | None) -> tuple[int, int]:
    """Return the least and the greatest of the integers that NumPy's arguments mean.

    Raises:
        InvalidArgument: they are no integers.
    """
    if high is None:
        return 0, whole(low) - 1
    return whole(low), whole(high) - 1


def whole(value: SupportsIndex) -> int:
    """Return an integer of any kind as Python's.

    Raises:
        InvalidArgument: it is none.
    """
    try:
        return as_index(value)
    except TypeError:
        raise InvalidArgument(f"an integer is wanted, not {value!r}") from None
