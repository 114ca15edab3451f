"""Shapes as NumPy changes them: axes added, dropped and moved, diagonals, triangles.

What is named as NumPy's views is a view here, too; `broadcast_to` is a copy.
"""

from typing import Any, ClassVar, Literal

import numpy as np

from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument, OutOfBounds
from accel_lab.libraries.array.message import ArrayMessage, axis_of
from accel_lab.libraries.array.reduction import reduce
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import describe, plain, result
from accel_lab.libraries.authoring.options import Ints
from accel_lab.libraries.authoring.shape import MAX_NDIM, Integers, ints, require_extents

__all__ = [
    "Broadcast",
    "Diagonal",
    "Triangle",
    "broadcast",
    "broadcast_to",
    "diagonal",
    "expand_dims",
    "meshgrid",
    "moveaxis",
    "squeeze",
    "swapaxes",
    "trace",
    "triangle",
    "tril",
    "triu",
]


class Broadcast(ArrayMessage, frozen=True, tag=116):
    """Copy `x` into a shape to which it broadcasts."""

    x: AccelRef
    shape: Ints

    def infer(self) -> Spec:
        """Return the shape that was given."""
        shape, x = require_extents("Broadcast", self.shape), self.x
        ahead = len(shape) - x.ndim
        if ahead < 0 or any(n not in (1, k) for n, k in zip(x.shape, shape[ahead:], strict=True)):
            raise InvalidArgument(f"Broadcast: x {describe(x)} does not broadcast to {list(shape)}")
        return result(self, shape, x.dtype)


class Triangle(ArrayMessage, frozen=True, tag=125):
    """Copy the lower triangle of each matrix (..., m, n), up to diagonal `k`, or the upper one.

    What is beyond it is 0.
    """

    shapes: ClassVar = "(...,m,n)->(...,m,n)"
    x: AccelRef
    k: int = 0
    upper: bool = False


class Diagonal(ArrayMessage, frozen=True, tag=126):
    """View a diagonal of the matrices in two axes of `x`; it is the last axis of the result.

    `offset` counts to the right. Unlike NumPy's it may be written: it is as any view.
    """

    shapes: ClassVar = "(...,m,n)->?"
    aliased: ClassVar[str] = "x"
    x: AccelRef
    offset: int = 0
    axis1: int = 0
    axis2: int = 1

    def makes(self) -> Spec:
        """Return the shape without the two axes, and the length of the diagonal."""
        x = self.x
        one, other = (axis_of("Diagonal", x, axis) for axis in (self.axis1, self.axis2))
        if one == other:
            raise InvalidArgument(f"Diagonal: axis1 and axis2 of x {describe(x)} are both {one}")
        rows, columns = x.shape[one] + min(self.offset, 0), x.shape[other] - max(self.offset, 0)
        left = [n for at, n in enumerate(x.shape) if at not in (one, other)]
        return Spec((*left, max(0, min(rows, columns))), x.dtype)


broadcast, triangle, diagonal = function(Broadcast), function(Triangle), function(Diagonal)
broadcast_to = broadcast


def tril(x: AccelRef, k: int = 0) -> AccelRef:
    """Return the lower triangles of matrices (..., m, n), as `Triangle` says; does not block."""
    return triangle(x, k)


def triu(x: AccelRef, k: int = 0) -> AccelRef:
    """Return the upper triangles of matrices (..., m, n), as `Triangle` says; does not block."""
    return triangle(x, k, upper=True)


def trace(
    x: AccelRef, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: object = None
) -> AccelRef:
    """Return the sum of a diagonal of the matrices in two axes; does not block.

    Raises:
        InvalidArgument: there are no such axes.
    """
    return reduce("sum", diagonal(x, offset, axis1, axis2), -1, dtype=dtype)


