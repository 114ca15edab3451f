"""The contract of `libraries.blas` on rank-1 updates, half, triangular and banded matrices.

By the definition in higher precision, with Higham's bounds; what may not be read is NaN.
"""

from typing import Any

import numpy as np
import pytest
import scipy.linalg.blas
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, blas
from accel_lab.compute.device import Device
from accel_lab.libraries.blas.library import Trans, Uplo
from tests.contract.halves import (
    UPLO,
    factors,
    symmetric,
    triangular,
    uplos,
    wide_dtypes,
    without_the_rest,
)
from tests.contract.products import PREFIX, TRANS, turn
from tests.contract.samples import (
    Layout,
    assert_same,
    extents,
    layouts,
    place,
    reals,
    refused,
    seeds,
    small,
    value,
)
from tests.contract.tolerances import EPS, WIDE, assert_near, wide

transposed = st.sampled_from(TRANS)
odd = st.one_of(extents, st.sampled_from((17, 33)))


@settings(max_examples=50)
@given(seed=seeds, m=odd, n=odd, layout=layouts, dtype=wide_dtypes, conjugate=st.booleans())
def test_ger_adds_an_outer_product(
    device: Device, seed: int, m: int, n: int, layout: Layout, dtype: str, *, conjugate: bool
) -> None:
    alpha, _ = factors(dtype)
    x, y, a = (reals(seed + i, s, dtype) for i, s in enumerate([(m,), (n,), (m, n)]))
    on_x, on_y, on_a = (place(device, one, layout) for one in (x, y, a))
    outer = np.outer(wide(x), wide(y).conj() if conjugate else wide(y))
    size = abs(alpha) * np.abs(outer)
    alone = blas.ger(on_x, on_y, alpha=alpha, conjugate=conjugate)
    assert_near(value(device, alone), alpha * outer, dtype, magnitude=size, operations=3)
    exact = alpha * outer + wide(a)
    size = size + np.abs(wide(a))
    for out in (None, on_a):  # the second time in place
        got = blas.ger(on_x, on_y, on_a, alpha=alpha, conjugate=conjugate, out=out)
        assert_near(value(device, got), exact, dtype, magnitude=size, operations=4)


@settings(max_examples=50)
@given(seed=seeds, n=odd, layout=layouts, dtype=wide_dtypes, uplo=uplos, adjoint=st.booleans())
def test_symv_and_hemv_read_one_triangle(
    device: Device, seed: int, n: int, layout: Layout, dtype: str, uplo: Uplo, *, adjoint: bool
) -> None:
    a = symmetric(seed, n, dtype, adjoint=adjoint)
    x, y = reals(seed + 1, (n,), dtype), reals(seed + 2, (n,), dtype)
    multiply, (alpha, beta) = blas.hemv if adjoint else blas.symv, factors(dtype)
    half, on_x, on_y = (place(device, one, layout) for one in (without_the_rest(a, uplo), x, y))
    exact, size = wide(a) @ wide(x), np.abs(wide(a)) @ np.abs(wide(x))
    got = value(device, multiply(half, on_x, uplo=uplo))
    assert_near(got, exact, dtype, magnitude=size, operations=n + 2)
    exact = alpha * exact + beta * wide(y)
    size = abs(alpha) * size + abs(beta) * np.abs(wide(y))
    for out in (None, on_y):
        got = multiply(half, on_x, on_y, alpha=alpha, beta=beta, uplo=uplo, out=out)
        assert_near(value(device, got), exact, dtype, magnitude=size, operations=n + 6)


