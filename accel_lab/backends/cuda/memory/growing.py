"""Addresses of a card that are reserved once, and given memory piece by piece."""

import ctypes
from typing import Any

import cupy

from accel_lab.backends.cuda.device.interop import storage_of
from accel_lab.backends.cuda.graph.driver import call

PINNED, ON_DEVICE, READ_WRITE, MINIMUM = 1, 1, 3, 0
"""CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
CU_MEM_ALLOC_GRANULARITY_MINIMUM."""


class Location(ctypes.Structure):
    """CUmemLocation."""

    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class AllocationProperties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", Location),
        ("windows", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("location", Location), ("flags", ctypes.c_int))


class CudaGrowingBlock:
    """A range of addresses, of which the first `mapped_bytes` have memory.

    Its arrays keep it, and the last reference unmaps and frees it: behind the work that uses it, as
    the storage says.
    """

    def __init__(self, index: int, reserved_bytes: int) -> None:
        self._location = Location(ON_DEVICE, index)
        self._properties = AllocationProperties(PINNED, 0, self._location)
        page = ctypes.c_size_t()
        self._pieces: list[tuple[int, int, int]] = []  # where, how long, and the handle
        self._start = self._reserved = self.mapped_bytes = 0
        properties = ctypes.byref(self._properties)
        call("cuMemGetAllocationGranularity", ctypes.byref(page), properties, MINIMUM)
        self._page = page.value
        reserved, start = self._rounded(max(reserved_bytes, 1)), ctypes.c_uint64()
        no = ctypes.c_size_t(0)
        size = ctypes.c_size_t(reserved)
        call("cuMemAddressReserve", ctypes.byref(start), size, no, ctypes.c_uint64(0), no)
        self._start, self._reserved = start.value, reserved

    def _rounded(self, nbytes: int) -> int:
        return -(-nbytes // self._page) * self._page

    def missing_bytes(self, nbytes: int) -> int:
        """Return how much more memory it takes for the first `nbytes` to have some."""
        return max(0, self._rounded(nbytes) - self.mapped_bytes)

    def grow(self, nbytes: int) -> None:
        """Map one more piece behind what there is.

        Raises:
            CUDADriverError: the card gives none; nothing changed.
        """
        size, at = self.missing_bytes(nbytes), self._start + self.mapped_bytes
        if not size:
            return
        handle, where = ctypes.c_uint64(), ctypes.c_uint64(at)
        length, no = ctypes.c_size_t(size), ctypes.c_uint64(0)
        call("cuMemCreate", ctypes.byref(handle), length, ctypes.byref(self._properties), no)
        try:
            call("cuMemMap", where, length, ctypes.c_size_t(0), handle, no)
        except BaseException:
            call("cuMemRelease", handle)
            raise
        access = Access(self._location, READ_WRITE)
        try:
            call("cuMemSetAccess", where, length, ctypes.byref(access), ctypes.c_size_t(1))
        except BaseException:
            call("cuMemUnmap", where, length)
            call("cuMemRelease", handle)
            raise
        self._pieces.append((at, size, handle.value))
        self.mapped_bytes += size

    def array(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Return the array in C order at its begin."""
        index = self._location.id
        whole = cupy.cuda.UnownedMemory(self._start, self._reserved, self, index)
        return cupy.ndarray(shape, storage_of(dtype), cupy.cuda.MemoryPointer(whole, 0))

    def __del__(self) -> None:
        try:
            for at, size, handle in self._pieces:
                call("cuMemUnmap", ctypes.c_uint64(at), ctypes.c_size_t(size))
                call("cuMemRelease", ctypes.c_uint64(handle))
            if self._start:
                reserved = ctypes.c_size_t(self._reserved)
                call("cuMemAddressFree", ctypes.c_uint64(self._start), reserved)
        except Exception:  # noqa: BLE001, S110 - of a context in error the driver frees nothing
            pass
