"""What flows through a graph: handles, NumPy arrays in the notebook, lists of them."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from accel_lab.compute.arrays.dtypes import is_float, numpy_dtype
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.array import library as array

Tensor: TypeAlias = AccelRef | npt.NDArray[Any]
Value: TypeAlias = Any
"""A `Tensor`, a list of tensors (a sequence), or None: what is optional and not there."""

SMALL = 64
"""Elements up to which a constant, or an input of integers, stays in the notebook."""


def dtype_of(x: Tensor) -> str:
    """Return the name of a tensor's dtype."""
    return str(x.dtype)


def is_floating(x: Tensor) -> bool:
    """Whether a tensor is of floats."""
    return is_float(dtype_of(x))


def cast(x: Any, dtype: str) -> Any:
    """Return a tensor in a dtype; itself if it has it."""
    return x if dtype_of(x) == dtype else x.astype(numpy_dtype(dtype))


def like(x: Tensor, made: Any) -> Any:
    """Return what was made of `x` in the dtype of `x`."""
    return cast(made, dtype_of(x))


def space_of(*values: Any) -> Any:
    """Return the functions for tensors: those of `array`, or NumPy's if none is on a device."""
    return array if any(isinstance(value, AccelRef) for value in values) else np


def ints(x: npt.NDArray[Any]) -> tuple[int, ...]:
    """Return a vector or a number as Python's integers."""
    return tuple(int(n) for n in np.atleast_1d(x))


def axis_from_0(axis: int, ndim: int) -> int:
    """Return an axis counted from 0."""
    return axis + ndim if axis < 0 else axis


def limits(dtype: str) -> tuple[Any, Any]:
    """Return the least and the largest number of a dtype; of floats they are infinite."""
    if dtype == "bool":
        return False, True
    if is_float(dtype):
        return -np.inf, np.inf
    info = np.iinfo(numpy_dtype(dtype))
    return int(info.min), int(info.max)
