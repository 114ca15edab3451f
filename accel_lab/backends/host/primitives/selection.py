"""Some of the elements on the host, and histograms: masks and searches of NumPy."""

from typing import Any

import numpy as np

from accel_lab.backends.host.primitives.functions import Functions, Loop
from accel_lab.backends.host.primitives.reduction import heads_of
from accel_lab.libraries.primitives.counting import HistogramEven, HistogramRange, RunLengthEncode
from accel_lab.libraries.primitives.operators import Operator
from accel_lab.libraries.primitives.selection import Partition, Select, Unique, UniqueByKey


class Selections:
    """Calls at once: on the host, what is enqueued is done."""

    _functions: Functions

    def histogram_even(self, m: HistogramEven, x: Any, out: Any) -> None:
        """Search the bin of each element, and count."""
        out[...] = _counts(x, m.edges())

    def histogram_range(self, _: HistogramRange, x: Any, edges: Any, out: Any) -> Any:
        """Search the bin of each element, and count."""
        edges = edges.astype(np.float64)
        wrong = ~(edges[1:] >= edges[:-1])  # a NaN does not ascend either
        if not wrong.any():
            out[...] = _counts(x, edges)
        return wrong

    def run_length_encode(self, _: RunLengthEncode, x: Any) -> tuple[Any, Any, Any]:
        """Return the first of each run, its length and its place."""
        starts = np.flatnonzero(heads_of(x))
        return x[starts], np.diff(starts, append=x.size), starts

    def unique(self, m: Unique, x: Any) -> Any:
        """Keep the first of each run."""
        return x[self._heads(m.operator, x)]

    def unique_by_key(self, m: UniqueByKey, keys: Any, values: Any) -> tuple[Any, Any]:
        """Keep the first of each run, and its value."""
        heads = self._heads(m.operator, keys)
        return keys[heads], values[heads]

    def select(self, m: Select, x: Any, flags: Any) -> Any:
        """Keep what is chosen."""
        return x[self._chosen(m.operators, x, flags)[0]]

    def partition(self, m: Partition, x: Any, flags: Any) -> tuple[Any, Any, Any]:
        """Part in two or three."""
        first, *more = self._chosen(m.operators, x, flags)
        if not more:
            return x[first], None, x[~first]
        second = more[0] & ~first
        return x[first], x[second], x[~(first | second)]

    def _chosen(self, operators: tuple[Operator, ...], x: Any, flags: Any) -> list[Any]:
        """Return for each predicate where it is true."""
        if flags is not None:
            return [flags != 0]
        chosen = []
        for op in operators:
            made = np.zeros(x.shape, np.bool_)
            if x.size:
                loop, whole = Loop("unary", op, x.dtype.name, "bool"), np.ascontiguousarray(x)
                self._functions.call(loop, whole, made, numbers=(x.size,))
            chosen += [made]
        return chosen

    def _heads(self, op: Operator, x: Any) -> Any:
        """Return where a run begins of what an operator calls equal."""
        if not op.source:
            return heads_of(x)
        heads = np.ones(x.shape, np.bool_)
        if x.size > 1:
            left, right = np.ascontiguousarray(x[:-1]), np.ascontiguousarray(x[1:])
            equal = np.zeros(left.shape, np.bool_)
            loop = Loop("binary", op, x.dtype.name, "bool")
            self._functions.call(loop, left, right, equal, numbers=(left.size,))
            heads[1:] = ~equal
        return heads


def _counts(x: Any, edges: Any) -> Any:
    """Count in bins that have their lower edge, the last one also its upper edge."""
    values, last = x.astype(np.float64), edges.size - 1
    inside = values[(values >= edges[0]) & (values <= edges[-1])]  # no NaN is
    bins = np.searchsorted(edges, inside, side="right") - 1
    bins[inside == edges[-1]] = last - 1
    return np.bincount(bins, minlength=last)
