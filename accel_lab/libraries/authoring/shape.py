"""Shapes, axes and indices: how they travel, and what they make of a buffer."""

import math
import sys
from collections.abc import Iterable
from typing import Any, SupportsIndex, TypeAlias

import numpy as np

from accel_lab.compute.graph.parameter import as_index
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation
from accel_lab.errors import InvalidArgument, OutOfBounds
from accel_lab.libraries.authoring.operand import describe, kind, named

Range: TypeAlias = tuple[int | None, int | None, int | None]
Index: TypeAlias = int | Range | None
Integers: TypeAlias = SupportsIndex | Iterable[SupportsIndex]

MAX_NDIM = 32
_WHOLE: Range = (None, None, None)


def ints(name: str, value: Integers) -> tuple[int, ...]:
    """Return integers of any kind as Python's, which can travel; a single one as a tuple.

    Raises:
        InvalidArgument: they are no integers.
    """
    try:
        # What has no axes can be iterated by its type alone.
        several = isinstance(value, Iterable) and getattr(value, "shape", None) != ()
        return tuple(map(as_index, value if several else (value,)))  # type: ignore[arg-type]
    except TypeError:
        raise InvalidArgument(f"{name} must be integers, not {value!r}") from None


def require_extents(message: str, shape: Any, *, least: int = 0) -> tuple[int, ...]:
    """Return a shape that is one.

    Raises:
        InvalidArgument: it has something else than integers from `least`, or too many axes.
    """
    if not isinstance(shape, tuple) or any(type(n) is not int or n < least for n in shape):
        raise InvalidArgument(
            f"{message}: a shape is a tuple of integers from {least}, not {shape!r}"
        )
    if len(shape) > MAX_NDIM:
        raise InvalidArgument(f"{message}: {len(shape)} axes are more than {MAX_NDIM}")
    return shape


def broadcast(message: Operation[Any], *refs: AccelRef) -> tuple[int, ...]:
    """Return the one shape to which buffers broadcast, by NumPy's rules.

    Raises:
        InvalidArgument: there is none.
    """
    try:
        return np.broadcast_shapes(*(ref.shape for ref in refs))
    except ValueError:
        texts = " and ".join(named(message, ref) for ref in refs)
        raise InvalidArgument(
            f"{kind(message)}: {texts}, which do not broadcast to one shape: counted from the "
            "last, axes are equal, or one of them is 1"
        ) from None


def filled_shape(x: AccelRef, shape: Any) -> tuple[int, ...]:
    """Return a shape with its -1 worked out for the elements of `x`.

    Raises:
        InvalidArgument: they do not fill it.
    """
    shape = require_extents("Reshape", shape, least=-1)
    unknown = shape.count(-1)
    count = math.prod(extent for extent in shape if extent != -1)
    exact = unknown == 0 and x.size == count
    if not exact and not (unknown == 1 and count > 0 and x.size % count == 0):
        raise InvalidArgument(
            f"Reshape: x {describe(x)} has {x.size} elements, which do not fill {list(shape)}"
        )
    return tuple(x.size // count if extent == -1 else extent for extent in shape)


def axis_order(x: AccelRef, axes: Any) -> tuple[int, ...]:
    """Return a permutation of the axes of `x`, counted from 0; None reverses them.

    Raises:
        InvalidArgument: it is no permutation.
    """
    if axes is None:
        return tuple(reversed(range(x.ndim)))
    order = tuple(axis + x.ndim if axis < 0 else axis for axis in axes)
    if sorted(order) != list(range(x.ndim)):
        raise InvalidArgument(
            f"Transpose: axes {list(axes)} are no permutation of the {x.ndim} axes of "
            f"x {describe(x)}"
        )
    return order


def index_entries(x: AccelRef, index: Any) -> tuple[Index, ...]:
    """Return what NumPy's basic indexing takes, as `np.s_[..., 1:, ::-1]`, as it travels.

    Raises:
        InvalidArgument: there is an array, a list or a second Ellipsis in it.
    """
    given = index if isinstance(index, tuple) else (index,)
    entries: list[Index] = []
    for at, entry in enumerate(given):
        if entry is not Ellipsis:
            entries.append(_entry(entry))
            continue
        if any(later is Ellipsis for later in given[at + 1 :]):
            raise InvalidArgument("Slice: the index has more than one Ellipsis")
        named = sum(other is not None for other in given) - 1
        entries.extend([_WHOLE] * (x.ndim - named))
    return tuple(entries)


def indexed_shape(x: AccelRef, index: tuple[Index, ...]) -> tuple[int, ...]:
    """Return the shape of a part of `x`.

    Raises:
        InvalidArgument: the index has too many entries, or one that does not fit its axis.
    """
    extents = x.shape
    named = sum(entry is not None for entry in index)
    if named > len(extents):
        raise OutOfBounds(f"Slice: the index names {named} axes, but x is {describe(x)}")
    shape: list[int] = []
    axis = 0
    for entry in index:
        if entry is None:
            shape.append(1)
            continue
        extent = extents[axis]
        if isinstance(entry, int):
            if not -extent <= entry < extent:
                raise OutOfBounds(
                    f"Slice: index {entry} is outside axis {axis} of x {describe(x)}, "
                    f"which has {extent} elements"
                )
        else:
            shape.append(_length(entry, axis, x))
        axis += 1
    return require_extents("Slice", (*shape, *extents[axis:]))


def _entry(entry: Any) -> Index:
    try:
        if isinstance(entry, slice):
            start, stop, step = map(_bound, (entry.start, entry.stop, entry.step))
            return start, stop, step
        if entry is None:
            return None
        if not isinstance(entry, bool):
            return as_index(entry)
    except TypeError:
        pass
    raise InvalidArgument(f"Slice: an index has ints, slices, None and Ellipsis, not {entry!r}")


def _bound(part: SupportsIndex | None) -> int | None:
    """Return a part of a slice as it travels; beyond any axis all are one."""
    if part is None:
        return None
    return max(-sys.maxsize, min(as_index(part), sys.maxsize))


def _length(entry: Any, axis: int, x: AccelRef) -> int:
    if not isinstance(entry, tuple) or len(entry) != len(_WHOLE):
        raise InvalidArgument(
            f"Slice: an entry is an int, None or (start, stop, step), not {entry!r}"
        )
    if entry[2] == 0:
        raise InvalidArgument(f"Slice: the step along axis {axis} of x {describe(x)} is 0")
    return len(range(*slice(*entry).indices(x.shape[axis])))
