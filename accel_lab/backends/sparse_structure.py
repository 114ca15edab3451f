"""Where sparse matrices store, in array operations alone: the same for NumPy and for CuPy.

`xp` is the module, `numpy` or `cupy`. Matrices are canonical, as `libraries.sparse` has them. In
between a matrix is its `Triples`: rows, columns and values in order by rows. Nothing here waits for
a device but what says so.

Runs in a context's process.
"""

from typing import Any, NamedTuple

import numpy as np

from accel_lab.libraries.sparse.matrix import Format, Shape


class Triples(NamedTuple):
    """What is stored, in order by rows, then by columns."""

    rows: Any
    columns: Any
    values: Any


def rows_of(xp: Any, pointers: Any, count: int) -> Any:
    """Return which row each of `count` entries is in, by the pointers of compressed rows."""
    if xp is np:  # four times as fast; CuPy's would wait
        rows = np.arange(pointers.size - 1, dtype=pointers.dtype)
        return np.repeat(rows, np.diff(pointers))
    return owners(xp, pointers, count)


def owners(xp: Any, pointers: Any, count: int) -> Any:
    """Return what `rows_of` does, also of pointers that are none, whatever it is then."""
    places = xp.arange(count, dtype=pointers.dtype)
    return xp.searchsorted(pointers[1:], places, side="right").astype(pointers.dtype)


def pointers_of(xp: Any, rows: Any, count: int) -> Any:
    """Return where each of `count` rows begins in rows that are in order, and the end."""
    return xp.searchsorted(rows, xp.arange(count + 1, dtype=rows.dtype)).astype(rows.dtype)


def order(xp: Any, first: Any, second: Any) -> Any:
    """Return what puts pairs in order, by the first of each, then by the second."""
    return xp.lexsort(xp.stack((second, first)))


def unpacked(xp: Any, format_: Format, values: Any, indices: Any, pointers: Any) -> Triples:
    """Return what a matrix stores, as arrays that may be those given."""
    count = values.shape[0]
    if format_ == "coo":
        return Triples(pointers, indices, values)
    if format_ == "csr":
        return Triples(rows_of(xp, pointers, count), indices, values)
    if format_ == "csc":
        columns = rows_of(xp, pointers, count)
        by_rows = order(xp, indices, columns)
        return Triples(indices[by_rows], columns[by_rows], values[by_rows])
    _, step, width = values.shape
    rows = rows_of(xp, pointers, count)[:, None, None] * step
    rows = rows + xp.arange(step, dtype=pointers.dtype)[:, None]
    columns = indices[:, None, None] * width + xp.arange(width, dtype=indices.dtype)
    rows, columns = (xp.broadcast_to(one, values.shape).reshape(-1) for one in (rows, columns))
    by_rows = order(xp, rows, columns)
    return Triples(rows[by_rows], columns[by_rows], values.reshape(-1)[by_rows])


def packed(
    xp: Any, format_: Format, shape: Shape, triples: Triples, block: tuple[int, ...] = ()
) -> tuple[Any, Any, Any]:
    """Return values, indices and pointers of a format; of BSR it waits for how many blocks."""
    rows, columns, values = triples
    if format_ == "coo":
        return values, columns, rows
    if format_ == "csr":
        return values, columns, pointers_of(xp, rows, shape[0])
    if format_ == "csc":
        by_columns = order(xp, columns, rows)
        pointers = pointers_of(xp, columns[by_columns], shape[1])
        return values[by_columns], rows[by_columns], pointers
    step, width = block
    place, block_rows, block_columns = _blocks(xp, rows // step, columns // width)
    blocks = xp.zeros((len(block_rows), step, width), values.dtype)
    blocks[place, rows % step, columns % width] = values
    return blocks, block_columns, pointers_of(xp, block_rows, shape[0] // step)


def _blocks(xp: Any, rows: Any, columns: Any) -> tuple[Any, Any, Any]:
    """Return which block each entry is in, and the row and the column of each block in order."""
    if not rows.size:
        return rows, rows, columns
    by_blocks = order(xp, rows, columns)
    sorted_rows, sorted_columns = rows[by_blocks], columns[by_blocks]
    begins = xp.ones(rows.size, bool)
    begins[1:] = (xp.diff(sorted_rows) != 0) | (xp.diff(sorted_columns) != 0)
    place = xp.empty(rows.size, "int64")
    place[by_blocks] = xp.cumsum(begins.astype("int64")) - 1
    return place, sorted_rows[begins], sorted_columns[begins]


def problem(
    xp: Any, format_: Format, shape: Shape, indices: Any, pointers: Any, step: Shape
) -> Any:
    """Return, as an array of one int, which of `PROBLEMS` indices and pointers have.

    Parameters:
        step: the rows and columns of a block, 1 each but of BSR.
    """
    rows, columns = shape[0] // step[0], shape[1] // step[1]
    if format_ == "coo":
        lost = xp.zeros((), bool)
        within, major = _within(xp, pointers, rows), pointers
    else:
        lost = (pointers[0] != 0) | (pointers[-1] != indices.size)
        lost = lost | xp.any(xp.diff(pointers) < 0)
        within, major = xp.ones((), bool), owners(xp, pointers, indices.size)
    within = within & _within(xp, indices, rows if format_ == "csc" else columns)
    steps, along = xp.diff(major), xp.diff(indices)
    in_order = xp.all((steps > 0) | ((steps == 0) & (along > 0)))
    found = xp.where(lost, 1, xp.where(~within, 2, xp.where(~in_order, 3, 0)))
    return found.reshape(1).astype("int32")


def _within(xp: Any, indices: Any, extent: int) -> Any:
    return xp.all((indices >= 0) & (indices < extent))


def bad_diagonal(xp: Any, stored: Triples, count: int) -> Any:
    """Return, as an array of one int, the first row whose diagonal is 0 or not stored; else -1."""
    is_pivot = (stored.rows == stored.columns) & (stored.values != 0)
    has = xp.zeros(count + 1, bool)
    has[xp.where(is_pivot, stored.rows, count)] = True
    lacks = ~has[:count]
    if not count:
        return xp.full(1, -1, "int64")
    return xp.where(xp.any(lacks), xp.argmax(lacks), -1).reshape(1)