@settings(max_examples=60)
@given(
    seed=seeds,
    n=odd,
    layout=layouts,
    dtype=wide_dtypes,
    uplo=uplos,
    trans=transposed,
    unit=st.booleans(),
)
def test_trmv_and_trsv_undo_each_other_and_read_one_triangle(
    device: Device,
    seed: int,
    n: int,
    layout: Layout,
    dtype: str,
    uplo: Uplo,
    trans: Trans,
    *,
    unit: bool,
) -> None:
    """The product by its definition; the solution by its residual (Higham, theorem 8.5)."""
    a = triangular(seed, n, dtype, uplo, unit=unit)
    x = reals(seed + 1, (n,), dtype)
    half = place(device, without_the_rest(a, uplo, unit=unit), layout)
    on_x = place(device, x, layout)
    words: Any = {"uplo": uplo, "trans": trans, "unit": unit}
    op = turn(wide(a), trans)
    product = blas.trmv(half, on_x, **words)
    size = np.abs(op) @ np.abs(wide(x))
    assert_near(value(device, product), op @ wide(x), dtype, magnitude=size, operations=n + 1)
    solution = blas.trsv(half, on_x, **words)
    solved = wide(value(device, solution))
    bound = 8 * (n + 1) * EPS[dtype] * (np.abs(op) @ np.abs(solved))
    assert np.all(np.abs(op @ solved - wide(x)) <= bound + EPS[dtype] * np.abs(wide(x)))
    assert_same(value(device, on_x), x)
    back = wide(value(device, blas.trmv(half, solution, out=solution, **words)))
    assert np.all(np.abs(back - wide(x)) <= 2 * bound + EPS[dtype] * np.abs(wide(x)))
    blas.trsv(half, on_x, out=on_x, **words)
    assert_same(value(device, on_x), solved.astype(x.dtype))


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("uplo", UPLO)
@pytest.mark.parametrize("trans", TRANS)
def test_triangles_agree_with_scipy(device: Device, dtype: str, uplo: Uplo, trans: Trans) -> None:
    a, x = triangular(0, 5, dtype, uplo, unit=False), reals(1, (5,), dtype)
    size = np.abs(np.linalg.inv(a)).max() * np.abs(a).max() * 5
    for name in ("trmv", "trsv"):
        theirs = getattr(scipy.linalg.blas, PREFIX[dtype] + name)
        expected = theirs(a, x, lower=uplo == "l", trans=TRANS.index(trans))
        got = getattr(blas, name)(device.put(a), device.put(x), uplo=uplo, trans=trans)
        assert_near(value(device, got), wide(expected), dtype, magnitude=size, operations=16)


@pytest.mark.parametrize("dtype", WIDE)
def test_a_singular_triangle_is_no_error(device: Device, dtype: str) -> None:
    a = device.put(np.array([[0, 0], [1, 1]]).astype(dtype))
    ones = array.full(device, 2, 1, dtype)
    assert not np.isfinite(value(device, blas.trsv(a, ones))).any()
    assert value(device, blas.trsv(a, ones, unit=True)).tolist() == [1, 0]


@pytest.mark.parametrize("dtype", WIDE)
def test_infinities_and_nans_go_where_they_belong(device: Device, dtype: str) -> None:
    a = device.put(np.eye(3).astype(dtype) + np.tri(3, k=-1).astype(dtype))
    x = device.put(np.array([1, np.nan, 1]).astype(dtype))
    for multiply in (blas.trmv, blas.trsv):
        assert np.isnan(value(device, multiply(a, x)))[1:].all()  # before it: times 0, or not
    nan = array.full(device, (3, 3), float("nan"), dtype)
    y = array.full(device, 3, 2, dtype)
    for half in (blas.symv, blas.hemv):
        assert np.isnan(value(device, half(a, x))).any()
        assert (value(device, half(nan, x, alpha=0)) == 0).all()
        assert (value(device, half(nan, x, y, alpha=0, beta=3)) == 6).all()
    assert (value(device, blas.ger(x, x, a, alpha=0)) == value(device, a)).all()
    assert (value(device, blas.gbmv(nan, x, 1, y, alpha=0, beta=3)) == 6).all()


def banded(a: Any, kl: int, ku: int) -> Any:
    """Return the rows of a band, NaN where they stick out of the matrix."""
    m, n = a.shape
    rows = np.full((m, kl + ku + 1), np.nan, a.dtype)
    for i, at in np.ndindex(rows.shape):
        if 0 <= i - kl + at < n:
            rows[i, at] = a[i, i - kl + at]
    return rows


@settings(max_examples=60)
@given(
    seed=seeds,
    m=odd,
    n=odd,
    kl=st.integers(0, 4),
    ku=st.integers(0, 4),
    layout=layouts,
    dtype=wide_dtypes,
)
def test_gbmv_is_the_product_with_the_whole_matrix(
    device: Device, seed: int, m: int, n: int, kl: int, ku: int, layout: Layout, dtype: str
) -> None:
    i, j = np.ogrid[:m, :n]
    a = np.where((j - i <= ku) & (i - j <= kl), reals(seed, (m, n), dtype), 0)
    a = a.astype(reals(0, (0,), dtype).dtype)
    x, y = reals(seed + 1, (n,), dtype), reals(seed + 2, (m,), dtype)
    alpha, beta = factors(dtype)
    band, on_x, on_y = (place(device, one, layout) for one in (banded(a, kl, ku), x, y))
    exact, size = wide(a) @ wide(x), np.abs(wide(a)) @ np.abs(wide(x))
    got = value(device, blas.gbmv(band, on_x, kl))
    assert_near(got, exact, dtype, magnitude=size, operations=kl + ku + 2)
    exact = alpha * exact + beta * wide(y)
    size = abs(alpha) * size + abs(beta) * np.abs(wide(y))
    for out in (None, on_y):
        got = blas.gbmv(band, on_x, kl, on_y, alpha=alpha, beta=beta, out=out)
        assert_near(value(device, got), exact, dtype, magnitude=size, operations=kl + ku + 7)