def expand_dims(x: AccelRef, axis: Integers) -> AccelRef:
    """Return a view with axes of length 1 at these places of the result; does not block.

    Raises:
        OutOfBounds: there is no such place, or one is named twice.
    """
    device_of(x)
    given = ints("expand_dims: axis", axis)
    ndim = x.ndim + len(given)
    if ndim > MAX_NDIM:
        raise InvalidArgument(f"expand_dims: {ndim} axes are more than {MAX_NDIM}")
    places = {at + ndim if at < 0 else at for at in given}
    if len(places) < len(given) or any(not 0 <= at < ndim for at in places):
        raise OutOfBounds(f"expand_dims: axis {axis} is none of {ndim} axes, or is there twice")
    return x[tuple(None if at in places else slice(None) for at in range(ndim))]


def squeeze(x: AccelRef, axis: Integers | None = None) -> AccelRef:
    """Return a view without axes of length 1, or without these; does not block.

    Raises:
        InvalidArgument: there is no such axis, or it is longer.
    """
    device_of(x)
    ones = {at for at, extent in enumerate(x.shape) if extent == 1}
    axes = ones if axis is None else axes_of("squeeze", x, axis)
    if not ones.issuperset(axes):
        raise InvalidArgument(f"squeeze: axis {axis} of x {describe(x)} is not of length 1")
    return x[tuple(0 if at in axes else slice(None) for at in range(x.ndim))]


def moveaxis(x: AccelRef, source: Integers, destination: Integers) -> AccelRef:
    """Return a view with axes moved to other places; the others keep their order; does not block.

    Raises:
        InvalidArgument: there are no such axes, one is named twice, or there are not as many
            places.
    """
    device_of(x)
    taken, places = _ordered("moveaxis", x, source), _ordered("moveaxis", x, destination)
    if len(taken) != len(places):
        raise InvalidArgument(f"moveaxis: {source} and {destination} are not equally many")
    order = [at for at in range(x.ndim) if at not in taken]
    for place, at in sorted(zip(places, taken, strict=True)):
        order.insert(place, at)
    return x.transpose(order)


def swapaxes(x: AccelRef, axis1: int, axis2: int) -> AccelRef:
    """Return a view with two axes in each other's place; does not block.

    Raises:
        InvalidArgument: there are no such axes.
    """
    device_of(x)
    one, other = (axis_of("swapaxes", x, plain(axis)) for axis in (axis1, axis2))
    order = [*range(x.ndim)]
    order[one], order[other] = other, one
    return x.transpose(order)


def meshgrid(
    *xi: AccelRef, sparse: bool = False, indexing: Literal["xy", "ij"] = "xy"
) -> tuple[AccelRef, ...]:
    """Return the coordinates of every point of a grid, one buffer for each axis; does not block.

    `xi` are the coordinates along each axis. With `sparse` the results are views which broadcast
    against each other.

    Raises:
        InvalidArgument: one has several axes, or `indexing` is neither "xy" nor "ij".
    """
    if indexing not in ("xy", "ij"):
        raise InvalidArgument(f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r}")
    for x in xi:
        device_of(x)
        if x.ndim > 1:
            raise InvalidArgument(f"meshgrid: {describe(x)} has more than one axis")
    order = [*range(len(xi))]
    if indexing == "xy" and len(xi) > 1:
        order[:2] = 1, 0
    views = [
        x.reshape((1,) * at + (x.size,) + (1,) * (len(xi) - 1 - at))
        for x, at in zip(xi, order, strict=True)
    ]
    if sparse:
        return tuple(views)
    shape = np.broadcast_shapes(*(view.shape for view in views))
    return tuple([broadcast_to(view, shape) for view in views])


def axes_of(name: str, x: AccelRef, axis: Integers | None) -> set[int]:
    """Return axes of `x`, counted from 0; None is all of them.

    Raises:
        InvalidArgument: there is no such axis, or it is named twice.
    """
    return {*range(x.ndim)} if axis is None else {*_ordered(name, x, axis)}


def _ordered(name: str, x: AccelRef, axis: Integers) -> list[Any]:
    axes = [axis_of(name, x, one) for one in ints(f"{name}: axis", axis)]
    if len({*axes}) != len(axes):
        raise InvalidArgument(f"{name}: an axis is twice in {axis}")
    return axes
