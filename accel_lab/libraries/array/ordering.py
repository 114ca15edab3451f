"""Arrays in order: sorted, searched, and what stands where in the order.

NaN comes last, complex numbers are ordered by their real parts, then by their imaginary ones.
"""

import math
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from accel_lab.compute.arrays.dtypes import canonical, numpy_dtype
from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array.elementwise import Operand, binary, require_word, unary, where
from accel_lab.libraries.array.indexing import take
from accel_lab.libraries.array.message import NUMPYS, ArrayMessage, axis_of
from accel_lab.libraries.array.reduction import reduce
from accel_lab.libraries.array.shaping import axes_of, expand_dims, moveaxis
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import describe
from accel_lab.libraries.authoring.promotion import promote
from accel_lab.libraries.authoring.shape import Integers

__all__ = [
    "Argsort",
    "Searchsorted",
    "Sort",
    "argsort",
    "interp",
    "median",
    "percentile",
    "quantile",
    "searchsorted",
    "sort",
]

Side: TypeAlias = Literal["left", "right"]
SIDES: frozenset[str] = frozenset(get_args(Side))


class _Ordered(ArrayMessage, frozen=True):
    dtypes: ClassVar = NUMPYS
    x: AccelRef
    axis: int | None = -1

    def check(self) -> None:
        """Refuse an axis that `x` does not have."""
        if self.axis is not None:
            axis_of(type(self).__name__, self.x, self.axis)

    def _shape(self) -> tuple[int, ...]:
        return (self.x.size,) if self.axis is None else self.x.shape


class Sort(_Ordered, frozen=True, tag=118):
    """Copy `x` with the elements along an axis in order, or all of them if it is None."""

    shapes: ClassVar = "(...)->?"

    def makes(self) -> Spec:
        """Return the shape of `x`, or one axis."""
        return Spec(self._shape(), self.x.dtype)


class Argsort(_Ordered, frozen=True, tag=119):
    """Return where the elements along an axis are that `Sort` makes, as int64.

    Of equal ones the first comes first.
    """

    shapes: ClassVar = "(...)->?"

    def makes(self) -> Spec:
        """Return the shape of `x`, or one axis."""
        return Spec(self._shape(), "int64")


class Searchsorted(ArrayMessage, frozen=True, tag=120):
    """Return where in `a`, a vector in order, each element of `v` belongs, as int64.

    That is before those that are equal, or, with `side` "right", behind them.
    """

    dtypes: ClassVar = NUMPYS
    a: AccelRef
    v: AccelRef
    side: Side = "left"

    def infer(self) -> Spec:
        """Return the shape of `v`."""
        require_word(self, self.side, SIDES)
        a, v = self.a, self.v
        if a.ndim != 1:
            raise InvalidArgument(f"Searchsorted: a is {describe(a)}, and is to be a vector")
        self.common()
        return Spec(v.shape, "int64")

    def common(self) -> str:
        """Return the dtype in which they are compared.

        Raises:
            InvalidArgument: there is none.
        """
        if self.v.dtype not in NUMPYS:
            raise InvalidArgument(f"Searchsorted: v is {describe(self.v)}; convert with array.cast")
        return promote(self, "maximum", self.a.dtype, self.v.dtype)


sort, argsort = function(Sort), function(Argsort)


def searchsorted(
    a: AccelRef, v: Operand, side: Side = "left", sorter: Operand | None = None
) -> AccelRef:
    """Return where in `a` each element of `v` belongs, as `Searchsorted` says; does not block.

    A NumPy array and a number are uploaded. `sorter` has the places of the elements of `a` in
    order, as `argsort` returns them.

    Raises:
        InvalidArgument: `a` is no vector, or `side` is neither "left" nor "right".
    """
    device = device_of(a)
    values = v if isinstance(v, AccelRef) else device.put(np.asarray(v))
    ordered = a if sorter is None else take(a, sorter, 0)
    return device.ask(Searchsorted(ordered, values, side))


