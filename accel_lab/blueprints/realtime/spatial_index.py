"""An index of points: which of them lie within a radius of a place, exactly."""

from collections.abc import Sequence
from typing import NamedTuple

from accel_lab.actor import Actor, Message, handles
from accel_lab.blueprints.realtime.cell_grid import CellGrid, CellList, CellLists
from accel_lab.blueprints.realtime.checks import require_buffer, require_number
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import array, primitives

REALS = {"float32": "float", "float64": "double"}


class Index(Message[None], frozen=True):
    """Index these points (n, axes), in place of those before; later writes to them are not seen."""

    points: AccelRef


class Within(Message["Neighbours"], frozen=True):
    """Find the points within `radius` of each of `queries` (m, axes), those at the edge as well."""

    queries: AccelRef
    radius: float


class Neighbours(NamedTuple):
    """The neighbours of query i are `indices[offsets[i]:offsets[i + 1]]`, cell after cell.

    Attributes:
        offsets: int64, one more than there are queries.
        indices: int32, rows of the points.
    """

    offsets: AccelRef
    indices: AccelRef


class SpatialIndexActor(Actor):
    """Cell lists of points in a box, made by a sort. Distances are computed in float64.

    Points and queries may lie beside the box; many of them there make a query slow, not wrong.

    Parameters:
        lower, upper: two corners of the box, of two or three axes.
        cell: the size of a cell; best is the usual radius of a query.
        dtype: of points and queries, "float32" or "float64".
    """

    def __init__(
        self,
        device: Device,
        lower: Sequence[float],
        upper: Sequence[float],
        *,
        cell: float,
        dtype: str = "float32",
    ) -> None:
        if dtype not in REALS:
            raise InvalidArgument(
                f"SpatialIndexActor: dtype must be float32 or float64, not {dtype!r}"
            )
        self.device = device
        self.dtype = dtype
        grid = CellGrid.over(lower, upper, cell)
        self.lists = CellLists(device, grid, real=REALS[dtype])
        self.points: AccelRef | None = None
        self.cells: CellList | None = None

    @handles(Index)
    def index(self, m: Index) -> None:
        """Sort the points by cell."""
        shape = ("n", self.lists.grid.axes)
        points = require_buffer("Index: points", m.points, self.device, shape, self.dtype)
        self.points = points.copy()
        self.cells = self.lists.of(self.points)

    @handles(Within)
    def within(self, m: Within) -> Neighbours:
        """Count, and then write as many; waits for the count."""
        axes = self.lists.grid.axes
        shape = ("m", axes)
        queries = require_buffer("Within: queries", m.queries, self.device, shape, self.dtype)
        radius = require_number("Within: radius", m.radius, low=0)
        if self.points is None or self.cells is None:
            raise InvalidArgument("Within: nothing is indexed yet; send Index(points) first")
        count = queries.shape[0]
        look = self.lists.kernels.launch
        counts = array.zeros(self.device, (count + 1,), "int64")
        given = (self.points, queries, count, axes, radius, self.lists.packed)
        look("neighbours", count, *given, self.cells.order, self.cells.starts, None, counts, None)
        offsets = primitives.scan(counts, exclusive=True)
        indices = array.zeros(self.device, (int(offsets[count].get()),), "int32")
        look("neighbours", count, *given, *self.cells, offsets, None, indices)
        return Neighbours(offsets, indices)
