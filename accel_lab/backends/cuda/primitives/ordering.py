"""Vectors in order on cuda, by CUB."""

from typing import Any

import cupy

from accel_lab.backends.cuda.primitives import recipes
from accel_lab.backends.cuda.primitives.operands import ranks, segments, sortable, unranked, whole
from accel_lab.backends.cuda.primitives.plans import Plans
from accel_lab.backends.cuda.primitives.recipes import INDEX
from accel_lab.backends.cuda.primitives.reduction import operator
from accel_lab.libraries.primitives.ordering import Merge, Sort, SortPairs, TopK


class Orders:
    """Enqueues on the current stream."""

    _plans: Plans

    def sort(self, m: Sort, x: Any, offsets: Any, out: Any) -> Any:
        """Sort a vector (cub::DeviceRadixSort, DeviceMergeSort, DeviceSegmentedSort)."""
        if offsets is None:
            self._sorted(m, x, None, out, None)
            return None
        starts, ends, wrong = segments(offsets, x.size)
        keys = sortable(x)
        out[...] = keys
        if starts.size and x.size:
            keys = ranks(keys)
            ordered = keys.copy()  # with what is in no segment
            self._plans.run(
                recipes.segmented_sort(keys.dtype.name, descending=m.descending),
                d_in_keys=keys,
                d_out_keys=ordered,
                d_in_values=None,
                d_out_values=None,
                num_items=x.size,
                num_segments=starts.size,
                start_offsets_in=starts,
                end_offsets_in=ends,
            )
            out[...] = unranked(ordered, x.dtype)
        return wrong

    def sort_pairs(self, m: SortPairs, keys: Any, values: Any, offsets: Any, out: Any) -> Any:
        """Sort keys with values; the keys of segments first, then, stably, their segments."""
        if offsets is None:
            self._sorted(m, keys, values, out.keys, out.values)
            return None
        _, ends, wrong = segments(offsets, keys.size)
        if not keys.size:
            return wrong
        at = self._order(sortable(keys), descending=m.descending)
        # As many segments end at or before an element as there are before its own.
        of = cupy.searchsorted(ends, at, side="right").astype(cupy.int64, copy=False)
        ordered, chosen = cupy.empty_like(of), cupy.empty_like(at)
        self._radix(of, at, ordered, chosen)
        out.keys[...] = keys[chosen]
        out.values[...] = values[chosen]
        return wrong

    def merge(self, _: Merge, a: Any, b: Any, out: Any) -> None:
        """Sort both together (cub::DeviceRadixSort)."""
        if out.size:
            self._radix(sortable(cupy.concatenate((a, b))), None, out, None)

    def top_k(self, m: TopK, x: Any, out: Any) -> None:
        """Sort places by their elements, and keep the first (cub::DeviceRadixSort)."""
        if m.k:
            chosen = self._order(sortable(x), descending=m.largest)[: m.k]
            out.indices[...] = chosen
            out.values[...] = x[chosen]

    def _sorted(self, m: Any, keys: Any, values: Any, out_keys: Any, out_values: Any) -> None:
        if not keys.size:
            return
        values = None if values is None else whole(values)
        if not m.source:
            self._radix(sortable(keys), values, out_keys, out_values, descending=m.descending)
            return
        dtypes = [array.dtype.name for array in (keys, values) if array is not None]
        self._plans.run(
            recipes.merging(m.operator, *dtypes),
            d_in_keys=whole(keys),
            d_in_values=values,
            d_out_keys=out_keys,
            d_out_values=out_values,
            num_items=keys.size,
            op=operator(),
        )

    def _order(self, keys: Any, *, descending: bool) -> Any:
        """Return where the elements are in order."""
        places = cupy.arange(keys.size, dtype=INDEX)
        ordered, chosen = cupy.empty_like(keys), cupy.empty_like(places)
        self._radix(keys, places, ordered, chosen, descending=descending)
        return chosen

    def _radix(
        self, keys: Any, values: Any, out_keys: Any, out_values: Any, *, descending: bool = False
    ) -> None:
        dtypes = [array.dtype.name for array in (keys, values) if array is not None]
        self._plans.run(
            recipes.radix(*dtypes, descending=descending),
            d_in_keys=keys,
            d_out_keys=out_keys,
            d_in_values=values,
            d_out_values=out_values,
            num_items=keys.size,
        )
