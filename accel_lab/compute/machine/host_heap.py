"""Keep memory that code in a context frees on the host for its next allocation.

The C library gives large blocks back to the system at once, and each new one costs a page fault for
every few kilobytes, which for arrays of a hundred megabytes is a third of what computing with them
takes. So a context keeps all of it while it works, and most goes back when it rests.
"""

import ctypes
import os
import resource
import time
from pathlib import Path

from accel_lab.compute.machine.host_memory import free_host_bytes, host_memory_bytes

MOST_KEPT_BYTES = 256 << 20
"""What a context that rests keeps."""
REST_S = 2.0
LOOK_S = 0.5
SHORT = 5
"""Memory is short where less than one in so many bytes of the machine's can still be had."""
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # M_TRIM_THRESHOLD, M_MMAP_MAX of mallopt(3)
_NEVER = -1
_CHOSEN = (
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_MMAP_MAX_",
    "MALLOC_TOP_PAD_",
    "GLIBC_TUNABLES",
)


def keep() -> bool:
    """Keep freed memory of this process, unless the user has said how (mallopt(3)).

    Returns whether it is kept.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # not every C library has it
    if mallopt is None or not os.environ.keys().isdisjoint(_CHOSEN):
        return False
    return bool(mallopt(_MMAP_MAX, 0) and mallopt(_TRIM_THRESHOLD, _NEVER))


def give_back(kept_bytes: int = 0) -> None:
    """Give the system what is kept, but for so much of it (malloc_trim(3)); any thread."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(kept_bytes)


class Surplus:
    """What a context keeps beyond MOST_KEPT_BYTES; for the thread that watches the context."""

    def __init__(self) -> None:
        self._at_first = _resident()
        self._last: object = None
        self._worked = self._looked = time.monotonic()
        self._is_given = True

    def look(self, now: float, last: object, *, busy: bool) -> None:
        """Give it back where the context rests or memory is short; quick otherwise.

        Parameters:
            now: monotonic seconds.
            last: what the context has begun last, by identity.
            busy: whether something runs.
        """
        if busy or last is not self._last:
            self._last, self._worked, self._is_given = last, now, False
        if self._is_given or now - self._looked < LOOK_S:
            return
        self._looked = now
        if now - self._worked > REST_S:
            self._is_given = True
            give_back(MOST_KEPT_BYTES)
        elif (
            _resident() > self._at_first + MOST_KEPT_BYTES  # quick to see, and the rest is not
            and free_host_bytes() * SHORT < host_memory_bytes()
        ):
            give_back()


def _resident() -> int:
    """Return what this process has in memory, in bytes."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:  # there is no /proc: it is not known to grow
        return 0
