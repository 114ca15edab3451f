"""Stacks of matrices as cuSOLVER takes them: column by column, one behind the other.

A stack that is held by columns is an array (count, columns, rows) in C order. Reading it with its
last two axes exchanged, `rows_of`, needs no copy.
"""

import math
from typing import Any

import cupy
import numpy as np


def by_columns(a: Any) -> Any:
    """Return a copy of a stack of matrices, held by columns."""
    held = cupy.ndarray((math.prod(a.shape[:-2]), a.shape[-1], a.shape[-2]), a.dtype)
    cupy.copyto(held.reshape(*a.shape[:-2], *held.shape[1:]), a.swapaxes(-1, -2))
    return held


def rows_of(held: Any) -> Any:
    """Return the matrices of which these are the columns, as a view."""
    return held.swapaxes(-1, -2)


def write(out: Any, matrices: Any) -> None:
    """Write a stack that has one axis at the front to one that has any."""
    cupy.copyto(out, matrices.reshape(out.shape))


def no_errors(stack: tuple[int, ...]) -> Any:
    """Return a status that all went well, for each matrix of a stack."""
    return cupy.zeros(stack, np.int32)


def place(x: Any, at: int) -> int:
    """Return the address of one of a stack of anything."""
    address: int = x.data.ptr + at * x.strides[0]
    return address


def places(x: Any) -> Any:
    """Return the address of each of a stack, on the device."""
    steps = cupy.arange(len(x), dtype=np.uint64) * np.uint64(x.strides[0])
    return steps + np.uint64(x.data.ptr)
