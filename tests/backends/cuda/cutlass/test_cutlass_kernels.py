"""CUTLASS's kernels: what NVRTC makes of the template, without a GPU; how operands lie."""

import struct
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

if find_spec("cupy") is None:
    pytest.skip(
        "the packages of the cuda12 or cuda13 extra are not installed", allow_module_level=True
    )

from accel_lab.backends.cuda.cutlass.convolution import DIRECTIONS, ConvVariant
from accel_lab.backends.cuda.cutlass.hopper import TILES, HopperVariant, boxes, largest
from accel_lab.backends.cuda.cutlass.kernels import elsewhere, program_of
from accel_lab.backends.cuda.cutlass.operands import lying, row_step
from accel_lab.backends.cuda.cutlass.product import problem_like
from accel_lab.backends.cuda.cutlass.variant import (
    COLUMN,
    HOPPER_KINDS,
    KINDS,
    ROW,
    Variant,
    default_tile,
    layouts,
    padded,
    writes_wide,
)
from accel_lab.backends.cuda.jit import nvrtc
from accel_lab.backends.cuda.jit.cubin import data_of
from accel_lab.compute.arrays.dtypes import itemsize
from accel_lab.errors import BackendUnavailable

needs_headers = pytest.mark.skipif(
    nvrtc.cutlass_headers() is None, reason="the headers of the cutlass extra are not installed"
)
SHARED_LIMIT = 227 << 10


@needs_headers
@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "tile"), [(name, at) for name, kind in KINDS.items() for at in range(len(kind.every))]
)
def test_every_tile_of_every_dtype_compiles(dtype: str, tile: int) -> None:
    a, b = layouts(dtype)
    epilogue = "relu" if dtype == "int8" else "gelu"
    check_compiled(Variant(dtype, a[-1], b[-1], epilogue, is_wide=True, tile=tile))


@needs_headers
@pytest.mark.slow
@pytest.mark.parametrize("tile", range(len(HOPPER_KINDS["float64"].every)))
def test_every_tile_of_float64_compiles_for_hopper(tile: int) -> None:
    a, b = (one[tile % 2] for one in layouts("float64"))
    check_compiled(Variant("float64", a, b, "gelu", is_wide=True, tile=tile, is_hopper=True))


@needs_headers
@pytest.mark.slow
@pytest.mark.parametrize("dtype", KINDS)
def test_every_layout_compiles_for_rows_of_any_length(dtype: str) -> None:
    last = len(KINDS[dtype].tiles) - 1
    every = [(a, b) for a in layouts(dtype)[0] for b in layouts(dtype)[1]]
    for a, b in every:
        check_compiled(Variant(dtype, a, b, "identity", is_wide=False, tile=last))


@needs_headers
@pytest.mark.slow
@pytest.mark.parametrize("dtype", KINDS)
def test_every_dtype_compiles_for_groups(dtype: str) -> None:
    last = len(KINDS[dtype].tiles) - 1
    a, b = layouts(dtype)
    variant = Variant(dtype, a[0], b[-1], "relu", is_wide=True, tile=last, template="grouped.cu")
    check_compiled(variant)


@needs_headers
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("direction", sorted(DIRECTIONS.values()))
def test_every_direction_of_a_convolution_compiles(dtype: str, direction: tuple[str, str]) -> None:
    check_compiled(ConvVariant(dtype, *direction, "gelu", 0))


OF_HOPPER = [
    HopperVariant(dtype, a, b, "relu" if dtype == "int8" else "gelu", at != 1, made, at)
    for dtype, a, b, made in (
        ("float16", ROW, COLUMN, "float16"),
        ("bfloat16", COLUMN, ROW, "bfloat16"),
        ("int8", ROW, COLUMN, "int32"),
        ("float8_e4m3fn", ROW, COLUMN, "float32"),
        ("float8_e5m2", ROW, COLUMN, "bfloat16"),
    )
    for at in range(len(TILES[dtype]))
]


