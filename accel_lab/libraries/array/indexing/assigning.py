"""Assignment: `x[...] = value`, written by one message into the memory of `x`.

What shares that memory sees it: views of `x`, and the buffer of which `x` is a view. The value is
read as it was before, also where it is a part of `x`.
"""

import math
from typing import Any, cast

import numpy as np

from accel_lab.compute.arrays.dtypes import is_complex
from accel_lab.compute.device import Device, device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array.elementwise import Operand
from accel_lab.libraries.array.indexing.masking import masked, without_host_masks
from accel_lab.libraries.array.indexing.taking import (
    array_of_list,
    chosen,
    index_array,
    index_of,
    is_taking,
    places_along,
    require_integers,
)
from accel_lab.libraries.array.message import ArrayMessage, axis_of
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import Number, describe, element, plain
from accel_lab.libraries.authoring.options import Factor, Ints
from accel_lab.libraries.authoring.shape import Index, index_entries, indexed_shape

__all__ = [
    "Assign",
    "AssignAlong",
    "AssignAt",
    "AssignMask",
    "Assignment",
    "assign",
    "assign_along",
    "assign_at",
    "assign_mask",
    "put_along_axis",
    "shape_within",
]


class Assignment(ArrayMessage, frozen=True):
    """A message that writes a part of `out`: `value` broadcast to it, or a number in its place.

    Values of another dtype are converted as `Cast` does it. A number has to be one of the dtype's.
    """

    out: AccelRef
    value: AccelRef | None
    number: Factor | None

    def chosen_by(self) -> tuple[AccelRef, ...]:
        """Return the buffers that say which part it is."""
        return ()

    def element(self) -> Number:
        """Return the number as one of the dtype of `out`.

        Raises:
            InvalidArgument: it is none of these.
        """
        return element(self, "value", self.number, self.out.dtype)

    def into(self, part: tuple[int, ...]) -> Spec:
        """Return the spec of `out`, where a value fits the part that it is written to.

        Raises:
            InvalidArgument: it does not broadcast, or has an imaginary part that the dtype lacks.
        """
        out, value, name = self.out, self.value, type(self).__name__
        if value is None:
            self.element()
            return Spec(out.shape, out.dtype)
        if self.number is not None:
            raise InvalidArgument(f"{name} takes a value or a number, not both")
        if is_complex(value.dtype) and not is_complex(out.dtype) and out.dtype != "bool":
            text = f"{name}: value is {describe(value)}, and {out.dtype} has no imaginary part"
            raise InvalidArgument(text)
        extents = shape_within(value.shape, len(part))
        ahead = len(part) - len(extents)
        if ahead < 0 or any(n not in (1, k) for n, k in zip(extents, part[ahead:], strict=True)):
            text = f"which does not broadcast to {list(part)}, the part of out {describe(out)}"
            raise InvalidArgument(f"{name}: value is {describe(value)}, {text}")
        return Spec(out.shape, out.dtype)


class Assign(Assignment, frozen=True, tag=128):
    """Write `value` to a part of `out`, as NumPy's basic indexing has it, and answer with `out`.

    `index` is that of `Slice`.
    """

    index: tuple[Index, ...]

    @property
    def entries(self) -> tuple[int | slice | None, ...]:
        """The index as Python has it."""
        return index_of(self.index)

    def infer(self) -> Spec:
        """Return what `out` is."""
        return self.into(indexed_shape(self.out, self.index))


class AssignAt(Assignment, frozen=True, tag=129):
    """Write `value` to the elements of `out` at integers, which broadcast to one shape.

    That stands in place of `axes`, which count up, if these are next to each other, else first.
    Integers wrap around as those of `Take`. Of values for one element any is written, on the host
    the last.
    """

    indices: tuple[AccelRef, ...]
    axes: Ints

    def chosen_by(self) -> tuple[AccelRef, ...]:
        """Return the indices."""
        return self.indices

    def places(self) -> list[int]:
        """Return the axes, counted from 0.

        Raises:
            InvalidArgument: `out` has no such axis.
        """
        axes = cast("tuple[int, ...]", self.axes)
        return [axis_of("AssignAt", self.out, axis) for axis in axes]

    def infer(self) -> Spec:
        """Return what `out` is."""
        out, indices, axes = self.out, self.indices, self.places()
        if not axes or axes != sorted({*axes}) or len(axes) != len(indices):
            text = f"AssignAt: axes count up, one for each of {len(indices)} indices, not {axes}"
            raise InvalidArgument(text)
        for one in indices:
            require_integers("AssignAt", one)
        try:
            together = np.broadcast_shapes(*(one.shape for one in indices))
        except ValueError:
            texts = " and ".join(map(describe, indices))
            raise InvalidArgument(f"AssignAt: indices {texts} do not broadcast") from None
        if math.prod(together) and any(out.shape[axis] == 0 for axis in axes):
            raise InvalidArgument(f"AssignAt: there is nothing at indices of out {describe(out)}")
        left = [n for at, n in enumerate(out.shape) if at not in axes]
        first = axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0
        return self.into((*left[:first], *together, *left[first:]))


