"""Some of the elements on cuda, by CUB; and histograms. What waits runs on a thread beside."""

from typing import Any

import cupy

from accel_lab.backends.cuda.primitives import recipes
from accel_lab.backends.cuda.primitives.kernels import count, scatter_kernel
from accel_lab.backends.cuda.primitives.operands import count_of, whole
from accel_lab.backends.cuda.primitives.plans import Plans
from accel_lab.backends.cuda.primitives.reduction import operator
from accel_lab.libraries.primitives.counting import HistogramEven, HistogramRange, RunLengthEncode
from accel_lab.libraries.primitives.operators import Operator
from accel_lab.libraries.primitives.selection import Partition, Select, Unique, UniqueByKey


class Selections:
    """Enqueues on the current stream."""

    _plans: Plans

    def histogram_even(self, m: HistogramEven, x: Any, out: Any) -> None:
        """Count in shared memory."""
        count(whole(x), cupy.asarray(m.edges()), out, even=True)

    def histogram_range(self, _: HistogramRange, x: Any, edges: Any, out: Any) -> Any:
        """Search the bin of each element, and count."""
        edges = whole(edges, cupy.float64)
        count(whole(x), edges, out, even=False)
        # A NaN does not ascend either.
        return (~(edges[1:] >= edges[:-1])).sum().reshape(1)

    def run_length_encode(self, _: RunLengthEncode, x: Any) -> tuple[Any, Any, Any]:
        """Keep the first of each run, and its place (cub::DeviceSelect::UniqueByKey)."""
        values, starts = self._distinct(Operator("equal"), x, None)
        ends = cupy.append(starts[1:], cupy.full(min(starts.size, 1), x.size, cupy.int64))
        return values, ends - starts, starts

    def unique(self, m: Unique, x: Any) -> Any:
        """Keep the first of each run (cub::DeviceSelect::UniqueByKey)."""
        return self._distinct(m.operator, x, None)[0]

    def unique_by_key(self, m: UniqueByKey, keys: Any, values: Any) -> tuple[Any, Any]:
        """Keep the first of each run, and its value (cub::DeviceSelect::UniqueByKey)."""
        return self._distinct(m.operator, keys, values)

    def select(self, m: Select, x: Any, flags: Any) -> Any:
        """Keep what is chosen (cub::DeviceSelect)."""
        if flags is not None or not x.size:
            return _parted(x, flags)[0]
        found, total = cupy.empty_like(x := whole(x)), cupy.empty(1, cupy.int64)
        self._plans.run(
            recipes.choice(m),
            d_in=x,
            d_out=found,
            d_num_selected_out=total,
            cond=operator(),
            num_items=x.size,
        )
        return found[: count_of(total[0])].copy()

    def partition(self, m: Partition, x: Any, flags: Any) -> tuple[Any, Any, Any]:
        """Part in two or three (cub::DevicePartition)."""
        if flags is not None or not x.size:
            first, rest = _parted(x, flags)
            return first, rest[:0].copy() if m.second else None, rest
        x = whole(x)
        parts = [cupy.empty_like(x) for _ in ("first", "second", "rest")]
        totals = cupy.empty(2, cupy.int64)
        self._plans.run(
            recipes.choice(m),
            d_in=x,
            d_first_part_out=parts[0],
            d_second_part_out=parts[1],
            d_unselected_out=parts[2],
            d_num_selected_out=totals,
            select_first_part_op=operator(),
            select_second_part_op=operator(),
            num_items=x.size,
        )
        chosen, other = (int(total) for total in totals.get())
        counts = chosen, other, x.size - chosen - other
        first, second, rest = (
            part[:extent].copy() for part, extent in zip(parts, counts, strict=True)
        )
        return first, second if m.second else None, rest

    def _distinct(self, op: Operator, keys: Any, values: Any) -> tuple[Any, Any]:
        """Return the first key of each run, and its value, or its place."""
        from cuda import compute

        from accel_lab.backends.cuda.primitives.compilation import counting

        keys = whole(keys)
        values = None if values is None else whole(values)
        items = cupy.empty(keys.size, cupy.int64 if values is None else values.dtype)
        if not keys.size:
            return keys.copy(), items
        firsts, total = cupy.empty_like(keys), cupy.empty(1, cupy.int64)
        self._plans.run(
            recipes.distinct(op, keys.dtype.name, "" if values is None else values.dtype.name),
            d_in_keys=keys,
            d_in_items=counting(compute) if values is None else values,
            d_out_keys=firsts,
            d_out_items=items,
            d_out_num_selected=total,
            op=operator(),
            num_items=keys.size,
        )
        extent = count_of(total[0])
        return firsts[:extent].copy(), items[:extent].copy()


def _parted(x: Any, flags: Any) -> tuple[Any, Any]:
    """Return what flags choose, and the rest; all arrays are of none where there is none."""
    if not x.size:
        return x.copy(), x.copy()
    chosen = flags != 0
    ends = cupy.cumsum(chosen, dtype=cupy.int64)
    extent = count_of(ends[-1])
    first, rest = cupy.empty(extent, x.dtype), cupy.empty(x.size - extent, x.dtype)
    scatter_kernel()(x, chosen, ends, first, rest)
    return first, rest
