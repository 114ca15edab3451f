"""The contract of `libraries.blas` on half and triangular matrices, and on sums of matrices.

By the definition in higher precision, with Higham's bounds; what may not be read is NaN.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.linalg.blas
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, blas
from accel_lab.compute.device import Device
from accel_lab.libraries.blas.library import Side, Trans, Uplo
from tests.contract.halves import (
    factors,
    symmetric,
    triangle,
    triangular,
    uplos,
    wide_dtypes,
    without_the_rest,
)
from tests.contract.products import PREFIX, TRANS, turn, turned_shape
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
    value,
)
from tests.contract.tolerances import EPS, WIDE, assert_near, wide

SIDES: tuple[Side, ...] = ("l", "r")
BATCHES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), ()),
    ((2,), (2,)),
    ((2, 3), (2, 3)),
    ((), (4,)),
    ((4,), ()),
    ((0,), ()),
)
odd = st.one_of(extents, st.just(17))


@dataclass(frozen=True)
class Case:
    """A half or triangular matrix on a side of one of (m, n), and the strides of both."""

    seed: int
    m: int
    n: int
    dtype: str
    side: Side
    uplo: Uplo
    trans: Trans
    unit: bool
    layout: Layout

    @property
    def words(self) -> dict[str, Any]:
        """The options of Trmm and Trsm."""
        return {"side": self.side, "uplo": self.uplo, "trans": self.trans, "unit": self.unit}

    @property
    def order(self) -> int:
        """The extent of the half matrix."""
        return self.m if self.side == "l" else self.n

    def drawn(self, shift: int = 1) -> Any:
        """Draw a whole matrix."""
        return reals(self.seed + shift, (self.m, self.n), self.dtype)

    def times(self, a: Any, b: Any) -> Any:
        """Return the product on the side that is meant."""
        return a @ b if self.side == "l" else b @ a


cases = st.builds(
    Case,
    seed=seeds,
    m=odd,
    n=odd,
    dtype=wide_dtypes,
    side=st.sampled_from(SIDES),
    uplo=uplos,
    trans=st.sampled_from(TRANS),
    unit=st.booleans(),
    layout=layouts,
)


@settings(max_examples=60)
@given(case=cases, adjoint=st.booleans())
def test_symm_and_hemm_read_one_triangle(device: Device, case: Case, *, adjoint: bool) -> None:
    a = symmetric(case.seed, case.order, case.dtype, adjoint=adjoint)
    b, c = case.drawn(), case.drawn(2)
    half, on_b, on_c = (
        place(device, one, case.layout) for one in (without_the_rest(a, case.uplo), b, c)
    )
    multiply, (alpha, beta) = blas.hemm if adjoint else blas.symm, factors(case.dtype)
    words: Any = {"side": case.side, "uplo": case.uplo}
    exact, size = case.times(wide(a), wide(b)), case.times(np.abs(wide(a)), np.abs(wide(b)))
    got = value(device, multiply(half, on_b, **words))
    assert_near(got, exact, case.dtype, magnitude=size, operations=case.order + 2)
    exact = alpha * exact + beta * wide(c)
    size = abs(alpha) * size + abs(beta) * np.abs(wide(c))
    for out in (None, on_c):  # the second time in place
        got = value(device, multiply(half, on_b, on_c, alpha=alpha, beta=beta, out=out, **words))
        assert_near(got, exact, case.dtype, magnitude=size, operations=case.order + 6)


@settings(max_examples=60)
@given(case=cases, adjoint=st.booleans(), k=odd)
def test_syrk_and_herk_write_one_triangle(
    device: Device, case: Case, k: int, *, adjoint: bool
) -> None:
    n, dtype = case.n, case.dtype
    a = reals(case.seed, turned_shape(n, k, case.trans), dtype)
    c = without_the_rest(symmetric(case.seed + 1, n, dtype, adjoint=adjoint), case.uplo)
    alpha, beta = (one.real for one in factors(dtype)) if adjoint else factors(dtype)
    update: Any = blas.herk if adjoint else blas.syrk
    words = {"uplo": case.uplo, "trans": case.trans}
    on_a, on_c = place(device, a, case.layout), place(device, c, case.layout)
    op, named = turn(wide(a), case.trans), triangle(n, case.uplo)
    exact = op @ turn(op, "c" if adjoint else "t")
    size = np.abs(op) @ np.abs(op).T
    alone = value(device, update(on_a, **words))
    assert (alone[~named] == 0).all()
    assert_near(alone[named], exact[named], dtype, magnitude=size[named], operations=k + 2)
    exact = alpha * exact[named] + beta * wide(c)[named]
    size = abs(alpha) * size[named] + abs(beta) * np.abs(wide(c)[named])
    for out in (None, on_c):
        got = value(device, update(on_a, on_c, alpha=alpha, beta=beta, out=out, **words))
        assert_equal(got[~named], c[~named])
        assert_near(got[named], exact, dtype, magnitude=size, operations=k + 6)
        if adjoint:
            assert (got.diagonal().imag == 0).all()


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("inner", [0, 2])
def test_without_a_product_only_beta_c_is_left(device: Device, dtype: str, inner: int) -> None:
    a, c = array.full(device, (3, inner), float("nan"), dtype), array.full(device, (3, 3), 2, dtype)
    lower = np.where(np.tri(3, dtype=bool), 6, 2)
    b = array.full(device, (3, 3), float("nan"), dtype)
    for update in (blas.syrk, blas.herk):
        assert (value(device, update(a, alpha=0)) == 0).all()
        assert (value(device, update(a, c, alpha=0, beta=3)) == lower).all()
        assert (value(device, update(a, c, alpha=0, beta=3, uplo="u")) == lower.T).all()
    for multiply in (blas.symm, blas.hemm):
        assert (value(device, multiply(b, b, c, alpha=0, beta=3)) == 6).all()
    for of in (blas.trmm, blas.trsm):
        assert (value(device, of(b, b, alpha=0)) == 0).all()
    assert (value(device, blas.geam(b, c, alpha=0, beta=3)) == 6).all()
    assert (value(device, blas.geam(c, b, alpha=3, beta=0, trans_a="c")) == 6).all()
    assert (value(device, blas.geam(b, b, alpha=0, beta=0)) == 0).all()


@settings(max_examples=60)
@given(case=cases)
def test_trmm_and_trsm_undo_each_other_and_read_one_triangle(device: Device, case: Case) -> None:
    """The product by its definition; the solution by its residual (Higham, theorem 8.5)."""
    dtype, n = case.dtype, case.order
    a, b = triangular(case.seed, n, dtype, case.uplo, unit=case.unit), case.drawn()
    half = place(device, without_the_rest(a, case.uplo, unit=case.unit), case.layout)
    on_b, op, alpha = place(device, b, case.layout), turn(wide(a), case.trans), factors(dtype)[0]
    exact = alpha * case.times(op, wide(b))
    size = abs(alpha) * case.times(np.abs(op), np.abs(wide(b)))
    got = value(device, blas.trmm(half, on_b, alpha=alpha, **case.words))
    assert_near(got, exact, dtype, magnitude=size, operations=n + 4)
    solution = blas.trsm(half, on_b, alpha=alpha, **case.words)
    solved = wide(value(device, solution))
    bound = 8 * (n + 1) * EPS[dtype] * case.times(np.abs(op), np.abs(solved))
    bound = bound + 8 * EPS[dtype] * abs(alpha) * np.abs(wide(b))
    assert np.all(np.abs(case.times(op, solved) - alpha * wide(b)) <= bound)
    assert_same(value(device, on_b), b)
    back = value(device, blas.trmm(half, solution, out=solution, **case.words))
    assert np.all(np.abs(wide(back) - alpha * wide(b)) <= 2 * bound)
    blas.trsm(half, on_b, alpha=alpha, out=on_b, **case.words)
    assert_same(value(device, on_b), solved.astype(b.dtype))


@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "inside"])
def test_a_stack_is_one_after_the_other(
    device: Device, batch: tuple[tuple[int, ...], tuple[int, ...]], side: Side, layout: Layout
) -> None:
    n = 3 if side == "l" else 5
    count = int(np.prod(batch[0]))
    many = [triangular(i, n, "complex64", "u", unit=False) for i in range(count)]
    a = np.array(many, "complex64").reshape(*batch[0], n, n)
    b = reals(7, (*batch[1], 3, 5), "complex64")
    whole = batch[0] or batch[1]
    for of in (blas.trmm, blas.trsm):
        got = of(place(device, a, layout), place(device, b, layout), uplo="u", trans="c", side=side)
        assert got.shape == (*whole, 3, 5)
        result = value(device, got)
        every_a, every_b = np.broadcast_to(a, (*whole, n, n)), np.broadcast_to(b, (*whole, 3, 5))
        for at in np.ndindex(whole):
            one = of(
                device.put(every_a[at]), device.put(every_b[at]), uplo="u", trans="c", side=side
            )
            np.testing.assert_allclose(result[at], value(device, one), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", WIDE)
@settings(max_examples=15)
@given(case=cases)
def test_halves_agree_with_scipy(device: Device, dtype: str, case: Case) -> None:
    m, n = max(case.m, 1), max(case.n, 1)
    order = m if case.side == "l" else n
    a, b = reals(case.seed, (order, order), dtype), reals(case.seed + 1, (m, n), dtype)
    lower, right = case.uplo == "l", case.side == "r"
    theirs = getattr(scipy.linalg.blas, PREFIX[dtype] + "symm")
    expected = theirs(2, a, b, side=right, lower=lower)
    half = symmetric_part(a, case.uplo)
    got = value(
        device, blas.symm(device.put(a), device.put(b), alpha=2, side=case.side, uplo=case.uplo)
    )
    size = 2 * case.times(np.abs(half), np.abs(b))
    assert_near(got, wide(expected), dtype, magnitude=size, operations=2 * order + 4)
    theirs = getattr(scipy.linalg.blas, PREFIX[dtype] + "trmm")
    expected = theirs(2, a, b, right, lower, TRANS.index(case.trans), case.unit)
    got = value(device, blas.trmm(device.put(a), device.put(b), alpha=2, **case.words))
    near = np.abs(np.where(triangle(order, case.uplo), a, 0)) + np.eye(order)
    size = 2 * case.times(turn(near, case.trans), np.abs(b))
    assert_near(got, wide(expected), dtype, magnitude=size, operations=2 * order + 4)


def symmetric_part(a: Any, uplo: str) -> Any:
    """Return the symmetric matrix of which this is one triangle."""
    half = np.where(triangle(len(a), uplo), a, 0)
    return half + half.T - np.diag(half.diagonal())


@settings(max_examples=60)
@given(case=cases, trans_b=st.sampled_from(TRANS))
def test_geam_is_element_by_element(device: Device, case: Case, trans_b: Trans) -> None:
    shape = case.m, case.n
    a = reals(case.seed, turned_shape(*shape, case.trans), case.dtype)
    b = reals(case.seed + 1, turned_shape(*shape, trans_b), case.dtype)
    (alpha, beta), on_a = factors(case.dtype), place(device, a, case.layout)
    words: Any = {"trans_a": case.trans, "trans_b": trans_b, "alpha": alpha, "beta": beta}
    got = value(device, blas.geam(on_a, place(device, b, case.layout), **words))
    op_a, op_b = turn(wide(a), case.trans), turn(wide(b), trans_b)
    size = abs(alpha) * np.abs(op_a) + abs(beta) * np.abs(op_b)
    exact = alpha * op_a + beta * op_b
    assert_near(got, exact, case.dtype, magnitude=size, operations=3)
    twice = value(device, blas.geam(on_a, on_a, trans_a=case.trans, trans_b=case.trans))
    assert_equal(twice, (2 * turn(a, case.trans)).astype(a.dtype))


@settings(max_examples=40)
@given(case=cases)
def test_dgmm_scales_rows_or_columns(device: Device, case: Case) -> None:
    a, x = case.drawn(), reals(case.seed, (case.order,), case.dtype)
    on_x, on_a = place(device, x, case.layout), place(device, a, case.layout)
    spread = wide(x)[:, None] if case.side == "l" else wide(x)
    exact = spread * wide(a)
    for out in (None, on_a):
        got = value(device, blas.dgmm(on_x, on_a, side=case.side, out=out))
        assert_near(got, exact, case.dtype, magnitude=np.abs(exact), operations=1)


@pytest.mark.parametrize("dtype", WIDE)
def test_a_nan_stays_in_its_column(device: Device, dtype: str) -> None:
    a = device.put(np.tri(3).astype(dtype))
    b = device.put(np.array([[1, 1], [np.nan, 1], [1, 1]]).astype(dtype))
    for of in (blas.trmm, blas.trsm):
        got = np.isnan(value(device, of(a, b)))
        assert got[1:, 0].all()  # above it a library may multiply it by 0
        assert not got[:, 1].any()
    zeros = array.zeros(device, (3, 3), dtype)  # a singular triangle is no error
    assert not np.isfinite(value(device, blas.trsm(zeros, a))[0, 0])
    assert np.isnan(value(device, blas.geam(b, b))).sum() == 1


@pytest.mark.parametrize("name", ["Symm", "Hemm", "Trmm", "Trsm"])
def test_what_does_not_fit_its_side_is_refused(device: Device, name: str) -> None:
    send: Any = getattr(blas, name.lower())
    a, b = array.zeros(device, (3, 3)), array.zeros(device, (3, 5))
    square = array.zeros(device, (3, 3))
    assert send(a, b, side="l").shape == (3, 5)
    with refused(device, f"{name}: a is float32[3, 3] on side 'r' of b float32[3, 5]", "be 5"):
        send(a, b, side="r")
    with refused(device, f"{name}: side is 'L'", "'l' or 'r'"):
        send(a, b, side="L")
    with refused(device, f"{name}: uplo is 'x'", "'l' or 'u'"):
        send(a, b, uplo="x")
    with refused(device, "reads an operand while it writes out", "a is float32[3, 3]"):
        send(a, square, out=a)


def test_other_mistakes_are_refused(device: Device) -> None:
    a, x = array.zeros(device, (3, 5), "complex64"), array.zeros(device, 3, "complex64")
    wrong: Any = "L"
    with refused(device, "Dgmm: x is complex64[3] on side 'r' of a complex64[3, 5]", "be 5"):
        blas.dgmm(x, a, side="r")
    with refused(device, "Herk: alpha is 1j", "real"):
        blas.herk(a, alpha=1j)
    c = array.zeros(device, (3, 3), "complex64")
    with refused(device, "Herk: beta is 2j", "real"):
        blas.herk(a, c, beta=2j)
    with refused(device, "Syrk: uplo is 'L'", "'l' or 'u'"):
        blas.syrk(a, uplo=wrong)
    with refused(device, "Trsm", "p is 3 and 5 in", "it takes"):
        blas.trsm(a, a)
