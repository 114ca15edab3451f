"""One product of two matrices on cuda, and the search for its tile."""

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import cupy
import numpy as np

from accel_lab.backends.cuda.cutlass.hopper import (
    TILES,
    Factors,
    HopperTile,
    HopperVariant,
    is_wide,
    largest,
    run_hopper,
)
from accel_lab.backends.cuda.cutlass.kernels import Kernel, Kernels
from accel_lab.backends.cuda.cutlass.operands import Matrix, added, is_direct, lying, placed
from accel_lab.backends.cuda.cutlass.variant import (
    HOPPER,
    HOPPER_KINDS,
    Tile,
    Variant,
    default_tile,
    writes_wide,
)
from accel_lab.compute.execution.worker import Worker
from accel_lab.compute.machine.disk_cache import DiskCache, cache_folder, key_of
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import Number, element
from accel_lab.libraries.cutlass.float8 import ScaledGemm
from accel_lab.libraries.cutlass.library import Build
from accel_lab.libraries.cutlass.message import SUMS, made_of
from accel_lab.libraries.cutlass.product import Gemm

FORMAT = 3
_RUNS = 5
_CHOICE = "tile.txt"
Product: TypeAlias = Gemm | ScaledGemm


class Problem(NamedTuple):
    """What a product is, but for where its operands are and which tile does it."""

    plain: Variant | HopperVariant
    rows: int
    columns: int
    inner: int

    @property
    def tiles(self) -> tuple[Tile | HopperTile, ...]:
        """What there is to choose from."""
        plain = self.plain
        return TILES[plain.dtype] if isinstance(plain, HopperVariant) else plain.kind.every

    @property
    def name(self) -> str:
        """A hash of what it is, the same on every machine."""
        return key_of(tuple(self), self.tiles)


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

    def missing(self, m: Product, a: Any, b: Any) -> Build:
        """Return what compiles the kernel for a product, on any thread; None if it is there."""
        problem, _ = self._problem(m, a, b)
        return self._kernels.missing(self._variant(problem)) if _has_elements(problem) else None

    def has_searched(self, m: Product, a: Any, b: Any) -> bool:
        """Whether the tiles for such a product have been timed, by whatever process."""
        problem, _ = self._problem(m, a, b)
        return not _has_elements(problem) or self._tile(problem) is not None

    def search(self, m: Product, a: Any, b: Any, bias: Any, worker: Worker) -> None:
        """Time each tile and keep the fastest; blocks the worker."""
        del worker  # its stream is CuPy's current one
        problem, how = self._problem(m, a, b)
        matrices = placed(a, how[0]), placed(b, how[1])
        out = cupy.ndarray((problem.rows, problem.columns), _held(m))
        vector = added(bias, m.a.dtype)
        times = []
        for tile in range(len(problem.tiles)):
            variant = problem.plain._replace(tile=tile)
            kernel = self._kernels.tried(variant)
            times.append(
                timed_us(
                    partial(self._run, kernel, variant, matrices, how, vector, out, Factors(1))
                )
            )
        fastest = times.index(min(times))
        self._kernels.compile(problem.plain._replace(tile=fastest))
        self._tiles[problem] = fastest
        with contextlib.suppress(OSError):  # without a disk it is timed in every process
            self._keep(problem.name, fastest)

    def gemm(self, m: Gemm, a: Any, b: Any, bias: Any, out: Any, scale: Number) -> None:
        """Write epilogue(scale a @ b + bias)."""
        self._multiply(m, (a, b, bias), out, Factors(scale))

    def scaled_gemm(
        self, m: ScaledGemm, a: Any, b: Any, bias: Any, scales: tuple[Any, Any], out: Any
    ) -> None:
        """Write epilogue(scale scale_a scale_b a @ b + bias)."""
        scale = element(m, "scale", m.scale, "float32")
        self._multiply(m, (a, b, bias), out, Factors(scale, *scales))

    def _multiply(
        self, m: Product, operands: tuple[Any, Any, Any], out: Any, factors: Factors
    ) -> None:
        a, b, bias = operands
        problem, how = self._problem(m, a, b)
        if not _has_elements(problem):
            return
        variant = self._variant(problem)
        kernel = self._kernels.loaded(variant)
        target = out if is_direct(out) else cupy.ndarray(out.shape, out.dtype)
        matrices = placed(a, how[0]), placed(b, how[1])
        self._run(kernel, variant, matrices, how, added(bias, m.a.dtype), target, factors)
        if target is not out:
            cupy.copyto(out, target)

    def _run(
        self,
        kernel: Kernel,
        variant: Variant | HopperVariant,
        matrices: tuple[Any, Any],
        how: tuple[Matrix, Matrix],
        bias: Any,
        out: Any,
        factors: Factors,
    ) -> None:
        if isinstance(variant, HopperVariant):
            processors = self._kernels.processors
            run_hopper(kernel, variant, matrices, how, bias, out, factors, processors)
        else:
            run(kernel, variant, matrices, how, bias, out, factors.scale)

    def _problem(self, m: Product, a: Any, b: Any) -> tuple[Problem, tuple[Matrix, Matrix]]:
        """Return what a product is, and how its operands lie.

        Raises:
            InvalidArgument: the card has no tensor cores for it.
        """
        return problem_of(m, a, b, self._kernels.architecture)

    def _variant(self, problem: Problem) -> Variant | HopperVariant:
        tile = self._tile(problem)
        if tile is None:
            of = largest if isinstance(problem.plain, HopperVariant) else default_tile
            size = problem.rows, problem.columns, self._kernels.processors
            tile = of(problem.plain.dtype, *size)
        return problem.plain._replace(tile=tile)

    def _tile(self, problem: Problem) -> int | None:
        """Return the fastest tile, if it is known."""
        known = self._tiles
        if problem not in known:
            found = self._cache.get(self._key(problem.name)) or {}
            text = found.get(_CHOICE, b"").decode()
            tiles = range(len(problem.tiles))
            known[problem] = int(text) if text.isdigit() and int(text) in tiles else None
        return known[problem]

    def _keep(self, name: str, tile: int) -> None:
        self._cache.put(self._key(name), {_CHOICE: str(tile).encode()}, anew=True)

    def _key(self, name: str) -> str:
        return key_of(FORMAT, self._kernels.card, name)

    def found_tiles(self) -> dict[str, int]:
        """Return the tiles that a search found, by the names of their products; any thread."""
        tiles = dict(self._tiles)
        return {problem.name: tile for problem, tile in tiles.items() if tile is not None}

    def install_tiles(self, tiles: Mapping[str, int]) -> None:
        """Keep tiles that another machine has found; any thread.

        Raises:
            OSError: the disk does not take them.
        """
        for name, tile in tiles.items():
            self._keep(name, tile)
        self._tiles = {}


