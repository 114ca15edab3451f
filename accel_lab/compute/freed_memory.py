"""What becomes of memory that code in a context frees on the host: some is kept for the next.

The C library gives large blocks back to the system at once, and each new one costs a page fault for
every few kilobytes. How much it keeps by itself depends on what a process happens to have freed.
"""

import ctypes
import os

MOST_KEPT_BYTES = 256 << 20
LARGEST_KEPT_BYTES = 32 << 20
"""A larger block goes back at once; the C library takes no higher limit."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD of mallopt(3)
_CHOSEN = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES")


def keep() -> None:
    """Keep freed memory of this process, unless the user has said how (mallopt(3))."""
    if not os.environ.keys().isdisjoint(_CHOSEN):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # a C library that has it
        mallopt(_MMAP_THRESHOLD, LARGEST_KEPT_BYTES)
        mallopt(_TRIM_THRESHOLD, MOST_KEPT_BYTES)


def give_back() -> None:
    """Give the system what is kept (malloc_trim(3))."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)
