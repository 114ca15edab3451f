"""Shared memory of a descriptor, mapped for exactly as long as somebody can see it.

`mmap.mmap` duplicates its descriptor and cannot close while views exist; this mapping owns no
descriptor, and the last NumPy view of it unmaps it.
"""

import ctypes
import errno
import mmap
import os
import threading
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_lab.display import sizes
from accel_lab.uncopied import Uncopied

Bytes = npt.NDArray[np.uint8]

PAGE = mmap.PAGESIZE
MADV_POPULATE_READ = 22
MADV_POPULATE_WRITE = 23
_PARALLEL_FROM = 16 << 20

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int64,
)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class Mapping(Uncopied):
    """`size` bytes of a descriptor at `address`, readable and writable, shared.

    NumPy arrays made from it keep it alive through their base chain; when the last one is
    collected, in whatever thread, it is unmapped. The descriptor may be closed at any time.

    Raises:
        OSError: the system refuses the mapping.
    """

    __slots__ = ("__weakref__", "address", "size")

    def __init__(self, fd: int, size: int) -> None:
        address = _libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
        if address in (None, ctypes.c_void_p(-1).value):
            raise _os_error(f"cannot map {sizes.size(size)}")
        self.address: int = address
        self.size = size
        unmap = weakref.finalize(self, _libc.munmap, address, size)
        # At exit arrays may outlive the finalizer registry; the system unmaps for us.
        unmap.atexit = False

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "data": (self.address, False),
            "shape": (self.size,),
            "typestr": "|u1",
        }

    def bytes(self) -> Bytes:
        """Return the whole mapping as one array; it and its views keep the mapping alive."""
        return np.asarray(self)

    def create_pages(self, threads: int | None = None) -> None:
        """Make every page exist and be mapped here, so that no later write faults; blocks.

        Measured over 512 MiB on a 2-core VM, GB/s: `MADV_POPULATE_WRITE` by 2 threads 1.5-2.8,
        by one 0.6-1.7; strided touching by 2 threads 1.1-2.2; `MAP_POPULATE` 0.7-1.5 (and it
        holds the GIL); `posix_fallocate`, which one inode lock serialises, 3.4, but mapping its
        pages afterwards makes it 1.3-1.6 in all. Untouched memory is filled at 1, touched memory
        at 11 GB/s.

        Raises:
            OSError: the system has no memory for the pages.
        """
        self._populate(MADV_POPULATE_WRITE, threads or min(4, os.cpu_count() or 1))

    def map_pages(self) -> None:
        """Map pages that another process has created; blocks (about 10 GB/s).

        Without it the first write of this process runs at 1-2 GB/s because every page faults.

        Raises:
            OSError: the system refuses.
        """
        self._populate(MADV_POPULATE_READ, 1)

    def _populate(self, advice: int, threads: int) -> None:
        if self.size < _PARALLEL_FROM:
            threads = 1
        step = -(-self.size // threads // PAGE) * PAGE
        failures: list[OSError] = []

        def advise(start: int) -> None:
            length = min(step, self.size - start)
            # The GIL is released while the kernel works: ctypes.CDLL, not PyDLL.
            if not _libc.madvise(self.address + start, length, advice):
                return
            error = _os_error(f"cannot populate {sizes.size(length)}")
            if error.errno == errno.EINVAL:
                self._touch(start, length, writing=advice == MADV_POPULATE_WRITE)
            else:
                failures.append(error)

        helpers = [
            threading.Thread(target=advise, args=(start,), name="accel_lab populate")
            for start in range(step, self.size, step)
        ]
        for helper in helpers:
            helper.start()
        advise(0)
        for helper in helpers:
            helper.join()
        if failures:
            raise failures[0]

    def _touch(self, start: int, length: int, *, writing: bool) -> None:
        """Populate where the kernel cannot (before Linux 5.14, gVisor), one byte a page."""
        pages = self.bytes()[start : start + length : PAGE]
        if writing:
            pages[...] = 0
        else:
            pages.max()


def _os_error(what: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, f"{what}: {os.strerror(code)}")