def problem_of(
    m: Product, a: Any, b: Any, architecture: str
) -> tuple[Problem, tuple[Matrix, Matrix]]:
    """Return what a product is, and how its operands lie.

    Raises:
        InvalidArgument: the card has no tensor cores for it.
    """
    dtype = m.a.dtype
    if isinstance(m, ScaledGemm) and architecture != HOPPER:
        raise InvalidArgument(
            "ScaledGemm: its kernels are for cards of compute capability 9.0, and this one has "
            f"{architecture[:-1]}.{architecture[-1]}; send blas_lt.fused_matmul"
        )
    made = m.dtype if isinstance(m, ScaledGemm) else made_of(dtype)
    return problem_like(dtype, made, m.epilogue, (a, b), architecture)


def problem_like(
    dtype: str, made: str, epilogue: str, matrices: tuple[Any, Any], architecture: str
) -> tuple[Problem, tuple[Matrix, Matrix]]:
    """Return what a product of matrices of a dtype is, and how they lie."""
    a, b = matrices
    how = lying(dtype, a, b)
    (rows, inner), columns = a.shape, b.shape[1]
    layouts = how[0].layout, how[1].layout
    plain: Variant | HopperVariant
    if architecture == HOPPER and dtype in TILES:
        plain = HopperVariant(dtype, *layouts, epilogue, is_wide(columns), made, 0)
    else:
        wide, is_hopper = (
            writes_wide(dtype, columns),
            architecture == HOPPER and dtype in HOPPER_KINDS,
        )
        plain = Variant(dtype, *layouts, epilogue, wide, 0, is_hopper=is_hopper)
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


def _held(m: Product) -> str:
    """Return the dtype of a result as CuPy has it; bfloat16 is held as its bits."""
    made = m.dtype if isinstance(m, ScaledGemm) else made_of(m.a.dtype)
    return "uint16" if made == "bfloat16" else made


def _has_elements(problem: Problem) -> bool:
    return problem.rows > 0 and problem.columns > 0
