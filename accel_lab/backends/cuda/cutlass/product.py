"""One product of two matrices on cuda, and the search for its tile."""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import cupy
import numpy as np

from accel_lab.backends.cuda.cutlass.kernels import Kernel, Kernels
from accel_lab.backends.cuda.cutlass.operands import Matrix, added, is_direct, lying, placed
from accel_lab.backends.cuda.cutlass.variant import KINDS, Variant, default_tile, writes_wide
from accel_lab.backends.cuda.jit import nvrtc
from accel_lab.compute.execution.worker import Worker
from accel_lab.compute.machine.disk_cache import DiskCache, cache_folder, key_of
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.cutlass.library import Build
from accel_lab.libraries.cutlass.message import SUMS
from accel_lab.libraries.cutlass.product import Gemm

FORMAT = 1
_RUNS = 5
_CHOICE = "tile.txt"


class Problem(NamedTuple):
    """What a product is, but for where its operands are and which tile does it."""

    plain: Variant
    rows: int
    columns: int
    inner: int


class CudaProducts:
    """Products of two matrices."""

    _kernels: Kernels

    def __init__(self) -> None:
        super().__init__()
        self._cache = DiskCache(cache_folder() / "cuda-cutlass")
        self._tiles: dict[Problem, int | None] = {}

    @property
    def searched(self) -> int:
        """Of how many products the tiles were timed; any thread."""
        return sum(tile is not None for tile in list(self._tiles.values()))

    def missing(self, m: Gemm, a: Any, b: Any) -> Build:
        """Return what compiles the kernel for a product, on any thread; None if it is there."""
        problem, _ = problem_of(m, a, b)
        return self._kernels.missing(self._variant(problem)) if _has_elements(problem) else None

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
            kernel = self._kernels.tried(variant)
            times.append(
                timed_us(
                    partial(run, kernel, variant, matrices, how, added(bias, m.a.dtype), out, 1)
                )
            )
        fastest = times.index(min(times))
        self._tiles[problem] = fastest
        with contextlib.suppress(OSError):  # without a disk it is timed in every process
            self._cache.put(self._key(problem), {_CHOICE: str(fastest).encode()})

    def gemm(self, m: Gemm, a: Any, b: Any, bias: Any, out: Any, scale: Number) -> None:
        """Write epilogue(scale a @ b + bias)."""
        problem, how = problem_of(m, a, b)
        if not _has_elements(problem):
            return
        variant = self._variant(problem)
        kernel = self._kernels.loaded(variant)
        target = out if is_direct(out) else cupy.ndarray(out.shape, out.dtype)
        matrices = placed(a, how[0]), placed(b, how[1])
        run(kernel, variant, matrices, how, added(bias, m.a.dtype), target, scale)
        if target is not out:
            cupy.copyto(out, target)

    def _variant(self, problem: Problem) -> Variant:
        tile = self._tile(problem)
        if tile is None:
            size = problem.rows, problem.columns
            tile = default_tile(problem.plain.dtype, *size, self._kernels.processors)
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
        return key_of(FORMAT, self._kernels.card, nvrtc.version(), tuple(problem), KINDS)


def problem_of(m: Gemm, a: Any, b: Any) -> tuple[Problem, tuple[Matrix, Matrix]]:
    """Return what a product is, and how its operands lie."""
    how = lying(m.a.dtype, a, b)
    (rows, inner), columns = a.shape, b.shape[1]
    wide = writes_wide(m.a.dtype, columns)
    plain = Variant(m.a.dtype, how[0].layout, how[1].layout, m.epilogue, wide, 0)
    return Problem(plain, rows, columns, inner), how


def run(
    kernel: Kernel,
    variant: Variant,
    matrices: tuple[Any, Any],
    how: tuple[Matrix, Matrix],
    bias: Any,
    out: Any,
    scale: Number,
) -> None:
    """Enqueue a product on CuPy's current stream; `out` is contiguous."""
    (a, b), (rows, columns), dtype = matrices, out.shape, variant.dtype
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
    kernel.launch(variant.grid(rows, columns), given)


def timed_us(call: Callable[[], object]) -> float:
    """Return how long a call's work takes on CuPy's current stream, in microseconds; blocks."""
    call()
    began, ended = cupy.cuda.Event(), cupy.cuda.Event()
    began.record()
    for _ in range(_RUNS):
        call()
    ended.record()
    ended.synchronize()
    return float(cupy.cuda.get_elapsed_time(began, ended)) * 1e3 / _RUNS


def _has_elements(problem: Problem) -> bool:
    return problem.rows > 0 and problem.columns > 0
