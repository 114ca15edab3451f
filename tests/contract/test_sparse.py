"""The contract of `libraries.sparse`: formats, conversions and products with dense operands.

By the definition in higher precision, with Higham's bounds; conversions move bits and change none.
"""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, sparse
from accel_lab.compute.device import Device
from accel_lab.errors import DependencyFailed, InvalidArgument, UnsupportedDtype
from accel_lab.libraries.sparse.matrix import Format, Trans
from accel_lab.libraries.sparse.message import VALUES
from tests.contract.declared import Support
from tests.contract.products import TRANS, turn
from tests.contract.samples import (
    Layout,
    assert_equal,
    assert_same,
    extents,
    layouts,
    place,
    reals,
    refused,
    seeds,
    unanswered,
    value,
)
from tests.contract.sparse_matrices import (
    FORMATS,
    assert_canonical,
    dense,
    drawn,
    put,
    stored_in,
)
from tests.contract.tolerances import EPS, assert_near, wide

odd = st.one_of(extents, st.just(17), st.just(60))
formats = st.sampled_from(FORMATS)
index_dtypes = st.sampled_from(("int32", "int64"))
dtypes = st.sampled_from(sorted(VALUES))


@settings(max_examples=80)
@given(
    seed=seeds, m=odd, n=odd, dtype=dtypes, index_dtype=index_dtypes, format_=formats, to=formats
)
def test_each_format_stores_the_same_values_at_the_same_places(
    device: Device,
    seed: int,
    m: int,
    n: int,
    dtype: str,
    index_dtype: str,
    format_: Format,
    to: Format,
) -> None:
    x, stored = drawn(seed, (m, n), dtype)
    a = put(device, x, stored, format_, index_dtype)
    step = next(one for one in (3, 2, 1) if m % one == 0)
    b = a.to(to, block=(step, 1) if to == "bsr" else None)
    assert (b.format, b.shape, b.dtype, b.index_dtype) == (to, (m, n), dtype, index_dtype)
    assert_canonical(device, b)
    assert_same(dense(device, b), x)
    assert_same(value(device, b.toarray()), x)
    assert_same(value(device, b.T.toarray()), np.ascontiguousarray(x.T))
    if "bsr" not in (format_, to):
        assert_equal(stored_in(device, b), stored)
        assert b.nnz == stored.sum()


