"""Kernels on cuda that are loaded: launched through the driver, with arguments packed at once."""

import contextlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from cupy.cuda import driver, runtime

from accel_lab.backends.cuda.jit.driver_calls import configured, tiled
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.jit.arguments import Arguments, keeping
from accel_lab.libraries.jit.elf import symbols_for, variables_of
from accel_lab.libraries.jit.limits import PLAIN, LaunchOptions, Limits
from accel_lab.libraries.jit.messages import KernelFacts, Triple
from accel_lab.libraries.jit.module_globals import Place
from accel_lab.libraries.jit.signature import Parameter

_BLOCK_LIMITS = (1024, 1024, 64)
_GRID_LIMITS = (2**31 - 1, 65535, 65535)
_HOPPER = 90
_NUMBERS = {
    "registers": driver.CU_FUNC_ATTRIBUTE_NUM_REGS,
    "shared bytes": driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
    "local bytes": driver.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
    "constant bytes": driver.CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,
    "max threads": driver.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
}


class Image:
    """A cubin that is loaded; it is given back with the last kernel that has it.

    Attributes:
        module: the driver's.
        nbytes: the size of the code.

    Parameters:
        unload: gives back the driver's module.
    """

    def __init__(self, cubin: bytes, unload: Callable[[int], object]) -> None:
        self.nbytes = len(cubin)
        self._variables = variables_of(cubin)
        self._unload = unload
        self.module: int = driver.moduleLoadData(cubin)

    def function(self, symbol: str) -> int:
        """Return the driver's handle of a kernel."""
        function: int = driver.moduleGetFunction(self.module, symbol)
        return function

    def place(self, variable: str) -> Place | None:
        """Find a variable."""
        for symbol in symbols_for(variable):
            if (found := self._variables.get(symbol)) is not None:
                return Place(driver.moduleGetGlobal(self.module, symbol), found.nbytes)
        return None

    def __del__(self) -> None:
        if hasattr(self, "module"):
            # What cannot be unloaded belongs to a lost context, which the next call tells.
            with contextlib.suppress(driver.CUDADriverError):
                self._unload(self.module)


class Code(NamedTuple):
    """Loaded code, as far as its kernels need it.

    Attributes:
        function: returns the driver's handle of a kernel, given its symbol.
        place: finds a variable.
        nbytes: its size.
        shared_limit: the bytes of shared memory that a block of the card may have.
        processors: how many the card has.
        capability: its compute capability, as 90.
        no_programmatic: why its kernels have to wait for the one ahead; empty if they need not.
    """

    function: Callable[[str], int]
    place: Callable[[str], Place | None]
    nbytes: int
    shared_limit: int
    processors: int
    capability: int
    no_programmatic: str = ""


class Origin(NamedTuple):
    """What code was made of, as `KernelFacts` tells it."""

    log: str = ""
    cached: bool = False
    binary: str = ""
    source: str = ""


