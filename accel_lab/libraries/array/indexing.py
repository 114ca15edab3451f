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
from accel_lab.libraries.authoring.shape import require_extents

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
        _require_integers("Take", indices)
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
        x, indices = self.x, self.indices
        _require_integers("TakeAlong", indices)
        shape = (x.size,) if self.axis is None else x.shape
        at = 0 if self.axis is None else axis_of("TakeAlong", x, self.axis)
        if len(shape) != indices.ndim:
            raise self._refused("is to have as many axes")
        if shape[at] == 0 and indices.size:
            raise InvalidArgument(f"TakeAlong: there is nothing to take of x {describe(x)}")
        try:
            made = np.broadcast_shapes((*shape[:at], 1, *shape[at + 1 :]), indices.shape)
        except ValueError:
            raise self._refused(f"does not broadcast beside axis {at}") from None
        return result(self, made, x.dtype)

    def _refused(self, why: str) -> InvalidArgument:
        text = f"TakeAlong: indices are {describe(self.indices)}, which {why}"
        return InvalidArgument(f"{text} of x {describe(self.x)}")


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


def is_taking(index: Any) -> bool:
    """Whether an index in square brackets is an array, of integers or a mask."""
    return isinstance(index, AccelRef | list) or (isinstance(index, np.ndarray) and index.ndim > 0)


def taken(x: AccelRef, index: Any) -> AccelRef:
    """Return x[index] for an index that is an array of integers, or a mask; does not block.

    Raises:
        InvalidArgument: the mask has another shape, or a list is no array.
    """
    at = _array(index) if isinstance(index, list) else index
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
    entries = _whole_index(x, index)
    arrays = [at for at, one in enumerate(entries) if is_taking(one) or _is_integer(one)]
    basic = tuple(slice(None) if at in arrays else one for at, one in enumerate(entries))
    choosers = [_chooser(entries[at]) for at in arrays]
    axes = [sum(one is not None for one in entries[:at]) for at in arrays]
    extents = [x.shape[axis] for axis in axes]
    for one, axis, extent in zip(choosers, axes, extents, strict=True):
        if extent == 0 and one.size:
            raise InvalidArgument(f"Take: axis {axis} of x {describe(x)} has no elements")
        if isinstance(one, np.ndarray) and not one.ndim and not -extent <= one < extent:
            raise InvalidArgument(f"Take: index {one} is outside axis {axis} of x {describe(x)}")
    try:
        np.broadcast_shapes(*(one.shape for one in choosers))
    except ValueError:
        texts = " and ".join(str(list(one.shape)) for one in choosers)
        raise InvalidArgument(f"indices of shapes {texts} do not broadcast to one") from None
    part = x[basic] if any(one != slice(None) for one in basic) else x
    adjacent = arrays[-1] - arrays[0] == len(arrays) - 1
    # `arrays` count the axes of the part: what is basic leaves an axis for each entry.
    left = [at for at in range(part.ndim) if at not in arrays]
    first = arrays[0] if adjacent else 0
    order = [*left[:first], *arrays, *left[first:]]
    moved = part if order == [*range(part.ndim)] else part.transpose(order)
    shape = moved.shape
    if len(arrays) > 1:
        behind = shape[first + len(arrays) :]
        moved = moved.reshape((*shape[:first], math.prod(extents), *behind))
    return take(moved, _place_of(choosers, extents), first)


def _whole_index(x: AccelRef, index: tuple[Any, ...]) -> list[Any]:
    """Return an index with an entry for each axis: the Ellipsis and what is left out are slices."""
    dots = [at for at, one in enumerate(index) if one is Ellipsis]
    named = sum(one is not None and one is not Ellipsis for one in index)
    missing = x.ndim - named
    if missing < 0 or len(dots) > 1:
        what = "more than one Ellipsis" if len(dots) > 1 else f"{named} axes"
        raise OutOfBounds(f"the index has {what}, but x is {describe(x)}")
    at = dots[0] if dots else len(index)
    return [*index[:at], *[slice(None)] * missing, *index[at + len(dots) :]]


def _is_integer(entry: Any) -> bool:
    return isinstance(entry, int | np.integer | np.ndarray) and not isinstance(entry, bool)


def _chooser(entry: Any) -> Chooser:
    at: Chooser
    if isinstance(entry, AccelRef):
        at = entry
    else:
        at = _array(entry) if isinstance(entry, list) else np.asarray(entry)
    if str(at.dtype) == "bool":
        raise InvalidArgument(
            "a mask stands alone in square brackets: take x[mask], or array.nonzero(mask) for its "
            "integers"
        )
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


def _require_integers(message: str, indices: AccelRef) -> None:
    if numpy_dtype(indices.dtype).kind not in "iu" or indices.dtype == "uint64":
        raise InvalidArgument(
            f"{message}: indices are {describe(indices)}, and are to be signed integers or uint32 "
            "or less"
        )


def _array(index: list[Any]) -> npt.NDArray[Any]:
    try:
        at = np.asarray(index)
    except ValueError:
        raise InvalidArgument(f"Take: {index!r} has rows of several lengths") from None
    return at if at.size else at.astype(np.int64)
