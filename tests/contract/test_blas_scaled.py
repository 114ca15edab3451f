"""The contract of `libraries.blas` where factors are buffers, and where products are in TF32."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, blas, blas_lt
from accel_lab.compute.arrays.dtypes import is_complex
from accel_lab.compute.device import Device
from tests.contract.products import Case, Support, cases, sum_of_products
from tests.contract.samples import (
    assert_equal,
    assert_same,
    layouts,
    place,
    reals,
    refused,
    seeds,
    small,
    value,
)
from tests.contract.tolerances import INEXACT, WIDE, assert_near, wide

BY_BUFFERS = ("Gemm", "GemmStridedBatched", "Gemv", "Axpy", "Scal")


def zero_d(device: Device, number: complex, dtype: str) -> Any:
    """Return a factor as a buffer, a view into a longer one: any address will do."""
    return array.full(device, 3, number, dtype)[1]


@pytest.mark.parametrize("dtype", INEXACT)
@settings(max_examples=12)
@given(case=cases())
def test_a_product_by_buffers_is_that_by_numbers_within_rounding(
    device: Device, support: Support, dtype: str, case: Case
) -> None:
    if dtype not in support["blas.GemmBy"]:
        return
    a, b, c = case.operands(reals, dtype)
    alpha, beta = (0.5 - 2j, -1.25 + 1j) if is_complex(dtype) else (0.5, -1.25)
    on_a, on_b, on_c = (place(device, x, case.layout) for x in (a, b, c))
    first, second = zero_d(device, alpha, dtype), zero_d(device, beta, dtype)
    turns: Any = {"trans_a": case.trans_a, "trans_b": case.trans_b}
    a, b = case.turned(wide(a), wide(b))
    product, size = a @ b, np.abs(a) @ np.abs(b)
    got = value(device, blas.gemm(on_a, on_b, alpha=first, **turns))
    assert_near(got, alpha * product, dtype, magnitude=abs(alpha) * size, operations=case.k + 2)
    exact = alpha * product + beta * wide(c)
    size = abs(alpha) * size + abs(beta) * np.abs(wide(c))
    for out in (None, on_c):  # the second time in place
        got = blas.gemm(on_a, on_b, on_c, alpha=first, beta=second, out=out, **turns)
        assert_near(value(device, got), exact, dtype, magnitude=size, operations=case.k + 4)


@pytest.mark.parametrize("dtype", ["int32", "bool", "float16", "float64", "complex64"])
@pytest.mark.parametrize("is_mixed", [False, True])
def test_every_operation_takes_a_buffer_for_a_factor(
    device: Device, support: Support, dtype: str, *, is_mixed: bool
) -> None:
    """Sums of integers this small are exact; a number beside a buffer becomes a buffer."""
    if dtype not in support["blas.GemmBy"]:
        return
    number = 1 if dtype == "bool" else 2
    a, b, c = (small(seed, (3, 3), dtype) for seed in (1, 2, 3))
    on_a, on_b, on_c = map(device.put, (a, b, c))
    factor = zero_d(device, number, dtype)
    beta: Any = 1 if is_mixed else factor
    scaled, added = (
        np.multiply(a, a.dtype.type(number)),
        c if is_mixed else c * a.dtype.type(number),
    )
    assert_equal(value(device, blas.scal(on_a, factor)), scaled)
    assert_equal(value(device, blas.axpy(on_a, on_b, alpha=factor)), scaled + b)
    expected = sum_of_products(scaled, b, dtype, added)
    assert_equal(value(device, blas.gemm(on_a, on_b, on_c, alpha=factor, beta=beta)), expected)
    stack = blas.gemm_strided_batched(on_a[None], on_b, on_c[None], alpha=factor, beta=beta)
    assert_equal(value(device, stack), expected[None])
    got = blas.gemv(on_a, on_b[:, 0], on_c[:, 0], alpha=factor, beta=beta)
    assert_equal(value(device, got), expected[:, 0])


@pytest.mark.parametrize("dtype", WIDE)
def test_what_a_beta_of_zero_scales_does_not_count(device: Device, dtype: str) -> None:
    """Also where the product has no terms, and is left out."""
    nan, zero = array.full(device, (3, 3), float("nan"), dtype), zero_d(device, 0, dtype)
    two = zero_d(device, 2, dtype)
    for inner in (2, 0):
        a, b = array.full(device, (3, inner), 1, dtype), array.full(device, (inner, 3), 1, dtype)
        for out in (None, nan.copy()):
            c = nan if out is None else out
            got = value(device, blas.gemm(a, b, c, alpha=two, beta=zero, out=out))
            assert (got == 2 * inner).all()
            y = nan[0] if out is None else array.full(device, 3, float("nan"), dtype)
            to = None if out is None else y
            got = value(device, blas.gemv(a, b[:, 0], y, alpha=two, beta=zero, out=to))
            assert (got == 2 * inner).all()


@given(seed=seeds, n=st.integers(0, 40), layout=layouts, dtype=st.sampled_from(WIDE))
def test_a_step_of_conjugate_gradients_needs_no_number(
    device: Device, seed: int, n: int, layout: Any, dtype: str
) -> None:
    """A factor that was computed on the device: x / |x|² is what `dot` makes 1 with x."""
    x = reals(seed, (n,), dtype)
    on_x = place(device, x, layout)
    factor = 1 / blas.dot(on_x, on_x, conjugate=True)
    got = value(device, blas.scal(on_x, factor))
    norm = np.vdot(wide(x), wide(x))
    exact = wide(x) / norm if n else wide(x)
    assert_near(got, exact, dtype, magnitude=np.abs(exact), operations=n + 3)


def test_a_factor_is_read_when_its_turn_comes(device: Device) -> None:
    """In the order of the messages, and not before: it is written between them."""
    x, factor = device.put(np.arange(4.0)), device.put(np.array(2.0))
    before = blas.scal(x, factor)
    array.copy(device.put(np.array(5.0)), out=factor)
    after = blas.scal(x, factor)
    assert_same(value(device, before), 2 * np.arange(4.0))
    assert_same(value(device, after), 5 * np.arange(4.0))


def test_factors_that_do_not_fit_are_refused(device: Device) -> None:
    a = array.zeros(device, (3, 3))
    x, two = array.zeros(device, 3), array.full(device, (), 2, "float32")
    doubled, more = array.full(device, (), 2, "float64"), array.zeros(device, ())
    with refused(device, "AxpyBy", "alpha is float32[3]"):
        blas.axpy(x, x, alpha=x)
    with refused(device, "GemmBy takes operands of one dtype", "alpha is float64[]"):
        blas.gemm(a, a, alpha=doubled)
    with refused(device, "GemmBy: c is float32[3, 3], and there is no beta"):
        blas.gemm(a, a, a, alpha=two)
    with refused(device, "GemvBy: beta is float32[], and there is no y"):
        blas.gemv(a, x, alpha=two, beta=two)
    with refused(device, "GemmBy: alpha is 1j", "float32 has no complex values"):
        blas.gemm(a, a, a, alpha=1j, beta=two)
    with refused(device, "ScalBy", "alpha is float32[]", "out is the same buffer"):
        blas.scal(more, two, out=two)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@settings(max_examples=15)
@given(case=cases())
def test_a_product_in_tf32_has_eleven_bits_at_least(device: Device, dtype: str, case: Case) -> None:
    """Each operand is rounded by 2**-11 at most, where that is done; what is added is float32."""
    a, b, c = case.operands(reals, dtype)
    on_a, on_b, on_c = (place(device, x, case.layout) for x in (a, b, c))
    turns: Any = {"trans_a": case.trans_a, "trans_b": case.trans_b, "compute": "tf32"}
    a, b = case.turned(wide(a), wide(b))
    exact, size = 2 * (a @ b) + wide(c), np.abs(a) @ np.abs(b)
    bound = (4 if is_complex(dtype) else 1) * (2**-9 + (case.k + 4) * 2**-23)
    for factors in ({"alpha": 2.0, "beta": 1.0}, {"alpha": zero_d(device, 2, dtype), "beta": 1.0}):
        got = value(device, blas.gemm(on_a, on_b, on_c, **factors, **turns))
        assert got.dtype == dtype
        assert np.all(np.abs(got - exact) <= bound * (2 * size + np.abs(wide(c))))


@settings(max_examples=15)
@given(case=cases())
def test_a_finished_product_in_tf32_has_eleven_bits_at_least(device: Device, case: Case) -> None:
    a, b, c = case.operands(reals, "float32")
    on_a, on_b, on_c = (place(device, x, case.layout) for x in (a, b, c))
    turns: Any = {"trans_a": case.trans_a, "trans_b": case.trans_b, "compute": "tf32"}
    a, b = case.turned(wide(a), wide(b))
    exact, size = np.maximum(a @ b + wide(c), 0), np.abs(a) @ np.abs(b) + np.abs(wide(c))
    options: Any = {"beta": 1.0, "activation": "relu", **turns}
    bound = 2**-9 + (case.k + 4) * 2**-23
    for got in (
        blas_lt.matmul(on_a, on_b, on_c, **options),
        blas_lt.fused_matmul(on_a, on_b, on_c, **options).d,
    ):
        assert np.all(np.abs(value(device, got) - exact) <= bound * size)


def test_a_precision_that_there_is_not_is_refused(device: Device) -> None:
    a = array.zeros(device, (3, 3))
    wrong: Any = "fp4"
    with refused(device, "Gemm: compute is 'fp4'", "'' or 'tf32'"):
        blas.gemm(a, a, compute=wrong)
    doubled, two = array.zeros(device, (2, 2), "float64"), array.full(device, (), 2, "float64")
    with refused(device, "Gemm: compute is 'tf32' and a is float64[2, 2]", "float32 and complex64"):
        blas.gemm(doubled, doubled, compute="tf32")
    with refused(device, "GemmBy: compute is 'tf32'", "float32 and complex64"):
        blas.gemm(doubled, doubled, alpha=two, compute="tf32")
    for multiply, name in ((blas_lt.matmul, "Matmul"), (blas_lt.fused_matmul, "FusedMatmul")):
        with refused(device, f"{name}: compute is 'tf32'", "float32 and complex64"):
            multiply(doubled, doubled, compute="tf32")
        with refused(device, f"{name}: compute is 'fp4'", "'' or 'tf32'"):
            multiply(a, a, compute=wrong)