def median(x: AccelRef, axis: Integers | None = None, *, keepdims: bool = False) -> AccelRef:
    """Return the middle element in order, or the mean of the two there are; does not block.

    It is NaN where an element is.

    Raises:
        InvalidArgument: there is no such axis.
    """
    flat, axes = along_last("median", x, axis)
    extent = flat.shape[-1]
    if not extent:
        return reduce("mean", x, axis, keepdims=keepdims)
    ordered = sort(flat)
    middle = reduce("mean", ordered[..., (extent - 1) // 2 : extent // 2 + 1], -1)
    return kept(_nan_where(ordered[..., -1], middle), axes, keepdims=keepdims)


def quantile(
    x: AccelRef, q: Any, axis: Integers | None = None, *, keepdims: bool = False
) -> AccelRef:
    """Return what parts `q`, of 0 to 1, of the elements are not above; does not block.

    Between two elements it is on the line from one to the other, NumPy's method "linear". `q` is a
    number or an array of them, whose axes come first in the result. It is NaN where an element is.

    Raises:
        InvalidArgument: there is no such axis, nothing in it, or `q` is not from 0 to 1.
    """
    return _quantile("quantile", x, q, 1, axis, keepdims=keepdims)


def percentile(
    x: AccelRef, q: Any, axis: Integers | None = None, *, keepdims: bool = False
) -> AccelRef:
    """Return `quantile` of q / 100; does not block.

    Raises:
        InvalidArgument: there is no such axis, nothing in it, or `q` is not from 0 to 100.
    """
    return _quantile("percentile", x, q, 100, axis, keepdims=keepdims)


def interp(
    x: Operand,
    xp: AccelRef,
    fp: AccelRef,
    left: complex | None = None,
    right: complex | None = None,
) -> AccelRef:
    """Return at each `x` the value of the line through the points (xp, fp); does not block.

    `xp` is in order. Before the first point the value is `left`, or that of the first, and `right`
    behind the last. Values are float64 or complex128.

    Raises:
        InvalidArgument: the points are no two vectors of one length, or there are none.
    """
    device = device_of(xp)
    if xp.ndim != 1 or device_of(fp) is not device or xp.shape != fp.shape or not xp.size:
        text = f"interp: xp {describe(xp)} and fp {describe(fp)} are to be vectors of one length"
        raise InvalidArgument(f"{text}, of at least one element")
    at = (x if isinstance(x, AccelRef) else device.put(np.asarray(x))).astype("float64")
    made = "complex128" if numpy_dtype(fp.dtype).kind == "c" else "float64"
    places, values = xp.astype("float64"), fp.astype(made)
    first = values[0] if left is None else left
    last = values[-1] if right is None else right
    line = values[-1]
    if (n := xp.size) > 1:
        found = searchsorted(places, at, "right")
        i = binary("minimum", binary("maximum", found - 1, 0), n - 2)
        x0, f0 = take(places, i), take(values, i)
        slope = (take(values, i + 1) - f0) / (take(places, i + 1) - x0)
        line = where(at == places[-1], values[-1], slope * (at - x0) + f0)
    return where(at < places[0], first, where(at > places[-1], last, line))


def _quantile(
    name: str, x: AccelRef, q: Any, whole: int, axis: Integers | None, *, keepdims: bool
) -> AccelRef:
    parts, made = parts_of(name, x, q, whole)
    flat, axes = along_last(name, x, axis, check=True)
    places = parts.astype(np.float64).reshape(-1) / whole * (flat.shape[-1] - 1)
    below = np.floor(places).astype(np.int64)
    above = np.minimum(below + 1, flat.shape[-1] - 1)
    ordered = sort(flat)
    part = device_of(x).put((places - below).astype(numpy_dtype(made)))
    one, other = (take(ordered, at, -1).astype(made) for at in (below, above))
    line = to_the_front(_nan_where(ordered[..., -1:], between(one, other, part)), parts)
    return kept(line, [at + parts.ndim for at in axes], keepdims=keepdims)


def parts_of(name: str, x: AccelRef, q: Any, whole: int) -> tuple[np.ndarray[Any, Any], str]:
    """Return which quantiles of `x` are asked for, and the dtype that they have.

    Raises:
        InvalidArgument: they are none, or `x` has none.
    """
    if isinstance(q, AccelRef):
        raise InvalidArgument(f"{name}: q is to be numbers or a NumPy array, not a buffer")
    device_of(x)
    parts = np.asarray(q)
    if parts.dtype.kind not in "iuf" or not np.all((parts >= 0) & (parts <= whole)):
        raise InvalidArgument(f"{name}: q is to be numbers from 0 to {whole}, not {q!r}")
    try:
        sample = np.ones(1, numpy_dtype(x.dtype))
        return parts, canonical(getattr(np, name)(sample, q).dtype)
    except TypeError:
        raise InvalidArgument(f"{name}: there is none of {x.dtype}; cast first") from None


def between(one: AccelRef, other: AccelRef, part: AccelRef) -> AccelRef:
    """Return what is at a part of the way from one to the other.

    As NumPy, from the nearer of the two, so that both ends are exact.
    """
    step = other - one
    line = where(part < 0.5, one + step * part, other - step * (1 - part))  # noqa: PLR2004
    return where(step == 0, one, line)


def to_the_front(line: AccelRef, parts: np.ndarray[Any, Any]) -> AccelRef:
    """Return what lies along the last axis in the shape of `parts`, before all other axes."""
    shaped = line.reshape((*line.shape[:-1], *parts.shape))
    behind = range(-parts.ndim, 0)
    return moveaxis(shaped, behind, range(parts.ndim)) if parts.ndim else shaped


def along_last(
    name: str, x: AccelRef, axis: Integers | None, *, check: bool = False
) -> tuple[AccelRef, list[int]]:
    """Return `x` with the axes to be reduced as its last one, and which they are."""
    device_of(x)
    axes = sorted(axes_of(name, x, axis))
    left = [at for at in range(x.ndim) if at not in axes]
    extent = math.prod(x.shape[at] for at in axes)
    if check and not extent:
        raise InvalidArgument(f"{name}: there is none of nothing, and x is {describe(x)}")
    moved = x.transpose([*left, *axes]) if axes and left else x
    return moved.reshape((*(x.shape[at] for at in left), extent)), axes


def _nan_where(last: AccelRef, value: AccelRef) -> AccelRef:
    """Return NaN where the last element in order is NaN."""
    if numpy_dtype(last.dtype).kind not in "fc":
        return value
    return where(unary("isnan", last), float("nan"), value)


def kept(value: AccelRef, axes: list[int], *, keepdims: bool) -> AccelRef:
    """Return it with the axes that were reduced, if they are to be kept."""
    return expand_dims(value, axes) if keepdims and axes else value
