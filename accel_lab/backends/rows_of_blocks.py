"""Blocked-ELL matrices, in array operations alone: the same for NumPy and for CuPy.

`xp` is the module, `numpy` or `cupy`. What waits for a device says so.

Runs in a context's process.
"""

from collections.abc import Callable
from typing import Any

from accel_lab.backends.sparse_structure import rows_of

_GATHERED = 1 << 26  # elements of the dense operand that are copied at once


def filled_up(xp: Any, blocks: Any, indices: Any, pointers: Any) -> tuple[Any, Any]:
    """Return values and columns of a BSR matrix; waits for its longest row."""
    counts = xp.diff(pointers)
    width = int(counts.max()) if counts.size else 0
    block = blocks.shape[1]
    values = xp.zeros((counts.size, width, block, block), blocks.dtype)
    columns = xp.full((counts.size, width), -1, indices.dtype)
    if indices.size:
        rows = rows_of(xp, pointers, indices.size)
        place = xp.arange(indices.size, dtype=rows.dtype) - pointers[rows]
        values[rows, place] = blocks
        columns[rows, place] = indices
    side_by_side = values.transpose(0, 2, 1, 3).reshape(counts.size * block, width * block)
    return xp.ascontiguousarray(side_by_side), columns


def stored(xp: Any, values: Any, columns: Any, block: int) -> tuple[Any, Any, Any]:
    """Return the parts of BSR; waits for how many blocks there are."""
    count, width = columns.shape
    is_stored = columns >= 0
    blocks = values.reshape(count, block, width, block).transpose(0, 2, 1, 3)[is_stored]
    pointers = xp.zeros(count + 1, columns.dtype)
    pointers[1:] = xp.cumsum(is_stored.sum(axis=1))
    return blocks, columns[is_stored], pointers


def misplaced(xp: Any, columns: Any, count: int) -> Any:
    """Return, as an array of one int, the first row whose columns are none, or not in order; or -1.

    Parameters:
        count: how many columns of blocks there are.
    """
    if not columns.size:
        return xp.full(1, -1, "int64")
    wrong = (columns < -1) | (columns >= count)
    before, behind = columns[:, :-1], columns[:, 1:]
    wrong[:, 1:] |= (behind >= 0) & (before >= behind) | (before < 0) & (behind >= 0)
    rows = wrong.any(axis=1)
    return xp.where(rows.any(), xp.argmax(rows), -1).reshape(1)


def product(
    xp: Any, values: Any, columns: Any, b: Any, block: int, write: Callable[[int, Any], None]
) -> None:
    """Multiply by a dense matrix; `write` is given the first row of a part, and the part.

    A row of blocks is one product, of it and the rows of `b` that it meets.
    """
    (count, width), extent = columns.shape, b.shape[1]
    if not values.size or not b.size:
        return
    rows = xp.ascontiguousarray(b).reshape(-1, block, extent)
    step = max(1, _GATHERED // (width * block * extent))
    for begin in range(0, count, step):
        at = columns[begin : begin + step]
        met = rows[xp.clip(at, 0, len(rows) - 1)]
        met = xp.where((at >= 0)[:, :, None, None], met, met.dtype.type(0))
        left = values[begin * block : (begin + step) * block].reshape(len(at), block, -1)
        made = xp.matmul(left, met.reshape(len(at), width * block, extent))
        write(begin * block, made.reshape(-1, extent))
