"""What is in an array, and how often: unique elements, those that are not zero, histograms."""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from accel_lab.compute.arrays.dtypes import is_complex, is_float
from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import PartialSpec, Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array.elementwise import where
from accel_lab.libraries.array.making import Arange
from accel_lab.libraries.array.message import NUMPYS, ArrayMessage
from accel_lab.libraries.array.ordering import searchsorted
from accel_lab.libraries.array.reduction import reduce
from accel_lab.libraries.array.scanning import diff
from accel_lab.libraries.authoring.dtype_sets import INTEGERS
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import describe, plain, result
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.authoring.shape import require_extents
from accel_lab.libraries.authoring.shaped import Shaped

__all__ = [
    "Bincount",
    "Nonzero",
    "Unique",
    "UniqueParts",
    "bincount",
    "histogram",
    "nonzero",
    "unique",
]


class UniqueParts(NamedTuple):
    """The elements that there are, in order, and what was asked for beside.

    Attributes:
        indices: where each is first.
        inverse: which of them each element of `x` is.
        counts: how often each is there.
    """

    values: AccelRef
    indices: AccelRef | None
    inverse: AccelRef | None
    counts: AccelRef | None


class Unique(Shaped[UniqueParts], frozen=True, array_like=True, eq=False, tag=121):
    """Return each element of `x` once, in order, and on request where and how often it is there.

    Only the device knows how many there are. NaN is one element, with `equal_nan` False each is.
    """

    library: ClassVar[str] = "array"
    dtypes: ClassVar = NUMPYS
    shapes: ClassVar = "(...)->?"
    asked_by: ClassVar = {name: name for name in ("indices", "inverse", "counts")}
    x: AccelRef
    _: Options
    indices: bool = False
    inverse: bool = False
    counts: bool = False
    equal_nan: bool = True

    def makes(self) -> tuple[PartialSpec, PartialSpec | None, Spec | None, PartialSpec | None]:
        """Return lists of one unknown length, and the shape of `x` for the inverse."""
        each = PartialSpec((None,), "int64")
        return (
            PartialSpec((None,), self.x.dtype),
            each if self.indices else None,
            Spec(self.x.shape, "int64") if self.inverse else None,
            each if self.counts else None,
        )


class Nonzero(ArrayMessage, frozen=True, tag=122):
    """Return where `x` is not zero, as int64: a row for each axis, a column for each element.

    Only the device knows how many there are.
    """

    shapes: ClassVar = "(...)->?"
    x: AccelRef

    def check(self) -> None:
        """Refuse what has no axes."""
        if not self.x.ndim:
            raise InvalidArgument(f"Nonzero: x is {describe(self.x)}, which has no axes")

    def makes(self) -> PartialSpec:
        """Return as many rows as axes."""
        return PartialSpec((self.x.ndim, None), "int64")


class Bincount(ArrayMessage, frozen=True, tag=127):
    """Count how often each of 0 to `length` - 1 is in a vector, or sum the `weights` there.

    What is outside is not counted.
    """

    dtypes: ClassVar = INTEGERS - {"bool", "uint64"}
    x: AccelRef
    length: int
    weights: AccelRef | None = None

    def infer(self) -> Spec:
        """Return as many counts, int64, or float64 with weights."""
        x, weights = self.x, self.weights
        shape = require_extents("Bincount", (self.length,))
        if x.ndim != 1:
            raise InvalidArgument(f"Bincount: x is {describe(x)}, and is to be a vector")
        if weights is None:
            return result(self, shape, "int64")
        if weights.shape != x.shape or weights.dtype not in NUMPYS or is_complex(weights.dtype):
            text = f"Bincount: weights are {describe(weights)}, and are to be real, one for each"
            raise InvalidArgument(f"{text} of x {describe(x)}")
        return result(self, shape, "float64")


bincount, _unique, _nonzero = function(Bincount), function(Unique), function(Nonzero)


