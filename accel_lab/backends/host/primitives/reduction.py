"""Reductions and scans on the host: NumPy's ufuncs, or loops around the user's operators."""

from typing import Any

import numpy as np

from accel_lab.backends.host.primitives.functions import Functions, Loop
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.libraries.primitives.operators import computed_in, identity
from accel_lab.libraries.primitives.reduction import ArgReduce, Reduce, SegmentedReduce
from accel_lab.libraries.primitives.scanning import AdjacentDifference, Scan, ScanByKey, Transform

UFUNCS: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
    "sub": np.subtract,
}


class Reductions:
    """Calls at once: on the host, what is enqueued is done."""

    _functions: Functions

    @np.errstate(all="ignore")
    def reduce(self, m: Reduce, x: Any, out: Any, init: Any) -> None:
        """Combine all elements (ufunc.reduce)."""
        if m.source:
            self._fold(m, x, [0], [x.size], out.reshape(1), init)
            return
        dtype = numpy_dtype(computed_in(m.operator, m.x.dtype))
        begin = identity(m.op, dtype.name) if init is None else init
        whole = x.astype(dtype, copy=False)
        out[...] = UFUNCS[m.op].reduce(whole, dtype=dtype, initial=dtype.type(begin))

    def arg_reduce(self, m: ArgReduce, x: Any, out: Any) -> None:
        """Find an extreme element (numpy.argmin, argmax)."""
        out.place[...] = at = np.argmin(x) if m.op == "argmin" else np.argmax(x)
        out.value[...] = x[at]

    @np.errstate(all="ignore")
    def segmented_reduce(
        self, m: SegmentedReduce, x: Any, offsets: Any, out: Any, init: Any
    ) -> Any:
        """Combine the elements of each segment (ufunc.reduceat, for those that are not empty)."""
        if (wrong := wrong_offsets(offsets, x.size)).any() or not out.size:
            return wrong
        starts, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
        if m.source:
            self._fold(m, x, starts, ends, out, init)
            return wrong
        dtype = numpy_dtype(computed_in(m.operator, m.x.dtype))
        begin = dtype.type(identity(m.op, dtype.name) if init is None else init)
        made = np.full(out.shape, begin, dtype)
        some = starts < ends
        if some.any():  # what is empty begins where the next one does, and changes nothing
            combine = UFUNCS[m.op]
            whole = x.astype(dtype, copy=False)
            made[some] = combine(begin, combine.reduceat(whole, starts[some], dtype=dtype))
        out[...] = made
        return wrong

    @np.errstate(all="ignore")
    def scan(self, m: Scan, x: Any, out: Any, init: Any) -> None:
        """Combine those up to each element (ufunc.accumulate)."""
        heads = np.zeros(x.shape, np.bool_)
        heads[:1] = True
        self._scan(m, x, heads, out, init)

    @np.errstate(all="ignore")
    def scan_by_key(self, m: ScanByKey, keys: Any, x: Any, out: Any, init: Any) -> None:
        """Scan each run by itself (ufunc.accumulate)."""
        self._scan(m, x, heads_of(keys), out, init)

    @np.errstate(all="ignore")
    def adjacent_difference(self, m: AdjacentDifference, x: Any, out: Any) -> None:
        """Combine each element with the one before."""
        out[:1] = x[:1]
        if not m.source:
            UFUNCS[m.op](x[1:], x[:-1], out=out[1:], dtype=x.dtype)
        elif x.size > 1:
            left, right = np.ascontiguousarray(x[1:]), np.ascontiguousarray(x[:-1])
            loop = Loop("binary", m.operator, m.x.dtype)
            self._functions.call(loop, left, right, out[1:], numbers=(left.size,))

    def transform(self, m: Transform, x: Any, y: Any, out: Any) -> None:
        """Call a function for each element."""
        operands = [np.ascontiguousarray(one) for one in (x, y) if one is not None]
        loop = Loop("unary" if y is None else "binary", m.operator, m.x.dtype)
        if x.size:
            self._functions.call(loop, *operands, out, numbers=(x.size,))

    def _fold(self, m: Any, x: Any, starts: Any, ends: Any, out: Any, init: Any) -> None:
        bounds = [np.asarray(one, np.int64) for one in (starts, ends)]
        begin = np.array([0 if init is None else init], x.dtype)
        self._functions.call(
            Loop("fold", m.operator, m.x.dtype),
            np.ascontiguousarray(x),
            *bounds,
            begin,
            out,
            numbers=(out.size, int(init is not None)),
        )

    def _scan(self, m: Any, x: Any, heads: Any, out: Any, init: Any) -> None:
        if not x.size:
            return
        if m.source:
            begin = np.array([0 if init is None else init], x.dtype)
            numbers = x.size, int(m.exclusive), int(init is not None)
            loop, whole = Loop("scan", m.operator, m.x.dtype), np.ascontiguousarray(x)
            self._functions.call(loop, whole, heads, begin, out, numbers=numbers)
            return
        dtype = numpy_dtype(computed_in(m.operator, m.x.dtype))
        values = x.astype(dtype)
        if m.exclusive:
            values[1:] = values[:-1].copy()
            values[heads] = identity(m.op, dtype.name) if init is None else init
        elif init is not None:
            values[:1] = UFUNCS[m.op](dtype.type(init), values[:1])
        starts = np.flatnonzero(heads)
        for start, end in zip(starts, [*starts[1:], x.size], strict=True):
            out[start:end] = UFUNCS[m.op].accumulate(values[start:end], dtype=dtype)


def heads_of(keys: Any) -> Any:
    """Return where a run of equal neighbours begins."""
    heads = np.ones(keys.shape, np.bool_)
    heads[1:] = keys[1:] != keys[:-1]
    return heads


def wrong_offsets(offsets: Any, extent: int) -> Any:
    """Return which offsets do not go from 0 to an extent without a step back."""
    wrong = np.zeros(offsets.shape, np.bool_)
    wrong[1:] = offsets[1:] < offsets[:-1]
    wrong[0] |= offsets[0] != 0
    wrong[-1] |= offsets[-1] != extent
    return wrong
