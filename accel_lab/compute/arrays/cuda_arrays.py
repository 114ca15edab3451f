"""Arrays that CUDA code of the notebook's own process has made on a card.

Nothing here loads CUDA: what holds such an array has loaded its driver, which is asked in C.
"""

import ctypes
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from accel_lab.compute.arrays import dtypes
from accel_lab.compute.machine.loaded_driver import card_id, loaded_driver
from accel_lab.errors import InvalidArgument

_CONTEXT, _BUFFER_ID, _ORDINAL = 1, 7, 9  # of CUpointer_attribute
_HANDLE_BYTES = 64
_NOT_READY = 600  # of CUresult
_LEGACY_STREAM = 1
_MOST_KNOWN = 64

Export = tuple[bytes, int]
"""The handle of an allocation for other processes, and where in it an array begins."""


_Place = tuple[int, int | None]
"""The number of an allocation, which the driver gives once in a process's life, and a context."""

_known: dict[_Place | None, tuple[bytes, int]] = {}
"""The handle of an allocation, and where it begins, while its context is current."""


class Tenure(NamedTuple):
    """How long memory is in use.

    Attributes:
        owner: the array of the user's that has it, which is not held by whoever keeps the memory.
        memory: what keeps the memory allocated, though its owner be gone.
    """

    owner: object
    memory: object


def _no_tenure() -> None:
    """Return nothing: the array tells of no end."""


class DeviceArray:
    """A C-contiguous array on a card, made by CUDA code of this process; kept alive by this.

    Attributes:
        shape: its extents.
        dtype: its name in `compute.dtypes`.
        nbytes: its size.
        tenure: returns what tells that its memory is no longer used; None where nothing does.
    """

    def __init__(
        self,
        array: object,
        pointer: int,
        spec: tuple[tuple[int, ...], str],
        tenure: Callable[[], Tenure | None] = _no_tenure,
    ) -> None:
        self.shape, self.dtype = spec
        self.nbytes = math.prod(self.shape) * dtypes.itemsize(self.dtype)
        self.tenure = tenure
        self._array = array
        self._pointer = pointer

    def settle(self, stream: int | None, *, share: bool = False) -> Export | None:
        """Wait until what was enqueued on this stream is done, None for on all; blocks.

        Parameters:
            share: whether to return what another process needs to read it: None for memory that
                cannot be shared. The array must live, unchanged, until that process has read it.

        Raises:
            InvalidArgument: this process's CUDA is in error.
        """
        if not self.nbytes:
            return None
        known = _known.get(self._place()) if share else None
        if known is not None:
            handle, base = known
            _finish(stream)
            return handle, self._pointer - base
        with self._current() as driver:
            _finish(stream)
            return self._export(driver) if share else None

    def _place(self) -> _Place | None:
        """Return its allocation's number and the current context; None where none is told."""
        driver, number, context = _driver(quick=True), ctypes.c_uint64(), ctypes.c_void_p()
        failed = driver.cuPointerGetAttribute(ctypes.byref(number), _BUFFER_ID, self._pointer)
        if failed or driver.cuCtxGetCurrent(ctypes.byref(context)):
            return None
        return number.value, context.value

    def _export(self, driver: Any) -> Export | None:
        base, handle = ctypes.c_uint64(), (ctypes.c_ubyte * _HANDLE_BYTES)()
        failed = driver.cuMemGetAddressRange_v2(ctypes.byref(base), None, self._pointer)
        if failed or driver.cuIpcGetMemHandle(handle, self._pointer):
            return None
        place = self._place()
        if place is not None:
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            _known[place] = bytes(handle), base.value
        return bytes(handle), self._pointer - base.value

    def card(self) -> bytes:
        """Return by what every process knows the card that it is on.

        Raises:
            InvalidArgument: this process's CUDA is in error.
        """
        ordinal = ctypes.c_int()
        _check(_driver().cuPointerGetAttribute(ctypes.byref(ordinal), _ORDINAL, self._pointer))
        return card_id(ordinal.value)

    def read(self, offset_bytes: int, target: Any) -> None:
        """Copy its bytes from an offset to a uint8 array; blocks for the copy.

        Raises:
            InvalidArgument: this process's CUDA is in error.
        """
        address = target.__array_interface__["data"][0]
        source = self._pointer + offset_bytes
        with self._current() as driver:
            _check(driver.cuMemcpyDtoH_v2(address, source, target.nbytes))

    @contextmanager
    def _current(self) -> Iterator[Any]:
        """Have the context of the array current in this thread; gives the driver."""
        driver = _driver()
        context, pointer = ctypes.c_void_p(), self._pointer
        _check(driver.cuPointerGetAttribute(ctypes.byref(context), _CONTEXT, pointer))
        primary = ctypes.c_int(-1)
        if context.value is None:  # memory of a pool belongs to a card
            _check(driver.cuPointerGetAttribute(ctypes.byref(primary), _ORDINAL, pointer))
            _check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), primary))
        _check(driver.cuCtxPushCurrent_v2(context))
        try:
            yield driver
        finally:
            driver.cuCtxPopCurrent_v2(ctypes.byref(context))
            if primary.value >= 0:
                driver.cuDevicePrimaryCtxRelease_v2(primary)


