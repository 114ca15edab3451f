"""Arrays as cuda.compute takes them, not held: an algorithm keeps its last arguments."""

from types import SimpleNamespace
from typing import Any

from accel_lab.compute.arrays.dtypes import numpy_dtype

_NOWHERE = 256
"""An address that is none, and not 0: CUB's sorts take that for an operand left out."""


class Memory:
    """A vector's address and dtype; whoever calls an algorithm keeps the array until it returns."""

    def __init__(self, dtype: Any, address: int = _NOWHERE, size: int = 1) -> None:
        self.dtype, self.shape, self.size = numpy_dtype(str(dtype)), (size,), size
        self.data = SimpleNamespace(ptr=address)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "version": 3,
            "strides": None,
            "data": (self.data.ptr, False),
        }


def memory(array: Any) -> Memory:
    """Return where an array without gaps is."""
    return Memory(array.dtype, array.data.ptr, array.size)
