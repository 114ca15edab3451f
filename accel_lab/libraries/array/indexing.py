"""Elements chosen by a buffer of integers."""

from typing import Any

import numpy as np
import numpy.typing as npt

from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array.elementwise import Operand, side
from accel_lab.libraries.array.message import ArrayMessage
from accel_lab.libraries.authoring.operand import describe, plain, result
from accel_lab.libraries.authoring.shape import require_extents


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
        if numpy_dtype(indices.dtype).kind not in "iu" or indices.dtype == "uint64":
            raise InvalidArgument(
                f"Take: indices are {describe(indices)}, and are to be signed integers or uint32 "
                "or less"
            )
        if axis is None:
            extent, shape = x.size, indices.shape
        else:
            if type(axis) is not int or not -x.ndim <= axis < x.ndim:
                raise InvalidArgument(f"Take: axis {axis!r} is none of x {describe(x)}")
            at = axis % x.ndim
            extent, shape = x.shape[at], (*x.shape[:at], *indices.shape, *x.shape[at + 1 :])
        if extent == 0 and indices.size:
            raise InvalidArgument(f"Take: there is nothing to take of x {describe(x)}")
        return result(self, require_extents("Take", shape), x.dtype)


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
    """Return x[index] for an index that is an array of integers; does not block.

    Raises:
        InvalidArgument: it is a mask, of which only the device knows how many elements it keeps,
            or a list that is no array.
    """
    at = _array(index) if isinstance(index, list) else index
    if str(at.dtype) == "bool":
        raise InvalidArgument(
            "the length of x[mask] depends on values that only the device knows: use "
            "array.where(mask, x, 0), or gpu.run(lambda x, mask: x[mask], x, mask, pure=True)"
        )
    return take(x, at, 0)


def _array(index: list[Any]) -> npt.NDArray[Any]:
    try:
        at = np.asarray(index)
    except ValueError:
        raise InvalidArgument(f"Take: {index!r} has rows of several lengths") from None
    return at if at.size else at.astype(np.int64)
