"""A part of an array as an index names it, and arrays cut into such parts."""

import math
from collections.abc import Iterator
from itertools import product
from operator import index as as_int
from typing import Any, NamedTuple

from accel_lab.errors import InvalidArgument, OutOfBounds

Place = tuple[int, ...]


class Box(NamedTuple):
    """Every `step`-th of `count` indices from `start`, along each axis.

    Attributes:
        kept: the axes that the result has; the others were named by an int.
    """

    starts: Place
    counts: Place
    steps: Place
    kept: Place

    @property
    def shape(self) -> Place:
        """The shape of the result."""
        return tuple(self.counts[axis] for axis in self.kept)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.counts)

    def reversed(self) -> "Box":
        """Return the same part of the transposed array."""
        last = len(self.starts) - 1
        kept = tuple(last - axis for axis in reversed(self.kept))
        return Box(self.starts[::-1], self.counts[::-1], self.steps[::-1], kept)


def whole(shape: Place) -> Box:
    """Return the box of a whole array."""
    ndim = len(shape)
    return Box((0,) * ndim, shape, (1,) * ndim, tuple(range(ndim)))


def box_of(index: Any, shape: Place) -> Box:
    """Return what an index of ints, slices and one `...` names of an array.

    Raises:
        InvalidArgument: it has something else, or a step below 1.
        OutOfBounds: there is no such axis, or no such place on it.
    """
    entries = list(index) if isinstance(index, tuple) else [index]
    dots = [at for at, entry in enumerate(entries) if entry is Ellipsis]
    if len(dots) > 1:
        raise InvalidArgument("an index has at most one ...")
    named = len(entries) - len(dots)
    if named > len(shape):
        raise OutOfBounds(f"an index of {named} axes, and the array has {len(shape)}")
    at = dots[0] if dots else len(entries)
    entries[at : at + 1] = [slice(None)] * (len(shape) - named)
    axes = [_axis(entry, axis, shape[axis]) for axis, entry in enumerate(entries)]
    starts, counts, steps, is_kept = zip(*axes, strict=True) if axes else ((), (), (), ())
    return Box(starts, counts, steps, tuple(axis for axis, kept in enumerate(is_kept) if kept))


def _axis(entry: Any, axis: int, extent: int) -> tuple[int, int, int, bool]:
    if isinstance(entry, slice):
        try:
            start, stop, step = entry.indices(extent)
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"axis {axis}: {entry} is no slice: {error}") from error
        if step < 1:
            text = f"axis {axis}: a file is read forwards, and {entry} has the step {step}"
            raise InvalidArgument(f"{text}: turn it round on the device")
        return start, len(range(start, stop, step)), step, True
    try:
        place = as_int(entry)
    except TypeError:
        place = None
    if place is None or isinstance(entry, bool):
        text = f"axis {axis}: a part of a file is named by ints and slices, not by {entry!r}"
        raise InvalidArgument(f"{text}: load more, and take that on the device")
    if not -extent <= place < extent:
        raise OutOfBounds(f"axis {axis} has {extent} places, and {place} is none of them")
    return place % extent, 1, 1, False


def cut(shape: Place, limit: int) -> Iterator[tuple[Place, Place]]:
    """Cut an array into parts of at most `limit` elements, at least one, in C order.

    Yields `(starts, counts)`; together the parts are the array, each contiguous in C order.
    """
    if not math.prod(shape):
        return
    axis = 0
    while axis < len(shape) and math.prod(shape[axis + 1 :]) > limit:
        axis += 1
    if math.prod(shape) <= limit or axis == len(shape):
        yield (0,) * len(shape), shape
        return
    outer, extent, inner = shape[:axis], shape[axis], shape[axis + 1 :]
    rows = max(1, limit // math.prod(inner))
    for place in product(*map(range, outer)):
        for start in range(0, extent, rows):
            count = min(rows, extent - start)
            yield (*place, start, *(0 for _ in inner)), (*(1 for _ in outer), count, *inner)
