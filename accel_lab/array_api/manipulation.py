"""Arrays in other shapes, joined, split and repeated."""

from collections.abc import Sequence

import numpy as np

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array import library as array
from accel_lab.libraries.authoring.operand import describe
from accel_lab.libraries.authoring.shape import Integers

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]


def broadcast_arrays(*arrays: AccelRef) -> tuple[AccelRef, ...]:
    """Return arrays in the one shape to which they broadcast; those that have it are themselves.

    Raises:
        InvalidArgument: there is none.
    """
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return tuple([x if x.shape == shape else array.broadcast_to(x, shape) for x in arrays])


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the one shape to which shapes broadcast.

    Raises:
        InvalidArgument: there is none.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        texts = " and ".join(map(str, shapes))
        raise InvalidArgument(f"broadcast_shapes: {texts} broadcast to no shape") from None


def broadcast_to(x: AccelRef, /, shape: Integers) -> AccelRef:
    """Return a copy of `x` in a shape to which it broadcasts; does not block."""
    return array.broadcast_to(x, shape)


def concat(arrays: Sequence[AccelRef], /, *, axis: int | None = 0) -> AccelRef:
    """Return arrays joined along an axis, or all elements in C order if it is None."""
    return array.concatenate(arrays, axis)


def expand_dims(x: AccelRef, /, axis: Integers = 0) -> AccelRef:
    """Return a view with axes of length 1 at these places of the result; does not block."""
    return array.expand_dims(x, axis)


def flip(x: AccelRef, /, *, axis: Integers | None = None) -> AccelRef:
    """Return a view with the elements along axes, or all of them, in reverse; does not block."""
    return array.flip(x, axis)


def moveaxis(x: AccelRef, source: Integers, destination: Integers, /) -> AccelRef:
    """Return a view with axes moved to other places; does not block."""
    return array.moveaxis(x, source, destination)


def permute_dims(x: AccelRef, /, axes: Integers) -> AccelRef:
    """Return a view with its axes in this order; does not block."""
    return array.transpose(x, axes)


def repeat(x: AccelRef, repeats: Integers | AccelRef, /, *, axis: int | None = None) -> AccelRef:
    """Return each element `repeats` times, one after the other, along an axis or in C order.

    It says how large the result is: an array of numbers is waited for.
    """
    times = repeats.get() if isinstance(repeats, AccelRef) else repeats
    return array.repeat(x, times, axis)


def reshape(x: AccelRef, /, shape: Integers, *, copy: bool | None = None) -> AccelRef:
    """Return the elements in C order in another shape: a view where strides allow one.

    With `copy` it is always a copy. With `copy=False` it is never one, which is waited for.

    Raises:
        InvalidArgument: the shape has another number of elements, or `copy` is False and the
            strides of `x` allow no view.
    """
    if copy:
        made = array.reshape(array.copy(x), shape)
    elif copy is None:
        made = array.reshape(x, shape)
    else:
        made = array.reshape(x, shape, view=True)
        made.result()
    return made


def roll(x: AccelRef, /, shift: Integers, *, axis: Integers | None = None) -> AccelRef:
    """Return the elements shifted along axes, those beyond the end first; does not block."""
    return array.roll(x, shift, axis)


def squeeze(x: AccelRef, /, axis: Integers) -> AccelRef:
    """Return a view without these axes of length 1; does not block."""
    return array.squeeze(x, axis)


def stack(arrays: Sequence[AccelRef], /, *, axis: int = 0) -> AccelRef:
    """Return arrays of one shape joined along a new axis; does not block."""
    return array.stack(arrays, axis)


def tile(x: AccelRef, repetitions: Integers, /) -> AccelRef:
    """Return `x` repeated as a whole along each axis; does not block."""
    return array.tile(x, repetitions)


def unstack(x: AccelRef, /, *, axis: int = 0) -> tuple[AccelRef, ...]:
    """Return views of the parts of `x` along an axis; does not block.

    Raises:
        InvalidArgument: it has no axes.
    """
    if not x.ndim:
        raise InvalidArgument(f"unstack: x is {describe(x)}, which has no axes")
    return tuple(array.moveaxis(x, axis, 0))
