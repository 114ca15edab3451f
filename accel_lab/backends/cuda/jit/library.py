"""Kernels on cuda: cubins of NVRTC, launched through the driver with arguments packed at once."""

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cupy.cuda import driver, runtime

from accel_lab.backends.cuda.jit import nvrtc
from accel_lab.backends.cuda.jit.cubin import data_of
from accel_lab.compute.machine.disk_cache import DiskCache, cache_folder, key_of
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.jit.arguments import Arguments, keeping
from accel_lab.libraries.jit.elf import symbols_for, variables_of
from accel_lab.libraries.jit.file_contents import newest_ns, sums_of
from accel_lab.libraries.jit.limits import Limits
from accel_lab.libraries.jit.messages import Compile, KernelFacts, Triple
from accel_lab.libraries.jit.module_globals import Place
from accel_lab.libraries.jit.signature import TABLE, parameters_of

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

FORMAT = 2
CUBIN = "kernel.cubin"
_SYMBOL, _LOG = "symbol.txt", "log.txt"
_BLOCK_LIMITS = (1024, 1024, 64)
_GRID_LIMITS = (2**31 - 1, 65535, 65535)
_NUMBERS = {
    "registers": driver.CU_FUNC_ATTRIBUTE_NUM_REGS,
    "shared bytes": driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
    "local bytes": driver.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
    "constant bytes": driver.CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,
    "max threads": driver.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
}


class Built(NamedTuple):
    """A cubin, and where it lies if the disk took it."""

    program: Compile
    compiled: nvrtc.Compiled
    folder: Path | None
    cached: bool


class CudaKernel:
    """A kernel of a module; the module goes to `retired` with it."""

    def __init__(
        self, built: Built, shared_limit: int, processors: int, retired: list[int]
    ) -> None:
        compiled = built.compiled
        self._built = built
        self.name = built.program.name
        self._retired = retired
        self._processors = processors
        self._variables = variables_of(compiled.cubin)
        self.nbytes = len(compiled.cubin)
        self._module: int = driver.moduleLoadData(compiled.cubin)
        self._function: int = driver.moduleGetFunction(self._module, compiled.symbol)
        self._numbers = {
            name: driver.funcGetAttribute(code, self._function) for name, code in _NUMBERS.items()
        }
        parameters = parameters_of(data_of(compiled.cubin, TABLE))
        self.limits = Limits(
            self.name,
            shared_limit,
            self._numbers["shared bytes"],
            self._numbers["max threads"],
            self._numbers["registers"],
            tuple([one.read_only for one in parameters]),
        )
        self.arguments = Arguments(built.program.name, parameters, _address)
        self._checked: tuple[Triple, Triple, int, bool] | None = None
        self._dynamic_bytes = 0

    def enqueue(
        self, grid: Triple, block: Triple, shared_bytes: int, stream: Any, *, cooperative: bool
    ) -> None:
        """Launch it on a stream.

        Raises:
            InvalidArgument: the card or the kernel allows no such launch.
        """
        if (grid, block, shared_bytes, cooperative) != self._checked:
            self._check(grid, block, shared_bytes, cooperative=cooperative)
        enqueued = stream.enqueuing()
        at = self.arguments.at
        if cooperative:
            driver.launchCooperativeKernel(
                self._function, *grid, *block, shared_bytes, stream.ptr, at
            )
        else:
            driver.launchKernel(self._function, *grid, *block, shared_bytes, stream.ptr, at, 0)
        if enqueued is not None:
            enqueued()

    def again(
        self, grid: Triple, block: Triple, shared_bytes: int, stream: Any, *, cooperative: bool
    ) -> Callable[[], object]:
        """Return what launches it once more, with the arguments that are packed now."""
        at, memory = self.arguments.copy()
        shape = self._function, *grid, *block, shared_bytes, stream.ptr, at
        if cooperative:
            return keeping(partial(driver.launchCooperativeKernel, *shape), memory)
        return keeping(partial(driver.launchKernel, *shape, 0), memory)

    def place(self, variable: str) -> Place | None:
        """Find a variable of the source."""
        for symbol in symbols_for(variable):
            if (found := self._variables.get(symbol)) is not None:
                return Place(driver.moduleGetGlobal(self._module, symbol), found.nbytes)
        return None

    def copy(self, to: int, source: int, nbytes: int, stream: Any) -> None:
        """Copy memory of the card, in the order of a stream."""
        runtime.memcpyAsync(to, source, nbytes, runtime.memcpyDeviceToDevice, stream.ptr)

    def address_of(self, array: Any) -> int:
        """Return where an array begins."""
        return _address(array)

    def facts(self) -> KernelFacts:
        """Return what is known of it."""
        folder, program = self._built.folder, self._built.program
        return KernelFacts(
            name=program.name,
            parameters=tuple(p.text for p in self.arguments.parameters),
            log=self._built.compiled.log,
            cached=self._built.cached,
            binary=str(folder / CUBIN) if folder else "",
            source=str(folder / program.file) if folder else "",
            numbers=self._numbers,
        )

    def _check(self, grid: Triple, block: Triple, shared_bytes: int, *, cooperative: bool) -> None:
        name = self.name
        self.limits.check(block, shared_bytes)
        for what, given, limits in (("block", block, _BLOCK_LIMITS), ("grid", grid, _GRID_LIMITS)):
            if any(n > limit for n, limit in zip(given, limits, strict=True)):
                raise InvalidArgument(f"{name}: {what} {given} is larger than {limits}")
        if shared_bytes > self._dynamic_bytes:  # beyond 48 KiB the driver wants to be asked first
            driver.funcSetAttribute(
                self._function, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes
            )
            self._dynamic_bytes = shared_bytes
        if cooperative:
            self._check_together(grid, block, shared_bytes)
        self._checked = grid, block, shared_bytes, cooperative

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

    def __del__(self) -> None:
        if hasattr(self, "_module"):
            self._retired.append(self._module)


