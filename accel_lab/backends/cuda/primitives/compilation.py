"""CUB's algorithms, compiled by cuda.compute for an architecture; this needs no GPU and no stream.

What comes of it are bytes, which `plans` keeps on disk and loads. `arguments` of `plans.run` are
those of cuda.compute's objects.
"""

from collections.abc import Callable
from typing import Any

from accel_lab.backends.cuda.primitives import operators
from accel_lab.backends.cuda.primitives.memory import Memory
from accel_lab.backends.cuda.primitives.recipes import INDEX, Recipe
from accel_lab.libraries.primitives.operators import TYPES


def compiled(recipe: Recipe, architecture: str) -> bytes:
    """Compile an algorithm; any thread, takes seconds.

    Raises:
        CompileError: an operator does not compile.
    """
    from cuda import compute

    made = _MAKERS[recipe.algorithm](compute, recipe, architecture)
    blob: bytes = compute.serialize(made)
    return blob


def _reduce(compute: Any, recipe: Recipe, architecture: str) -> Any:
    (dtype,), (op,) = recipe.dtypes, recipe.operators
    return compute.make_reduce_into(
        d_in=Memory(dtype),
        d_out=Memory(dtype),
        op=operators.elementwise(op, 2, dtype, TYPES[dtype], architecture),
        h_init=None if recipe.option == "no init" else operators.zero(dtype),
        compute_capability=int(architecture),
    )


def _arg_reduce(compute: Any, recipe: Recipe, architecture: str) -> Any:
    (dtype,), (op,) = recipe.dtypes, recipe.operators
    return compute.make_reduce_into(
        d_in=places(compute, Memory(dtype)),
        d_out=compute.ZipIterator(Memory(dtype), Memory(INDEX)),
        op=operators.arg(op, dtype, architecture),
        h_init=None,
        compute_capability=int(architecture),
    )


def _segmented_reduce(compute: Any, recipe: Recipe, architecture: str) -> Any:
    (dtype,), (op,) = recipe.dtypes, recipe.operators
    return compute.make_segmented_reduce(
        d_in=Memory(dtype),
        d_out=Memory(dtype),
        start_offsets_in=Memory(INDEX),
        end_offsets_in=Memory(INDEX),
        op=operators.elementwise(op, 2, dtype, TYPES[dtype], architecture),
        h_init=operators.zero(dtype),
        compute_capability=int(architecture),
    )


def _scan(compute: Any, recipe: Recipe, architecture: str) -> Any:
    (dtype,), (op,) = recipe.dtypes, recipe.operators
    exclusive = recipe.option == "exclusive"
    make = compute.make_exclusive_scan if exclusive else compute.make_inclusive_scan
    return make(
        d_in=Memory(dtype),
        d_out=Memory(dtype),
        op=operators.elementwise(op, 2, dtype, TYPES[dtype], architecture),
        init_value=None if recipe.option == "no init" else operators.zero(dtype),
        compute_capability=int(architecture),
    )


def _scan_by_key(compute: Any, recipe: Recipe, architecture: str) -> Any:
    (dtype,), (op,) = recipe.dtypes, recipe.operators
    return compute.make_inclusive_scan(
        d_in=compute.ZipIterator(Memory(dtype), Memory("uint8")),
        d_out=compute.ZipIterator(Memory(dtype), Memory("uint8")),
        op=operators.keyed(op, dtype, architecture),
        init_value=None,
        compute_capability=int(architecture),
    )


def _unary_transform(compute: Any, recipe: Recipe, architecture: str) -> Any:
    (dtype,), (op,) = recipe.dtypes, recipe.operators
    return compute.make_unary_transform(
        d_in=Memory(dtype),
        d_out=Memory(dtype),
        op=operators.elementwise(op, 1, dtype, TYPES[dtype], architecture),
        compute_capability=int(architecture),
    )


def _binary_transform(compute: Any, recipe: Recipe, architecture: str) -> Any:
    (dtype,), (op,) = recipe.dtypes, recipe.operators
    return compute.make_binary_transform(
        d_in1=Memory(dtype),
        d_in2=Memory(dtype),
        d_out=Memory(dtype),
        op=operators.elementwise(op, 2, dtype, TYPES[dtype], architecture),
        compute_capability=int(architecture),
    )