@settings(max_examples=60)
@given(seed=seeds, m=odd, n=odd, dtype=dtypes, index_dtype=index_dtypes, layout=layouts)
def test_what_is_not_zero_is_stored(
    device: Device, seed: int, m: int, n: int, dtype: str, index_dtype: str, layout: Layout
) -> None:
    x, _ = drawn(seed, (m, n), dtype)
    x[x == 0] *= -1  # a negative zero is zero
    x[: m // 2, :1] = np.nan
    a = sparse.sparsify(place(device, x, layout), index_dtype=index_dtype)
    assert_canonical(device, a)
    assert_equal(stored_in(device, a), x != 0)
    assert_equal(wide(dense(device, a)), wide(x))
    assert a.index_dtype == index_dtype


def roundings_between(device: Device, dtype: str) -> float:
    """Return for how many roundings in single precision one in a half's stands; cuSPARSE has it."""
    is_half = device.name.startswith("gpu") and dtype in ("float16", "bfloat16")
    return EPS[dtype] / EPS["float32"] if is_half else 0


@settings(max_examples=100)
@given(
    seed=seeds,
    m=odd,
    n=odd,
    columns=st.sampled_from((None, 0, 1, 3, 17)),
    dtype=dtypes,
    index_dtype=index_dtypes,
    format_=formats,
    trans=st.sampled_from(TRANS),
    layout=layouts,
)
def test_a_product_is_the_sum_over_what_is_stored(
    device: Device,
    seed: int,
    m: int,
    n: int,
    columns: int | None,
    dtype: str,
    index_dtype: str,
    format_: Format,
    trans: Trans,
    layout: Layout,
) -> None:
    """Of a vector (Spmv) and of a matrix (Spmm), alone and added to another, also in place."""
    a, stored = drawn(seed, (m, n), dtype)
    op = turn(wide(a), trans)
    tail = () if columns is None else (columns,)
    x, y = (
        reals(seed + 1, (op.shape[1], *tail), dtype),
        reals(seed + 2, (op.shape[0], *tail), dtype),
    )
    on_a = put(device, a, stored, format_, index_dtype)
    on_x, on_y = place(device, x, layout), place(device, y, layout)
    multiply: Any = sparse.spmv if columns is None else sparse.spmm
    exact, size = op @ wide(x), np.abs(op) @ np.abs(wide(x))
    got = value(device, multiply(on_a, on_x, trans=trans))
    often = op.shape[1] + 2 + roundings_between(device, dtype)
    assert_near(got, exact, dtype, magnitude=size, operations=often)
    if trans == "n":
        assert_same(value(device, on_a @ on_x), got)
    exact, size = 2 * exact - 0.5 * wide(y), 2 * size + 0.5 * np.abs(wide(y))
    for out in (None, on_y):  # the second time in place
        got = multiply(on_a, on_x, on_y, alpha=2, beta=-0.5, trans=trans, out=out)
        often = op.shape[1] + 6 + roundings_between(device, dtype)
        assert_near(value(device, got), exact, dtype, magnitude=size, operations=often)


@settings(max_examples=40)
@given(seed=seeds, m=odd, n=odd, k=extents, dtype=dtypes, layout=layouts)
def test_a_sampled_product_is_that_where_the_matrix_stores(
    device: Device, support: Support, seed: int, m: int, n: int, k: int, dtype: str, layout: Layout
) -> None:
    if dtype not in support["sparse.Sddmm"]:
        return
    a, stored = drawn(seed, (m, n), dtype)
    x, y = reals(seed + 1, (m, k), dtype), reals(seed + 2, (k, n), dtype)
    on_a, on_x, on_y = put(device, a, stored), place(device, x, layout), place(device, y, layout)
    exact, size = wide(x) @ wide(y), np.abs(wide(x)) @ np.abs(wide(y))
    got = dense(device, sparse.sddmm(on_a, on_x, on_y))
    assert (got[~stored] == 0).all()
    assert_near(got[stored], exact[stored], dtype, magnitude=size[stored], operations=k + 2)
    exact, size = 2 * exact - 3 * wide(a), 2 * size + 3 * np.abs(wide(a))
    got = dense(device, sparse.sddmm(on_a, on_x, on_y, alpha=2, beta=-3))[stored]
    assert_near(got, exact[stored], dtype, magnitude=size[stored], operations=k + 6)


def test_only_what_is_stored_is_multiplied_and_nothing_if_alpha_is_zero(device: Device) -> None:
    a = put(device, np.eye(3), np.eye(3, dtype=bool))
    x = device.put(np.array([np.inf, 1, np.nan]))
    assert_equal(value(device, a @ x), np.array([np.inf, 1, np.nan]))
    y = device.put(np.arange(3.0))
    assert value(device, sparse.spmv(a, x, y, alpha=0, beta=2)).tolist() == [0, 2, 4]
    assert value(device, sparse.spmv(a, x, alpha=0)).tolist() == [0, 0, 0]
    empty = put(device, np.zeros((3, 3)), np.zeros((3, 3), bool))
    assert value(device, sparse.spmv(empty, x, y, beta=2)).tolist() == [0, 2, 4]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("format_", FORMATS)
def test_scipys_arrays_come_and_go(device: Device, format_: Format, dtype: str) -> None:
    x, stored = drawn(5, (6, 8), dtype)
    rows, columns = np.nonzero(stored)
    drawn_ = scipy.sparse.coo_array((x[rows, columns], (rows, columns)), shape=x.shape)
    theirs: Any = drawn_.asformat(format_)
    a = sparse.from_scipy(device, theirs)
    assert (a.format, a.shape) == (format_, (6, 8))
    back = a.get()
    assert type(back) is type(theirs)
    assert_equal(back.toarray(), x)
    assert back.has_canonical_format
    wide_ = sparse.from_scipy(device, theirs, index_dtype="int64")
    assert wide_.index_dtype == "int64"
    assert_equal(wide_.get().toarray(), x)


def test_what_scipy_stores_twice_is_added_and_put_in_order(device: Device) -> None:
    rows, columns = np.array([1, 0, 1, 1]), np.array([2, 1, 0, 2])
    theirs = scipy.sparse.coo_matrix((np.arange(1.0, 5), (rows, columns)), shape=(2, 3))
    for form in ("coo", "csr", "csc", "dok", "lil", "bsr", "dia"):
        a = sparse.from_scipy(device, theirs.asformat(form))
        assert_canonical(device, a)
        assert_equal(value(device, a.toarray()), theirs.toarray())
    raw = scipy.sparse.csr_array(([1.0, 2, 4], [2, 0, 2], [0, 3]), shape=(1, 3))
    a = sparse.from_scipy(device, raw)
    assert a.get().indices.tolist() == [0, 2]
    assert value(device, a.toarray()).tolist() == [[2, 0, 5]]


BROKEN: dict[str, tuple[Format, list[int], list[int], str]] = {
    "decreasing": ("csr", [0, 1, 0], [0, 2, 1, 3], "pointers are to begin with 0"),
    "short": ("csr", [0, 1, 0], [0, 1, 2, 2], "to end with the number of indices"),
    "outside": ("csr", [0, 4, 0], [0, 1, 2, 3], "outside"),
    "negative": ("csc", [0, -1, 0], [0, 1, 2, 3, 3], "outside"),
    "twice": ("csr", [1, 1, 0], [0, 2, 3, 3], "increase within each row"),
    "row": ("coo", [0, 1, 2], [0, 3, 3], "outside"),
    "order": ("coo", [0, 2, 1], [0, 2, 2], "increase within each row"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_buffers_that_are_no_matrix_fail_what_depends_on_them(device: Device, name: str) -> None:
    format_, indices, pointers, words = BROKEN[name]
    places, ends = (device.put(np.array(one, "int32")) for one in (indices, pointers))
    with unanswered(device):
        a = sparse.verify(device.put(np.ones(3)), places, ends, (3, 4), format_)
        after = a @ array.zeros(device, 4, "float64")
    with pytest.raises(InvalidArgument, match=words):
        a.indices.result(30)
    with pytest.raises(DependencyFailed):
        after.result(30)


def test_buffers_make_a_matrix_of_each_format(device: Device) -> None:
    x = np.array([[1.0, 0, 2, 0], [0, 0, 0, 3]])

    def on(*values: int) -> Any:
        return device.put(np.array(values, "int64"))

    ones = device.put(np.array([1.0, 2, 3]))
    blocks = device.put(np.array([[[1.0, 0]], [[2, 0]], [[0, 3]]]))
    for a in (
        sparse.csr(ones, on(0, 2, 3), on(0, 2, 3), (2, 4)),
        sparse.csc(ones, on(0, 0, 1), on(0, 1, 1, 2, 3), (2, 4)),
        sparse.coo(ones, on(0, 2, 3), on(0, 0, 1), (2, 4)),
        sparse.bsr(blocks, on(0, 1, 1), on(0, 2, 3), (2, 4)),
    ):
        assert_equal(value(device, a.toarray()), x)
        assert_equal(value(device, (-(2 * a) / 4).toarray()), -x / 2)


def test_a_matrix_whose_size_is_not_known_yet_is_an_operand(device: Device) -> None:
    x = np.array([[0.0, 2], [1, 0]])
    with unanswered(device):
        a = sparse.from_dense(device.put(x))
        assert "not yet known" in repr(a)
        product = a.tocsc().T @ device.put(np.ones(2))
        blocks = a.tobsr((2, 2)) @ device.put(np.ones(2))
    assert value(device, product).tolist() == [1, 2]
    assert value(device, blocks).tolist() == [2, 1]
    assert (a.result() is a, a.nnz) == (True, 2)
    assert "2 stored" in repr(a)


def test_mistakes_are_refused_with_what_and_what_was_expected(device: Device) -> None:
    a = put(device, np.eye(3, 4), np.eye(3, 4, dtype=bool))
    x, wrong = array.zeros(device, 3, "float64"), array.zeros(device, 4)
    anything: Any = np.eye(3)
    square = put(device, np.eye(3), np.eye(3, dtype=bool))
    with refused(device, "Spmv: x is float64[3]", "[4] beside a sparse matrix of [3, 4]"):
        sparse.spmv(a, x)
    with refused(device, "Spmv: y is float64[3]", "[4]", "trans='t'"):
        sparse.spmv(a, x, x, beta=1, trans="t")
    with refused(device, "Spmv", "one dtype", "x is float32[4] and the matrix float64"):
        a @ wrong
    with refused(device, "Spmm: b is float64[3]", "Spmv takes vectors"):
        sparse.spmm(a, x)
    with refused(device, "Spmv: a is ndarray", "SparseRef", "from_scipy"):
        sparse.spmv(anything, x)
    with refused(device, "Spmv: trans is 'x'"):
        sparse.spmv(a, x, trans="x")  # type: ignore[arg-type]
    with refused(device, "reads an operand while it writes out", "x is float64[3]"):
        sparse.spmv(square, x, out=x)
    with refused(device, "Convert: blocks of [2, 2] do not divide a matrix of [3, 4]"):
        a.tobsr((2, 2))
    with refused(device, "format is 'dia'", "'csr'"):
        a.to("dia")  # type: ignore[arg-type]
    with refused(device, "pointers are int32[4]", "csc [3, 4]", "5"):
        sparse.csc(*a.parts, (3, 4))
    with refused(device, "indices are float64[3]", "int32 or int64"):
        sparse.csr(x, x, a.pointers, (3, 4))
    with refused(device, "from_scipy: a is ndarray"):
        sparse.from_scipy(device, np.eye(3))
    half, small = a.astype("float16"), a.astype("int8")
    x = array.zeros(device, 4, "int8")
    with refused(device, "float16", error=UnsupportedDtype):
        half.get()
    with refused(device, "Spmv", "int8", error=UnsupportedDtype):
        small @ x