class CudaJit:
    """Compiles with NVRTC; what it compiled before it finds on disk."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device
        self._architecture = _architecture(device.index)
        self._shared_limit: int = runtime.deviceGetAttribute(
            runtime.cudaDevAttrMaxSharedMemoryPerBlockOptin, device.index
        )
        self._processors: int = runtime.deviceGetAttribute(
            runtime.cudaDevAttrMultiProcessorCount, device.index
        )
        self._driver = runtime.driverGetVersion()
        self._cache = DiskCache(cache_folder() / "cuda")
        self._kernels = 0
        self._retired: list[int] = []

    def build(self, program: Compile) -> Built:
        """Compile, or find it; any thread.

        Raises:
            CompileError: it does not compile.
        """
        began_ns, includes = time.time_ns(), nvrtc.includes(program)
        key = key_of(
            FORMAT,
            self._architecture,
            nvrtc.version(),
            self._driver,
            [(folder, newest_ns([folder])) for folder in nvrtc.include_folders()],
            sums_of(includes.paths),
            nvrtc.translated(program),
            program.name,
            program.options,
            sorted(program.included.items()),
        )
        # What a macro includes cannot be told, and what changes now may have been read before.
        found = self._cache.get(key) if includes.whole else None
        if found is not None and found.keys() >= {CUBIN, _SYMBOL, _LOG}:
            compiled = nvrtc.Compiled(found[CUBIN], found[_SYMBOL].decode(), found[_LOG].decode())
            return Built(program, compiled, self._cache.path(key), cached=True)
        compiled = nvrtc.build(program, self._architecture)
        files = {
            CUBIN: compiled.cubin,
            _SYMBOL: compiled.symbol.encode(),
            _LOG: compiled.log.encode(),
            program.file: program.text.encode(),
        }
        folder: Path | None = None
        if not includes.whole or newest_ns(includes.paths) >= began_ns:
            return Built(program, compiled, folder, cached=False)
        with contextlib.suppress(OSError):  # without a disk it is compiled in every process
            folder = self._cache.put(key, files)
        return Built(program, compiled, folder, cached=False)

    def load(self, built: Built) -> CudaKernel:
        """Load the module, and unload those that nobody can launch any more."""
        # A module must not go while a kernel of it runs, and all of them run on this stream.
        if self._retired and self._device.active.done():
            while self._retired:
                driver.moduleUnload(self._retired.pop())
        kernel = CudaKernel(built, self._shared_limit, self._processors, self._retired)
        self._kernels += 1
        return kernel

    def statistics(self) -> Mapping[str, int]:
        """Count kernels, and how often the disk had one."""
        return {
            "kernels": self._kernels,
            "cache hits": self._cache.hits,
            "cache misses": self._cache.misses,
        }


def _architecture(index: int) -> str:
    properties = runtime.getDeviceProperties(index)
    return f"{properties['major']}{properties['minor']}"


def _address(array: Any) -> int:
    address: int = array.data.ptr
    return address
