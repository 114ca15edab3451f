"""The contract of `libraries.sparse` on Blocked-ELL matrices: by the definition."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, sparse
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.sparse.library import BlockedEll
from tests.contract.declared import Support
from tests.contract.samples import (
    Layout,
    assert_equal,
    assert_same,
    layouts,
    place,
    reals,
    refused,
    seeds,
    value,
)
from tests.contract.sparse_matrices import assert_canonical
from tests.contract.tolerances import assert_near, wide

DTYPES = ("bfloat16", "float16", "float32", "float64", "complex64", "complex128")


def of_blocks(seed: int, rows: int, columns: int, block: int, dtype: str) -> tuple[Any, Any]:
    """Draw a matrix, and which of its blocks are stored."""
    kept = np.random.default_rng(seed).random((rows, columns)) < 0.4
    x = reals(seed, (rows * block, columns * block), dtype)
    return np.where(np.kron(kept, np.ones((block, block), bool)), x, np.zeros((), x.dtype)), kept


@settings(max_examples=60)
@given(
    seed=seeds,
    rows=st.integers(0, 5),
    columns=st.integers(0, 5),
    block=st.sampled_from((1, 2, 5)),
    n=st.sampled_from((0, 1, 7)),
    dtype=st.sampled_from(DTYPES),
    layout=layouts,
)
def test_it_is_filled_up_multiplied_and_stored_as_it_was(
    device: Device,
    support: Support,
    seed: int,
    rows: int,
    columns: int,
    block: int,
    n: int,
    dtype: str,
    layout: Layout,
) -> None:
    if dtype not in support["sparse.EllMatmul"]:
        return
    x, kept = of_blocks(seed, rows, columns, block, dtype)
    b = reals(seed + 1, (columns * block, n), dtype)
    a = sparse.blocked_ell(sparse.from_dense(device.put(x)), block)
    stored, at = value(device, a.values), value(device, a.columns)
    width = max((int(row.sum()) for row in kept), default=0)
    assert (stored.shape, at.shape) == ((rows * block, width * block), (rows, width))
    for row, which in enumerate(kept):
        places = np.flatnonzero(which)
        assert at[row].tolist() == [*places, *[-1] * (width - places.size)]
        for place_, column in enumerate(at[row]):
            down, across = slice(row * block, (row + 1) * block), slice(place_ * block, None)
            one = stored[down, across][:, :block]
            begin = column * block
            assert_equal(one, x[down, begin : begin + block] if column >= 0 else 0 * one)
    exact, size = wide(x) @ wide(b), np.abs(wide(x)) @ np.abs(wide(b))
    got = value(device, a @ place(device, b, layout))
    assert_near(got, exact, dtype, magnitude=size, operations=columns * block + 1)
    back = a.tobsr()
    assert_canonical(device, back)
    assert back.nnz == kept.sum() * block * block
    assert_same(value(device, a.toarray()), x)


def test_what_fills_it_up_meets_nothing(device: Device) -> None:
    """NaN in rows that only blocks of zeros would meet, which are not stored, does not count."""
    x = np.zeros((4, 6), np.float32)
    x[:2, 2:] = 1
    x[2:, 2:4] = 1
    b = np.ones((6, 2), np.float32)
    b[:2] = np.nan
    a = sparse.blocked_ell(sparse.from_dense(device.put(x)), 2)
    assert a.columns.result(30).shape == (2, 2)
    assert_equal(value(device, a @ device.put(b)), (x[:, 2:] @ b[2:]).astype(np.float32))


def test_columns_that_are_none_are_refused_by_the_device(device: Device) -> None:
    values, b = array.zeros(device, (4, 4)), array.zeros(device, (6, 2))
    for wrong in ([[0, 3], [0, 1]], [[0, 1], [-2, 1]], [[0, 1], [1, 1]], [[-1, 1], [0, 1]]):
        columns = device.put(np.array(wrong, np.int32))
        a = BlockedEll((4, 6), 2, values, columns)
        for made in (a @ b, a.tobsr().values):
            with pytest.raises(InvalidArgument, match=r"columns of row [01] of blocks"):
                made.result(30)


def test_mistakes_are_refused_with_what_and_what_was_expected(device: Device) -> None:
    a = sparse.from_dense(device.put(np.eye(4, dtype=np.float32)))
    made = sparse.blocked_ell(a, 2)
    made.columns.result(30)
    b, double = array.zeros(device, (3, 2)), array.zeros(device, (4, 2), "float64")
    wrong: Any = made.values
    with refused(device, "EllMatmul: b is float32[3, 2]", "a matrix of 4 rows"):
        made @ b
    with refused(device, "EllMatmul takes operands of one dtype", "b is float64[4, 2]"):
        made @ double
    with refused(device, "ell_matmul: a is AccelRef", "sparse.blocked_ell"):
        sparse.ell_matmul(wrong, b)
    with refused(device, "blocked_ell: a is AccelRef", "a SparseRef"):
        sparse.blocked_ell(wrong, 2)
    with refused(device, "blocks of [3, 3] do not divide a matrix of [4, 4]"):
        sparse.blocked_ell(a, 3)
    wrong_format: Any = a
    odd = a.tobsr((2, 4))
    odd.values.result(30)
    with refused(device, "Ellify: the matrix is bsr", "bsr of square blocks"):
        sparse.ellify(odd)
    with refused(device, "unellify: a is SparseRef", "a BlockedEll"):
        sparse.unellify(wrong_format)
    single = array.zeros(device, (4, 2))
    with refused(device, "EllMatmul: values are float32[4, 2]", "of [8, 4] in blocks of 2"):
        BlockedEll((8, 4), 2, made.values, made.columns) @ single
