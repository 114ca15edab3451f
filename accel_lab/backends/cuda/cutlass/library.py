"""Products of matrices on cuda: CUTLASS's headers, compiled by NVRTC and kept on disk.

`Params` are made by the kernel itself, and not by CUTLASS's host code, which NVRTC cannot run.
"""

import contextlib
import struct
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import cupy
import numpy as np
from cupy.cuda import driver, runtime
from cupy.cuda.function import Module

from accel_lab.backends.cuda.cutlass.operands import ALIGNED, Matrix, aligned, lying, placed
from accel_lab.backends.cuda.cutlass.variant import KINDS, Variant, default_tile, writes_wide
from accel_lab.backends.cuda.jit import nvrtc
from accel_lab.backends.cuda.jit.cubin import data_of
from accel_lab.backends.cuda.jit.library import CudaJit
from accel_lab.compute.execution.worker import Worker
from accel_lab.compute.machine.disk_cache import DiskCache, cache_folder, key_of
from accel_lab.display.install import pip_install
from accel_lab.errors import BackendUnavailable, InvalidArgument
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.cutlass.library import SUMS, Gemm
from accel_lab.libraries.jit.messages import Compile

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

FORMAT = 1
OLDEST = 80
LIBCUXX = ("cassert", "cstddef", "cstdint", "limits", "tuple", "type_traits", "utility")
"""What CUTLASS's headers take from libcu++."""
_RUNS = 5
_CHOICE = "tile.txt"


class Problem(NamedTuple):
    """What a product is, but for where its operands are and which tile does it."""

    plain: Variant
    rows: int
    columns: int
    inner: int


class GemmKernel:
    """A kernel that is loaded."""

    def __init__(self, variant: Variant, cubin: bytes) -> None:
        self._variant = variant
        self._shared_bytes, self._threads = struct.unpack("=2I", data_of(cubin, "facts"))
        module = Module()
        module.load(cubin)
        self._function = module.get_function("multiply")
        driver.funcSetAttribute(
            self._function.ptr,
            driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            self._shared_bytes,
        )

    def run(
        self,
        matrices: tuple[Any, Any],
        how: tuple[Matrix, Matrix],
        bias: Any,
        out: Any,
        scale: Number,
    ) -> None:
        """Enqueue a product on CuPy's current stream; `out` is contiguous."""
        (a, b), (rows, columns), dtype = matrices, out.shape, self._variant.dtype
        inner = how[0].step if how[0].is_copied else a.shape[1]
        sums = np.dtype(SUMS.get(dtype, dtype)).type
        given = (
            *map(np.int32, (rows, columns, inner)),
            sums(scale),
            sums(bias is not None),
            *(0 if x is None else x.data.ptr for x in (a, b, bias, out)),
            how[0].step,
            how[1].step,
            columns,
        )
        grid, block = self._variant.grid(rows, columns), (self._threads, 1, 1)
        self._function(grid, block, given, self._shared_bytes)


