"""Kernels on cuda: cubins that NVRTC compiles, or that are found on disk."""

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cupy.cuda import driver, runtime

from accel_lab.backends.cuda.jit import nvrtc
from accel_lab.backends.cuda.jit.cubin import data_of
from accel_lab.backends.cuda.jit.kernel import Code, CudaKernel, Image, Origin
from accel_lab.compute.machine.disk_cache import DiskCache, cache_folder, key_of
from accel_lab.libraries.jit.file_contents import newest_ns, sums_of
from accel_lab.libraries.jit.program import Program
from accel_lab.libraries.jit.signature import TABLE, parameters_of

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

FORMAT = 3
_WAITS_FOR_NONE = (
    "is for a kernel that waits for the one ahead: call accel_lab::wait_for_previous() of "
    "<accel_lab/programmatic.h> before it reads what others wrote"
)
CUBIN = "kernel.cubin"
_SYMBOLS, _LOG = "symbols.txt", "log.txt"


class Built(NamedTuple):
    """A cubin, and where it lies if the disk took it."""

    program: Program
    compiled: nvrtc.Compiled
    folder: Path | None
    cached: bool

    @property
    def origin(self) -> Origin:
        """What its kernels tell of it."""
        binary = str(self.folder / CUBIN) if self.folder else ""
        source = str(self.folder / self.program.file) if self.folder else ""
        return Origin(self.compiled.log, self.cached, binary, source)


class CudaJit:
    """Compiles with NVRTC; what it compiled before it finds on disk."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device
        self.architecture = _architecture(device.index)
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

    def build(self, program: Program) -> Built:
        """Compile, or find it; any thread.

        Raises:
            CompileError: it does not compile.
        """
        began_ns, includes = time.time_ns(), nvrtc.includes(program)
        key = key_of(
            FORMAT,
            self.architecture,
            nvrtc.version(),
            self._driver,
            [(folder, newest_ns([folder])) for folder in nvrtc.include_folders()],
            sums_of(includes.paths),
            nvrtc.translated(program),
            program.names,
            program.options,
            sorted(program.included.items()),
        )
        # What a macro includes cannot be told, and what changes now may have been read before.
        found = self._cache.get(key) if includes.whole else None
        if found is not None and found.keys() >= {CUBIN, _SYMBOLS, _LOG}:
            compiled = nvrtc.Compiled(
                found[CUBIN], tuple(found[_SYMBOLS].decode().split("\n")), found[_LOG].decode()
            )
            return Built(program, compiled, self._cache.path(key), cached=True)
        compiled = nvrtc.build(program, self.architecture)
        files = {
            CUBIN: compiled.cubin,
            _SYMBOLS: "\n".join(compiled.symbols).encode(),
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
        cubin = built.compiled.cubin
        code = self.code(Image(cubin, self._retired.append))
        if not nvrtc.waits_for_previous(built.program):
            code = code._replace(no_programmatic=_WAITS_FOR_NONE)
        parameters = parameters_of(data_of(cubin, TABLE))
        symbol, name = built.compiled.symbol, built.program.name
        kernel = CudaKernel(code, symbol, name, parameters, built.origin)
        self._kernels += 1
        return kernel

    def code(self, image: Any) -> Code:
        """Return what kernels of an image need."""
        limits = self._shared_limit, self._processors, int(self.architecture)
        return Code(image.function, image.place, image.nbytes, *limits)

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
