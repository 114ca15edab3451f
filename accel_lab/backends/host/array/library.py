"""Arrays on the host: NumPy, with ml_dtypes for the floats that NumPy lacks."""

import warnings
from typing import Any

import numpy as np

from accel_lab.backends.host.array.fused import Programs
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array.counting import Bincount, Unique
from accel_lab.libraries.array.indexing import (
    Assign,
    AssignAlong,
    AssignAt,
    AssignMask,
    TakeAlong,
    shape_within,
)
from accel_lab.libraries.array.joining import Concatenate
from accel_lab.libraries.array.library import (
    Cast,
    Copy,
    Full,
    Reshape,
    Slice,
    Take,
    Transpose,
    Zeros,
)
from accel_lab.libraries.array.making import Arange, Eye
from accel_lab.libraries.array.ordering import Argsort, Searchsorted, Sort
from accel_lab.libraries.array.reduction import PLACES, SPREADS, Reduce
from accel_lab.libraries.array.scanning import Scan
from accel_lab.libraries.array.shaping import Broadcast, Diagonal, Triangle
from accel_lab.libraries.authoring.operand import Number

_NARROW = frozenset({"bfloat16", "float8_e4m3fn", "float8_e5m2"})
_MEANS = frozenset({"mean"}) | SPREADS
_ANSWERS = frozenset({"where", "real", "imag"})
"""Functions of NumPy's that take no `out`."""


