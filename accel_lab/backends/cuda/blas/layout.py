"""How BLAS, which thinks in columns, addresses row-major matrices of any strides.

Pure arithmetic on shapes and strides, without CUDA. What lies in memory row by row is, read
column by column, the transposed matrix. So the row-major product C = op(A) op(B) is asked of
BLAS as the column-major product C' = op(B)' op(A)': the operands swap places, and neither is
copied as long as its elements are adjacent along one of its two axes.
"""

from typing import NamedTuple

NARROW_LIMIT = 2**31
"""From this count on, the 64-bit entry points of cuBLAS are needed."""

_OPERATIONS = {"n": 0, "t": 1, "c": 2}  # cublasOperation_t
_TURNED = {"n": 1, "t": 0}


class Matrices(NamedTuple):
    """One matrix, or a stack of them.

    Attributes:
        by_rows: whether the elements of a row are adjacent, else those of a column.
        leading: elements from one row (or column) to the next.
        step: elements from one matrix to the next, 0 where one serves all.
    """

    by_rows: bool
    leading: int
    step: int


class Product(NamedTuple):
    """The arguments of a gemm in the order of cuBLAS: `b` is its first operand, `a` its second.

    Attributes:
        batch: how many products.
        wide: whether a number does not fit 32 bits.
    """

    op_b: int
    op_a: int
    n: int
    m: int
    k: int
    leading_b: int
    step_b: int
    leading_a: int
    step_a: int
    leading_out: int
    step_out: int
    batch: int
    wide: bool


Axes = tuple[int, ...]
"""A shape, or strides in bytes."""


def product(
    a: tuple[Axes, Axes],
    b: tuple[Axes, Axes],
    out: tuple[Axes, Axes],
    *,
    itemsize: int,
    trans_a: str,
    trans_b: str,
) -> Product | None:
    """Return how to ask for out = op(a) @ op(b), or None when an operand has to be copied.

    Each operand is its (shape, strides), of two axes or with batch axes before them; no extent
    is 0. A conjugating "c" that is no more than "t", for real dtypes, must be given as "t".
    """
    of_a, of_b, of_out = (matrices(*operand, itemsize) for operand in (a, b, out))
    if of_a is None or of_b is None or of_out is None or not of_out.by_rows:
        return None
    op_a, op_b = operation(of_a, trans_a), operation(of_b, trans_b)
    if op_a is None or op_b is None:
        return None
    *stacked, m, n = out[0]
    batch = 1
    for extent in stacked:
        batch *= extent
    if batch > 1 and of_out.step == 0:
        return None
    k = a[0][-1] if trans_a == "n" else a[0][-2]
    largest = max(m, n, k, batch, of_a.leading, of_b.leading, of_out.leading)
    return Product(
        op_b=op_b,
        op_a=op_a,
        n=n,
        m=m,
        k=k,
        leading_b=of_b.leading,
        step_b=of_b.step,
        leading_a=of_a.leading,
        step_a=of_a.step,
        leading_out=of_out.leading,
        step_out=of_out.step,
        batch=batch,
        wide=largest >= NARROW_LIMIT,
    )


def operation(operand: Matrices, trans: str) -> int | None:
    """Return the cublasOperation_t that makes op(operand)' of what lies in memory.

    None for the conjugate of what lies there by columns, which gemm cannot take unturned.
    """
    return (_OPERATIONS if operand.by_rows else _TURNED).get(trans)


def matrices(shape: Axes, strides: Axes, itemsize: int) -> Matrices | None:
    """Return how BLAS addresses these matrices, or None when it cannot."""
    rows, columns = shape[-2:]
    down, right = strides[-2:]
    step = _batch_step(shape[:-2], strides[:-2], itemsize)
    if step is None:
        return None
    if columns == 1 or right == itemsize:
        leading = _leading(rows, columns, down, itemsize)
        if leading:
            return Matrices(by_rows=True, leading=leading, step=step)
    if rows == 1 or down == itemsize:
        leading = _leading(columns, rows, right, itemsize)
        if leading:
            return Matrices(by_rows=False, leading=leading, step=step)
    return None


def increment(shape: Axes, strides: Axes, itemsize: int) -> int | None:
    """Return the elements from one to the next of a vector, or None when it has to be copied."""
    if shape[0] <= 1:
        return 1
    return strides[0] // itemsize if strides[0] > 0 and strides[0] % itemsize == 0 else None


def _leading(count: int, width: int, stride: int, itemsize: int) -> int:
    """Return the leading dimension of `count` runs of `width` elements, 0 when there is none."""
    if count == 1:
        return width
    return stride // itemsize if stride % itemsize == 0 and stride >= width * itemsize else 0


def _batch_step(extents: Axes, strides: Axes, itemsize: int) -> int | None:
    """Return the one step with which all batch axes are walked, or None."""
    step = expected = None
    for extent, stride in zip(reversed(extents), reversed(strides), strict=True):
        if extent == 1:
            continue
        if step is None:
            step = stride
        elif stride != expected:
            return None
        expected = stride * extent
    if step is None:
        return 0
    return step // itemsize if step >= 0 and step % itemsize == 0 else None
