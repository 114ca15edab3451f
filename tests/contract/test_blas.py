"""The contract of `libraries.blas`: definitions and laws, then SciPy's BLAS, then the host."""

import gc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.linalg.blas
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, blas
from accel_lab.backends.host.blas.library import HostBlas
from accel_lab.compute.arrays.dtypes import NAMES, is_complex, numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.libraries.blas.library import Trans
from tests.contract.products import (
    PREFIX,
    TRANS,
    Case,
    Support,
    cases,
    sum_of_products,
    turn,
    turned_shape,
)
from tests.contract.samples import (
    assert_equal,
    place,
    reals,
    refused,
    seeds,
    small,
    value,
)
from tests.contract.tolerances import EPS, INEXACT, WIDE, assert_near, wide

INTEGERS = tuple(name for name in NAMES if numpy_dtype(name).kind in "iu")


@pytest.mark.parametrize("dtype", NAMES)
@settings(max_examples=15)
@given(case=cases())
def test_gemm_is_the_sum_of_products(
    device: Device, support: Support, dtype: str, case: Case
) -> None:
    """Sums of integers this small are exact on the way, so not one may differ."""
    if dtype not in support["blas.Gemm"]:
        return
    a, b, _ = case.operands(small, dtype)
    got = blas.gemm(
        place(device, a, case.layout),
        place(device, b, case.layout),
        trans_a=case.trans_a,
        trans_b=case.trans_b,
    )
    assert_equal(value(device, got), sum_of_products(*case.turned(a, b), dtype))
    assert (got.shape, got.dtype) == ((case.m, case.n), dtype)


@pytest.mark.parametrize("dtype", INEXACT)
@settings(max_examples=12)
@given(case=cases())
def test_gemm_adds_beta_c_within_rounding(
    device: Device, support: Support, dtype: str, case: Case
) -> None:
    if dtype not in support["blas.Gemm"]:
        return
    a, b, c = case.operands(reals, dtype)
    alpha, beta = (0.5 - 2j, -1.25 + 1j) if is_complex(dtype) else (0.5, -1.25)
    got = blas.gemm(
        *(place(device, x, case.layout) for x in (a, b, c)),
        alpha=alpha,
        beta=beta,
        trans_a=case.trans_a,
        trans_b=case.trans_b,
    )
    a, b = case.turned(wide(a), wide(b))
    exact = alpha * (a @ b) + beta * wide(c)
    magnitude = abs(alpha) * (np.abs(a) @ np.abs(b)) + abs(beta) * np.abs(wide(c))
    assert_near(value(device, got), exact, dtype, magnitude=magnitude, operations=case.k + 4)


@pytest.mark.parametrize("dtype", NAMES)
def test_the_identity_changes_nothing(device: Device, support: Support, dtype: str) -> None:
    if dtype not in support["blas.Gemm"]:
        return
    a = small(0, (4, 5), dtype)
    eye = device.put(np.eye(5).astype(a.dtype))
    assert (value(device, blas.gemm(device.put(a), eye)) == a).all()


@pytest.mark.parametrize("trans", ["t", "c"])
@settings(max_examples=15)
@given(case=cases(), dtype=st.sampled_from(WIDE))
def test_the_transpose_of_a_product_is_the_product_of_transposes(
    device: Device, trans: Trans, case: Case, dtype: str
) -> None:
    """(A B)^T = B^T A^T, and the same with conjugates."""
    a, b = reals(case.seed, (case.m, case.k), dtype), reals(case.seed, (case.k, case.n), dtype)
    on_a, on_b = device.put(a), device.put(b)
    left = turn(value(device, blas.gemm(on_a, on_b)), trans)
    right = value(device, blas.gemm(on_b, on_a, trans_a=trans, trans_b=trans))
    magnitude = turn(np.abs(a) @ np.abs(b), "t")
    assert_near(right, wide(left), dtype, magnitude=magnitude, operations=2 * case.k + 2)


@settings(max_examples=15)
@given(seed=seeds, dtype=st.sampled_from(WIDE))
def test_products_associate(device: Device, seed: int, dtype: str) -> None:
    """(A B) C = A (B C) up to the rounding of both sums."""
    a, b, c = (
        device.put(reals(seed + i, s, dtype)) for i, s in enumerate([(3, 5), (5, 4), (4, 2)])
    )
    left = value(device, blas.gemm(blas.gemm(a, b), c))
    right = value(device, blas.gemm(a, blas.gemm(b, c)))
    magnitude = np.abs(value(device, a)) @ np.abs(value(device, b)) @ np.abs(value(device, c))
    assert_near(left, wide(right), dtype, magnitude=magnitude, operations=2 * (5 + 4))


