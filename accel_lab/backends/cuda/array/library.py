"""Arrays on cuda: CuPy's copies, views and functions, and kernels for the dtypes that CuPy lacks.

bfloat16 and float8 buffers are held as uint16 and uint8 arrays of their bits; what is computed with
them is computed in float32 and rounded once.
"""

from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
from cupy.cuda import runtime

from accel_lab.backends.cuda.array.complex_order import argsort
from accel_lab.backends.cuda.array.counting import count_kernel, summed
from accel_lab.backends.cuda.array.elementwise import cast_kernel, choice_kernel
from accel_lab.backends.cuda.array.fused import FusedKernels
from accel_lab.backends.cuda.array.products import CudaMatmul
from accel_lab.backends.cuda.array.scanning import scanned
from accel_lab.backends.cuda.device.interop import storage_of
from accel_lab.backends.cuda.device.narrow_floats import FORMATS
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.libraries.array.counting import Bincount, Unique
from accel_lab.libraries.array.indexing import (
    Assign,
    AssignAlong,
    AssignAt,
    AssignMask,
    Assignment,
    TakeAlong,
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

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

_ANSWERS = frozenset({"where", "matmul", "real", "imag"})
"""What is copied to its place: CuPy's own `out` takes another dtype or none."""
_WRITTEN = frozenset({"sum", "prod", "mean"})
"""Reductions whose `out` CuPy writes at once; with `max` and `min` it fails (14.2)."""
_TRUTHS = frozenset({"logical_and", "logical_or", "logical_xor", "logical_not"})
_BITS = {1: "B", 2: "H", 4: "I", 8: "Q"}
_INT64_MOST = 2**63 - 1


class CudaArray:
    """Enqueues on the device's active stream; used by the dispatcher thread."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device
        self._casts: dict[tuple[str, str], Any] = {}
        self._choose = choice_kernel()
        self.fused = FusedKernels(device)
        self._products = CudaMatmul(device)

    def zeros(self, _: Zeros, out: Any) -> None:
        """Write zeros."""
        if out.flags.c_contiguous:
            if out.size:
                runtime.memsetAsync(out.data.ptr, 0, out.nbytes, self._device.active.ptr)
        else:
            out.fill(0)

    def full(self, m: Full, out: Any, value: Number) -> None:
        """Write the value, rounded to the dtype as NumPy does."""
        with np.errstate(all="ignore"):
            element = np.asarray(value, numpy_dtype(m.dtype))
        _fill(out, element)

    def copy(self, _: Copy | Reshape, x: Any, out: Any) -> None:
        """Copy `x` into `out` of the same shape and dtype; nothing, where they are one array."""
        if out is not x:
            cupy.copyto(out, x)

    def cast(self, m: Cast, x: Any, out: Any) -> None:
        """Convert `x` into `out`, rounding to nearest."""
        self._convert(x, out, m.x.dtype, m.dtype)

    def _convert(self, x: Any, out: Any, source: str, target: str) -> None:
        if source == target:
            cupy.copyto(out, x)
        elif target == "float16" and source == "float64":
            self._cast(x, out.view("H"), source, target)
        elif source in FORMATS or target in FORMATS:
            self._cast(x, out, source, target)
        else:
            cupy.copyto(out, x, casting="unsafe")

    def slice(self, m: Slice, x: Any) -> Any:
        """Return a view by basic indexing; CuPy's is an array even when it has no axes."""
        return x[m.entries]

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any | None:
        """Return a view in C order, or None when the strides allow none."""
        view = x.view()
        try:
            view.shape = shape
        except AttributeError:
            return None
        return view

    def transpose(self, m: Transpose, x: Any) -> Any:
        """Return a view with permuted axes."""
        return x.transpose(m.order)

    def apply(
        self,
        op: str,
        operands: tuple[Any, ...],
        dtypes: tuple[str, ...],
        out: Any,
        *,
        dtype: str,
    ) -> None:
        """Write CuPy's function of the same name."""
        function: Any = self._products.matmul if op == "matmul" else getattr(cupy, op)
        values = [_unsigned(x) for x in map(self._wide, operands, dtypes)]
        if op in _TRUTHS and any(map(_is_complex, values)):
            values = [x != 0 for x in values]  # CuPy has none of complex numbers
        if op == "where" and self._is_alike(dtypes, dtype):
            self._choose(*values, out)
        elif op in _ANSWERS or dtype in FORMATS:
            self._answer(function(*values), out, dtype)
        else:
            enqueued = self._device.active.enqueuing()
            function(*values, out=out)
            if enqueued is not None:
                enqueued()

    @staticmethod
    def _is_alike(dtypes: tuple[str, ...], dtype: str) -> bool:
        """Whether a choice is among values of the result's dtype, by an array."""
        if not dtypes[0] or dtypes[0] in FORMATS or dtype in FORMATS:
            return False
        return all(one == dtype for one in dtypes[1:] if one) and any(dtypes[1:])

    def reduce(self, m: Reduce, x: Any, out: Any) -> None:
        """Write CuPy's reduction of the same name."""
        op, axes = m.op, m.axes()
        along = None if len(axes) == x.ndim else axes
        options: dict[str, Any] = {"axis": along, "keepdims": m.keepdims}
        if op in PLACES and along is not None:
            (options["axis"],) = axes
        if op in SPREADS:
            options["ddof"] = m.ddof
        if m.dtype:
            options["dtype"] = "float32" if m.dtype in FORMATS else m.dtype
        function, x, dtype = getattr(cupy, op), self._wide(x, m.x.dtype), m.made_dtype()
        if op in _WRITTEN and dtype not in FORMATS:
            function(x, out=out, **options)
        else:
            self._answer(function(x, **options), out, dtype)

    def take(self, m: Take, x: Any, indices: Any, out: Any) -> None:
        """Write the elements at `indices` (cupy.take), which wrap around."""
        cupy.take(x, indices, axis=m.axis, out=out)

    def concatenate(self, m: Concatenate, xs: list[Any], out: Any) -> None:
        """Copy each array to its place."""
        made = m.infer().dtype
        for operand, (x, place) in zip(m.xs, m.places(xs), strict=True):
            if x.size:
                self._convert(x, out[place], operand.dtype, made)

    def arange(self, m: Arange, out: Any) -> None:
        """Write start + i * step, of integers modulo 2**64, else in float64."""
        if not m.count:
            return
        # Two kernels: one that adds and multiplies would round once, NumPy rounds twice.
        if numpy_dtype(m.dtype).kind in "iu":
            i = cupy.arange(m.count, dtype="uint64") * np.uint64(m.step % 2**64)
            cupy.copyto(out, i + np.uint64(m.start % 2**64), casting="unsafe")
            if m.last is not None:
                _fill(out[-1:], np.array(m.last, numpy_dtype(m.dtype)))
            return
        made = cupy.arange(m.count, dtype="float64") * float(m.step)
        made += float(m.start)
        if m.last is not None:
            made[-1:].fill(float(m.last))
        self._convert(made, out, "float64", m.dtype)

    def eye(self, m: Eye, out: Any) -> None:
        """Write zeros, and ones on a diagonal."""
        rows, columns = out.shape
        if out.size:
            out.fill(0)
        if -rows < m.k < columns:
            _fill(out.diagonal(m.k), np.ones((), numpy_dtype(m.dtype)))

    def broadcast(self, _: Broadcast, x: Any, out: Any) -> None:
        """Write `x` along every axis."""
        if out.size:
            cupy.copyto(out, cupy.broadcast_to(x, out.shape))

    def scan(self, m: Scan, x: Any, out: Any) -> None:
        """Write CuPy's sums or products."""
        if not out.size:
            return
        made = m.made_dtype()
        flat = m.axis is None or x.ndim == 1
        answer = scanned(m.op, x.ravel() if flat else x, None if flat else m.axis, made)
        self._answer(answer, out, made)

    def sort(self, m: Sort, x: Any, out: Any) -> None:
        """Write the elements in order (cupy.sort)."""
        if out.size:
            cupy.copyto(out, cupy.sort(_with_axes(x), m.axis))

    def argsort(self, m: Argsort, x: Any, out: Any) -> None:
        """Write where the elements in order are (cupy.argsort), which is stable."""
        if out.size:
            self._answer(argsort(_with_axes(x), m.axis), out, "int64")

    def searchsorted(self, m: Searchsorted, a: Any, v: Any, out: Any) -> None:
        """Write where elements belong (cupy.searchsorted)."""
        if not out.size:
            return
        common = m.common()
        places = cupy.searchsorted(a.astype(common), v.astype(common), m.side)
        self._answer(places, out, "int64")

    def take_along(self, m: TakeAlong, x: Any, indices: Any, out: Any) -> None:
        """Write an element for each index (cupy.take_along_axis), which wrap around."""
        if not out.size:
            return
        x, axis = (x.ravel(), 0) if m.axis is None else (x, m.axis)
        at = cupy.remainder(indices.astype("int64"), x.shape[axis])
        cupy.copyto(out, cupy.take_along_axis(x, at, axis))

    def assign(self, m: Assign, out: Any, value: Any) -> None:
        """Write to a part."""
        part = out[m.entries]
        if part.size:
            cupy.copyto(part, self._as_elements(m, value))

    def assign_at(self, m: AssignAt, out: Any, value: Any, *indices: Any) -> None:
        """Write to what is at integers, which CuPy wraps around."""
        index: list[Any] = [slice(None)] * out.ndim
        for axis, at in zip(m.places(), indices, strict=True):
            index[axis] = at.astype("int64", copy=False)
        if out.size:
            out[tuple(index)] = self._as_elements(m, value)

    def assign_along(self, m: AssignAlong, out: Any, value: Any, indices: Any) -> None:
        """Write at each index along an axis (cupy.put_along_axis); they wrap around."""
        if not (out.size and indices.size):
            return
        value, at = self._as_elements(m, value), indices.astype("int64", copy=False)
        if m.axis is None:
            # cupy.put repeats values where they are too few, and broadcasts none.
            out.put(at, cupy.broadcast_to(value.ravel(), at.shape), mode="wrap")
        else:
            cupy.put_along_axis(out, at, value, m.axis)

    def assign_mask(self, m: AssignMask, out: Any, value: Any, mask: Any) -> Any:
        """Write where the mask is True; return how often it is. Nothing waits for that number."""
        found = mask.sum(dtype="int64")
        if not out.size:
            return found
        value, rows = self._as_elements(m, value), m.counted
        if rows is not None:
            # The number of each True is its row; without as many rows nothing is written.
            mask = mask & (found == rows)
            at = cupy.cumsum(mask.ravel(), dtype="int64").reshape(mask.shape) - 1
            value = value.reshape(value.shape[-len(m.row) - 1 :])
            value = cupy.take(value, at, axis=0) if rows else cupy.zeros((), out.dtype)
        cupy.copyto(out, value, where=mask.reshape(mask.shape + (1,) * len(m.row)))
        return found

    def _as_elements(self, m: Assignment, value: Any) -> Any:
        """Return a value, or a number, as elements of the dtype of `out`."""
        dtype = str(m.out.dtype)
        if m.value is None:
            with np.errstate(all="ignore"):
                number = np.asarray(value, numpy_dtype(dtype))
            made = cupy.empty((), storage_of(dtype))
            _fill(made, number)
            return made
        if m.value.dtype == dtype:
            return value
        made = cupy.empty(value.shape, storage_of(dtype))
        self._convert(value, made, str(m.value.dtype), dtype)
        return made

    def bincount(self, m: Bincount, x: Any, weights: Any, out: Any) -> None:
        """Write how often each integer is there; cupy.bincount would wait for the largest."""
        out.fill(0)
        if not (x.size and m.length):
            return
        if weights is None:
            count_kernel()(x, m.length, out)
        else:
            summed(x.astype("int64"), weights, m.length, out)

    # These three wait for the device: they run beside the dispatcher.

    def mask(self, x: Any, mask: Any) -> Any:
        """Return what is kept: the elements at the places where the mask is True."""
        rest = x.shape[mask.ndim :]
        at = cupy.nonzero(mask.ravel())[0] if mask.size else cupy.empty((0,), "int64")
        if not (at.size and x.size):
            return cupy.empty((at.size, *rest), x.dtype)
        return cupy.take(x.reshape((mask.size, *rest)), at, axis=0)

    def unique(self, m: Unique, x: Any) -> tuple[Any, ...]:
        """Return each element once, and what is asked for (cupy.unique)."""
        asked = (m.indices, m.inverse, m.counts)
        if not x.size:
            inverse = cupy.empty(x.shape, "int64") if m.inverse else None
            none = [cupy.empty((0,), "int64") if one else None for one in asked]
            return cupy.empty((0,), x.dtype), none[0], inverse, none[2]
        made = cupy.unique(x, *asked, equal_nan=m.equal_nan)
        left = iter(made if any(asked) else (made,))
        values = next(left)
        return values, *(next(left).astype("int64") if one else None for one in asked)

    def nonzero(self, x: Any, dtype: str) -> Any:
        """Return the places of what is not zero, a row for each axis."""
        if not x.size:
            return cupy.empty((x.ndim, 0), "int64")
        return cupy.stack(cupy.nonzero(self._wide(x, dtype) != 0)).astype("int64")

    def triangle(self, m: Triangle, x: Any, out: Any) -> None:
        """Write one triangle and zeros."""
        if out.size:
            rows, columns = x.shape[-2:]
            k = max(-rows - 1, min(m.k, columns + 1))
            cupy.copyto(out, (cupy.triu if m.upper else cupy.tril)(x, k))

    def diagonal(self, m: Diagonal, x: Any) -> Any:
        """Return a view."""
        offset = max(-x.shape[m.axis1], min(m.offset, x.shape[m.axis2]))
        return x.diagonal(offset, m.axis1, m.axis2)

    def close(self) -> None:
        """Destroy what multiplies; waits for the device."""
        self._products.close()

    def _wide(self, x: Any, dtype: str) -> Any:
        """Return what CuPy computes with in place of the bits of narrow floats."""
        if dtype not in FORMATS:
            return x
        wide = cupy.empty(x.shape, "float32")
        self._cast(x, wide, dtype, "float32")
        return wide

    def _answer(self, answer: Any, out: Any, dtype: str) -> None:
        """Put what CuPy has computed in its place, in the dtype that was announced."""
        self._convert(answer, out, str(answer.dtype), dtype)

    def _cast(self, x: Any, out: Any, source: str, target: str) -> None:
        kernel = self._casts.get((source, target))
        if kernel is None:
            kernel = self._casts[source, target] = cast_kernel(source, target)
        kernel(x, out)


def _with_axes(x: Any) -> Any:
    """Return what CuPy sorts: a number as a vector of it."""
    return x if x.ndim else x.reshape(1)


def _fill(out: Any, element: Any) -> None:
    """Write one element everywhere.

    As bits: a few kernels then serve all dtypes, and -0.0 keeps its sign.
    """
    bits = _BITS.get(element.itemsize)
    if bits is None:
        out.fill(element)
    else:
        out.view(bits).fill(element.view(bits))


def _is_complex(x: Any) -> bool:
    return isinstance(x, complex) or (isinstance(x, cupy.ndarray) and x.dtype.kind == "c")


def _unsigned(value: Any) -> Any:
    """Return an integer that int64 lacks as NumPy's uint64: CuPy takes Python's as int64."""
    return np.uint64(value) if type(value) is int and value > _INT64_MOST else value
