"""The kernels that there may be for a product: one for each tile, layout, end and width."""

from collections.abc import Mapping
from typing import NamedTuple

HOPPER = "90"
ROW, COLUMN = "RowMajor", "ColumnMajor"
_WIDE = 16  # bytes that a thread reads or writes at once


class Tile(NamedTuple):
    """What a block, a warp, and an instruction of the card multiply; how many steps are fetched."""

    block: tuple[int, int, int]
    warp: tuple[int, int, int]
    stages: int


class Kind(NamedTuple):
    """How products of a dtype are done.

    Attributes:
        element, made, sums: the C++ types of the operands, the result, and between.
        unit: CUTLASS's name of what does it.
        alignment: of so many elements an operand's rows are a multiple.
        width: so many of a result are written at once, if its rows are a multiple of it.
        tiles: the larger first.
        more: tiles that are used only where a search has found them the fastest.
        card: CUTLASS's name of the cards for which it is done so.
    """

    element: str
    made: str
    sums: str
    unit: str
    operator: str
    instruction: tuple[int, int, int]
    alignment: int
    width: int
    tiles: tuple[Tile, ...]
    more: tuple[Tile, ...] = ()
    card: str = "Sm80"

    @property
    def every(self) -> tuple[Tile, ...]:
        """All tiles that there are."""
        return self.tiles + self.more


_HALVES = (
    Tile((128, 256, 32), (64, 64, 32), 3),
    Tile((256, 128, 32), (64, 64, 32), 3),
    Tile((128, 128, 32), (64, 64, 32), 4),
    Tile((64, 64, 32), (32, 32, 32), 5),
)
_TENSOR = "OpClassTensorOp", "OpMultiplyAdd", (16, 8, 16), 8, 8, _HALVES
KINDS = {
    "float16": Kind("cutlass::half_t", "cutlass::half_t", "float", *_TENSOR),
    "bfloat16": Kind("cutlass::bfloat16_t", "cutlass::bfloat16_t", "float", *_TENSOR),
    "float32": Kind(
        *("float", "float", "float", "OpClassSimt", "OpMultiplyAdd", (1, 1, 1), 1, 1),
        (Tile((128, 128, 8), (32, 64, 8), 4), Tile((64, 64, 8), (32, 32, 8), 4)),
        (
            Tile((256, 128, 8), (64, 64, 8), 5),
            Tile((128, 256, 8), (64, 64, 8), 5),
            Tile((128, 128, 8), (64, 64, 8), 4),
            Tile((256, 128, 16), (64, 64, 16), 3),
        ),
    ),
    "float64": Kind(
        *("double", "double", "double", "OpClassTensorOp", "OpMultiplyAdd", (8, 8, 4), 1, 1),
        (Tile((128, 128, 16), (32, 64, 16), 3), Tile((64, 64, 16), (32, 32, 16), 4)),
    ),
    "int8": Kind(
        *("int8_t", "int", "int", "OpClassTensorOp", "OpMultiplyAddSaturate", (16, 8, 32), 16, 4),
        (
            Tile((128, 256, 64), (64, 64, 64), 3),
            Tile((128, 128, 64), (64, 64, 64), 4),
            Tile((64, 64, 64), (32, 32, 64), 5),
        ),
    ),
}
HOPPER_KINDS = {
    "float64": KINDS["float64"]._replace(
        instruction=(16, 8, 4),
        more=(
            Tile((256, 64, 16), (64, 32, 16), 3),
            Tile((128, 64, 16), (64, 32, 16), 3),
            Tile((64, 128, 16), (32, 64, 16), 3),
        ),
        card="Sm90",
    )
}
"""What a card of compute capability 9.0 does by other instructions, if not by `hopper.cu`."""


ALIGNMENTS = {name: kind.alignment for name, kind in KINDS.items()} | {
    "float8_e4m3fn": 16,
    "float8_e5m2": 16,
}
"""Of so many elements an operand's rows are a multiple."""
_BY_K = frozenset({"int8", "float8_e4m3fn", "float8_e5m2"})


