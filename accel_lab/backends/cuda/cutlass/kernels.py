"""The kernels of one context: CUTLASS's templates, compiled by NVRTC, kept on disk, and loaded.

`Params` are made by the kernels themselves, and not by CUTLASS's host code, which NVRTC cannot run.
"""

import contextlib
import ctypes
import struct
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import cupy
from cupy.cuda import driver, runtime
from cupy.cuda.function import Module

from accel_lab.backends.cuda.jit import nvrtc
from accel_lab.backends.cuda.jit.cubin import data_of
from accel_lab.backends.cuda.jit.library import CUBIN, CudaJit
from accel_lab.compute.machine.disk_cache import DiskCache, cache_folder, key_of
from accel_lab.display.install import pip_install
from accel_lab.errors import BackendUnavailable, InvalidArgument
from accel_lab.libraries.jit.messages import Compile

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

OLDEST = 80
LIBCUXX = ("cassert", "cstddef", "cstdint", "limits", "tuple", "type_traits", "utility")
"""What CUTLASS's headers take from libcu++."""


class Template(Protocol):
    """What a kernel is made of; equal ones make the same."""

    @property
    def ahead(self) -> str:
        """What stands ahead of the files."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The files, one behind the other."""

    def options(self) -> tuple[str, ...]:
        """Return the compiler's options, which fill the template."""

    def __hash__(self) -> int: ...


class Kernel:
    """A kernel that is loaded."""

    def __init__(self, cubin: bytes) -> None:
        self._shared_bytes, self._threads = struct.unpack("=2I", data_of(cubin, "facts"))
        module = Module()
        module.load(cubin)
        self._function = module.get_function("multiply")
        driver.funcSetAttribute(
            self._function.ptr,
            driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            self._shared_bytes,
        )

    @property
    def blocks(self) -> int:
        """How many of its blocks can be on a processor at once."""
        found: int = driver.occupancyMaxActiveBlocksPerMultiprocessor(
            self._function.ptr, self._threads, self._shared_bytes
        )
        return found

    def launch(self, grid: tuple[int, int, int], given: tuple[Any, ...]) -> None:
        """Enqueue it on CuPy's current stream."""
        self._function(grid, (self._threads, 1, 1), given, self._shared_bytes)

    def launch_packed(self, grid: tuple[int, int, int], given: tuple[Any, ...]) -> None:
        """Enqueue it on CuPy's current stream, with arguments of ctypes, as structures are."""
        at = (ctypes.c_void_p * len(given))(*map(ctypes.addressof, given))
        block, stream = (self._threads, 1, 1), cupy.cuda.get_current_stream().ptr
        shape = self._function.ptr, *grid, *block, self._shared_bytes, stream
        driver.launchKernel(*shape, ctypes.addressof(at), 0)


class Kernels:
    """Compiles on any thread; all else is the dispatcher's."""

    def __init__(self, device: "CudaDevice") -> None:
        self._jit = CudaJit(device)
        self.architecture: str = self._jit.architecture
        properties = runtime.getDeviceProperties(device.index)
        self.processors: int = properties["multiProcessorCount"]
        self.card: str = properties["name"].decode()
        self._prebuilt = DiskCache(cache_folder() / "cuda-cutlass-kernels")
        self._loaded: dict[Template, Kernel] = {}
        self._cubins: dict[Template, bytes] = {}

    def __len__(self) -> int:
        return len(self._loaded)

    def missing(self, template: Template) -> Callable[[], None] | None:
        """Return what compiles a kernel, on any thread; None if it is there."""
        if template in self._loaded or template in self._cubins:
            return None
        return partial(self.compile, template)

    def compile(self, template: Template) -> None:
        """Compile a kernel, or find it on disk, to be loaded; any thread.

        Raises:
            BackendUnavailable, InvalidArgument: as `tried`.
        """
        self._cubins[template] = self._cubin(template)

    def _cubin(self, template: Template) -> bytes:
        """Compile a kernel, or find it on disk; any thread.

        Raises:
            BackendUnavailable: CUTLASS's headers are not installed.
            InvalidArgument: the card is too old.
        """
        if int(self.architecture) < OLDEST:
            raise InvalidArgument(
                "cutlass: its kernels here are for cards of compute capability 8.0 or higher; "
                "send what blas_lt and dnn have"
            )
        found = self._prebuilt.get(self._name(template)) or {}
        if CUBIN in found:
            return found[CUBIN]
        return self._jit.build(program_of(template)).compiled.cubin

    def _name(self, template: Template) -> str:
        """Return the hash of what a kernel is made of, whatever compiles it."""
        return key_of(self.architecture, whole_text(template), template.options())

    def built(self) -> dict[str, bytes]:
        """Return the cubins in use by what they are made of; any thread."""
        used = dict.fromkeys([*self._loaded, *self._cubins])
        return {self._name(template): self._cubin(template) for template in used}

    def install(self, cubins: Mapping[str, bytes]) -> None:
        """Keep cubins on disk, where they are found ahead of the compiler; any thread.

        Raises:
            OSError: the disk does not take them.
        """
        for name, cubin in cubins.items():
            self._prebuilt.put(name, {CUBIN: cubin}, anew=True)

    def loaded(self, template: Template) -> Kernel:
        """Return a kernel that was compiled, if only by a search that has just ended."""
        if template not in self._loaded:
            cubin = self._cubins.pop(template, None)
            self._loaded[template] = Kernel(cubin or self._cubin(template))
        return self._loaded[template]

    def tried(self, template: Template) -> Kernel:
        """Compile and load a kernel that need not be kept; any thread."""
        return Kernel(self._cubin(template))

    def close(self) -> None:
        """Unload the kernels; waits for the device."""
        # What cannot be waited for belongs to a lost context, as the next call tells.
        with contextlib.suppress(runtime.CUDARuntimeError):
            runtime.deviceSynchronize()
        self._loaded.clear()


@cache
def text_of(sources: tuple[str, ...]) -> str:
    """Return the C++ of templates."""
    folder = Path(__file__)
    return "\n".join(folder.with_name("templates").joinpath(name).read_text() for name in sources)


def whole_text(template: Template) -> str:
    """Return the C++ of a kernel."""
    return template.ahead + text_of(template.sources)


def every_template() -> str:
    """Return a hash of all that kernels are made of."""
    folder = Path(__file__).with_name("templates")
    return key_of([file.read_text() for file in sorted(folder.glob("*.cu*"))])


def program_of(template: Template) -> Compile:
    """Return what is compiled for a template.

    Raises:
        BackendUnavailable: CUTLASS's headers are not installed.
    """
    if nvrtc.cutlass_headers() is None:
        raise BackendUnavailable(f"CUTLASS's headers are not installed; {pip_install('cutlass')}")
    headers = elsewhere(nvrtc.include_folders())
    return Compile(whole_text(template), "multiply", template.options(), headers)


@cache
def elsewhere(folders: tuple[str, ...]) -> dict[str, str]:
    """Return headers that stand for others.

    Those of libcu++ CUTLASS asks for where CUDA 13's toolkit has them; they lead to
    those that are in the folders, and are left out where that place is there, too.
    What no kernel here needs, and what needs the compiler's own headers, is empty.
    """
    found = {"cutlass/arch/wmma.h": "#pragma once\n"}
    if any(Path(one, "cccl/cuda/std").is_dir() for one in folders):
        return found
    libcuxx = {f"cccl/cuda/std/{name}": f"#include <cuda/std/{name}>\n" for name in LIBCUXX}
    return found | libcuxx
