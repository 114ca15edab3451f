"""Reductions and scans on cuda, by CUB."""

from typing import Any

import cupy
import numpy as np

from accel_lab.backends.cuda.primitives import recipes
from accel_lab.backends.cuda.primitives.kernels import heads_kernel, shifted_kernel
from accel_lab.backends.cuda.primitives.memory import memory
from accel_lab.backends.cuda.primitives.operands import segments, whole
from accel_lab.backends.cuda.primitives.plans import Plans
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.libraries.primitives.operators import computed_in, identity
from accel_lab.libraries.primitives.reduction import ArgReduce, Reduce, SegmentedReduce
from accel_lab.libraries.primitives.scanning import AdjacentDifference, Scan, ScanByKey, Transform


class Reductions:
    """Enqueues on the current stream."""

    _plans: Plans

    def reduce(self, m: Reduce, x: Any, out: Any, init: Any) -> None:
        """Combine all elements (cub::DeviceReduce)."""
        dtype = computed_in(m.operator, m.x.dtype)
        begin = _begin(m, init, dtype)
        if not x.size:
            out.fill(begin[0])
            return
        made = _target(out, dtype)
        self._plans.run(
            recipes.reduction(m),
            d_in=whole(x, dtype),
            d_out=made.reshape(1),
            num_items=x.size,
            op=operator(),
            h_init=begin,
        )
        _store(made, out)

    def arg_reduce(self, m: ArgReduce, x: Any, out: Any) -> None:
        """Combine elements with their places (cub::DeviceReduce)."""
        from cuda import compute

        from accel_lab.backends.cuda.primitives.compilation import places

        x = whole(x)
        self._plans.run(
            recipes.extreme(m),
            d_in=places(compute, memory(x)),
            d_out=compute.ZipIterator(memory(out.value), memory(out.place)),
            num_items=x.size,
            op=operator(),
            h_init=None,
        )

    def segmented_reduce(
        self, m: SegmentedReduce, x: Any, offsets: Any, out: Any, init: Any
    ) -> Any:
        """Combine the elements of each segment (cub::DeviceSegmentedReduce)."""
        dtype = computed_in(m.operator, m.x.dtype)
        starts, ends, wrong = segments(offsets, x.size)
        if not out.size:
            return wrong
        begin = _begin(m, init, dtype)
        if not x.size:
            out.fill(begin[0])
            return wrong
        made = _target(out, dtype)
        self._plans.run(
            recipes.segmented_reduction(m),
            d_in=whole(x, dtype),
            d_out=made,
            num_segments=out.size,
            start_offsets_in=starts,
            end_offsets_in=ends,
            op=operator(),
            h_init=begin,
        )
        _store(made, out)
        return wrong

    def scan(self, m: Scan, x: Any, out: Any, init: Any) -> None:
        """Combine those up to each element (cub::DeviceScan)."""
        if not x.size:
            return
        dtype = computed_in(m.operator, m.x.dtype)
        made = _target(out, dtype)
        has_begin = m.exclusive or init is not None
        self._plans.run(
            recipes.scanning(m),
            d_in=whole(x, dtype),
            d_out=made,
            op=operator(),
            init_value=_begin(m, init, dtype) if has_begin else None,
            num_items=x.size,
        )
        _store(made, out)

    def scan_by_key(self, m: ScanByKey, keys: Any, x: Any, out: Any, init: Any) -> None:
        """Scan elements with the heads of their runs (cub::DeviceScan)."""
        if not x.size:
            return
        from cuda import compute

        dtype = computed_in(m.operator, m.x.dtype)
        heads = cupy.empty(x.size, cupy.uint8)
        heads_kernel()(whole(keys), heads)
        values = whole(x, dtype)
        if m.exclusive:
            before = cupy.empty_like(values)
            shifted_kernel()(values, heads, _begin(m, init, dtype)[0], before)
            values = before
        made, unused = _target(out, dtype), cupy.empty_like(heads)
        self._plans.run(
            recipes.scanning_by_key(m),
            d_in=compute.ZipIterator(memory(values), memory(heads)),
            d_out=compute.ZipIterator(memory(made), memory(unused)),
            op=operator(),
            init_value=None,
            num_items=x.size,
        )
        _store(made, out)

    def adjacent_difference(self, m: AdjacentDifference, x: Any, out: Any) -> None:
        """Combine each element with the one before (cub::DeviceTransform)."""
        if not x.size:
            return
        x = whole(x)
        out[:1] = x[:1]
        if x.size > 1:
            self._plans.run(
                recipes.difference(m),
                d_in1=x[1:],
                d_in2=x[:-1],
                d_out=out[1:],
                op=operator(),
                num_items=x.size - 1,
            )

    def transform(self, m: Transform, x: Any, y: Any, out: Any) -> None:
        """Call a function for each element (cub::DeviceTransform)."""
        if not x.size:
            return
        operands = {"d_in": whole(x)} if y is None else {"d_in1": whole(x), "d_in2": whole(y)}
        self._plans.run(
            recipes.transformation(m), **operands, d_out=out, op=operator(), num_items=x.size
        )


def operator() -> Any:
    """Return what stands for the operator in a call: it is compiled in, and has no state."""
    from cuda.compute.op import RawOp

    return RawOp(ltoir=b"", name="accel_lab")


def _begin(m: Any, init: Any, dtype: str) -> Any:
    """Return what a reduction begins with, as an array of one element; None if with the first."""
    if init is None:
        if m.source:
            return None
        init = identity(m.op, dtype)
    return np.array([init], numpy_dtype(dtype))


def _target(out: Any, dtype: str) -> Any:
    """Return where to compute in a dtype: the result itself, if it has it."""
    return out if out.dtype.name == dtype else cupy.empty(out.shape, dtype)


def _store(made: Any, out: Any) -> None:
    if made is not out:
        out[...] = made
