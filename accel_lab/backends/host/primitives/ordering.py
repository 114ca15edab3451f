"""Vectors in order on the host: NumPy's stable sorts, or a merge by the user's order."""

from typing import Any

import numpy as np

from accel_lab.backends.host.primitives.functions import Functions, Loop
from accel_lab.backends.host.primitives.reduction import wrong_offsets
from accel_lab.libraries.primitives.ordering import Merge, Sort, SortPairs, TopK


class Orders:
    """Calls at once: on the host, what is enqueued is done."""

    _functions: Functions

    def sort(self, m: Sort, x: Any, offsets: Any, out: Any) -> Any:
        """Sort a vector, or each segment."""
        if offsets is None and not m.source:
            # Of the two zeros the first comes first, too.
            turned = slice(None, None, -1 if m.descending else 1)
            out[...] = np.sort(x[turned], kind="stable")[turned]
            return None
        if (wrong := _refused(offsets, x)) is None or not wrong.any():
            out[...] = x[self._order(m, x, offsets)]
        return wrong

    def sort_pairs(self, m: SortPairs, keys: Any, values: Any, offsets: Any, out: Any) -> Any:
        """Sort keys with values."""
        if (wrong := _refused(offsets, keys)) is None or not wrong.any():
            at = self._order(m, keys, offsets)
            out.keys[...], out.values[...] = keys[at], values[at]
        return wrong

    def merge(self, _: Merge, a: Any, b: Any, out: Any) -> None:
        """Sort both together: Timsort finds the two runs."""
        out[...] = np.sort(np.concatenate((a, b)), kind="stable")

    def top_k(self, m: TopK, x: Any, out: Any) -> None:
        """Return the first of those in order."""
        at = stable_order(x, descending=m.largest)[: m.k]
        out.values[...], out.indices[...] = x[at], at

    def _order(self, m: Any, x: Any, offsets: Any) -> Any:
        """Return where the elements are in order."""
        if m.source:
            at = np.arange(x.size)
            if x.size:
                loop = Loop("order", m.operator, x.dtype.name, "bool")
                whole, other = np.ascontiguousarray(x), np.empty_like(at)
                self._functions.call(loop, whole, at, other, numbers=(x.size,))
            return at
        at = stable_order(x, descending=m.descending)
        if offsets is None:
            return at
        segment = np.searchsorted(offsets[1:], at, side="right")
        return at[np.argsort(segment, kind="stable")]


def stable_order(x: Any, *, descending: bool) -> Any:
    """Return where the elements are in order; of equal ones the first comes first."""
    if not descending:
        return np.argsort(x, kind="stable")
    return (x.size - 1 - np.argsort(x[::-1], kind="stable"))[::-1]


def _refused(offsets: Any, x: Any) -> Any:
    return None if offsets is None else wrong_offsets(offsets, x.size)