@settings(max_examples=15)
@given(seed=seeds, dtype=st.sampled_from(WIDE))
def test_products_distribute_over_sums(device: Device, seed: int, dtype: str) -> None:
    """A (B + C) = A B + A C, the right side in one Gemm by beta."""
    a, b, c = (device.put(reals(seed + i, (4, 4), dtype)) for i in range(3))
    left = value(device, blas.gemm(a, blas.axpy(b, c)))
    right = value(device, blas.gemm(a, b, blas.gemm(a, c), beta=1.0))
    magnitude = np.abs(value(device, a)) @ (np.abs(value(device, b)) + np.abs(value(device, c)))
    assert_near(left, wide(right), dtype, magnitude=magnitude, operations=12)


@pytest.mark.parametrize("dtype", WIDE)
@settings(max_examples=12)
@given(case=cases(least=1))
def test_gemm_agrees_with_scipy(device: Device, dtype: str, case: Case) -> None:
    a, b, c = case.operands(reals, dtype)
    words = TRANS.index(case.trans_a), TRANS.index(case.trans_b)
    gemm = getattr(scipy.linalg.blas, PREFIX[dtype] + "gemm")
    expected = gemm(2.0, a, b, 3.0, c, *words)
    got = blas.gemm(
        *(place(device, x, case.layout) for x in (a, b, c)),
        alpha=2,
        beta=3,
        trans_a=case.trans_a,
        trans_b=case.trans_b,
    )
    a, b = case.turned(np.abs(a), np.abs(b))
    magnitude = 2 * a @ b + 3 * np.abs(c)
    steps = 2 * case.k + 8
    assert_near(value(device, got), wide(expected), dtype, magnitude=magnitude, operations=steps)


@pytest.mark.parametrize("dtype", WIDE)
@settings(max_examples=12)
@given(case=cases(least=1))
def test_gemv_agrees_with_scipy(device: Device, dtype: str, case: Case) -> None:
    a, _, _ = case.operands(reals, dtype)
    x, y = reals(case.seed + 3, (case.k,), dtype), reals(case.seed + 4, (case.m,), dtype)
    gemv = getattr(scipy.linalg.blas, PREFIX[dtype] + "gemv")
    expected = gemv(2.0, a, x, 3.0, y, trans=TRANS.index(case.trans_a))
    placed = (place(device, operand, case.layout) for operand in (a, x, y))
    got = value(device, blas.gemv(*placed, alpha=2, beta=3, trans=case.trans_a))
    magnitude = 2 * turn(np.abs(a), case.trans_a) @ np.abs(x) + 3 * np.abs(y)
    steps = 2 * case.k + 8
    assert_near(got, wide(expected), dtype, magnitude=magnitude, operations=steps)


@pytest.mark.parametrize("dtype", NAMES)
@settings(max_examples=10)
@given(case=cases())
def test_every_backend_agrees_with_the_host(
    device: Device, support: Support, dtype: str, case: Case
) -> None:
    if dtype not in support["blas.Gemm"]:
        return
    a, b, c = case.operands(reals if dtype in INEXACT else small, dtype)
    expected, one = np.empty_like(c), c.dtype.type(1).item()
    words: dict[str, Any] = {"trans_a": case.trans_a, "trans_b": case.trans_b}
    said: Any = SimpleNamespace(a=SimpleNamespace(dtype=dtype), **words)
    HostBlas().gemm(said, a, b, c, expected, one, one)
    placed = (place(device, x, case.layout) for x in (a, b, c))
    got = value(device, blas.gemm(*placed, alpha=1, beta=1, **words))
    if dtype not in INEXACT:
        assert_equal(got, expected)
        return
    a, b = case.turned(np.abs(wide(a)), np.abs(wide(b)))
    magnitude = a @ b + np.abs(wide(c))
    steps = 2 * case.k + 4
    assert_near(got, wide(expected), dtype, magnitude=magnitude, operations=steps)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap(device: Device, support: Support, dtype: str) -> None:
    if dtype not in support["blas.Gemm"]:
        return
    top = int(np.iinfo(dtype).max)
    x = array.full(device, (1, 3), top, dtype)
    modulus = 1 << (8 * numpy_dtype(dtype).itemsize)
    got = int(value(device, blas.gemm(x, x, trans_b="t"))[0, 0])
    assert (got - 3 * top * top) % modulus == 0
    assert (int(value(device, blas.axpy(x, x))[0, 0]) - 2 * top) % modulus == 0


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "bfloat16", "float16"])
def test_narrow_floats_are_rounded_once(device: Device, support: Support, dtype: str) -> None:
    """A sum of ones kept in the dtype would stop growing where one is half of its spacing."""
    if dtype not in support["blas.Gemm"]:
        return
    count = round(8 / EPS[dtype])
    ones = array.full(device, (1, count), 1, dtype)
    assert value(device, blas.gemm(ones, ones, trans_b="t")).tolist() == [[count]]
    flat = array.reshape(ones, -1)
    if dtype in support["blas.Dot"]:
        assert value(device, blas.dot(flat, flat)) == count


