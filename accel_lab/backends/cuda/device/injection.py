"""Real faults of a card, on purpose."""

from typing import Any

import cupy
from nvmath.bindings import cublas

from accel_lab.errors import InvalidArgument

# Addresses and flags are arguments, so that no compiler can see through them.
_KERNELS = {
    "poison": "void poison(long long word) { *(volatile int*)word = 1; }",
    "trap": 'void trap(long long word) { asm volatile("trap;"); }',
    "hang": "void hang(long long word) { while (*(volatile int*)word == 0) {} }",
}
_NULL_PAGE = 0x100


class Injection:
    """Enqueues faults on CuPy's current stream; used by the dispatcher thread."""

    def __init__(self) -> None:
        self._flag: Any = None

    def cause(self, kind: str) -> None:
        """Enqueue a kernel with this fault, or make a library's call fail at once.

        Raises:
            InvalidArgument: no fault has this name.
            cuBLASError: the fault is `library`.
        """
        if kind == "library":
            self._misuse_cublas()
        elif kind in _KERNELS:
            word = self._endless() if kind == "hang" else _NULL_PAGE
            source = f'extern "C" __global__ {_KERNELS[kind]}'
            cupy.RawKernel(source, kind)((1,), (1,), (word,))
        else:
            raise InvalidArgument(f"{kind!r} is no fault of a card")

    def _endless(self) -> int:
        """Return where a kernel waits for a word that never changes."""
        self._flag = cupy.zeros(1, "i")
        address: int = self._flag.data.ptr
        return address

    def _misuse_cublas(self) -> None:
        handle = cublas.create()
        try:
            cublas.set_pointer_mode(handle, -1)
        finally:
            cublas.destroy(handle)
