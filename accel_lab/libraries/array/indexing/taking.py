"""Elements chosen by buffers: by integers, by a mask, by an integer for each place."""

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from accel_lab.compute.arrays.dtypes import canonical, numpy_dtype
from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import PartialSpec, Spec
from accel_lab.errors import InvalidArgument, OutOfBounds
from accel_lab.libraries.array.elementwise import Operand, binary, side
from accel_lab.libraries.array.message import ArrayMessage, axis_of
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import describe, plain, result
from accel_lab.libraries.authoring.shape import Index, require_extents

Chooser: TypeAlias = AccelRef | npt.NDArray[Any]


class Take(ArrayMessage, frozen=True, tag=112):
    """Take the elements of `x` at `indices` along `axis`, or of all in C order if it is None.

    Negative indices count from the end. Others outside wrap around, as CuPy's do: the device
    cannot refuse them without a wait.
    """

    x: AccelRef
    indices: AccelRef
    axis: int | None = None

    def infer(self) -> Spec:
        """Return the shape of `x` with that of `indices` in place of the axis."""
        x, indices, axis = self.x, self.indices, self.axis
        require_integers("Take", indices)
        if axis is None:
            extent, shape = x.size, indices.shape
        else:
            at = axis_of("Take", x, axis)
            extent, shape = x.shape[at], (*x.shape[:at], *indices.shape, *x.shape[at + 1 :])
        if extent == 0 and indices.size:
            raise InvalidArgument(f"Take: there is nothing to take of x {describe(x)}")
        return result(self, require_extents("Take", shape), x.dtype)


class Mask(ArrayMessage, frozen=True, tag=123):
    """Keep the elements of `x` where `mask`, a bool for each or for each of its rows, is True.

    Only the device knows how many there are.
    """

    x: AccelRef
    mask: AccelRef

    def infer(self) -> PartialSpec:
        """Return a list of what is behind the axes that the mask has."""
        x, mask = self.x, self.mask
        if mask.dtype != "bool":
            raise InvalidArgument(f"Mask: mask is {describe(mask)}, and is to be bool")
        if mask.shape != x.shape[: mask.ndim]:
            raise OutOfBounds(
                f"Mask: mask is {describe(mask)}, and is to have the first axes of x {describe(x)}"
            )
        return PartialSpec((None, *x.shape[mask.ndim :]), x.dtype)


class TakeAlong(ArrayMessage, frozen=True, tag=124):
    """Take an element of `x` at each of `indices` along `axis`; the other axes broadcast.

    If `axis` is None, `x` is taken as a vector in C order. Indices wrap around as those of `Take`.
    """

    x: AccelRef
    indices: AccelRef
    axis: int | None = -1

    def infer(self) -> Spec:
        """Return the shape of `indices`, broadcast with the other axes of `x`."""
        return result(self, places_along(self, self.x, self.indices, self.axis), self.x.dtype)


mask, take_along = function(Mask), function(TakeAlong)
take_along_axis = take_along


def take(x: AccelRef, indices: Operand, axis: int | np.integer[Any] | None = None) -> AccelRef:
    """Return the elements of `x` at `indices`, as `Take` says; does not block.

    A NumPy array of indices is uploaded.

    Raises:
        InvalidArgument: the indices are no integers, or there is no such axis.
    """
    device = device_of(x)
    at = side(device, np.asarray(indices) if isinstance(indices, int) else indices)
    if not isinstance(at, AccelRef):
        raise InvalidArgument(f"Take: indices are to be integers, not {at!r}")
    return device.ask(Take(x, at, plain(axis)))


def index_of(entries: tuple[Index, ...]) -> tuple[int | slice | None, ...]:
    """Return what travelled as an index as Python has it."""
    return tuple(slice(*e) if isinstance(e, tuple) else e for e in entries)


def is_taking(index: Any) -> bool:
    """Whether an index in square brackets is an array, of integers or a mask."""
    return isinstance(index, AccelRef | list) or (isinstance(index, np.ndarray) and index.ndim > 0)


def taken(x: AccelRef, index: Any) -> AccelRef:
    """Return x[index] for an index that is an array of integers, or a mask; does not block.

    Raises:
        InvalidArgument: the mask has another shape, or a list is no array.
    """
    at = index_array(index) if isinstance(index, list) else index
    if str(at.dtype) == "bool":
        return mask(x, at if isinstance(at, AccelRef) else x.device.put(at))
    return take(x, at, 0)


def taken_by_several(x: AccelRef, index: tuple[Any, ...]) -> AccelRef:
    """Return x[index] for an index with arrays of integers among what is basic; does not block.

    The arrays, and integers beside them, broadcast to one shape. It stands in place of their axes
    if these are next to each other, else first, as NumPy has it.

    Raises:
        InvalidArgument: there is a mask among them, too many entries, or they do not broadcast.
    """
    part, arrays, choosers = chosen(x, index)
    extents = [part.shape[at] for at in arrays]
    adjacent = arrays[-1] - arrays[0] == len(arrays) - 1
    left = [at for at in range(part.ndim) if at not in arrays]
    first = arrays[0] if adjacent else 0
    order = [*left[:first], *arrays, *left[first:]]
    moved = part if order == [*range(part.ndim)] else part.transpose(order)
    shape = moved.shape
    if len(arrays) > 1:
        behind = shape[first + len(arrays) :]
        moved = moved.reshape((*shape[:first], math.prod(extents), *behind))
    return take(moved, _place_of(choosers, extents), first)


