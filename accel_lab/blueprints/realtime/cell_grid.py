"""A box cut into cells, and the points of a buffer ordered by the cell they lie in."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from accel_lab.blueprints.realtime.checks import require_number
from accel_lab.blueprints.realtime.kernels import Kernels
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import array, primitives

MOST_CELLS = 1 << 27
_PACKED = np.dtype(
    [("lower", "<f8", 3), ("size", "<f8"), ("count", "<i4", 3), ("axes", "<i4")], align=True
)


class CellGrid(NamedTuple):
    """A box of two or three axes, cut into cells of one size.

    Attributes:
        lower: its least corner.
        size: of a cell, along each axis.
        counts: how many cells there are along each axis.
    """

    lower: tuple[float, ...]
    size: float
    counts: tuple[int, ...]

    @classmethod
    def over(cls, lower: Sequence[float], upper: Sequence[float], size: float) -> "CellGrid":
        """Cut the box between two corners.

        Raises:
            InvalidArgument: it is no box of two or three axes, or has more than 2**27 cells.
        """
        if len(lower) != len(upper) or len(lower) not in {2, 3}:
            raise InvalidArgument(
                f"CellGrid: corners have two or three axes, not {len(lower)} and {len(upper)}"
            )
        low = tuple(require_number("CellGrid: lower", one) for one in lower)
        require_number("CellGrid: size", size, low=0, above=True)
        for below, one in zip(low, upper, strict=True):
            require_number("CellGrid: upper", one, low=below, above=True)
        counts = tuple(
            max(1, math.ceil(min((one - below) / size, MOST_CELLS + 1)))
            for below, one in zip(low, upper, strict=True)
        )
        if math.prod(counts) > MOST_CELLS:
            raise InvalidArgument(
                f"CellGrid: there are more than {MOST_CELLS} cells: "
                f"size must be larger than {size:g}"
            )
        return cls(low, float(size), counts)

    @property
    def axes(self) -> int:
        """How many axes it has."""
        return len(self.counts)

    @property
    def cells(self) -> int:
        """How many cells it has."""
        return math.prod(self.counts)

    def packed(self) -> bytes:
        """Return it as the struct `Cells` of the kernels."""
        pad = 3 - self.axes
        lower = (*self.lower, *[0.0] * pad)
        record = np.array((lower, self.size, (*self.counts, *[1] * pad), self.axes), _PACKED)
        return record.tobytes()


class CellList(NamedTuple):
    """Which points lie in which cell.

    Attributes:
        order: the numbers of the points, cell after cell; ascending within a cell.
        starts: where each cell begins in `order`, and where the last one ends.
    """

    order: AccelRef
    starts: AccelRef


class CellLists:
    """Makes the cell lists of one grid on one device."""

    def __init__(self, device: Device, grid: CellGrid, *, real: str = "float") -> None:
        self.device = device
        self.grid = grid
        self.packed = grid.packed()
        self.kernels = Kernels(device, "cells", defines={"Real": real})

    def of(self, points: AccelRef) -> CellList:
        """Order the points of a buffer (..., axes) by cell; does not block."""
        n = points.size // self.grid.axes
        keys, order = (array.zeros(self.device, (n,), "int32") for _ in range(2))
        self.kernels.launch("cell_keys", n, points, n, self.grid.axes, self.packed, keys, order)
        return cell_list(self.kernels, keys, order, self.grid.cells)


def cell_list(kernels: Kernels, keys: AccelRef, order: AccelRef, cells: int) -> CellList:
    """Order points by the numbers of their cells; does not block.

    Parameters:
        kernels: those of the file `cells`.
        keys: the cell of each point, int32[n].
        order: the numbers of the points, int32[n].
    """
    starts = array.zeros(keys.device, (cells + 1,), "int32")
    keys, order = primitives.sort_pairs(keys, order)
    # By cells, not points: no thread has to fill all that lies between two points far apart.
    kernels.launch("cell_starts", cells + 1, keys, keys.size, cells, starts)
    return CellList(order, starts)