class HostArray:
    """Calls NumPy at once: on the host, what is enqueued is done."""

    def __init__(self) -> None:
        self.fused = Programs()

    def zeros(self, m: Zeros, out: Any) -> None:  # noqa: ARG002 - `out` has all
        """Write zeros."""
        out[...] = 0

    @np.errstate(all="ignore")
    def full(self, m: Full, out: Any, value: Number) -> None:  # noqa: ARG002 - `out` has its dtype
        """Write the value, rounded to the dtype."""
        out[...] = value

    def copy(self, m: Copy | Reshape, x: Any, out: Any) -> None:  # noqa: ARG002 - as above
        """Copy `x` into `out`; they do not overlap, or are one array."""
        np.copyto(out, x)

    @np.errstate(all="ignore")
    def cast(self, m: Cast, x: Any, out: Any) -> None:  # noqa: ARG002 - as above
        """Convert `x` into `out`."""
        np.copyto(out, x, casting="unsafe")

    def slice(self, m: Slice, x: Any) -> Any:
        """Return a view; the Ellipsis keeps one without axes from becoming a scalar."""
        return x[(*m.entries, ...)]

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any | None:
        """Return a view, or None where NumPy would have to copy."""
        try:
            return x.reshape(shape, copy=False)
        except ValueError:
            return None

    def transpose(self, m: Transpose, x: Any) -> Any:
        """Return a view with permuted axes."""
        return x.transpose(m.order)

    @np.errstate(all="ignore")
    def apply(
        self,
        op: str,
        operands: tuple[Any, ...],
        dtypes: tuple[str, ...],
        out: Any,
        *,
        dtype: str,  # noqa: ARG002 - `out` has it
    ) -> None:
        """Write NumPy's function `op`.

        Raises:
            InvalidArgument: it does not exist of these values, as an integer's negative power.
        """
        function = getattr(np, op)
        try:
            if op in ("matmul", "where") and not _NARROW.isdisjoint(dtypes):
                out[...] = function(*map(_wide, operands, dtypes))
            elif op in _ANSWERS or (op == "power" and out.dtype.kind in "iu"):
                # Without `out`: at a negative power NumPy stops, and what is before it was written.
                out[...] = function(*operands)
            else:
                function(*operands, out=out)
        except ValueError as error:
            text = f"{op}: {error}"
            raise InvalidArgument(text) from None

    @np.errstate(all="ignore")
    def reduce(self, m: Reduce, x: Any, out: Any) -> None:
        """Write a reduction, of narrow floats in float32 and rounded once."""
        op, axes = m.op, m.axes()
        options: dict[str, Any] = {"axis": axes, "keepdims": m.keepdims}
        if op in PLACES:
            options["axis"] = axes[0] if len(axes) == 1 else None
        if op in SPREADS:
            options["ddof"] = m.ddof
        if m.dtype:
            options["dtype"] = np.float32 if m.dtype in _NARROW else numpy_dtype(m.dtype)
        function, x = getattr(np, op), _wide(x, m.x.dtype)
        if op in _MEANS:
            with warnings.catch_warnings():  # NumPy's of nothing, whose mean is NaN
                warnings.simplefilter("ignore", RuntimeWarning)
                out[...] = function(x, **options)
        else:
            out[...] = function(x, **options)

    def take(self, m: Take, x: Any, indices: Any, out: Any) -> None:
        """Write the elements at `indices` (numpy.take), which wrap around."""
        np.take(x, indices.astype(np.intp), m.axis, out, mode="wrap")

    @np.errstate(all="ignore")
    def concatenate(self, m: Concatenate, xs: list[Any], out: Any) -> None:
        """Copy each array to its place."""
        for x, place in m.places(xs):
            np.copyto(out[place], x, casting="unsafe")

    @np.errstate(all="ignore")
    def arange(self, m: Arange, out: Any) -> None:
        """Write start + i * step, of integers modulo 2**64, else in float64."""
        if out.dtype.kind in "iu":
            i = np.arange(m.count, dtype=np.uint64)
            out[...] = np.uint64(m.start % 2**64) + i * np.uint64(m.step % 2**64)
            if m.last is not None:
                out[-1:] = m.last
            return
        made = np.arange(m.count, dtype=np.float64) * float(m.step) + float(m.start)
        if m.last is not None:
            made[-1:] = m.last
        out[...] = made

    def eye(self, m: Eye, out: Any) -> None:
        """Write zeros, and ones on a diagonal."""
        out[...] = 0
        _diagonal(out, m.k, 0, 1)[...] = 1

    def broadcast(self, _: Broadcast, x: Any, out: Any) -> None:
        """Write `x` along every axis."""
        np.copyto(out, x)

    @np.errstate(all="ignore")
    def scan(self, m: Scan, x: Any, out: Any) -> None:
        """Write sums or products (numpy.cumsum, numpy.cumprod)."""
        out[...] = getattr(np, m.op)(x, m.axis, out.dtype)

    def sort(self, m: Sort, x: Any, out: Any) -> None:
        """Write the elements in order (numpy.sort)."""
        out[...] = np.sort(x, m.axis, kind="stable")

    def argsort(self, m: Argsort, x: Any, out: Any) -> None:
        """Write where the elements in order are (numpy.argsort)."""
        out[...] = np.argsort(x, m.axis, kind="stable")

    def searchsorted(self, m: Searchsorted, a: Any, v: Any, out: Any) -> None:
        """Write where elements belong (numpy.searchsorted)."""
        common = numpy_dtype(m.common())
        out[...] = np.searchsorted(a.astype(common), v.astype(common), m.side)

    def take_along(self, m: TakeAlong, x: Any, indices: Any, out: Any) -> None:
        """Write an element for each index (numpy.take_along_axis), which wrap around."""
        x, axis = (x.reshape(-1), 0) if m.axis is None else (x, m.axis)
        if out.size:
            at = indices.astype(np.intp) % x.shape[axis]
            out[...] = np.take_along_axis(x, at, axis)

    @np.errstate(all="ignore")
    def assign(self, m: Assign, out: Any, value: Any) -> None:
        """Write to a part; the Ellipsis makes an array of a single element, too."""
        out[(*m.entries, ...)] = value

    @np.errstate(all="ignore")
    def assign_at(self, m: AssignAt, out: Any, value: Any, *indices: Any) -> None:
        """Write to what is at integers, which wrap around."""
        index: list[Any] = [slice(None)] * out.ndim
        for axis, at in zip(m.places(), indices, strict=True):
            index[axis] = at.astype(np.intp) % max(out.shape[axis], 1)
        out[(*index, ...)] = value

    @np.errstate(all="ignore")
    def assign_along(self, m: AssignAlong, out: Any, value: Any, indices: Any) -> None:
        """Write at each index along an axis (numpy.put_along_axis); they wrap around."""
        extent = out.size if m.axis is None else out.shape[m.axis]
        at = indices.astype(np.intp) % max(extent, 1)
        if m.axis is None:  # of which NumPy's writes to a copy, if it is not contiguous
            out.flat[at] = np.broadcast_to(np.ravel(value), at.shape)
        else:
            np.put_along_axis(out, at, value, m.axis)

    @np.errstate(all="ignore")
    def assign_mask(self, m: AssignMask, out: Any, value: Any, mask: Any) -> Any:
        """Write where the mask is True; return how often it is."""
        found = np.count_nonzero(mask)
        if m.counted in (None, found):
            rows = shape_within(np.shape(value), len(m.row) + 1)
            out[mask] = np.reshape(value, rows)
        return np.asarray(found)

    def bincount(self, m: Bincount, x: Any, weights: Any, out: Any) -> None:
        """Write how often each integer is there (numpy.bincount)."""
        within = (x >= 0) & (x < m.length)
        by = None if weights is None else weights[within]
        out[...] = np.bincount(x[within].astype(np.intp), by, m.length)

    def mask(self, x: Any, mask: Any) -> Any:
        """Return what is kept."""
        return np.ascontiguousarray(x[mask])

    def unique(self, m: Unique, x: Any) -> tuple[Any, ...]:
        """Return each element once, and what is asked for (numpy.unique)."""
        asked = (m.indices, m.inverse, m.counts)
        find: Any = np.unique  # whose overloads know no flags that vary
        made = find(x, *asked, equal_nan=m.equal_nan)
        left = iter(made if any(asked) else (made,))
        values = next(left)
        return values, *(next(left) if one else None for one in asked)

    def nonzero(self, x: Any, _: str) -> Any:
        """Return the places of what is not zero, a row for each axis."""
        return np.stack(np.nonzero(x != 0))

    def triangle(self, m: Triangle, x: Any, out: Any) -> None:
        """Write one triangle and zeros."""
        rows, columns = x.shape[-2:]
        k = max(-rows - 1, min(m.k, columns + 1))
        kept = np.tri(rows, columns, k - m.upper, bool) ^ m.upper
        out[...] = 0
        np.copyto(out, x, where=kept)

    def diagonal(self, m: Diagonal, x: Any) -> Any:
        """Return a view."""
        return _diagonal(x, m.offset, m.axis1, m.axis2)


def _wide(x: Any, dtype: str) -> Any:
    """Widen what is computed in float32 and rounded once."""
    return x.astype(np.float32) if dtype in _NARROW else x


def _diagonal(x: Any, offset: int, axis1: int, axis2: int) -> Any:
    """Return a diagonal that can be written; NumPy's cannot."""
    # NumPy takes offsets of 32 bits; one beyond the last diagonal leaves nothing, as any other.
    view = x.diagonal(max(-x.shape[axis1], min(offset, x.shape[axis2])), axis1, axis2)
    view.flags.writeable = x.flags.writeable
    return view
