"""Bytes of a context's process: some that NumPy has, and a mapping that is given memory later."""

import ctypes
import math
import mmap
import os
from typing import Any

import numpy as np

from accel_lab.compute.arrays.dtypes import itemsize, numpy_dtype
from accel_lab.compute.shared.shared_file import SharedFile
from accel_lab.errors import InvalidArgument

_RESERVED = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_FAILED = ctypes.c_void_p(-1).value
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
    *(ctypes.c_int, ctypes.c_int, ctypes.c_int64),
)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class HostBlock:
    """Bytes of this process.

    Parameters:
        address: where they are.
        owner: keeps them.
    """

    def __init__(self, address: int, owner: object) -> None:
        self.address = address
        self._owner = owner

    def array(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Return an array at its begin, whose base is no longer than that."""
        nbytes = math.prod(shape) * itemsize(dtype)
        data = np.asarray(_Part(self.address, nbytes, self._owner))
        return data.view(numpy_dtype(dtype)).reshape(shape)


class _Part:
    """The first bytes of a block as NumPy sees them."""

    def __init__(self, address: int, nbytes: int, owner: object) -> None:
        self._owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": (nbytes,),
            "typestr": "|u1",
        }


class _Reserved:
    """Addresses that nothing may touch, until they are given memory; unmapped with this."""

    address = 0

    def __init__(self, nbytes: int) -> None:
        found = _libc.mmap(None, nbytes, 0, _RESERVED, -1, 0)
        if found == _FAILED:
            why = os.strerror(ctypes.get_errno())
            raise InvalidArgument(f"{nbytes} bytes of addresses cannot be reserved: {why}")
        self.address, self._nbytes = found, nbytes

    def __del__(self) -> None:
        if self.address:
            _libc.munmap(self.address, self._nbytes)


class HostGrowingBlock(HostBlock):
    """A reserved mapping."""

    def __init__(self, reserved_bytes: int) -> None:
        reserved = _Reserved(max(reserved_bytes, 1))
        super().__init__(reserved.address, reserved)
        self.mapped_bytes = 0

    def missing_bytes(self, nbytes: int) -> int:
        """Return how many pages more that takes, in bytes."""
        return max(0, -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE - self.mapped_bytes)

    def grow(self, nbytes: int) -> None:
        """Have the pages readable and writable.

        Raises:
            MemoryError: the system has none.
        """
        length, at = self.missing_bytes(nbytes), self.address + self.mapped_bytes
        if length and _libc.mprotect(at, length, mmap.PROT_READ | mmap.PROT_WRITE):
            raise MemoryError(os.strerror(ctypes.get_errno()))
        self.mapped_bytes += length


class HostSharedBlock(HostBlock):
    """A file that other processes map."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes, self.file = nbytes, SharedFile(nbytes)
        mapping = self.file.map()
        super().__init__(mapping.address, mapping)