@needs_headers
@pytest.mark.slow
@pytest.mark.parametrize("variant", OF_HOPPER, ids=str)
def test_every_tile_compiles_for_hopper(variant: HopperVariant) -> None:
    """Without spills, and with products that do not wait for each other."""
    checked = program_of(variant)
    options = (*checked.options, "--ptxas-options=-v")
    made = nvrtc.build(msgspec.structs.replace(checked, options=options), "90")
    shared_bytes, threads = struct.unpack("=2I", data_of(made.cubin, "facts"))
    assert threads == 128 * (1 + variant.extents.rows // 64)
    assert 0 < shared_bytes <= SHARED_LIMIT
    assert "0 bytes spill stores, 0 bytes spill loads" in made.log
    assert "serialized" not in made.log


@pytest.mark.parametrize("variant", OF_HOPPER, ids=str)
def test_boxes_fill_the_stages_of_hopper(variant: HopperVariant) -> None:
    """A box's last extent is 128 bytes, the swizzle's, and no extent is above TMA's 256."""
    tile, size = variant.extents, itemsize(variant.dtype)
    for (rows, columns), extent in zip(boxes(variant), (tile.rows, tile.columns), strict=True):
        assert columns * size == 128
        assert max(rows, columns) <= 256
        assert extent * 128 // size % (rows * columns) == 0
    stage = 128 * (tile.rows + tile.columns)
    assert tile.stages * stage + 2048 <= SHARED_LIMIT
    assert variant.grid(8192, 8192, 132) == (132, 1, 1)
    assert variant.grid(1, 1, 132) == (tile.cluster, 1, 1)


def test_the_largest_tile_of_hopper_that_fills_the_card_is_taken() -> None:
    assert largest("bfloat16", 8192, 8192, 132) == 0
    assert largest("bfloat16", 2048, 1024, 132) == 2


@needs_headers
def test_a_kernel_compiles() -> None:
    check_compiled(Variant("float32", ROW, ROW, "relu", is_wide=False, tile=1))


def check_compiled(variant: Variant | ConvVariant) -> None:
    """Compile for the H100 without spills, and look at what the kernel says of itself."""
    checked = program_of(variant)
    options = (*checked.options, "--ptxas-options=-v")
    made = nvrtc.build(msgspec.structs.replace(checked, options=options), "90")
    shared_bytes, threads = struct.unpack("=2I", data_of(made.cubin, "facts"))
    kind = variant.kind if isinstance(variant, Variant) else KINDS[variant.dtype]
    tile = kind.every[variant.tile]
    assert "0 bytes spill stores, 0 bytes spill loads" in made.log
    warps = [block // warp for block, warp in zip(tile.block, tile.warp, strict=True)]
    assert threads == 32 * np.prod(warps)
    assert 0 < shared_bytes <= SHARED_LIMIT


def test_libcuxx_is_found_where_a_toolkit_does_not_have_it(tmp_path: Path) -> None:
    found = elsewhere((str(tmp_path),))
    assert found["cccl/cuda/std/tuple"] == "#include <cuda/std/tuple>\n"
    (tmp_path / "cccl/cuda/std").mkdir(parents=True)
    assert "cccl/cuda/std/tuple" not in elsewhere((str(tmp_path), "with it"))


def test_without_the_headers_it_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "cutlass_headers", lambda: None)
    with pytest.raises(BackendUnavailable, match=r"CUTLASS's headers are not installed.*cutlass"):
        program_of(Variant("float32", ROW, ROW, "relu", is_wide=True, tile=0))


def matrix(shape: tuple[int, int], dtype: str, at: int = 1 << 20) -> Any:
    """Return an array whose memory is said to begin there."""
    return view(np.zeros(shape, np.uint16 if dtype == "bfloat16" else dtype), at)


def view(x: Any, at: int = 1 << 20) -> Any:
    seen = SimpleNamespace(shape=x.shape, strides=x.strides, itemsize=x.itemsize)
    seen.data = SimpleNamespace(ptr=at)
    seen.T = SimpleNamespace(
        shape=x.shape[::-1], strides=x.strides[::-1], itemsize=x.itemsize, data=seen.data
    )
    return seen


def test_rows_of_whole_vectors_are_read_where_they_lie() -> None:
    assert row_step(matrix((4, 16), "float16"), 8) == 16
    assert row_step(view(np.zeros((4, 32), np.float16)[:, :16]), 8) == 32
    assert row_step(matrix((1, 8), "float16"), 8) == 8
    assert row_step(matrix((5, 1), "float32"), 1) == 1


@pytest.mark.parametrize(
    "x",
    [
        matrix((4, 12), "float16"),
        matrix((4, 16), "float16", at=(1 << 20) + 2),
        view(np.zeros((4, 20), np.float16)[:, :16]),
        view(np.zeros((4, 32), np.float16)[:, ::2]),
        view(np.zeros((16, 4), np.float16).T),
        view(np.zeros((4, 16), np.float16)[::-1]),
        view(np.broadcast_to(np.zeros(16, np.float16), (4, 16))),
    ],
)
def test_others_are_not(x: Any) -> None:
    assert row_step(x, 8) == 0


def test_operands_lie_as_they_are_or_are_copied() -> None:
    a, b = lying("float16", matrix((24, 16), "float16"), matrix((16, 40), "float16"))
    assert (a.layout, a.step, a.is_copied) == (ROW, 16, False)
    assert (b.layout, b.step, b.is_copied) == (ROW, 40, False)
    turned = view(np.zeros((40, 16), np.float16).T)
    assert lying("float16", matrix((24, 16), "float16"), turned)[1] == (COLUMN, 16, False)
    a, b = lying("float16", matrix((24, 15), "float16"), matrix((15, 40), "float16"))
    assert (a, b) == ((ROW, 16, True), (COLUMN, 16, True))
    a, b = lying("int8", matrix((24, 32), "int8"), matrix((32, 48), "int8"))
    assert (a, b) == ((ROW, 32, False), (COLUMN, 32, True))


def test_sums_are_rounded_up_to_vectors_and_never_empty() -> None:
    assert [padded("float16", k) for k in (0, 1, 8, 9)] == [8, 8, 8, 16]
    assert [padded("float32", k) for k in (0, 1, 7)] == [1, 1, 7]
    assert writes_wide("float16", 24)
    assert not writes_wide("float16", 20)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (4096, 4096), (130, 700), (64, 100_000)])
