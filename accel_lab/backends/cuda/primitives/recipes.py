"""What is to be compiled for a message: an algorithm of CUB for dtypes and operators."""

from collections.abc import Callable
from typing import Any, NamedTuple

from accel_lab.compute.arrays.dtypes import is_float
from accel_lab.libraries.primitives.counting import RunLengthEncode
from accel_lab.libraries.primitives.operators import Operator, computed_in
from accel_lab.libraries.primitives.ordering import Merge, Sort, SortPairs, TopK
from accel_lab.libraries.primitives.reduction import ArgReduce, Reduce, SegmentedReduce
from accel_lab.libraries.primitives.scanning import AdjacentDifference, Scan, ScanByKey, Transform
from accel_lab.libraries.primitives.selection import Partition, Select, Unique, UniqueByKey

INDEX = "int64"
_EXTREMES = """
template <class T> __device__ T accel_lab_min(T a, T b) { return b < a || b != b ? b : a; }
template <class T> __device__ T accel_lab_max(T a, T b) { return b > a || b != b ? b : a; }
"""


class Recipe(NamedTuple):
    """An algorithm to compile.

    Attributes:
        algorithm: its name in `compilation`.
        dtypes: of what it reads and writes, as the algorithm has them.
        operators: what it calls.
        option: what else it is compiled for.
    """

    algorithm: str
    dtypes: tuple[str, ...]
    operators: tuple[Operator, ...] = ()
    option: str = ""


def recipes_of(m: Any) -> tuple[Recipe, ...]:
    """Return what a message needs; nothing for one without an element."""
    make: Callable[[Any], tuple[Recipe, ...]] | None = _OF.get(type(m))
    vectors = [getattr(m, name) for name in ("x", "keys", "a", "b") if hasattr(m, name)]
    elements = sum(ref.size for ref in vectors)
    return make(m) if make is not None and elements else ()


def reduction(m: Any) -> Recipe:
    """Return what combines a vector."""
    op, dtype = m.operator, computed_in(m.operator, m.x.dtype)
    without = "no init" if op.source and m.init is None else ""
    return Recipe("reduce", (dtype,), (_exact(op, dtype),), without)


def segmented_reduction(m: Any) -> Recipe:
    """Return what combines segments."""
    dtype = computed_in(m.operator, m.x.dtype)
    return Recipe("segmented_reduce", (dtype,), (_exact(m.operator, dtype),))


def extreme(m: Any) -> Recipe:
    """Return what finds an extreme element."""
    return Recipe("arg_reduce", (m.x.dtype,), (Operator(m.op),))


def scanning(m: Any) -> Recipe:
    """Return what scans a vector."""
    dtype = computed_in(m.operator, m.x.dtype)
    option = "exclusive" if m.exclusive else "inclusive" if m.init is not None else "no init"
    return Recipe("scan", (dtype,), (_exact(m.operator, dtype),), option)


def scanning_by_key(m: Any) -> Recipe:
    """Return what scans runs."""
    dtype = computed_in(m.operator, m.x.dtype)
    return Recipe("scan_by_key", (dtype,), (_exact(m.operator, dtype),))


def difference(m: Any) -> Recipe:
    """Return what combines neighbours."""
    return Recipe("binary_transform", (m.x.dtype,), (_exact(m.operator, m.x.dtype),))


def transformation(m: Any) -> Recipe:
    """Return what calls a function for each element."""
    name = "unary_transform" if m.y is None else "binary_transform"
    return Recipe(name, (m.x.dtype,), (m.operator,))


def radix(*dtypes: str, descending: bool = False) -> Recipe:
    """Return what sorts keys, and values if there are two dtypes."""
    return Recipe("radix_sort", dtypes, (), "descending" if descending else "ascending")


def segmented_sort(dtype: str, *, descending: bool) -> Recipe:
    """Return what sorts the keys of segments."""
    return Recipe("segmented_sort", (dtype,), (), "descending" if descending else "ascending")


def merging(op: Operator, *dtypes: str) -> Recipe:
    """Return what sorts keys by an operator, and values if there are two dtypes."""
    return Recipe("merge_sort", dtypes, (op,))


def distinct(op: Operator, keys: str, values: str) -> Recipe:
    """Return what keeps the first of each run; a value of its place where `values` is empty."""
    return Recipe("unique_by_key", (keys, values), (op,))


def choice(m: Any) -> Recipe:
    """Return what selects, or parts, by functions."""
    name = "three_way_partition" if isinstance(m, Partition) else "select"
    return Recipe(name, (m.x.dtype,), m.operators)


def _sorts(m: Any) -> tuple[Recipe, ...]:
    if m.source:
        return (merging(m.operator, m.x.dtype),)
    if m.offsets is not None:
        return (segmented_sort(m.x.dtype, descending=m.descending),)
    return (radix(m.x.dtype, descending=m.descending),)


def _pair_sorts(m: Any) -> tuple[Recipe, ...]:
    keys, values = m.keys.dtype, m.values.dtype
    if m.source:
        return (merging(m.operator, keys, values),)
    if m.offsets is not None:
        return radix(keys, INDEX, descending=m.descending), radix(INDEX, INDEX)
    return (radix(keys, values, descending=m.descending),)


def _exact(op: Operator, dtype: str) -> Operator:
    """Return an operator that is NaN where an element is, as CUB's own least and greatest are not.

    A template of ours, for floats.
    """
    if op.source or op.name not in ("min", "max") or not is_float(dtype):
        return op
    return Operator(f"accel_lab_{op.name}", _EXTREMES)


_EQUAL = Operator("equal")
_OF: dict[type[Any], Callable[[Any], tuple[Recipe, ...]]] = {
    Reduce: lambda m: (reduction(m),),
    ArgReduce: lambda m: (extreme(m),),
    SegmentedReduce: lambda m: (segmented_reduction(m),),
    Scan: lambda m: (scanning(m),),
    ScanByKey: lambda m: (scanning_by_key(m),),
    AdjacentDifference: lambda m: (difference(m),),
    Transform: lambda m: (transformation(m),),
    Sort: _sorts,
    SortPairs: _pair_sorts,
    Merge: lambda m: (radix(m.a.dtype),),
    TopK: lambda m: (radix(m.x.dtype, INDEX, descending=m.largest),) if m.k else (),
    RunLengthEncode: lambda m: (distinct(_EQUAL, m.x.dtype, ""),),
    Unique: lambda m: (distinct(m.operator, m.x.dtype, ""),),
    UniqueByKey: lambda m: (distinct(m.operator, m.keys.dtype, m.values.dtype),),
    Select: lambda m: (choice(m),) if m.source else (),
    Partition: lambda m: (choice(m),) if m.source else (),
}
