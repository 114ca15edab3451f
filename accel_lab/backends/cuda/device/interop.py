"""Arrays between accel_lab and the user's own CuPy or torch code."""

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

from accel_lab.backends.cuda.device.narrow_floats import FORMATS
from accel_lab.compute.arrays.dtypes import canonical, numpy_dtype
from accel_lab.compute.arrays.jax_interop import platform_of
from accel_lab.compute.machine.loaded_driver import loaded_driver
from accel_lab.errors import InvalidArgument

_HANDLE_BYTES = 64
_OVERLAP_WORK: Any = 10_000  # steps of NumPy's solver; what is harder counts as an overlap

Adopted = tuple[Any, tuple[int, ...], str, int]


def storage_of(dtype: str) -> str:
    """Return the character of the dtype in which a buffer's array is held."""
    form = FORMATS.get(dtype)
    return np.dtype(form.storage).char if form else numpy_dtype(dtype).char


def expose(array: Any, dtype: str) -> Any:
    """Return a view of a buffer's array in the buffer's own dtype."""
    return array.view(numpy_dtype(dtype)) if dtype in FORMATS else array


def adopt(value: Any, device: int, settle: Callable[[], None]) -> Adopted | None:
    """Return (array, shape, dtype, bytes held) of an array on a card: CuPy's, torch's or JAX's.

    One of JAX's never changes, and a buffer may be written to: it is copied.

    `settle` is called before the array is touched, and orders the current stream after whatever
    made it.

    Raises:
        InvalidArgument: it lies on another card, or has a dtype that no buffer has.
    """
    if isinstance(value, cupy.ndarray):
        settle()
        array, dtype = value, canonical(value.dtype)
    elif platform_of(value) == "gpu":
        settle()
        array, dtype = _from_jax(value)
    else:
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(value, torch.Tensor) or not value.is_cuda:
            return None
        settle()
        array, dtype = _from_torch(torch, value)
    if array.data.device_id != device:
        raise InvalidArgument(
            f"the function returned an array on card {array.data.device_id}; copy it to card "
            f"{device} first"
        )
    if dtype in FORMATS:
        array = array.view(storage_of(dtype))
    if _is_broadcast(array):
        array = array.copy()  # a buffer can be written to
    held: int = array.nbytes if array.base is None else array.data.mem.size
    return array, array.shape, dtype, held


def _from_jax(value: Any) -> tuple[Any, str]:
    """Return a CuPy copy of an array of JAX's; waits until it is made, and copied."""
    dtype = canonical(str(value.dtype))
    if dtype in FORMATS:
        jax = sys.modules["jax"]
        value = jax.lax.bitcast_convert_type(value, storage_of(dtype))
    array = cupy.from_dlpack(value.block_until_ready()).copy()
    # JAX may reuse the memory as soon as the user's last name of it is gone.
    cupy.cuda.get_current_stream().synchronize()
    return array, dtype


def _is_broadcast(array: Any) -> bool:
    """Whether several elements are one and the same in memory."""
    extents = zip(array.strides, array.shape, strict=True)
    return bool(array.size) and any(step == 0 and n > 1 for step, n in extents)


def export(array: Any) -> tuple[bytes, int] | None:
    """Return the handle of an array's allocation and the array's place in it; None if it has none.

    On the thread that has the card's context.
    """
    driver = loaded_driver()
    base, handle = ctypes.c_uint64(), (ctypes.c_ubyte * _HANDLE_BYTES)()
    pointer = ctypes.c_uint64(array.data.ptr)
    if driver is None or driver.cuMemGetAddressRange_v2(ctypes.byref(base), None, pointer):
        return None
    if driver.cuIpcGetMemHandle(handle, pointer):
        return None
    return bytes(handle), array.data.ptr - base.value


def overlap(left: Any, right: Any) -> bool:
    """Whether an element of one array is an element of the other."""
    try:
        return np.shares_memory(_shadow(left), _shadow(right), max_work=_OVERLAP_WORK)
    except np.exceptions.TooHardError:
        return True


def _from_torch(torch: Any, tensor: Any) -> tuple[Any, str]:
    """Return a CuPy array on a tensor's memory; the current stream waits for torch's."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    dtype = canonical(str(tensor.dtype).removeprefix("torch."))
    # torch may reuse the memory, once the tensor is gone, after what its own stream has run;
    # this makes it wait for ours as well.
    ours = cupy.cuda.get_current_stream().ptr
    if ours:  # the default stream is the one on which torch's memory is by default
        tensor.record_stream(torch.cuda.ExternalStream(ours, device=tensor.device))
    else:
        tensor.record_stream(torch.cuda.default_stream(tensor.device))
    if dtype in FORMATS:
        tensor = tensor.view(torch.int16 if dtype == "bfloat16" else torch.uint8)
    return cupy.from_dlpack(tensor), dtype


class _Shadow:
    """Stands at the addresses of device memory for NumPy, which must not look inside."""

    def __init__(self, array: Any) -> None:
        self.__array_interface__ = {
            "version": 3,
            "data": (array.data.ptr, True),
            "shape": array.shape,
            "strides": array.strides,
            "typestr": f"|V{array.itemsize}",
        }


def _shadow(array: Any) -> Any:
    return np.asarray(_Shadow(array))
