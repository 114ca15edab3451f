"""A semaphore of the C library, which code without Python can post."""

import ctypes
import errno
import time
from functools import cache
from typing import Any

_SIZE = 64
"""Bytes, more than a `sem_t` has anywhere."""
_MONOTONIC = 1
_NANOSECONDS = 1_000_000_000


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class Semaphore:
    """Counts posts. It must live for as long as somebody may post it; one thread waits.

    Attributes:
        address: of the semaphore in this process.
    """

    def __init__(self) -> None:
        self._memory = ctypes.create_string_buffer(_SIZE)
        self.address = ctypes.addressof(self._memory)
        if _library().sem_init(self.address, 0, 0):
            raise OSError(ctypes.get_errno(), "sem_init")

    def wait(self, seconds: float) -> bool:
        """Sleep until it is posted, at most so long; return whether it was.

        Gives the interpreter's lock away. It may return early, as after a signal.
        """
        until = time.monotonic_ns() + int(seconds * _NANOSECONDS)
        limit = _Timespec(*divmod(until, _NANOSECONDS))
        if not _library().sem_clockwait(self.address, _MONOTONIC, ctypes.byref(limit)):
            return True
        code = ctypes.get_errno()
        if code not in (errno.ETIMEDOUT, errno.EINTR):
            raise OSError(code, "sem_clockwait")
        return False


@cache
def post_address() -> int:
    """Return the address of `sem_post`, which takes that of a semaphore."""
    found = ctypes.cast(_library().sem_post, ctypes.c_void_p).value
    assert found is not None
    return found


@cache
def _library() -> Any:
    """Return the C library, with the functions of semaphores.

    Raises:
        OSError: it is older than glibc 2.30.
    """
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "sem_clockwait"):
        raise OSError(errno.ENOSYS, "this C library has no sem_clockwait; it is glibc's from 2.30")
    library.sem_init.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint]
    library.sem_clockwait.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    return library