def device_array(value: Any) -> tuple[DeviceArray, int | None] | None:
    """Return an array on a card and the stream on which it is made; None for anything else.

    Takes a dense CUDA tensor of PyTorch, and whatever has `__cuda_array_interface__`: arrays of
    CuPy, Numba and JAX. One that is not C-contiguous is copied by its own library.

    Raises:
        InvalidArgument: it is sparse, masked, or has a dtype that no buffer has.
    """
    if isinstance(value, np.ndarray):
        return None
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _of_torch(torch, value) if value.is_cuda else None
    cupy = sys.modules.get("cupy")
    if cupy is not None and type(value) is cupy.ndarray and value.flags.c_contiguous:
        return _plain_of_cupy(cupy, value)
    interface = getattr(value, "__cuda_array_interface__", None)
    if not isinstance(interface, dict):
        return None
    if interface.get("mask") is not None:
        raise InvalidArgument("an array with a mask cannot be put on a device")
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    dtype = dtypes.canonical(getattr(value, "dtype", interface["typestr"]))
    if strides is not None and not _is_contiguous(shape, strides, dtypes.itemsize(dtype)):
        if cupy is None:
            raise InvalidArgument("an array on a card has to be C-contiguous: copy it first")
        return device_array(cupy.ascontiguousarray(cupy.asarray(value)))
    tenure = partial(_of_cupy, cupy, value)
    return DeviceArray(value, interface["data"][0], (shape, dtype), tenure), interface.get("stream")


def _plain_of_cupy(cupy: Any, array: Any) -> tuple[DeviceArray, int | None]:
    """Return what the interface of a contiguous array would tell, in less time."""
    spec = array.shape, dtypes.canonical(array.dtype)
    stream = cupy.cuda.get_current_stream().ptr or _LEGACY_STREAM
    return DeviceArray(array, array.data.ptr, spec, partial(_of_cupy, cupy, array)), stream


def _of_cupy(cupy: Any, value: Any) -> Tenure | None:
    """Return the array that all views of it keep alive, and its memory; None for no array."""
    if cupy is None or not isinstance(value, cupy.ndarray):
        return None
    return Tenure(value if value.base is None else value.base, value.data.mem)


def _of_torch(torch: Any, tensor: Any) -> tuple[DeviceArray, int | None]:
    if tensor.layout is not torch.strided:
        raise InvalidArgument("a sparse tensor cannot be put on a device: call to_dense() first")
    dense = tensor
    if tensor.is_conj() or tensor.is_neg() or not tensor.is_contiguous():
        dense = tensor.detach().resolve_conj().resolve_neg().contiguous()
    spec = tuple(dense.shape), _name_of(dense.dtype)
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # noqa: SLF001 - it takes a tenth
    stream = raw(dense.get_device()) if raw else torch.cuda.current_stream(dense.device).cuda_stream

    def tenure() -> Tenure:
        owner = dense  # a copy, which goes with what is returned here
        if dense.data_ptr() == tensor.data_ptr():
            base = tensor._base  # noqa: SLF001 - what a view is of
            owner = tensor if base is None else base
        return Tenure(owner, dense.untyped_storage())

    return DeviceArray(dense, dense.data_ptr(), spec, tenure), stream


@cache
def _name_of(torch_dtype: object) -> str:
    return dtypes.canonical(str(torch_dtype).removeprefix("torch."))


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    expected = itemsize
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != expected:
            return 0 in shape
        expected *= extent
    return True


@cache  # not of the error: it may be loaded later
def _driver(*, quick: bool = False) -> Any:
    driver = loaded_driver(quick=quick)
    if driver is None:
        raise InvalidArgument("the array says that it is on a card, but no driver is loaded")
    return driver


def _finish(stream: int | None) -> None:
    """Wait until a stream of the current context is done, None for all of them."""
    if stream is None:
        _check(_driver().cuCtxSynchronize())
    elif code := _driver(quick=True).cuStreamQuery(stream):
        _check(_driver().cuStreamSynchronize(stream) if code == _NOT_READY else code)


def _check(code: int) -> None:
    if code:
        name = ctypes.c_char_p()
        _driver().cuGetErrorName(code, ctypes.byref(name))
        called = (name.value or b"").decode()
        text = f"the CUDA of the notebook's own process answers {called} ({code})"
        raise InvalidArgument(text)
