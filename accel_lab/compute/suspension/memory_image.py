"""A device's memory as it is kept: ranges of bytes, and how arrays look into them.

What shares memory is one range, so that it shares memory afterwards.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from accel_lab.compute.message.unwritten import Refusal


class Look(NamedTuple):
    """How an array looks into its memory; `dtype` is None where the memory is the array alone."""

    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any] | None
    writeable: bool = True


class Entry(NamedTuple):
    """A buffer as the table has it."""

    id: int
    shape: tuple[int, ...]
    dtype: str
    look: Look


class Memory(NamedTuple):
    """A range of bytes, and what looks into it.

    Attributes:
        piece: the first of those in which it is kept.
        arrays: those inside objects, by their number in the pickle.
        refusals: why nothing may use it, for want of what should have been written.
        kind: what makes such memory, as `Storage` has it.
    """

    piece: int
    nbytes: int
    label: str
    used: int
    entries: list[Entry]
    arrays: dict[int, Look]
    refusals: tuple[Refusal, ...]
    kind: str = ""


class Seen(NamedTuple):
    """An array where it lies: a buffer's, or one inside an object.

    `key` is the id of the buffer, or minus the number of the array; 0 for all of a memory that is
    not the pool's, which comes back as a whole.
    """

    low: int
    high: int
    start: int
    key: int
    array: Any


class Range(NamedTuple):
    """What lies together, from the lowest byte to the highest."""

    low: int
    high: int
    seen: list[Seen]

    @property
    def nbytes(self) -> int:
        """How long it is."""
        return self.high - self.low


def seen_at(start: int, key: int, array: Any) -> Seen:
    """Return an array whose first element is at `start`, with the bytes that it reaches."""
    if not array.nbytes:
        return Seen(start, start, start, key, array)
    reach = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    low = start + sum(min(0, one) for one in reach)
    high = start + sum(max(0, one) for one in reach) + array.dtype.itemsize
    return Seen(low, high, start, key, array)


def ranges_of(seen: Iterable[Seen]) -> list[Range]:
    """Put together what overlaps."""
    ranges: list[Range] = []
    for one in sorted(seen, key=lambda seen: (seen.low, seen.high)):
        last = ranges[-1] if ranges else None
        if last is not None and one.low < last.high:
            last.seen.append(one)
            ranges[-1] = last._replace(high=max(last.high, one.high))
        else:
            ranges.append(Range(one.low, one.high, [one]))
    return ranges


def look_of(seen: Seen, low: int) -> Look:
    """Return how an array looks into memory that begins at `low`."""
    array = seen.array
    writeable = bool(getattr(array.flags, "writeable", True))
    return Look(seen.start - low, tuple(array.shape), tuple(array.strides), array.dtype, writeable)


def is_in_order(array: Any) -> bool:
    """Whether an array has its elements in C order, without gaps."""
    return bool(array.flags.c_contiguous)


def flat(xp: Any, one: Range) -> Any:
    """Return the bytes of a range as one array."""
    for seen in one.seen:
        if (seen.low, seen.high) == (one.low, one.high) and is_in_order(seen.array):
            return seen.array.reshape(-1).view(xp.uint8)
    lowest = next(seen.array for seen in one.seen if seen.low == one.low)
    corner = tuple(slice(-1, None) if step < 0 else slice(0, 1) for step in lowest.strides)
    first = lowest[corner].reshape(1).view(xp.uint8)
    return xp.lib.stride_tricks.as_strided(first, (one.nbytes,), (1,))


def laid(xp: Any, root: Any, look: Look) -> Any:
    """Return the array that looks into bytes; it has a base, for its memory is not its own."""
    assert look.dtype is not None
    if not math.prod(look.shape):
        return xp.empty(look.shape, look.dtype)
    first = root[look.start : look.start + look.dtype.itemsize].view(look.dtype)
    array = xp.lib.stride_tricks.as_strided(first, look.shape, look.strides).view()
    if not look.writeable:
        array.flags.writeable = False
    return array
