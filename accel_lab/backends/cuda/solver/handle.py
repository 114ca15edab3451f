"""One cuSOLVER handle with its options, and how its routines of 64 bits are called."""

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import cupy
import cupyx
import numpy as np
from nvmath.bindings import cusolver, cusolverDn

_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
_TYPES = {"f": 0, "d": 1, "F": 4, "D": 5}  # cudaDataType


class Routine(NamedTuple):
    """A routine, and what says how large a workspace it needs."""

    run: Callable[..., Any]
    size: Callable[..., Any]


def wide_routine(name: str) -> Routine:
    """Return a routine of cuSOLVER that takes every dtype; a missing one is missed at once."""
    return Routine(getattr(cusolverDn, name), getattr(cusolverDn, f"{name}_buffer_size"))


def routines(name: str) -> dict[str, Routine]:
    """Return the routine of each dtype, by NumPy's character for it.

    What is called symmetric or orthogonal is Hermitian or unitary for complex numbers.
    """
    found = {}
    for char, letter in _LETTERS.items():
        own = name.replace("sy", "he") if letter in "cz" else name
        named = letter + own
        found[char] = Routine(
            getattr(cusolverDn, named), getattr(cusolverDn, f"{named}_buffer_size")
        )
    return found


def plain_routines(name: str, module: Any = cusolverDn) -> dict[str, Callable[..., Any]]:
    """Return the routine of each dtype that needs no workspace."""
    return {char: getattr(module, letter + name) for char, letter in _LETTERS.items()}


def type_of(x: Any) -> int:
    """Return the cudaDataType of an array."""
    return _TYPES[x.dtype.char]


class SolverHandle:
    """A handle on a stream; for one thread.

    Attributes:
        handle: cuSOLVER's.
        jacobi: the parameters of gesvdj.
    """

    def __init__(self, stream: Any) -> None:
        self.handle: int = cusolverDn.create()
        self.jacobi: int = cusolverDn.create_gesvdj_info()
        self._params: int = cusolverDn.create_params()
        self._host: list[Any] = [np.empty(0, np.uint8)]
        self.put(stream.ptr)

    def put(self, stream: int) -> None:
        """Put it on a stream."""
        cusolverDn.set_stream(self.handle, stream)

    def call(
        self, routine: Routine, asked: tuple[Any, ...], arguments: tuple[Any, ...], info: int
    ) -> None:
        """Call a routine of 64 bits.

        Parameters:
            asked: what its size depends on, behind handle and parameters.
            arguments: what it takes there.
            info: where on the device it writes its status.
        """
        on_device, on_host = routine.size(self.handle, self._params, *asked)
        device, host = cupy.ndarray((on_device,), "B"), self._host_memory(on_host)
        work = device.data.ptr, on_device, host.ctypes.data, on_host
        routine.run(self.handle, self._params, *arguments, *work, info)

    def call_stack(
        self, routine: Routine, arguments: tuple[Any, ...], info: int, count: int
    ) -> None:
        """Call a routine of 64 bits for as many matrices (cusolverDnXsyevBatched)."""
        on_device, on_host = routine.size(self.handle, self._params, *arguments, count)
        device, host = cupy.ndarray((on_device,), "B"), self._host_memory(on_host)
        work = device.data.ptr, on_device, host.ctypes.data, on_host
        routine.run(self.handle, self._params, *arguments, *work, info, count)

    def call_plain(self, run: Callable[..., Any], *arguments: Any) -> None:
        """Call a routine of 64 bits that needs no workspace."""
        run(self.handle, self._params, *arguments)

    def _host_memory(self, nbytes: int) -> Any:
        """Return page-locked memory of the host to work in.

        It is kept: work on the stream may still use what the last call had. Work on one stream is
        in order, so one piece does for all of it, and a piece that is too small stays.
        """
        if self._host[-1].nbytes < nbytes:
            self._host.append(cupyx.empty_pinned((2 * nbytes,), np.uint8))
        return self._host[-1]

    def close(self) -> None:
        """Destroy it; waits for the device."""
        # What cannot be destroyed belongs to a lost context, which the next call tells.
        with contextlib.suppress(cusolver.cuSOLVERError):
            cusolverDn.destroy_params(self._params)
            cusolverDn.destroy_gesvdj_info(self.jacobi)
            cusolverDn.destroy(self.handle)