class CudaKernel:
    """A kernel of loaded code."""

    def __init__(
        self,
        code: Code,
        symbol: str,
        name: str,
        parameters: tuple[Parameter, ...],
        origin: Origin,
    ) -> None:
        self.name = name
        self.nbytes = code.nbytes
        self._code: Code | None = code
        self._origin = origin
        self._processors = code.processors
        self._function = code.function(symbol)
        self._numbers = {
            what: driver.funcGetAttribute(number, self._function)
            for what, number in _NUMBERS.items()
        }
        too_old = lacking_hopper(code.capability)
        self.limits = Limits(
            self.name,
            code.shared_limit,
            self._numbers["shared bytes"],
            self._numbers["max threads"],
            self._numbers["registers"],
            tuple([one.read_only for one in parameters]),
            no_cluster=too_old,
            no_programmatic=too_old or code.no_programmatic,
            no_maps=too_old,
        )
        self.arguments = Arguments(self.name, parameters, _address, None if too_old else tiled)
        self._checked: tuple[Triple, Triple, int, LaunchOptions] | None = None
        self._dynamic_bytes = 0

    def enqueue(
        self, grid: Triple, block: Triple, shared_bytes: int, stream: Any, options: LaunchOptions
    ) -> None:
        """Launch it on a stream.

        Raises:
            InvalidArgument: the card or the kernel allows no such launch.
        """
        if (grid, block, shared_bytes, options) != self._checked:
            self._check(grid, block, shared_bytes, options)
        enqueued = stream.enqueuing()
        at = self.arguments.at
        if options is PLAIN:
            driver.launchKernel(self._function, *grid, *block, shared_bytes, stream.ptr, at, 0)
        else:
            self._call(grid, block, shared_bytes, stream, options, at)()
        if enqueued is not None:
            enqueued()

    def again(
        self, grid: Triple, block: Triple, shared_bytes: int, stream: Any, options: LaunchOptions
    ) -> Callable[[], object]:
        """Return what launches it once more, with the arguments that are packed now."""
        at, memory = self.arguments.copy()
        return keeping(self._call(grid, block, shared_bytes, stream, options, at), memory)

    def _call(
        self,
        grid: Triple,
        block: Triple,
        shared_bytes: int,
        stream: Any,
        options: LaunchOptions,
        at: int,
    ) -> "partial[Any]":
        """Return what launches it, given where its arguments are."""
        shape = self._function, *grid, *block, shared_bytes, stream.ptr, at
        if options.cooperative:
            return partial(driver.launchCooperativeKernel, *shape)
        # A graph would have an edge of another kind; without it the kernel begins later, and right.
        programmatic = options.programmatic and not runtime.streamIsCapturing(stream.ptr)
        if options.cluster is None and not programmatic:
            return partial(driver.launchKernel, *shape, 0)
        return configured(*shape, cluster=options.cluster, programmatic=programmatic)

    def place(self, variable: str) -> Place | None:
        """Find a variable."""
        assert self._code is not None
        return self._code.place(variable)

    def copy(self, to: int, source: int, nbytes: int, stream: Any) -> None:
        """Copy memory of the card, in the order of a stream."""
        runtime.memcpyAsync(to, source, nbytes, runtime.memcpyDeviceToDevice, stream.ptr)

    def address_of(self, array: Any) -> int:
        """Return where an array begins."""
        return _address(array)

    def facts(self) -> KernelFacts:
        """Return what is known of it."""
        return KernelFacts(
            name=self.name,
            parameters=tuple(p.text for p in self.arguments.parameters),
            log=self._origin.log,
            cached=self._origin.cached,
            binary=self._origin.binary,
            source=self._origin.source,
            numbers=self._numbers,
        )

    def _check(
        self, grid: Triple, block: Triple, shared_bytes: int, options: LaunchOptions
    ) -> None:
        name = self.name
        self.limits.check(block, shared_bytes)
        self.limits.check_options(grid, block, options)
        for what, given, limits in (("block", block, _BLOCK_LIMITS), ("grid", grid, _GRID_LIMITS)):
            if any(n > limit for n, limit in zip(given, limits, strict=True)):
                raise InvalidArgument(f"{name}: {what} {given} is larger than {limits}")
        if shared_bytes > self._dynamic_bytes:  # beyond 48 KiB the driver wants to be asked first
            driver.funcSetAttribute(
                self._function, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes
            )
            self._dynamic_bytes = shared_bytes
        if options.cooperative:
            self._check_together(grid, block, shared_bytes)
        self._checked = grid, block, shared_bytes, options

    def _check_together(self, grid: Triple, block: Triple, shared_bytes: int) -> None:
        """Refuse more blocks than the card runs at once."""
        each = driver.occupancyMaxActiveBlocksPerMultiprocessor(
            self._function, math.prod(block), shared_bytes
        )
        if math.prod(grid) > each * self._processors:
            raise InvalidArgument(
                f"{self.name}: a cooperative launch has all its blocks on the card at once; grid "
                f"{grid} has {math.prod(grid)}, and of this block and {shared_bytes} bytes of "
                f"shared memory {each * self._processors} fit"
            )


def lacking_hopper(capability: int) -> str:
    """Return why a card has no clusters, no tensor maps and no programmatic launches, or nothing.

    Parameters:
        capability: its compute capability, as 89.
    """
    if capability >= _HOPPER:
        return ""
    return (
        "is for cards of compute capability 9.0 or higher, and this one has "
        f"{capability // 10}.{capability % 10}; leave it out"
    )


def _address(array: Any) -> int:
    address: int = array.data.ptr
    return address