def _radix_sort(compute: Any, recipe: Recipe, architecture: str) -> Any:
    keys, values = _pair(recipe.dtypes)
    return compute.make_radix_sort(
        d_in_keys=keys,
        d_out_keys=keys,
        d_in_values=values,
        d_out_values=values,
        order=_order(compute, recipe),
        compute_capability=int(architecture),
    )


def _segmented_sort(compute: Any, recipe: Recipe, architecture: str) -> Any:
    keys, values = _pair(recipe.dtypes)
    return compute.make_segmented_sort(
        d_in_keys=keys,
        d_out_keys=keys,
        d_in_values=values,
        d_out_values=values,
        start_offsets_in=Memory(INDEX),
        end_offsets_in=Memory(INDEX),
        order=_order(compute, recipe),
        compute_capability=int(architecture),
    )


def _merge_sort(compute: Any, recipe: Recipe, architecture: str) -> Any:
    keys, values = _pair(recipe.dtypes)
    (op,) = recipe.operators
    return compute.make_merge_sort(
        d_in_keys=keys,
        d_in_values=values,
        d_out_keys=keys,
        d_out_values=values,
        op=operators.elementwise(op, 2, recipe.dtypes[0], "bool", architecture),
        compute_capability=int(architecture),
    )


def _unique_by_key(compute: Any, recipe: Recipe, architecture: str) -> Any:
    keys, values = recipe.dtypes
    (op,) = recipe.operators
    return compute.make_unique_by_key(
        d_in_keys=Memory(keys),
        d_in_items=Memory(values) if values else counting(compute),
        d_out_keys=Memory(keys),
        d_out_items=Memory(values or INDEX),
        d_out_num_selected=Memory(INDEX),
        op=operators.elementwise(op, 2, keys, "bool", architecture),
        compute_capability=int(architecture),
    )


def _select(compute: Any, recipe: Recipe, architecture: str) -> Any:
    (dtype,), (op,) = recipe.dtypes, recipe.operators
    return compute.make_select(
        d_in=Memory(dtype),
        d_out=Memory(dtype),
        d_num_selected_out=Memory(INDEX),
        cond=operators.elementwise(op, 1, dtype, "bool", architecture),
        compute_capability=int(architecture),
    )


def _three_way_partition(compute: Any, recipe: Recipe, architecture: str) -> Any:
    (dtype,) = recipe.dtypes
    ops = operators.several(recipe.operators, 1, dtype, "bool", architecture)
    ops += [operators.never(architecture)] * (2 - len(ops))
    return compute.make_three_way_partition(
        d_in=Memory(dtype),
        d_first_part_out=Memory(dtype),
        d_second_part_out=Memory(dtype),
        d_unselected_out=Memory(dtype),
        d_num_selected_out=Memory(INDEX),
        select_first_part_op=ops[0],
        select_second_part_op=ops[1],
        compute_capability=int(architecture),
    )


def counting(compute: Any) -> Any:
    """Return what counts from 0."""
    import numpy as np

    return compute.CountingIterator(np.int64(0))


def places(compute: Any, x: Any) -> Any:
    """Return what has each element with its place."""
    return compute.ZipIterator(x, counting(compute))


def _pair(dtypes: tuple[str, ...]) -> tuple[Any, Any]:
    keys, *values = map(Memory, dtypes)
    return keys, values[0] if values else None


def _order(compute: Any, recipe: Recipe) -> Any:
    orders = compute.SortOrder
    return orders.DESCENDING if recipe.option == "descending" else orders.ASCENDING


_MAKERS: dict[str, Callable[[Any, Recipe, str], Any]] = {
    "reduce": _reduce,
    "arg_reduce": _arg_reduce,
    "segmented_reduce": _segmented_reduce,
    "scan": _scan,
    "scan_by_key": _scan_by_key,
    "unary_transform": _unary_transform,
    "binary_transform": _binary_transform,
    "radix_sort": _radix_sort,
    "segmented_sort": _segmented_sort,
    "merge_sort": _merge_sort,
    "unique_by_key": _unique_by_key,
    "select": _select,
    "three_way_partition": _three_way_partition,
}