def test_every_tile_of_a_product_is_in_the_grid(rows: int, columns: int) -> None:
    """As the kernel finds its tile: GemmIdentityThreadblockSwizzle::get_tile_offset."""
    variant = Variant("float16", ROW, ROW, "identity", is_wide=True, tile=2)
    x, y, z = variant.grid(rows, columns)
    down, across = -(-rows // 128), -(-columns // 128)
    wide = x // down
    found = {(i // wide, j * wide + i % wide) for i in range(x) for j in range(y)}
    assert z == 1
    assert {(i, j) for i in range(down) for j in range(across)} <= found


@pytest.mark.parametrize("architecture", ["80", "89", "90", "100"])
@pytest.mark.parametrize("dtype", KINDS)
def test_a_card_is_given_what_it_has_instructions_for(dtype: str, architecture: str) -> None:
    """Wgmma and float64 of 16 rows on 9.0 alone: 10.0 has no wgmma."""
    made = "int32" if dtype == "int8" else dtype
    operands = matrix((64, 32), dtype), matrix((32, 48), dtype)
    problem, _ = problem_like(dtype, made, "relu", operands, architecture)
    is_hopper = architecture == "90"
    assert isinstance(problem.plain, HopperVariant) == (is_hopper and dtype in TILES)
    if isinstance(problem.plain, Variant):
        assert problem.plain.is_hopper == (is_hopper and dtype == "float64")
        assert problem.tiles == problem.plain.kind.every


@pytest.mark.parametrize("dtype", KINDS)
def test_what_only_a_search_takes_is_not_the_default(dtype: str) -> None:
    """So that the tiles by default are those of all kernels, those of groups and images, too."""
    kind = KINDS[dtype]
    assert HOPPER_KINDS.get(dtype, kind).tiles == kind.tiles
    sizes = [(at, at) for at in (1, 64, 700, 2048, 8192)]
    assert {default_tile(dtype, *size, 132) for size in sizes} <= set(range(len(kind.tiles)))


def test_the_largest_tile_that_fills_the_card_is_taken() -> None:
    assert default_tile("float16", 8192, 8192, 132) == 0
    assert default_tile("float16", 64, 64, 132) == 3
