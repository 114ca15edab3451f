"""Products by the tensor cores of compute capability 9.0: tiles by TMA, products by wgmma."""

import ctypes
from typing import Any, NamedTuple

from accel_lab.backends.cuda.cutlass.kernels import Kernel
from accel_lab.backends.cuda.cutlass.operands import Matrix
from accel_lab.backends.cuda.cutlass.variant import COLUMN, KINDS, ROW
from accel_lab.backends.cuda.jit.driver_calls import tiled
from accel_lab.compute.arrays.dtypes import itemsize
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.jit.tensor_map import NBYTES, Tiling

DEPTH_BYTES = 128
"""A row of a tile, as TMA's widest swizzle has it."""
_BLOCK = 64  # columns of a box whose k are rows


class HopperTile(NamedTuple):
    """What a block multiplies, how many share columns, and how many stages are fetched."""

    rows: int
    columns: int
    cluster: int
    stages: int


_HALVES = (
    HopperTile(128, 256, 2, 4),
    HopperTile(128, 128, 2, 6),
    HopperTile(128, 64, 1, 8),
)
_FLOAT8 = HopperTile(128, 128, 2, 6), HopperTile(128, 64, 1, 8)
TILES = {
    "float16": _HALVES,
    "bfloat16": _HALVES,
    "int8": _HALVES,
    "float8_e4m3fn": _FLOAT8,
    "float8_e5m2": _FLOAT8,
}
"""The larger first. Of float8 the sums are held twice, so that a tile is half as large."""
_ELEMENTS = {
    "float16": "cutlass::half_t",
    "bfloat16": "cutlass::bfloat16_t",
    "float32": "float",
    "int8": "int8_t",
    "int32": "int",
    "float8_e4m3fn": "cutlass::float_e4m3_t",
    "float8_e5m2": "cutlass::float_e5m2_t",
}


class HopperVariant(NamedTuple):
    """One kernel; the fields are those of `Variant`, and `made` is the dtype of the result."""

    dtype: str
    a: str
    b: str
    epilogue: str
    is_wide: bool
    made: str
    tile: int

    @property
    def extents(self) -> HopperTile:
        """What a block multiplies."""
        return TILES[self.dtype][self.tile]

    @property
    def ahead(self) -> str:
        """Nothing: options fill the files."""
        return ""

    @property
    def sources(self) -> tuple[str, ...]:
        """The files, one behind the other."""
        return ("ends.cuh", "hopper.cu")

    def options(self) -> tuple[str, ...]:
        """Return the compiler's options, which fill the template."""
        tile = self.extents
        named = {
            "ELEMENT": _ELEMENTS[self.dtype],
            "MADE": _ELEMENTS[self.made],
            "SUM": "int" if self.made == "int32" else "float",
            "WIDTH": 2 if self.is_wide else 1,
            "END": self.epilogue.capitalize(),
            "MAJOR_A": "K" if self.a == ROW else "MN",
            "MAJOR_B": "K" if self.b == COLUMN else "MN",
            "ROWS": tile.rows,
            "COLUMNS": tile.columns,
            "CLUSTER": tile.cluster,
            "STAGES": tile.stages,
        }
        # An assertion is a call, for which wgmma would have to wait.
        plain = "-default-device", "-w", "-DNDEBUG"
        return (*plain, *(f"-D{name}={value}" for name, value in named.items()))

    def grid(self, rows: int, columns: int, processors: int) -> tuple[int, int, int]:
        """Return the blocks of a launch: clusters that take tiles in turn."""
        tile = self.extents
        clusters = -(-rows // (tile.rows * tile.cluster)) * -(-columns // tile.columns)
        most = max(processors // tile.cluster, 1)
        return min(clusters, most) * tile.cluster, 1, 1


class Factors(NamedTuple):
    """What sums are multiplied by: a number, and two that may be on the device."""

    scale: Number
    a: Any = None
    b: Any = None


def largest(dtype: str, rows: int, columns: int, processors: int) -> int:
    """Return the largest tile of which there are enough for all processors; else the smallest."""
    for at, tile in enumerate(TILES[dtype]):
        if -(-rows // tile.rows) * -(-columns // tile.columns) >= processors:
            return at
    return len(TILES[dtype]) - 1


def boxes(variant: HopperVariant) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the extents of what TMA fetches at once of a and of b, as their memory lies."""
    tile, depth = variant.extents, DEPTH_BYTES // itemsize(variant.dtype)
    by_k = (tile.rows, depth), (tile.columns // tile.cluster, depth)
    by_columns = depth, _BLOCK
    return (
        by_k[0] if variant.a == ROW else by_columns,
        by_k[1] if variant.b == COLUMN else by_columns,
    )


def run_hopper(
    kernel: Kernel,
    variant: HopperVariant,
    matrices: tuple[Any, Any],
    how: tuple[Matrix, Matrix],
    bias: Any,
    out: Any,
    factors: Factors,
    processors: int,
    more: tuple[Any, ...] = (),
) -> None:
    """Enqueue a product on CuPy's current stream; `out` is contiguous.

    Parameters:
        more: what else the kernel takes, of ctypes.
    """
    (rows, columns), inner = out.shape, matrices[0].shape[1]
    if how[0].is_copied:
        inner = how[0].step
    maps = []
    for x, lies, box in zip(matrices, how, boxes(variant), strict=True):
        memory = x if lies.is_copied or lies.layout == ROW else x.T
        maps.append(tiled(memory, variant.dtype, Tiling(0, box, DEPTH_BYTES, 128)))
    number = factors.scale.real
    scale = ctypes.c_int(int(number)) if variant.made == "int32" else ctypes.c_float(number)
    addresses = (0 if x is None else x.data.ptr for x in (factors.a, factors.b, bias, out))
    given = (
        *((ctypes.c_char * NBYTES).from_buffer_copy(one) for one in maps),
        *map(ctypes.c_int, (rows, columns, inner)),
        scale,
        *map(ctypes.c_uint64, addresses),
        *more,
    )
    kernel.launch_packed(variant.grid(rows, columns, processors), given)


def is_wide(columns: int) -> bool:
    """Whether two elements of a row can be written at once, wherever the row is."""
    return columns % KINDS["float16"].width == 0
