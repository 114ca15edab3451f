"""Masks among other entries of an index: `x[:, mask]`, `x[mask, 1:]`.

Of a mask on the host the integers are known, and stand in its place. One on the device stays what
it is: its axes are moved first, where `Mask` and `AssignMask` take them.
"""

from typing import Any, NamedTuple

import numpy as np

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array.indexing.taking import (
    index_array,
    is_integer,
    is_taking,
    mask,
    taken_by_several,
    whole_index,
)
from accel_lab.libraries.authoring.operand import describe

__all__ = ["Masked", "masked", "taken_by_any", "without_host_masks"]


class Masked(NamedTuple):
    """A part of a buffer that a mask chooses of.

    Attributes:
        view: the part, with the mask's axes first.
        place: which axis of the result has what is chosen; the others keep their order.
    """

    view: AccelRef
    mask: AccelRef
    place: int

    @property
    def order(self) -> list[int]:
        """The axes of the result in the order in which what is chosen comes first."""
        ndim = self.view.ndim - self.mask.ndim + 1
        return [self.place, *(at for at in range(ndim) if at != self.place)]


def taken_by_any(x: AccelRef, index: tuple[Any, ...]) -> AccelRef:
    """Return x[index] for an index with arrays among what is basic; does not block.

    Raises:
        InvalidArgument: it does not fit, or has a mask of the device beside other arrays.
    """
    entries = without_host_masks(x, index)
    found = masked(x, entries)
    if found is None:
        return taken_by_several(x, entries)
    kept = mask(found.view, found.mask)
    if not found.place:
        return kept
    return kept.transpose([int(at) for at in np.argsort(found.order)])


def without_host_masks(x: AccelRef, index: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an index with the integers of each mask of the host in its place.

    Raises:
        InvalidArgument: one has not the axes of `x` at its place.
    """
    lists = [index_array(one) if isinstance(one, list) else one for one in index]
    entries: list[Any] = []
    missing = x.ndim - sum(map(_span, lists))
    axis = 0
    for at in lists:
        span = missing if at is Ellipsis else _span(at)
        if isinstance(at, np.ndarray) and at.dtype == bool and at.ndim:
            if at.shape != x.shape[axis : axis + span]:
                text = f"is to have the axes of x {describe(x)} from {axis} on"
                raise InvalidArgument(f"a mask is bool{list(at.shape)}, and {text}")
            entries += np.nonzero(at)
        else:
            entries.append(at)
        axis += span
    return tuple(entries)


def masked(x: AccelRef, index: tuple[Any, ...]) -> Masked | None:
    """Return what a mask of the device chooses of; None if there is none in the index.

    Raises:
        InvalidArgument: there is another array beside it, or too many entries.
    """
    flags = [at for at, one in enumerate(index) if _is_mask(one)]
    if not flags:
        return None
    (first, *others), chooser = flags, index[flags[0]]
    if others or any(is_taking(one) for at, one in enumerate(index) if at != first):
        raise InvalidArgument(
            f"a mask on the device, here {describe(chooser)}, is the only array in square brackets:"
            " take array.nonzero(mask) for its integers"
        )
    basic = [*index[:first], *[slice(None)] * chooser.ndim, *index[first + 1 :]]
    entries = whole_index(x, tuple(basic))
    if any(one is Ellipsis for one in index[:first]):
        first += len(entries) - len(basic)
    integers = [at for at, one in enumerate(entries) if is_integer(one)]
    part = x[tuple(entries)] if any(one != slice(None) for one in entries) else x
    ahead = first - sum(at < first for at in integers)
    axes = [*range(ahead, ahead + chooser.ndim)]
    rest = [at for at in range(part.ndim) if at not in axes]
    view = part.transpose([*axes, *rest]) if ahead else part
    # Integers count as arrays: what is chosen stands first unless they are next to the mask.
    arrays = [*integers, *range(first, first + chooser.ndim)]
    adjacent = not arrays or max(arrays) - min(arrays) < len(arrays)
    return Masked(view, chooser, ahead if adjacent else 0)


def _span(entry: Any) -> int:
    """Return how many axes an entry is for, but an Ellipsis."""
    if entry is None or entry is Ellipsis:
        return 0
    return entry.ndim if isinstance(entry, AccelRef | np.ndarray) and entry.dtype == bool else 1


def _is_mask(entry: Any) -> bool:
    return isinstance(entry, AccelRef) and entry.dtype == "bool"