@settings(max_examples=60)
@given(
    seed=seeds,
    m=odd,
    n=odd,
    kl=st.integers(0, 4),
    ku=st.integers(0, 4),
    trans=transposed,
    layout=layouts,
    dtype=wide_dtypes,
)
def test_gbmv_takes_the_band_turned(
    device: Device,
    seed: int,
    m: int,
    n: int,
    kl: int,
    ku: int,
    trans: Trans,
    layout: Layout,
    dtype: str,
) -> None:
    """The definition, with the whole matrix; NaN stands where the band sticks out of it."""
    i, j = np.ogrid[:m, :n]
    drawn = reals(seed, (m, n), dtype)
    a = np.where((j - i <= ku) & (i - j <= kl), drawn, 0).astype(drawn.dtype)
    rows, columns = (m, n) if trans == "n" else (n, m)
    x, y = reals(seed + 1, (columns,), dtype), reals(seed + 2, (rows,), dtype)
    alpha, beta = factors(dtype)
    band, on_x, on_y = (place(device, one, layout) for one in (banded(a, kl, ku), x, y))
    op = turn(wide(a), trans)
    exact, size = op @ wide(x), np.abs(op) @ np.abs(wide(x))
    got = value(device, blas.gbmv(band, on_x, kl, trans=trans, n=n))
    assert_near(got, exact, dtype, magnitude=size, operations=kl + ku + 2)
    exact = alpha * exact + beta * wide(y)
    size = abs(alpha) * size + abs(beta) * np.abs(wide(y))
    for out in (None, on_y):  # how many columns there are, `y` says
        got = blas.gbmv(band, on_x, kl, on_y, alpha=alpha, beta=beta, trans=trans, out=out)
        assert_near(value(device, got), exact, dtype, magnitude=size, operations=kl + ku + 7)


def test_gbmv_refuses_vectors_that_do_not_fit_the_band(device: Device) -> None:
    a, x = array.zeros(device, (4, 2)), array.zeros(device, 4)
    wrong: Any = "x"
    with refused(device, "Gbmv: trans is 'x'", "'n', 't' or 'c'"):
        blas.gbmv(a, x, 0, trans=wrong)
    with refused(device, "Gbmv: trans is 't'", "say n"):
        blas.gbmv(a, x, 0, trans="t")
    with refused(device, "Gbmv: x is float32[4]", "A (4, 5) takes 5 elements"):
        blas.gbmv(a, x, 0, n=5)
    with refused(device, "Gbmv: y is float32[4]", "A (4, 3) takes 3 elements"):
        blas.gbmv(a, x, 0, x, beta=1, trans="c", n=3)
    for n in (-1, 1.5, True):
        with refused(device, f"Gbmv: n is {n}"):
            blas.gbmv(a, x, 0, trans="t", n=n)  # type: ignore[arg-type]
    out = array.zeros(device, 4)
    with refused(device, "Gbmv results in float32[3], but out is float32[4]"):
        blas.gbmv(a, x, 0, trans="t", n=3, out=out)


def test_mistakes_are_refused_with_what_and_what_was_expected(device: Device) -> None:
    a, x = array.zeros(device, (3, 3)), device.put(small(0, (3,), "float32"))
    wrong: Any = "L"
    for call, name in ((blas.symv, "Symv"), (blas.hemv, "Hemv"), (blas.trmv, "Trmv")):
        with refused(device, f"{name}: uplo is 'L'", "'l' or 'u'"):
            call(a, x, uplo=wrong)
    with refused(device, "Trsv: trans is 'L'", "'n', 't' or 'c'"):
        blas.trsv(a, x, trans=wrong)
    for kl in (-1, 3):
        with refused(device, f"Gbmv: kl is {kl}", "a float32[3, 3] has 3 diagonals"):
            blas.gbmv(a, x, kl)
    with refused(device, "Ger", "a is float32[3]", "it takes (m),(n),(m,n)?->(m,n)"):
        blas.ger(x, x, x)
