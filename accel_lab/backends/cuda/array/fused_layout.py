"""How the arrays of a fused kernel lie in memory, and which axes have to be told apart."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

Place: TypeAlias = Literal["each", "one", "strided"]
"""An array has all elements in C order, or one for all, or any strides."""


class Layout(NamedTuple):
    """How the arrays of a program lie: the variant, and its extents and strides."""

    places: tuple[Place, ...]
    rank: int
    tail: tuple[int, ...]


def layout_of(shape: tuple[int, ...], arrays: Sequence[Any]) -> Layout:
    """Return how arrays lie that broadcast to a shape; axes that are one in all of them are one."""
    places: list[Place] = []
    strided: list[list[int]] = []
    for x in arrays:
        if x.size == 1:
            places.append("one")
        elif x.shape == shape and x.flags.c_contiguous:
            places.append("each")
        else:
            places.append("strided")
            missing = len(shape) - x.ndim
            steps = [0] * missing
            steps += [
                0 if extent == 1 else step // x.dtype.itemsize
                for extent, step in zip(x.shape, x.strides, strict=True)
            ]
            strided.append(steps)
    if not strided:
        return Layout(tuple(places), 0, ())
    extents: list[int] = []
    kept: list[list[int]] = [[] for _ in strided]
    for axis, extent in enumerate(shape):
        if extent == 1:
            continue
        if extents and all(
            row[-1] == steps[axis] * extent for row, steps in zip(kept, strided, strict=True)
        ):
            extents[-1] *= extent
            for row, steps in zip(kept, strided, strict=True):
                row[-1] = steps[axis]
        else:
            extents.append(extent)
            for row, steps in zip(kept, strided, strict=True):
                row.append(steps[axis])
    tail = (*extents, *(step for row in kept for step in row))
    return Layout(tuple(places), len(extents), tail)
