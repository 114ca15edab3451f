"""Arrays that own a block of the arena: its memory is free when their last view is collected."""

import math
import operator
import weakref
from collections.abc import Iterable
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from accel_lab.compute.arena.block import Block
from accel_lab.compute.arrays import dtypes
from accel_lab.compute.machine.memfd_mapping import Bytes
from accel_lab.errors import InvalidArgument

MOST_AXES = 64
Array = npt.NDArray[Any]
Shape = SupportsIndex | Iterable[SupportsIndex]


def own(block: Block, shape: tuple[int, ...], dtype: "np.dtype[Any]") -> Array:
    """Wrap a block, which must be large enough; from then on its array decides when it is free.

    Raises:
        InvalidArgument: the block is released or another array's; it stays as it was.
    """
    holder = _Holder(block.view)
    returns = block.disown()
    if returns is None:
        raise InvalidArgument("the block is released or belongs to an array already")
    give_back = weakref.finalize(holder, returns.put, block.serial)
    # The process ends: nobody will use the room, and the queue may be gone.
    give_back.atexit = False
    return np.ndarray(shape, dtype, buffer=np.asarray(holder))


def layout(shape: Shape, dtype: npt.DTypeLike) -> tuple[tuple[int, ...], "np.dtype[Any]", int]:
    """Return the lengths, the native dtype and the bytes of a new array.

    Raises:
        InvalidArgument: a shape that NumPy would refuse, or a dtype that is not in the table.
    """
    native = dtypes.numpy_dtype(dtypes.canonical(dtype))
    try:
        lengths = tuple(map(operator.index, shape if isinstance(shape, Iterable) else (shape,)))
    except TypeError as error:
        raise InvalidArgument(f"a shape is whole numbers, not {shape!r}") from error
    if any(length < 0 for length in lengths) or len(lengths) > MOST_AXES:
        raise InvalidArgument(
            f"a shape has up to {MOST_AXES} lengths, none negative, not {lengths}"
        )
    return lengths, native, math.prod(lengths) * native.itemsize


class _Holder:
    """The end of an array's base chain: collected when no view of the array is left."""

    __slots__ = ("__array_interface__", "__weakref__", "_view")

    def __init__(self, view: Bytes) -> None:
        self._view = view
        self.__array_interface__: dict[str, Any] = view.__array_interface__