class AssignAlong(Assignment, frozen=True, tag=130):
    """Write `value` at each of `indices` along `axis` of `out`; the other axes broadcast.

    If `axis` is None, `out` is taken as a vector in C order. Indices are as those of `AssignAt`.
    """

    indices: AccelRef
    axis: int | None = -1

    def chosen_by(self) -> tuple[AccelRef, ...]:
        """Return the indices."""
        return (self.indices,)

    def infer(self) -> Spec:
        """Return what `out` is."""
        part = places_along(self, self.out, self.indices, self.axis)
        return self.into(part)


class AssignMask(Assignment, frozen=True, tag=131):
    """Write `value` where `mask`, a bool for each element of `out` or for each row, is True.

    A value broadcasts to a row, or has a row for each True. Only the device knows how many there
    are; the message fails if there are others, and nothing is written.
    """

    mask: AccelRef

    def chosen_by(self) -> tuple[AccelRef, ...]:
        """Return the mask."""
        return (self.mask,)

    @property
    def row(self) -> tuple[int, ...]:
        """The extents behind the axes that the mask has."""
        return self.out.shape[self.mask.ndim :]

    @property
    def counted(self) -> int | None:
        """How many rows the value has; None if it is one that broadcasts."""
        if self.value is None:
            return None
        extents = shape_within(self.value.shape, len(self.row) + 1)
        return extents[0] if len(extents) > len(self.row) and extents[0] != 1 else None

    def infer(self) -> Spec:
        """Return what `out` is."""
        out, mask = self.out, self.mask
        if mask.dtype != "bool":
            raise InvalidArgument(f"AssignMask: mask is {describe(mask)}, and is to be bool")
        if mask.shape != out.shape[: mask.ndim]:
            text = f"and is to have the first axes of out {describe(out)}"
            raise InvalidArgument(f"AssignMask: mask is {describe(mask)}, {text}")
        rows = self.counted
        return self.into((1 if rows is None else rows, *self.row))

    def judge(self, found: Any) -> InvalidArgument | None:
        """Refuse rows that are not as many as the mask has True."""
        if self.counted in (None, int(found)):
            return None
        text = f"AssignMask: value is {describe(self.value)}"  # type: ignore[arg-type]
        return InvalidArgument(f"{text}, and mask is True {int(found)} times")


assign_at, assign_along = function(AssignAt), function(AssignAlong)
assign_mask = function(AssignMask)


def assign(x: AccelRef, index: Any, value: Any) -> AccelRef:
    """Do `x[index] = value`, and return a handle that is done when this is; does not block.

    `index` is what NumPy's square brackets take, as `np.s_[1:, ::-1]`; a mask of the device is the
    only array in it. The value is a buffer, a number or a NumPy array, which is uploaded. It is
    converted and broadcast.

    Raises:
        InvalidArgument: the index does not fit, or the value does not fit the part.
    """
    device, entries = device_of(x), index if isinstance(index, tuple) else (index,)
    if not any(map(is_taking, entries)):
        return device.ask(Assign(x, *_given(device, value), index_entries(x, index)))
    if len(entries) == 1:
        (one,) = entries
        at = index_array(one) if isinstance(one, list) else one
        if str(at.dtype) == "bool":
            return _assign_mask(device, at, x, *_given(device, value))
    entries = without_host_masks(x, entries)
    given, number = _given(device, value)
    if (found := masked(x, entries)) is not None:
        if given is not None and found.place:
            ndim = len(found.order)
            extents = shape_within(given.shape, ndim)
            given = given.reshape((*[1] * (ndim - len(extents)), *extents)).transpose(found.order)
        return device.ask(AssignMask(found.view, given, number, found.mask))
    part, axes, choosers = chosen(x, entries)
    indices = tuple([_ref(device, one) for one in choosers])
    return device.ask(AssignAt(part, given, number, indices, tuple(axes)))


def _assign_mask(
    device: Device, mask: Any, x: AccelRef, value: AccelRef | None, number: Any
) -> AccelRef:
    """Send `AssignMask`; a mask of the host's tells at once how many rows it takes."""
    message = AssignMask(x, value, number, _ref(device, mask))
    if isinstance(mask, np.ndarray) and (wrong := message.judge(np.count_nonzero(mask))):
        raise wrong
    return device.ask(message)


def put_along_axis(
    x: AccelRef, indices: Operand, values: Any, axis: int | np.integer[Any] | None = -1
) -> AccelRef:
    """Write values at indices along an axis, as `AssignAlong` says, and return `x`.

    Does not block. Indices and values may be NumPy arrays, which are uploaded.

    Raises:
        InvalidArgument: the indices are no integers, the values do not fit, or there is no such
            axis.
    """
    device = device_of(x)
    at = _ref(device, indices)
    return device.ask(AssignAlong(x, *_given(device, values), at, plain(axis)))


def shape_within(shape: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    """Return a value's shape without axes of length 1 ahead of those that there are."""
    while len(shape) > ndim and shape[0] == 1:
        shape = shape[1:]
    return shape


def _ref(device: Device, x: Any) -> AccelRef:
    ref: AccelRef = x if isinstance(x, AccelRef) else device.put(np.asarray(x))
    return ref


def _given(device: Device, value: Any) -> tuple[AccelRef | None, Any]:
    """Return a value as its message takes it: a buffer, or a number."""
    if isinstance(value, AccelRef):
        return value, None
    number = plain(value)
    if isinstance(number, bool | int | float | complex):
        return None, number
    return device.put(array_of_list(value) if isinstance(value, list) else value), None
