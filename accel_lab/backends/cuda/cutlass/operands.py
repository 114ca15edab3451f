"""Matrices as CUTLASS's kernels read them: rows of whole vectors, or a copy that has them."""

from typing import Any, NamedTuple

import cupy

from accel_lab.backends.cuda.cutlass.variant import ALIGNMENTS, COLUMN, ROW, layouts, padded

_MOST_STEP = 2**31
ALIGNED = 16


class Matrix(NamedTuple):
    """How an operand lies.

    Attributes:
        layout: `ROW` or `COLUMN`.
        step: from one row, or column, to the next, in elements.
        is_copied: whether a copy of it does, with zeros behind each sum's terms.
    """

    layout: str
    step: int
    is_copied: bool


def lying(dtype: str, a: Any, b: Any) -> tuple[Matrix, Matrix]:
    """Return how the operands of a product lie, or copies of them are to."""
    inner = a.shape[1]
    whole = padded(dtype, inner)
    of_a, of_b = layouts(dtype)
    alignment = ALIGNMENTS[dtype]
    if whole != inner:
        return Matrix(ROW, whole, is_copied=True), Matrix(COLUMN, whole, is_copied=True)
    return _lying(a, of_a, alignment, inner), _lying(b, of_b, alignment, inner)


def lying_alike(dtype: str, a: Any, b: Any) -> tuple[Matrix, Matrix]:
    """Return how operands lie, or copies are to, with k beside k in both."""
    inner = a.shape[1]
    whole, alignment = padded(dtype, inner), ALIGNMENTS[dtype]
    if whole != inner:
        return lying(dtype, a, b)
    return _lying(a, (ROW,), alignment, inner), _lying(b, (COLUMN,), alignment, inner)


def _lying(x: Any, allowed: tuple[str, ...], alignment: int, inner: int) -> Matrix:
    for layout in allowed:
        step = row_step(x if layout == ROW else x.T, alignment)
        if step:
            return Matrix(layout, step, is_copied=False)
    return Matrix(allowed[0], inner, is_copied=True)


def row_step(x: Any, alignment: int) -> int:
    """Return the step from row to row of a matrix that is read in vectors; 0 if it cannot be."""
    (rows, columns), size = x.shape, x.itemsize
    if columns > 1 and x.strides[1] != size:
        return 0
    step: int = x.strides[0] if rows > 1 else columns * size
    if step < columns * size or step // size >= _MOST_STEP:
        return 0
    vector = alignment * size
    return 0 if columns % alignment or step % vector or x.data.ptr % vector else step // size


def placed(x: Any, how: Matrix) -> Any:
    """Return a matrix where a kernel reads it: itself, or a copy with k beside k."""
    if not how.is_copied:
        return x
    source = x if how.layout == ROW else x.T
    made = cupy.zeros((source.shape[0], how.step), x.dtype)
    made[:, : source.shape[1]] = source
    return made


def is_direct(x: Any) -> bool:
    """Whether an array is read and written in vectors as it lies."""
    return bool(x.flags.c_contiguous) and x.data.ptr % ALIGNED == 0


def added(bias: Any, dtype: str) -> Any:
    """Return the bias as a kernel reads it, in the dtype of the result; None stays."""
    if bias is None:
        return None
    if dtype == "int8":
        return bias.astype("int32")
    return bias if is_direct(bias) else bias.copy()
