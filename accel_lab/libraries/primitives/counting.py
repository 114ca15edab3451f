"""How often what is in a vector: histograms, and runs of equal elements."""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import PartialSpec, Spec
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.libraries.authoring.operand import arrived, describe, kind, result
from accel_lab.libraries.authoring.options import Factor
from accel_lab.libraries.primitives.message import Primitive, require_count, require_vector
from accel_lab.libraries.primitives.operators import NUMBERS

MOST_BINS = 1 << 24


class HistogramEven(Primitive[AccelRef], frozen=True, tag=551):
    """Count the elements in each of `bins` bins of one width between `lower` and `upper`, as int64.

    The bins are those of numpy.histogram: each has its lower edge, the last one also its upper
    edge. What is outside, and NaN, is not counted. Edges and elements are compared as float64.
    """

    x: AccelRef
    bins: int
    lower: Factor
    upper: Factor

    def infer(self) -> Spec:
        """Return a count for each bin."""
        require_vector(self, "x")
        require_count(self, "bins", 1, MOST_BINS)
        lower, upper = arrived(self.lower), arrived(self.upper)
        real = all(isinstance(edge, int | float) for edge in (lower, upper))
        if not real or not _spans(lower, upper):
            text = f"lower is {lower!r} and upper {upper!r}; they are finite, the first below, and"
            raise InvalidArgument(f"{kind(self)}: {text} what is between is finite, too")
        return result(self, (self.bins,), "int64")

    def edges(self) -> Any:
        """Return the edges of the bins."""
        return np.linspace(float(arrived(self.lower)), float(arrived(self.upper)), self.bins + 1)


class HistogramRange(Primitive[AccelRef], frozen=True, tag=552):
    """Count the elements between each two neighbours of `edges`, as int64.

    The bins are those of `HistogramEven`. `edges`, of any dtype that primitives have, ascend; the
    device refuses others.
    """

    x: AccelRef
    edges: AccelRef

    def infer(self) -> Spec:
        """Return a count for each bin."""
        require_vector(self, "x")
        edges = require_vector(self, "edges", dtypes=NUMBERS)
        if edges.size < len(("lower", "upper")):
            text = f"edges are {describe(edges)}, and are to be at least two"
            raise InvalidArgument(f"{kind(self)}: {text}")
        return result(self, (edges.size - 1,), "int64")

    def judge(self, wrong: Any) -> AccelError | None:
        """Refuse edges that do not ascend."""
        if not int(np.asarray(wrong).sum()):
            return None
        return InvalidArgument(f"{kind(self)}: edges are to ascend, and do not")


class Runs(NamedTuple):
    """Runs of equal neighbours.

    Attributes:
        values: what is in each.
        counts: how long it is, int64.
        starts: where it begins, int64.
    """

    values: AccelRef
    counts: AccelRef
    starts: AccelRef


class RunLengthEncode(Primitive[Runs], frozen=True, tag=553):
    """Return of each run of equal neighbours its value, its length and where it begins.

    Only the device knows how many there are. A NaN equals no other.
    """

    shapes: ClassVar = "(n)->?"
    x: AccelRef

    def makes(self) -> tuple[PartialSpec, PartialSpec, PartialSpec]:
        """Return lists of one unknown length."""
        of_x, of_places = PartialSpec((None,), self.x.dtype), PartialSpec((None,), "int64")
        return of_x, of_places, of_places


def _spans(lower: float, upper: float) -> bool:
    """Whether there is a finite number of float64 between two of any kind, the first below."""
    try:
        return 0 < float(upper) - float(lower) < np.inf
    except OverflowError:  # of an integer
        return False