@pytest.mark.parametrize("trans", TRANS)
def test_without_inner_extent_only_beta_c_is_left(device: Device, trans: Trans) -> None:
    a = array.zeros(device, turned_shape(3, 0, trans))
    b = array.zeros(device, (0, 2))
    c = device.put(small(0, (3, 2), "float32"))
    assert_equal(value(device, blas.gemm(a, b, trans_a=trans)), np.zeros((3, 2), np.float32))
    got = blas.gemm(a, b, c, alpha=5, beta=2, trans_a=trans)
    assert (value(device, got) == 2 * value(device, c)).all()
    x = array.zeros(device, 0)
    assert_equal(value(device, blas.gemv(a, x, trans=trans)), np.zeros(3, np.float32))


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("batch", [((2, 3), (2, 3)), ((), (4,)), ((4,), ()), ((), ()), ((0,), ())])
def test_a_batch_is_one_gemm_after_the_other(
    device: Device, support: Support, dtype: str, batch: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    if dtype not in support["blas.GemmStridedBatched"]:
        return
    a, b = small(0, (*batch[0], 3, 2), dtype), small(1, (*batch[1], 2, 4), dtype)
    got = blas.gemm_strided_batched(place(device, a, "stepped"), device.put(b))
    whole = batch[0] or batch[1]
    assert got.shape == (*whole, 3, 4)
    result = value(device, got)
    wide_a, wide_b = np.broadcast_to(a, (*whole, 3, 2)), np.broadcast_to(b, (*whole, 2, 4))
    for index in np.ndindex(whole):
        assert (result[index] == sum_of_products(wide_a[index], wide_b[index], dtype)).all()


@pytest.mark.parametrize("c_batch", [(), (2,)])
@pytest.mark.parametrize("dtype", WIDE)
def test_a_batch_adds_beta_c_and_turns(
    device: Device, dtype: str, c_batch: tuple[int, ...]
) -> None:
    a, b = small(0, (2, 3, 4), dtype), small(1, (2, 5, 3), dtype)
    c = small(2, (*c_batch, 4, 5), dtype)
    on = [place(device, x, "transposed") for x in (a, b, c)]
    got = blas.gemm_strided_batched(*on, alpha=2, beta=3, trans_a="t", trans_b="c")
    exact = 2 * turn(a, "t") @ turn(b, "c") + 3 * c
    assert (value(device, got) == exact).all()
    if c_batch:
        blas.gemm_strided_batched(*on, alpha=2, beta=3, trans_a="t", trans_b="c", out=on[2])
        assert (value(device, on[2]) == exact).all()


@pytest.mark.parametrize("dtype", NAMES)
@settings(max_examples=8)
@given(case=cases())
def test_gemv_is_gemm_with_one_column(
    device: Device, support: Support, dtype: str, case: Case
) -> None:
    if dtype not in support["blas.Gemv"]:
        return
    a, _, _ = case.operands(small, dtype)
    x = small(case.seed + 3, (case.k,), dtype)
    placed = (place(device, operand, case.layout) for operand in (a, x))
    got = blas.gemv(*placed, trans=case.trans_a)
    assert_equal(value(device, got), sum_of_products(turn(a, case.trans_a), x, dtype))
    assert (got.shape, got.dtype) == ((case.m,), dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_where_alpha_is_zero_the_product_is_left_out(device: Device, dtype: str) -> None:
    nans, c = array.full(device, (2, 2), float("nan"), dtype), array.full(device, (2, 2), 2, dtype)
    nan, y = array.full(device, 2, float("nan"), dtype), array.full(device, 2, 2, dtype)
    batch = array.full(device, (3, 2, 2), float("nan"), dtype)
    assert (value(device, blas.gemm(nans, nans, alpha=0)) == 0).all()
    assert (value(device, blas.gemm_strided_batched(batch, nans, alpha=0)) == 0).all()
    assert (value(device, blas.gemm(nans, nans.T, c, alpha=0, beta=3, trans_a="t")) == 6).all()
    assert (value(device, blas.gemm(nans, nans, c, alpha=0, beta=1, out=c)) == 2).all()
    assert (value(device, blas.gemv(nans, nan, alpha=0)) == 0).all()
    assert (value(device, blas.gemv(nans, nan, y, alpha=0, beta=3)) == 6).all()


def test_a_chain_needs_no_answer_in_between(device: Device) -> None:
    x = device.put(np.array([[0.0, 1], [1, 1]]))
    power = x
    for _ in range(30):
        power = blas.gemm(power, x)
    gc.collect()
    assert value(device, power).tolist() == [[832040, 1346269], [1346269, 2178309]]


def test_what_gemm_does_not_take_is_refused_with_what_does(device: Device) -> None:
    a, x = array.zeros(device, (2, 3)), array.zeros(device, 3)
    with refused(device, "b is float32[3]", "Gemv takes vectors, GemmStridedBatched stacks"):
        blas.gemm(a, x)
    with refused(device, "AccelRef", "ndarray", "put()"):
        blas.gemm(np.ones((2, 3)), a)  # type: ignore[arg-type]
    wide = array.zeros(device, (0, 2**30))
    with refused(device, "Gemm would make float32[1073741824, 1073741824]"):
        blas.gemm(wide, wide, trans_a="t")
