"""The contract of `libraries.sparse` on sums and products of sparse matrices.

By the definition in higher precision, with Higham's bounds. What is stored follows from what the
operands store.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, sparse
from accel_lab.compute.device import Device
from accel_lab.libraries.sparse.matrix import Format
from tests.contract.samples import assert_equal, refused, seeds, unanswered, value
from tests.contract.sparse_matrices import (
    FORMATS,
    assert_canonical,
    dense,
    drawn,
    put,
    stored_in,
)
from tests.contract.tolerances import WIDE, assert_near, wide

odd = st.sampled_from((0, 1, 2, 5, 17, 60))
formats = st.sampled_from(FORMATS)
dtypes = st.sampled_from(WIDE)
index_dtypes = st.sampled_from(("int32", "int64"))


@settings(max_examples=50)
@given(seed=seeds, m=odd, k=odd, n=odd, dtype=dtypes, index_dtype=index_dtypes, format_=formats)
def test_a_product_of_sparse_matrices_stores_where_stored_values_meet(
    device: Device,
    seed: int,
    m: int,
    k: int,
    n: int,
    dtype: str,
    index_dtype: str,
    format_: Format,
) -> None:
    (a, in_a), (b, in_b) = drawn(seed, (m, k), dtype), drawn(seed + 1, (k, n), dtype)
    on_a = put(device, a, in_a, "csr", index_dtype)
    on_b = put(device, b, in_b, format_, "int32")
    exact, size = wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b))
    for got, times in ((on_a @ on_b, 1), (sparse.spgemm(on_a, on_b, alpha=3), 3)):
        assert (got.format, got.shape, got.dtype) == ("csr", (m, n), dtype)
        assert got.index_dtype == index_dtype
        assert_canonical(device, got)
        operations = k + 2
        assert_near(
            dense(device, got), times * exact, dtype, magnitude=times * size, operations=operations
        )
        if format_ != "bsr":
            assert_equal(stored_in(device, got), in_a.astype(int) @ in_b.astype(int) > 0)


@settings(max_examples=50)
@given(seed=seeds, m=odd, n=odd, dtype=dtypes, index_dtype=index_dtypes, format_=formats)
def test_a_sum_stores_where_one_of_both_does(
    device: Device, seed: int, m: int, n: int, dtype: str, index_dtype: str, format_: Format
) -> None:
    (a, in_a), (b, in_b) = drawn(seed, (m, n), dtype), drawn(seed + 1, (m, n), dtype)
    on_a, on_b = put(device, a, in_a, "csr", index_dtype), put(device, b, in_b, format_, "int32")
    for got, expected in (
        (on_a + on_b, wide(a) + wide(b)),
        (on_a - on_b, wide(a) - wide(b)),
        (sparse.spadd(on_a, on_b, alpha=2, beta=-3), 2 * wide(a) - 3 * wide(b)),
    ):
        assert_canonical(device, got)
        assert got.index_dtype == index_dtype
        size = 2 * np.abs(wide(a)) + 3 * np.abs(wide(b))
        assert_near(dense(device, got), expected, dtype, magnitude=size, operations=3)
        if format_ != "bsr":
            assert_equal(stored_in(device, got), in_a | in_b)


def test_a_sum_that_is_zero_is_stored(device: Device) -> None:
    a = sparse.from_dense(device.put(np.array([[1.0, -1], [0, 2]])))
    ones = sparse.from_dense(device.put(np.ones((2, 2))))
    product, difference = a @ ones, a - a
    assert (product.nnz, difference.nnz) == (4, 3)
    assert value(device, product.toarray()).tolist() == [[0, 0], [2, 2]]
    assert not value(device, difference.toarray()).any()


def test_laws_hold_of_matrices_that_are_not_made_yet(device: Device) -> None:
    """(A B)ᵀ = Bᵀ Aᵀ, and A (B + C) = A B + A C, of small integers exactly."""
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-2, 3, (7, 7)).astype("float64") for _ in range(3))
    with unanswered(device):
        on_a, on_b, on_c = (sparse.from_dense(device.put(one)) for one in (a, b, c))
        turned, other = (on_a @ on_b).T, on_b.T @ on_a.T
        left, right = on_a @ (on_b + on_c), on_a @ on_b + on_a @ on_c
    assert_equal(value(device, turned.toarray()), value(device, other.toarray()))
    assert_equal(value(device, left.toarray()), value(device, right.toarray()))
    assert_equal(value(device, left.toarray()), a @ (b + c))


@pytest.mark.parametrize("name", ["spgemm", "spadd"])
def test_matrices_that_do_not_fit_are_refused(device: Device, name: str) -> None:
    send: Any = getattr(sparse, name)
    a, b = (put(device, np.ones(shape), np.ones(shape, bool)) for shape in ((3, 4), (3, 5)))
    single = a.astype("float32")
    matrix = array.zeros(device, (4, 4), "float64")
    words = f"Sp{name[2:]}"
    with refused(device, words, "a is [3, 4] and b [3, 5]"):
        send(a, b)
    with refused(device, words, "one dtype", "b_values is float32[12]"):
        send(a, single)
    with refused(device, words, "b is AccelRef", "SparseRef"):
        send(a, matrix)