class CudaCutlass:
    """Enqueues on the device's active stream; used by the dispatcher thread, but for `search`."""

    def __init__(self, device: "CudaDevice") -> None:
        self._jit = CudaJit(device)
        properties = runtime.getDeviceProperties(device.index)
        self._processors: int = properties["multiProcessorCount"]
        self._card = properties["name"].decode()
        self._cache = DiskCache(cache_folder() / "cuda-cutlass")
        self._kernels: dict[Variant, GemmKernel] = {}
        self._cubins: dict[Variant, bytes] = {}
        self._tiles: dict[Problem, int | None] = {}

    def missing(self, m: Gemm, a: Any, b: Any) -> Callable[[], None] | None:
        """Return what compiles the kernel for a product, on any thread; None if it is there."""
        problem, _ = problem_of(m, a, b)
        variant = self._variant(problem)
        if not _has_elements(problem) or variant in self._kernels or variant in self._cubins:
            return None
        return partial(self._compile, variant)

    def has_searched(self, m: Gemm, a: Any, b: Any) -> bool:
        """Whether the tiles for such a product have been timed, by whatever process."""
        problem, _ = problem_of(m, a, b)
        return not _has_elements(problem) or self._tile(problem) is not None

    def search(self, m: Gemm, a: Any, b: Any, bias: Any, worker: Worker) -> None:
        """Time each tile and keep the fastest; blocks the worker."""
        del worker  # its stream is CuPy's current one
        problem, how = problem_of(m, a, b)
        matrices = placed(a, how[0]), placed(b, how[1])
        # bfloat16 is held as its bits
        made = "int32" if m.a.dtype == "int8" else a.dtype
        out = cupy.ndarray((problem.rows, problem.columns), made)
        times = []
        for tile in range(len(KINDS[m.a.dtype].tiles)):
            variant = problem.plain._replace(tile=tile)
            self._compile(variant)
            kernel = GemmKernel(variant, self._cubins[variant])
            run = partial(kernel.run, matrices, how, _added(bias, m), out, 1)
            times.append(timed_us(run))
        fastest = times.index(min(times))
        self._tiles[problem] = fastest
        with contextlib.suppress(OSError):  # without a disk it is timed in every process
            self._cache.put(self._key(problem), {_CHOICE: str(fastest).encode()})

    def gemm(self, m: Gemm, a: Any, b: Any, bias: Any, out: Any, scale: Number) -> None:
        """Write epilogue(scale a @ b + bias)."""
        problem, how = problem_of(m, a, b)
        if not _has_elements(problem):
            return
        kernel = self._kernel(self._variant(problem))
        is_direct = out.flags.c_contiguous and out.data.ptr % ALIGNED == 0
        target = out if is_direct else cupy.ndarray(out.shape, out.dtype)
        kernel.run((placed(a, how[0]), placed(b, how[1])), how, _added(bias, m), target, scale)
        if target is not out:
            cupy.copyto(out, target)

    def statistics(self) -> Mapping[str, int]:
        """Count kernels, and products whose tiles were timed; any thread."""
        searched = sum(tile is not None for tile in list(self._tiles.values()))
        return {"kernels": len(self._kernels), "searched": searched}

    def close(self) -> None:
        """Unload the kernels; waits for the device."""
        # What cannot be waited for belongs to a lost context, as the next call tells.
        with contextlib.suppress(runtime.CUDARuntimeError):
            runtime.deviceSynchronize()
        self._kernels.clear()

    def _variant(self, problem: Problem) -> Variant:
        tile = self._tile(problem)
        if tile is None:
            size = problem.rows, problem.columns
            tile = default_tile(problem.plain.dtype, *size, self._processors)
        return problem.plain._replace(tile=tile)

    def _tile(self, problem: Problem) -> int | None:
        """Return the fastest tile, if it is known."""
        if problem not in self._tiles:
            found = self._cache.get(self._key(problem)) or {}
            text = found.get(_CHOICE, b"").decode()
            known = range(len(KINDS[problem.plain.dtype].tiles))
            self._tiles[problem] = int(text) if text.isdigit() and int(text) in known else None
        return self._tiles[problem]

    def _key(self, problem: Problem) -> str:
        return key_of(FORMAT, self._card, nvrtc.version(), tuple(problem), KINDS)

    def _kernel(self, variant: Variant) -> GemmKernel:
        if variant not in self._kernels:
            self._kernels[variant] = GemmKernel(variant, self._cubins.pop(variant))
        return self._kernels[variant]

    def _compile(self, variant: Variant) -> None:
        """Compile a kernel, or find it on disk; any thread.

        Raises:
            BackendUnavailable: CUTLASS's headers are not installed.
            InvalidArgument: the card is too old.
        """
        if int(self._jit.architecture) < OLDEST:
            raise InvalidArgument(
                "Gemm: CUTLASS's kernels here are for cards of compute capability 8.0 or higher; "
                "send blas_lt.matmul"
            )
        self._cubins[variant] = self._jit.build(program_of(variant)).compiled.cubin


@cache
def template() -> str:
    """Return the C++ of all kernels."""
    return Path(__file__).with_name("gemm.cu").read_text()


def program_of(variant: Variant) -> Compile:
    """Return what is compiled for a variant.

    Raises:
        BackendUnavailable: CUTLASS's headers are not installed.
    """
    if nvrtc.cutlass_headers() is None:
        raise BackendUnavailable(f"CUTLASS's headers are not installed; {pip_install('cutlass')}")
    return Compile(
        template(), "multiply", variant.options(), headers=elsewhere(nvrtc.include_folders())
    )


@cache
def elsewhere(folders: tuple[str, ...]) -> dict[str, str]:
    """Return headers of libcu++ that CUTLASS asks for where CUDA 13's toolkit has them.

    They lead to those that are in the folders, and are none where that place is there, too.
    """
    if any(Path(one, "cccl/cuda/std").is_dir() for one in folders):
        return {}
    return {f"cccl/cuda/std/{name}": f"#include <cuda/std/{name}>\n" for name in LIBCUXX}


def problem_of(m: Gemm, a: Any, b: Any) -> tuple[Problem, tuple[Matrix, Matrix]]:
    """Return what a product is, and how its operands lie."""
    how = lying(m.a.dtype, a, b)
    (rows, inner), columns = a.shape, b.shape[1]
    wide = writes_wide(m.a.dtype, columns)
    plain = Variant(m.a.dtype, how[0].layout, how[1].layout, m.epilogue, wide, 0)
    return Problem(plain, rows, columns, inner), how


def timed_us(run: Callable[[], object]) -> float:
    """Return how long a call's work takes on CuPy's current stream, in microseconds; blocks."""
    run()
    began, ended = cupy.cuda.Event(), cupy.cuda.Event()
    began.record()
    for _ in range(_RUNS):
        run()
    ended.record()
    ended.synchronize()
    return float(cupy.cuda.get_elapsed_time(began, ended)) * 1e3 / _RUNS


def _added(bias: Any, m: Gemm) -> Any:
    """Return the bias as a kernel reads it, in the dtype of the result; None stays."""
    return bias.astype("int32") if bias is not None and m.a.dtype == "int8" else aligned(bias)


def _has_elements(problem: Problem) -> bool:
    return problem.rows > 0 and problem.columns > 0