class Variant(NamedTuple):
    """One kernel for products.

    Attributes:
        a, b: how the operands lie, `ROW` or `COLUMN`.
        epilogue: the product's end.
        is_wide: whether several of a result are written at once.
        tile: which of the kind's.
        template: the file that it is made of.
        is_hopper: whether it is as `HOPPER_KINDS` has it.
    """

    dtype: str
    a: str
    b: str
    epilogue: str
    is_wide: bool
    tile: int
    template: str = "gemm.cu"
    is_hopper: bool = False

    @property
    def kind(self) -> Kind:
        """How it is done."""
        return (HOPPER_KINDS if self.is_hopper else KINDS)[self.dtype]

    @property
    def block(self) -> tuple[int, int, int]:
        """What a block multiplies."""
        return self.kind.every[self.tile].block

    @property
    def ahead(self) -> str:
        """Nothing: options fill the files."""
        return ""

    @property
    def sources(self) -> tuple[str, ...]:
        """The files, one behind the other."""
        return ("ends.cuh", self.template)

    def options(self) -> tuple[str, ...]:
        """Return the compiler's options, which fill the template."""
        kind = self.kind
        width = kind.width if self.is_wide else 1
        named = {"LAYOUT_A": self.a, "LAYOUT_B": self.b}
        return defined(kind, self.tile, self.epilogue, width, named)

    def grid(self, rows: int, columns: int) -> tuple[int, int, int]:
        """Return the blocks of a launch."""
        return grid_of(self.block, rows, columns)


def defined(
    kind: Kind, tile: int, epilogue: str, width: int, more: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the compiler's options that fill a template."""
    chosen = kind.every[tile]
    named = {
        "ELEMENT": kind.element,
        "MADE": kind.made,
        "SUM": kind.sums,
        "UNIT": kind.unit,
        "CARD": kind.card,
        "OPERATOR": kind.operator,
        "INSTRUCTION": _listed(kind.instruction),
        "ALIGNMENT": kind.alignment,
        "TILE": _listed(chosen.block),
        "WARP": _listed(chosen.warp),
        "STAGES": chosen.stages,
        "WIDTH": width,
        "END": epilogue.capitalize(),
        **more,
    }
    # CUTLASS's functions for the host have no mark of their own, and are the device's here.
    return ("-default-device", "-w", *(f"-D{name}={value}" for name, value in named.items()))


def grid_of(block: tuple[int, int, int], rows: int, columns: int) -> tuple[int, int, int]:
    """Return the blocks of a launch (GemmIdentityThreadblockSwizzle<8>::get_grid_shape)."""
    down, across = -(-rows // block[0]), -(-columns // block[1])
    wide = 8 if across >= 6 else 4 if across >= 3 else 2 if across >= 2 else 1  # noqa: PLR2004 - CUTLASS's
    return down * wide, -(-across // wide), 1


def default_tile(dtype: str, rows: int, columns: int, processors: int) -> int:
    """Return the largest tile of which there are enough for all processors; else the smallest."""
    tiles = KINDS[dtype].tiles
    for at, tile in enumerate(tiles):
        if -(-rows // tile.block[0]) * -(-columns // tile.block[1]) >= processors:
            return at
    return len(tiles) - 1


def writes_wide(dtype: str, columns: int) -> bool:
    """Whether several of a result's row can be written at once."""
    return columns % KINDS[dtype].width == 0


def padded(dtype: str, inner: int) -> int:
    """Return how many terms a sum has with the zeros that round it up."""
    alignment = ALIGNMENTS[dtype]
    return max(-(-inner // alignment), 1) * alignment


def layouts(dtype: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return how a and b may lie, the first where it has to be copied.

    The tensor cores take int8 and float8 with k beside k alone.
    """
    return ((ROW,), (COLUMN,)) if dtype in _BY_K else ((ROW, COLUMN), (COLUMN, ROW))


def _listed(extents: tuple[int, int, int]) -> str:
    return ",".join(map(str, extents))