def unique(
    x: AccelRef,
    return_index: bool = False,  # noqa: FBT001, FBT002 - NumPy's signature
    return_inverse: bool = False,  # noqa: FBT001, FBT002 - as above
    return_counts: bool = False,  # noqa: FBT001, FBT002 - as above
    *,
    equal_nan: bool = True,
) -> Any:
    """Return each element once, in order, or a tuple of that and what is asked for, as `Unique`.

    Does not block; what asks for a shape waits.

    Raises:
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    parts = _unique(
        x,
        indices=return_index,
        inverse=return_inverse,
        counts=return_counts,
        equal_nan=equal_nan,
    )
    asked = tuple([part for part in parts if part is not None])
    return asked if len(asked) > 1 else parts.values


def nonzero(x: AccelRef) -> tuple[AccelRef, ...]:
    """Return where `x` is not zero: a vector of integers for each axis; does not block.

    What asks for their length waits.

    Raises:
        InvalidArgument: it has no axes.
    """
    device_of(x)
    ndim = x.ndim  # asked for first: a refusal comes at the call
    found = _nonzero(x)
    return tuple([found[at] for at in range(ndim)])


def histogram(
    x: AccelRef,
    bins: Any = 10,
    range: tuple[float, float] | None = None,  # noqa: A002 - NumPy's name
    density: bool = False,  # noqa: FBT001, FBT002 - NumPy's signature
    weights: AccelRef | None = None,
) -> tuple[AccelRef, AccelRef]:
    """Return how many elements are in each bin, and the edges of the bins; does not block.

    `bins` is how many there are, of equal widths over `range` or from the smallest element to the
    largest, or the edges, in order. A bin has its left edge, the last one both. Where the device
    finds the range and an element is NaN, so are the edges, and nothing is counted; NumPy raises.

    Raises:
        InvalidArgument: there is no bin, the range is none, or the weights do not fit.
    """
    device = device_of(x)
    if is_complex(x.dtype) or x.dtype not in NUMPYS:
        raise InvalidArgument(f"histogram: there is none of x {describe(x)}; cast first")
    if weights is not None and weights.shape != x.shape:
        raise InvalidArgument(
            f"histogram: weights are {describe(weights)}, not of the shape of x {describe(x)}"
        )
    count = plain(bins) if np.ndim(bins) == 0 and not isinstance(bins, AccelRef) else None
    edges = _edges_given(device, bins) if count is None else _even_edges(x, count, range)
    length = edges.size - 1
    values, by = x.reshape(-1), None if weights is None else weights.reshape(-1)
    if values.dtype == "bool":
        values = values.astype("uint8")
    at = where(values == edges[-1], length - 1, searchsorted(edges, values, "right") - 1)
    counts = bincount(at, length, by)
    if weights is not None and weights.dtype != "float64":
        counts = counts.astype("float64" if weights.dtype == "bool" else weights.dtype)
    if density:
        counts = counts / diff(edges) / reduce("sum", counts)
    return counts, edges


def _edges_given(device: Any, bins: Any) -> AccelRef:
    edges = bins if isinstance(bins, AccelRef) else np.asarray(bins)
    if edges.ndim != 1 or edges.size < len(("left", "right")):
        raise InvalidArgument("histogram: edges are a vector of at least two")
    if isinstance(edges, np.ndarray):
        if (edges[:-1] > edges[1:]).any():
            raise InvalidArgument("histogram: edges are to be in order")
        return device.put(edges)  # type: ignore[no-any-return]
    return edges


def _even_edges(x: AccelRef, count: Any, given: tuple[float, float] | None) -> AccelRef:
    device, made = x.device, str(x.dtype) if is_float(x.dtype) else "float64"
    if type(count) is not int or count < 1:
        raise InvalidArgument(f"histogram: bins must be an integer from 1, or edges, not {count!r}")
    if given is None and x.size:
        values = x.reshape(-1).astype(made)
        low, high = reduce("min", values), reduce("max", values)
        same = low == high
        low, high = where(same, low - 0.5, low), where(same, high + 0.5, high)
        steps = device.ask(Arange(count + 1, 0, 1, made))
        even = steps * ((high - low) / count) + low
        return where(steps == count, high, even)
    first, last = (0.0, 1.0) if given is None else map(float, given)
    if not (np.isfinite([first, last]).all() and first <= last):
        raise InvalidArgument(f"histogram: range is to be two numbers in order, not {given!r}")
    if first == last:
        first, last = first - 0.5, last + 0.5
    return device.ask(Arange(count + 1, first, (last - first) / count, made, last=last))
