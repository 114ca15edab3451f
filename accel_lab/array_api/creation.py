"""Arrays made of nothing, of numbers, or of other arrays."""

from typing import Any, Literal

import numpy as np

from accel_lab.array_api.devices import device_or_default
from accel_lab.array_api.dtypes import dtype_or
from accel_lab.compute.arrays.dtypes import canonical, numpy_dtype
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array import library as array
from accel_lab.libraries.authoring.shape import Integers

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]

_FLOAT = "float64"
_PLAIN = (bool, int, float, complex, list, tuple, np.generic)
_DLPACK_HOST = (1, 3)
"""DLPack's numbers for memory of the host: kDLCPU and kDLCUDAHost."""


def asarray(
    obj: Any,
    /,
    *,
    dtype: object = None,
    device: object = None,
    copy: bool | None = None,
) -> AccelRef:
    """Return an array of numbers, nested lists, or of another library's array.

    A handle is returned itself where nothing is to change, and `copy` is not True. All else is
    copied to the device. What has handles inside lists waits for them.

    Raises:
        InvalidArgument: there is no such dtype, or `copy` is False and a copy is needed.
    """
    asked = None if dtype is None else canonical(dtype)
    if isinstance(obj, AccelRef):
        return _again(obj, asked, device, copy=copy)
    if copy is False:
        text = (
            f"asarray: a {type(obj).__name__} is copied to the device: copy=False is not possible"
        )
        raise InvalidArgument(text)
    target = device_or_default(device)
    if isinstance(obj, _PLAIN):
        return target.put(np.asarray(obj, None if asked is None else numpy_dtype(asked)))
    made = target.put(obj)
    return made if asked is None or made.dtype == asked else array.cast(made, asked)


def from_dlpack(x: Any, /, *, device: object = None, copy: bool | None = None) -> AccelRef:
    """Return an array of what has `__dlpack__`: a handle as `asarray`, all else copied.

    Raises:
        BufferError: `copy` is False and a copy is needed.
    """
    try:
        if isinstance(x, AccelRef):
            return _again(x, None, device, copy=copy)
    except InvalidArgument as error:
        raise BufferError(str(error)) from None
    if copy is False:
        text = "from_dlpack: memory of this process is copied to the device: no copy=False"
        raise BufferError(text)
    kind, _ = x.__dlpack_device__()
    return device_or_default(device).put(np.from_dlpack(x) if kind in _DLPACK_HOST else x)


def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: object = None,
    device: object = None,
) -> AccelRef:
    """Return the numbers from `start`, or 0, up to `stop` in steps."""
    return array.arange(device_or_default(device), start, stop, step, dtype)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: object = None,
    device: object = None,
    endpoint: bool = True,
) -> AccelRef:
    """Return `num` numbers at equal distances from `start` to `stop`."""
    target = device_or_default(device)
    if not isinstance(start, complex) and not isinstance(stop, complex):
        made: AccelRef = array.linspace(target, start, stop, num, endpoint=endpoint, dtype=dtype)
        return made
    asked = dtype_or(dtype, "complex128")
    real, imaginary = (
        array.linspace(target, first, last, num, endpoint=endpoint)
        for first, last in ((start.real, stop.real), (start.imag, stop.imag))
    )
    return array.cast(imaginary * 1j + real, asked)


def zeros(shape: Integers, *, dtype: object = None, device: object = None) -> AccelRef:
    """Return an array of zeros."""
    return array.zeros(device_or_default(device), shape, dtype_or(dtype, _FLOAT))


def ones(shape: Integers, *, dtype: object = None, device: object = None) -> AccelRef:
    """Return an array of ones."""
    return array.full(device_or_default(device), shape, 1, dtype_or(dtype, _FLOAT))


def empty(shape: Integers, *, dtype: object = None, device: object = None) -> AccelRef:
    """Return an array to be filled; it has zeros."""
    return zeros(shape, dtype=dtype, device=device)


def full(
    shape: Integers, fill_value: Any, *, dtype: object = None, device: object = None
) -> AccelRef:
    """Return an array of one number, which may be a handle without axes."""
    if isinstance(fill_value, AccelRef):
        one = _again(fill_value, None if dtype is None else canonical(dtype), device, copy=None)
        return array.broadcast_to(one, shape)
    target, made = device_or_default(device), dtype_or(dtype, "")
    return array.full(target, shape, fill_value, made or canonical(np.asarray(fill_value).dtype))


def zeros_like(x: AccelRef, /, *, dtype: object = None, device: object = None) -> AccelRef:
    """Return zeros of the shape, dtype and device of `x`."""
    return zeros(x.shape, dtype=dtype_or(dtype, x.dtype), device=device or x.device)


def ones_like(x: AccelRef, /, *, dtype: object = None, device: object = None) -> AccelRef:
    """Return ones of the shape, dtype and device of `x`."""
    return ones(x.shape, dtype=dtype_or(dtype, x.dtype), device=device or x.device)


def empty_like(x: AccelRef, /, *, dtype: object = None, device: object = None) -> AccelRef:
    """Return an array to be filled of the shape, dtype and device of `x`; it has zeros."""
    return zeros_like(x, dtype=dtype, device=device)


def full_like(
    x: AccelRef, /, fill_value: Any, *, dtype: object = None, device: object = None
) -> AccelRef:
    """Return one number in the shape, dtype and device of `x`."""
    made = dtype_or(dtype, x.dtype)
    return full(x.shape, fill_value, dtype=made, device=device or x.device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: object = None,
    device: object = None,
) -> AccelRef:
    """Return a matrix of zeros with ones on diagonal `k`."""
    return array.eye(device_or_default(device), n_rows, n_cols, k, dtype_or(dtype, _FLOAT))


def meshgrid(*arrays: AccelRef, indexing: Literal["xy", "ij"] = "xy") -> tuple[AccelRef, ...]:
    """Return the coordinates of every point of a grid, one array for each axis."""
    return array.meshgrid(*arrays, indexing=indexing)


def tril(x: AccelRef, /, *, k: int = 0) -> AccelRef:
    """Return the lower triangles of matrices, up to diagonal `k`, and zeros beyond."""
    return array.tril(x, k)


def triu(x: AccelRef, /, *, k: int = 0) -> AccelRef:
    """Return the upper triangles of matrices, from diagonal `k` on, and zeros below."""
    return array.triu(x, k)


def _again(x: AccelRef, dtype: str | None, device: object, *, copy: bool | None) -> AccelRef:
    """Return a handle in another dtype, on another device, or of a copy; itself if it can be."""
    target = x.device if device is None else device_or_default(device)
    same = dtype is None or x.dtype == dtype
    if copy is False and not (same and target is x.device):
        text = "another dtype or device needs a copy: copy=False is not possible"
        raise InvalidArgument(text)
    made = x if same else array.cast(x, dtype)
    if target is not x.device:
        made = target.put(made)
    return array.copy(x) if made is x and copy else made
