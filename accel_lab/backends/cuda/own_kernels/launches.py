"""What kernels of accel_lab's own need of a device."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from accel_lab.backends.cuda.own_kernels.packed import Packed

Launch: TypeAlias = Callable[[tuple[int, int], int, Packed], None]
"""Enqueues a kernel, given its grid, the threads of a block, and its argument."""


class Launches(Protocol):
    """Arrays and kernels of a device, on its active stream; used by the dispatcher thread."""

    def kernel(self, source: str, name: str) -> Launch:
        """Return a kernel of one structure; compiled, or found on disk."""

    def address(self, x: Any) -> int:
        """Return where an array begins; 0 for None."""

    def is_contiguous(self, x: Any) -> bool:
        """Whether an array has no gaps, and is in C's order."""

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Return an array that is the kernel's until it has run."""

    def put(self, numbers: Any) -> Any:
        """Return a copy of NumPy's array, likewise."""
