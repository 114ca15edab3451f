"""Kernels of one structure, launched through the driver, which takes half as long as CuPy does."""

from typing import TYPE_CHECKING, Any

import cupy
from cupy.cuda import driver

from accel_lab.backends.cuda.own_kernels.launches import Launch
from accel_lab.backends.cuda.own_kernels.packed import Packed

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice


class DriverLaunches:
    """CuPy's arrays; its pool gives their memory to what is enqueued behind."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device

    def kernel(self, source: str, name: str) -> Launch:
        """Return a kernel; CuPy keeps what it compiled on disk."""
        return _DriverKernel(self._device, cupy.RawKernel(source, name).kernel)

    def address(self, x: Any) -> int:
        """Return where an array begins; 0 for None."""
        return 0 if x is None else x.data.ptr

    def is_contiguous(self, x: Any) -> bool:
        """Whether an array has no gaps; `_c_contiguous` is ten times cheaper than `flags`."""
        return bool(x._c_contiguous)  # noqa: SLF001

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Return an array that is the kernel's until it has run."""
        return cupy.ndarray(shape, dtype)

    def put(self, numbers: Any) -> Any:
        """Return a copy of NumPy's array, likewise."""
        return cupy.asarray(numbers)


class _DriverKernel:
    def __init__(self, device: "CudaDevice", kernel: Any) -> None:
        self._device = device
        self._kernel, self._function = kernel, kernel.ptr  # it is unloaded with its object

    def __call__(self, grid: tuple[int, int], threads: int, given: Packed) -> None:
        stream = self._device.active
        stream.enqueuing()
        driver.launchKernel(self._function, *grid, 1, threads, 1, 1, 0, stream.ptr, given.at, 0)
