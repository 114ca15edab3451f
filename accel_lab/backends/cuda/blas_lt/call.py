"""What cuBLASLt is asked for, read column by column: arithmetic on shapes and strides, no CUDA.

What lies in memory row by row is, read by columns, the transposed matrix. So D = op(A) op(B) is
asked for as D' = op(B)' op(A)': cuBLASLt's first operand is our `b`, its second our `a`, and what
it does for each row of D' it does for each of our columns, as adding a bias.
"""

import math
from typing import NamedTuple

Axes = tuple[int, ...]
N, T = 0, 1
"""cublasOperation_t."""
_MOST_ALIGNED = 256


class Memory(NamedTuple):
    """One matrix as it lies in memory, read by columns, or a stack of them.

    Attributes:
        rows: how many elements are adjacent.
        leading: elements from one column to the next.
        step: elements from one matrix to the next, 0 where one serves all.
        by_rows: whether these columns are the array's rows.
    """

    rows: int
    columns: int
    leading: int
    step: int
    by_rows: bool

    def operation(self, *, turned: bool) -> int:
        """Return what makes op(x)' of it, where `turned` says whether op transposes."""
        return T if self.by_rows == turned else N


class Call(NamedTuple):
    """A product; all that an algorithm depends on, and so the key of one.

    Attributes:
        epilogue: cuBLASLt's word for our columns, as BGRADB for what `bias_gradient="a"` asks for.
        dtypes: of `b`, `a`, `c` and `d`, as cuBLASLt takes them.
        vectors: whether each row of `a` and each column of `b` has a scale of its own.
        marks: which of amax and scales of `a`, `b` and `d` there are.
        aligned: to how many bytes `b`, `a`, `c` and `d` are.
        compute: in what sums are formed at least, if not in what the dtypes have.
    """

    epilogue: str
    dtypes: tuple[str, str, str, str]
    operations: tuple[int, int]
    b: Memory
    a: Memory
    c: Memory
    d: Memory
    batch: int
    bias_dtype: str
    bias_step: int
    aux_leading: int
    vectors: bool
    marks: str
    aligned: tuple[int, int, int, int]
    compute: str = ""


def memory(shape: Axes, strides: Axes, itemsize: int) -> Memory | None:
    """Return how cuBLASLt addresses these matrices, or None where they have to be copied."""
    rows, columns = shape[-2:]
    down, right = strides[-2:]
    step = _step(shape[:-2], strides[:-2], itemsize)
    if step is None:
        return None
    if columns == 1 or right == itemsize:
        leading = _leading(rows, columns, down, itemsize)
        if leading:
            return Memory(columns, rows, leading, step, by_rows=True)
    if rows == 1 or down == itemsize:
        leading = _leading(columns, rows, right, itemsize)
        if leading:
            return Memory(rows, columns, leading, step, by_rows=False)
    return None


def aligned(address: int) -> int:
    """Return to how many bytes an address is aligned, as far as that matters."""
    return min(address & -address, _MOST_ALIGNED) if address else _MOST_ALIGNED


def of_columns(epilogue: str) -> str:
    """Return what cuBLASLt calls an epilogue, for which our `a` is the second operand."""
    return {"BGRADA": "BGRADB", "BGRADB": "BGRADA"}.get(epilogue, epilogue)


def stacked(shape: Axes) -> int:
    """Return how many matrices there are."""
    return math.prod(shape[:-2])


def _leading(count: int, width: int, stride: int, itemsize: int) -> int:
    """Return the elements between `count` runs of `width`, 0 where that is no number of them."""
    if count == 1:
        return width
    return stride // itemsize if stride % itemsize == 0 and stride >= width * itemsize else 0


def _step(extents: Axes, strides: Axes, itemsize: int) -> int | None:
    """Return the one step with which all leading axes are walked, or None."""
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