def chosen(x: AccelRef, index: tuple[Any, ...]) -> tuple[AccelRef, list[int], list[Chooser]]:
    """Return a view of what the basic entries leave, and the arrays for which of its axes.

    Raises:
        InvalidArgument: there is a mask among them, too many entries, or they do not broadcast.
    """
    entries = whole_index(x, index)
    arrays = [at for at, one in enumerate(entries) if is_taking(one) or is_integer(one)]
    basic = tuple(slice(None) if at in arrays else one for at, one in enumerate(entries))
    choosers = [_chooser(entries[at]) for at in arrays]
    for at, one in zip(arrays, choosers, strict=True):
        axis = sum(entry is not None for entry in entries[:at])
        extent = x.shape[axis]
        if extent == 0 and one.size:
            raise InvalidArgument(f"Take: axis {axis} of x {describe(x)} has no elements")
        if isinstance(one, np.ndarray) and not one.ndim and not -extent <= one < extent:
            raise InvalidArgument(f"Take: index {one} is outside axis {axis} of x {describe(x)}")
    try:
        np.broadcast_shapes(*(one.shape for one in choosers))
    except ValueError:
        texts = " and ".join(str(list(one.shape)) for one in choosers)
        raise InvalidArgument(f"indices of shapes {texts} do not broadcast to one") from None
    # Each entry that is no array leaves an axis, so that the arrays count those of the part.
    part = x[basic] if any(one != slice(None) for one in basic) else x
    return part, arrays, choosers


def whole_index(x: AccelRef, index: tuple[Any, ...]) -> list[Any]:
    """Return an index with an entry for each axis: the Ellipsis and what is left out are slices.

    Raises:
        InvalidArgument: it has too many entries, or more than one Ellipsis.
    """
    dots = [at for at, one in enumerate(index) if one is Ellipsis]
    named = sum(one is not None and one is not Ellipsis for one in index)
    missing = x.ndim - named
    if missing < 0 or len(dots) > 1:
        what = "more than one Ellipsis" if len(dots) > 1 else f"{named} axes"
        raise OutOfBounds(f"the index has {what}, but x is {describe(x)}")
    at = dots[0] if dots else len(index)
    return [*index[:at], *[slice(None)] * missing, *index[at + len(dots) :]]


def is_integer(entry: Any) -> bool:
    """Whether an entry of an index is an integer of the host."""
    return isinstance(entry, int | np.integer | np.ndarray) and not isinstance(entry, bool)


def _chooser(entry: Any) -> Chooser:
    at: Chooser
    if isinstance(entry, AccelRef):
        at = entry
    else:
        at = index_array(entry) if isinstance(entry, list) else np.asarray(entry)
    if str(at.dtype) == "bool":
        raise InvalidArgument(f"a mask among indices is to have axes, and is {at.dtype}[]")
    if numpy_dtype(canonical(at.dtype)).kind not in "iu":
        raise InvalidArgument(f"an index is of integers, not {at.dtype}{list(at.shape)}")
    return at


def _place_of(choosers: list[Chooser], extents: list[int]) -> Chooser:
    """Return where elements are in C order of several axes; on the host if all are there."""
    if len(choosers) == 1:
        return choosers[0]
    place: Any = None
    for one, extent in zip(choosers, extents, strict=True):
        if isinstance(one, AccelRef):
            at: Any = binary("remainder", one.astype("int64"), max(extent, 1))
        else:
            at = one.astype(np.int64) % max(extent, 1)
        if place is None:
            place = at
        elif isinstance(place, AccelRef):
            place = binary("add", place * extent, at)
        else:
            place = place * extent + at
    chosen: Chooser = place
    return chosen


def places_along(
    message: ArrayMessage, x: AccelRef, indices: AccelRef, axis: int | None
) -> tuple[int, ...]:
    """Return the shape of elements of `x` at indices along an axis; the other axes broadcast.

    Raises:
        InvalidArgument: they do not fit.
    """
    name = type(message).__name__
    require_integers(name, indices)
    shape = (x.size,) if axis is None else x.shape
    at = 0 if axis is None else axis_of(name, x, axis)
    refused = f"{name}: indices are {describe(indices)}, which"
    if len(shape) != indices.ndim:
        raise InvalidArgument(f"{refused} is to have as many axes of x {describe(x)}")
    if shape[at] == 0 and indices.size:
        raise InvalidArgument(f"{name}: there is nothing to take of x {describe(x)}")
    try:
        return np.broadcast_shapes((*shape[:at], 1, *shape[at + 1 :]), indices.shape)
    except ValueError:
        text = f"{refused} does not broadcast beside axis {at} of x {describe(x)}"
        raise InvalidArgument(text) from None


def require_integers(message: str, indices: AccelRef) -> None:
    """Refuse indices that are no integers which int64 has.

    Raises:
        InvalidArgument: they are not.
    """
    if numpy_dtype(indices.dtype).kind not in "iu" or indices.dtype == "uint64":
        raise InvalidArgument(
            f"{message}: indices are {describe(indices)}, and are to be signed integers or uint32 "
            "or less"
        )


def index_array(index: list[Any]) -> npt.NDArray[Any]:
    """Return a list of integers, or of bools, as an array; an empty one is of integers.

    Raises:
        InvalidArgument: its rows are of several lengths.
    """
    at = array_of_list(index)
    return at if at.size else at.astype(np.int64)


def array_of_list(given: list[Any]) -> npt.NDArray[Any]:
    """Return a list as an array.

    Raises:
        InvalidArgument: its rows are of several lengths.
    """
    try:
        return np.asarray(given)
    except ValueError:
        raise InvalidArgument(f"{given!r} has rows of several lengths") from None
