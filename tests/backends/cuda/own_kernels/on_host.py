"""Kernels of accel_lab's own on NumPy's arrays: the host compiles CUDA C++ and runs it at once."""

import ctypes
import re
from typing import Any

import numpy as np

from accel_lab.backends.cuda.own_kernels.launches import Launch
from accel_lab.backends.cuda.own_kernels.packed import Packed
from accel_lab.backends.host.compiler import launch_of
from accel_lab.backends.host.jit import HostJit
from accel_lab.backends.host.kernel import HostLibrary
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.libraries.module.messages import Build

# The rounding of narrow floats has a card's instructions for CUDA's compilers, else C++.
_NO_CARD = "#undef __CUDACC__\n#undef __device__\n"
_KERNEL = re.compile(r'extern "C" __global__ void (\w+)')


class HostLaunches:
    """Launches of NumPy's arrays.

    Attributes:
        launched: the names of kernels, as they were launched.
    """

    def __init__(self) -> None:
        self._jit = HostJit()
        self._libraries: dict[str, HostLibrary] = {}
        self._made: list[Any] = []
        self.launched: list[str] = []

    def kernel(self, source: str, name: str) -> Launch:
        """Compile all kernels of a source together, and return one."""
        names = tuple(_KERNEL.findall(source))
        if source not in self._libraries:
            text = _NO_CARD + source if "namespace narrow" in source else source
            self._libraries[source] = HostLibrary(self._jit.build(Build(text, names)))
        function = self._libraries[source].function(launch_of(names.index(name)))
        function.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 6, ctypes.c_bool, ctypes.c_size_t]
        function.restype = ctypes.c_char_p

        def launch(grid: tuple[int, int], threads: int, given: Packed) -> None:
            self.launched.append(name)
            together = False
            failure = function(given.at, *grid, 1, threads, 1, 1, together, 0)
            assert failure is None, failure

        return launch

    def address(self, x: Any) -> int:
        """Return where an array begins; 0 for None."""
        return 0 if x is None else int(x.ctypes.data)

    def is_contiguous(self, x: Any) -> bool:
        """Whether an array has no gaps, and is in C's order."""
        return bool(x.flags.c_contiguous)

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Return an array whose elements are no numbers."""
        return self._kept(np.full(shape, np.nan, numpy_dtype(dtype)))

    def put(self, numbers: Any) -> Any:
        """Return a copy."""
        return self._kept(numbers.copy())

    def _kept(self, x: Any) -> Any:
        self._made.append(x)  # a kernel has its address alone
        return x
