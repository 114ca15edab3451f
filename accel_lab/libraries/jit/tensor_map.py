"""Tiles of a buffer that the card's copy engine (TMA) fetches by itself, as a kernel's argument."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, SupportsIndex

from accel_lab.compute.arrays.dtypes import NAMES, is_complex, is_float, numpy_dtype
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import describe, flag
from accel_lab.libraries.authoring.shape import ints

NBYTES = 128
"""The size of CUDA's `CUtensorMap`, which the kernel takes by value."""
MOST_AXES = 5
MOST_ALONG = 256
GRAIN = 16
"""Addresses, strides and the rows of a tile are multiples of so many bytes."""
SWIZZLES = (0, 32, 64, 128)
L2 = (0, 64, 128, 256)
FILLS = ("zeros", "nan")
DTYPES = frozenset(name for name in NAMES if not is_complex(name))


class Tiling(NamedTuple):
    """How one argument of a launch describes its buffer.

    Attributes:
        argument: which argument, from 0.
        box: the extents of a tile, in the order of the buffer's axes.
        swizzle: after how many bytes the pattern repeats that keeps banks apart; 0 for none.
        l2: how many bytes the L2 cache fetches at once; 0 for what the tile needs.
        fill: what is beyond the edges: "zeros", or "nan" for floats.
        read_only: whether the kernel only reads by it.
    """

    argument: int
    box: tuple[int, ...]
    swizzle: int = 0
    l2: int = 0
    fill: str = "zeros"
    read_only: bool = False


@dataclass(frozen=True)
class TensorMap:
    """A buffer, and its tiles, to be given for a kernel's `const __grid_constant__ CUtensorMap`."""

    ref: AccelRef
    tiling: Tiling


def tensor_map(
    ref: AccelRef,
    box: SupportsIndex | Iterable[SupportsIndex],
    *,
    swizzle: int = 0,
    l2: int = 0,
    fill: str = "zeros",
    read_only: bool = False,
) -> TensorMap:
    """Describe the tiles of a buffer, for an argument of a launch on a card that has TMA.

    Parameters:
        box: the extents of a tile, one for each axis of the buffer, at most 256 along each; along
            the last axis it is a multiple of 16 bytes.
        swizzle: 32, 64 or 128 bytes, as CUDA's swizzles; a row of the tile is then no longer.
        l2: 64, 128 or 256 bytes for the L2 cache to fetch at once.
        fill: what a tile has beyond the edges, "zeros" or "nan".
        read_only: the kernel stores nothing by it; else the buffer counts as written.

    Raises:
        InvalidArgument: there are no such tiles; strides are checked when it is launched.
    """
    if not isinstance(ref, AccelRef):
        raise InvalidArgument(f"tensor_map takes a buffer, and not {ref!r}")
    read_only = flag("read_only", read_only)
    made = TensorMap(ref, Tiling(0, ints("box", box), swizzle, l2, fill, read_only))
    require_tiles(ref, made.tiling)
    return made


def require_tiles(ref: AccelRef, tiling: Tiling) -> None:
    """Refuse tiles that no card fetches.

    Raises:
        InvalidArgument: with what is wrong.
    """
    box, swizzle = tiling.box, tiling.swizzle
    if ref.dtype not in DTYPES:
        raise _refused(ref, "no card has tiles of this dtype")
    if not 1 <= ref.ndim <= MOST_AXES or ref.size == 0:
        raise _refused(ref, f"a buffer with tiles has elements, and 1 to {MOST_AXES} axes")
    if len(box) != ref.ndim or not all(1 <= extent <= MOST_ALONG for extent in box):
        text = f"box has one extent for each axis, each from 1 to {MOST_ALONG}"
        raise _refused(ref, f"{text}, and is {box}")
    row = box[-1] * numpy_dtype(ref.dtype).itemsize
    if row % GRAIN:
        raise _refused(ref, f"the last extent of box {box} has {row} bytes, not whole 16s")
    for name, given, known in (("swizzle", swizzle, SWIZZLES), ("l2", tiling.l2, L2)):
        if type(given) is not int or given not in known:
            raise _refused(ref, f"{name} is one of {known}, and not {given!r}")
    if swizzle and row > swizzle:
        raise _refused(ref, f"a row of box {box} has {row} bytes, more than swizzle={swizzle}")
    if tiling.fill not in FILLS:
        raise _refused(ref, f"fill is one of {FILLS}, and not {tiling.fill!r}")
    if tiling.fill == "nan" and not is_float(ref.dtype):
        raise _refused(ref, "only floats have fill='nan'")


def _refused(ref: AccelRef, why: str) -> InvalidArgument:
    return InvalidArgument(f"tensor_map of {describe(ref)}: {why}")
