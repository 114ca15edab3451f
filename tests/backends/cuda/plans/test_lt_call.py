"""How cuBLASLt is asked for a product, which thinks in columns: by reading memory as it would."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab.backends.cuda.blas_lt.call import Memory, T, aligned, memory, of_columns, stacked

extents = st.integers(1, 5)


def read(x: Any, lies: Memory) -> Any:
    """Return what is in memory from a matrix's first element on, column by column."""
    steps = (x.itemsize, lies.leading * x.itemsize)
    return np.lib.stride_tricks.as_strided(x, (lies.rows, lies.columns), steps)


@given(
    shape=st.tuples(extents, extents),
    wider=st.integers(0, 3),
    by_columns=st.booleans(),
    turned=st.booleans(),
)
def test_what_is_read_is_the_transpose_of_what_is_meant(
    shape: tuple[int, int], wider: int, *, by_columns: bool, turned: bool
) -> None:
    rows, columns = shape
    if by_columns:
        x = np.arange((rows + wider) * columns).reshape(columns, rows + wider).T[:rows]
    else:
        x = np.arange(rows * (columns + wider)).reshape(rows, columns + wider)[:, :columns]
    lies = memory(x.shape, x.strides, x.itemsize)
    assert lies is not None
    seen = read(x, lies)
    if lies.operation(turned=turned) == T:
        seen = seen.T
    np.testing.assert_array_equal(seen, x if turned else x.T)


def test_a_stack_is_walked_with_one_step_or_copied() -> None:
    x = np.arange(48.0).reshape(2, 3, 2, 4)
    lies = memory(x.shape, x.strides, 8)
    assert lies is not None
    assert (lies.step, stacked(x.shape)) == (8, 6)
    assert memory(x.swapaxes(0, 1).shape, x.swapaxes(0, 1).strides, 8) is None
    one = np.broadcast_to(x[0, 0], (3, 2, 4))
    shared = memory(one.shape, one.strides, 8)
    assert shared is not None
    assert shared.step == 0


@pytest.mark.parametrize(
    "x",
    [np.zeros((4, 4))[::2, ::2], np.zeros((4, 4))[::-1], np.zeros((2, 3, 2)).T],
    ids=["steps along both", "backwards", "rows and columns apart"],
)
def test_what_cannot_be_addressed_is_none(x: Any) -> None:
    assert memory(x.shape, x.strides, x.itemsize) is None


def test_alignment_and_the_side_of_a_gradient() -> None:
    assert [aligned(at) for at in (0, 256, 512, 264, 6)] == [256, 256, 256, 8, 2]
    assert [of_columns(one) for one in ("BGRADA", "BGRADB", "GELU")] == ["BGRADB", "BGRADA", "GELU"]
