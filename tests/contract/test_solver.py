"""The contract of `libraries.solver` on factors and systems: backward errors, then NumPy.

The bounds are Higham's (Accuracy and Stability, 2nd edition); each is named where it is used.
"""

from typing import Any

import msgspec
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings

from accel_lab import array, solver
from accel_lab.compute.device import Device
from accel_lab.errors import DependencyFailed, InvalidArgument
from accel_lab.libraries.solver.library import (
    LuSolve,
    MatrixError,
    NotFinite,
    NotPositiveDefinite,
    SingularMatrix,
    Trans,
)
from tests.contract.matrices import (
    SHAPES,
    adjoint,
    assert_small,
    assert_unitary,
    definite,
    gamma,
    growth,
    hilbert,
    kahan,
    leibniz,
    norm,
    orthonormal_rows,
    permutation,
    vandermonde,
    with_values,
)
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
from tests.contract.tolerances import EPS, WIDE, wide

of_each_dtype = pytest.mark.parametrize("dtype", WIDE)
WAIT_S = 30.0


@of_each_dtype
@pytest.mark.parametrize("shape", SHAPES)
def test_qr_gives_back_the_matrix(device: Device, dtype: str, shape: tuple[int, int]) -> None:
    """Theorem 19.4: the error of each column is that of m n operations, relative to it."""
    a, (m, n) = reals(0, (2, *shape), dtype), shape
    on = device.put(a)
    for complete in (False, True):
        made = solver.qr(on, complete=complete)
        assert made.q is not None
        q, r = value(device, made.q), value(device, made.r)
        k = m if complete else min(shape)
        assert (q.shape, r.shape) == ((2, m, k), (2, k, n))
        assert_unitary(q, dtype)
        assert_equal(r, np.triu(r))
        assert_small(norm(wide(q) @ wide(r) - a), dtype, size=norm(a), operations=m + n)
        alone = solver.qr(on, complete=complete, with_q=False)
        assert alone.q is None
        assert_small(norm(value(device, alone.r) - r), dtype, size=norm(a), operations=m + n)


@of_each_dtype
@pytest.mark.parametrize("shape", SHAPES)
def test_lu_gives_back_the_matrix_with_its_rows_exchanged(
    device: Device, dtype: str, shape: tuple[int, int]
) -> None:
    """Theorem 9.3: |L U - P A| is at most γₙ |L| |U|."""
    a, k = reals(1, (3, *shape), dtype), min(shape)
    lu, pivots = (value(device, part) for part in solver.lu(device.put(a)))
    lower = np.tril(lu[..., :k], -1) + np.eye(shape[0], k, dtype=a.dtype)
    upper = np.triu(lu[..., :k, :])
    assert np.abs(lower).max() <= (1 + EPS[dtype]) * (2**0.5 if a.dtype.kind == "c" else 1)
    exchanged = a.copy()
    for matrix, exchanges in zip(exchanged, pivots, strict=True):
        for i, with_ in enumerate(exchanges):
            matrix[[i, with_]] = matrix[[with_, i]]
    error = np.abs(wide(lower) @ wide(upper) - exchanged)
    assert (error <= 2 * gamma(k + 1, dtype) * (np.abs(lower) @ np.abs(upper))).all()


@settings(max_examples=20)
@given(seed=seeds, layout=layouts)
def test_a_system_is_solved_nearly(device: Device, seed: int, layout: Layout) -> None:
    """Theorem 9.4: of a matrix that differs by γ₃ₙ |L| |U| at most, it is the solution."""
    turns: tuple[Trans, ...] = ("n", "t", "c")
    for at, dtype in enumerate(WIDE):
        n, right = 1 + (seed + at) % 9, 1 + seed % 3
        a, b = reals(seed, (2, n, n), dtype), reals(seed + 1, (2, n, right), dtype)
        on_a, on_b = place(device, a, layout), place(device, b, layout)
        lu, pivots = solver.lu(on_a)
        factors = wide(value(device, lu))
        size = np.abs(np.tril(factors, -1) + np.eye(n)) @ np.abs(np.triu(factors))
        rows = permutation(value(device, pivots))
        for turn, op in zip(turns, (a, a.swapaxes(-1, -2), adjoint(a)), strict=True):
            x = wide(value(device, solver.lu_solve(lu, pivots, on_b, trans=turn)))
            spread = rows.swapaxes(-1, -2) @ size
            spread = spread if turn == "n" else spread.swapaxes(-1, -2)
            bound = 4 * gamma(3 * n + 1, dtype) * (spread @ np.abs(x)) + EPS[dtype] * np.abs(b)
            assert (np.abs(op @ x - b) <= bound).all(), (dtype, turn)
            if turn == "n":
                got = value(device, solver.solve(on_a, on_b))
                assert (np.abs(a @ wide(got) - b) <= 2 * bound).all(), dtype
        assert_same(value(device, on_a), a)


@of_each_dtype
def test_one_matrix_or_right_side_serves_a_stack(device: Device, dtype: str) -> None:
    a, b = definite(2, 4, dtype), reals(3, (2, 3, 4, 2), dtype)
    stack = np.stack([definite(i, 4, dtype) for i in range(6)]).reshape(2, 3, 4, 4)
    for left, right in ((a, b), (stack, b[0, 0]), (stack, b), (a, b[0, 0])):
        on_left, on_right = device.put(left), device.put(right)
        expected = np.linalg.solve(left, right)
        factor, lu = solver.cholesky(on_left), solver.lu(on_left)
        for got in (
            solver.solve(on_left, on_right),
            solver.cholesky_solve(factor, on_right),
            solver.lu_solve(*lu, on_right),
        ):
            assert got.shape == expected.shape
            error, size = norm(value(device, got) - expected), norm(expected)
            assert_small(error, dtype, size=10 * size, operations=24)
    one = device.put(b[0, 0, :, 0])
    x = value(device, solver.solve(device.put(stack), one))
    assert x.shape == (2, 3, 4)
    error = norm((stack @ x[..., None]) - b[0, 0, :, :1])
    assert_small(error, dtype, size=10 * norm(b[0, 0]), operations=24)
    for vector in (solver.cholesky_solve(factor, one), solver.lstsq(device.put(a), one).x):
        assert vector.shape == (4,)
        error = norm(a @ value(device, vector)[:, None] - b[0, 0, :, :1])
        assert_small(error, dtype, size=10 * norm(b[0, 0]), operations=24)
    column = array.zeros(device, (4,), dtype)
    assert solver.solve(device.put(a), one, out=column) is column
    error = norm(a @ value(device, column)[:, None] - b[0, 0, :, :1])
    assert_small(error, dtype, size=10 * norm(b[0, 0]), operations=24)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_a_stack_of_large_matrices_is_solved(device: Device, dtype: str) -> None:
    """A library may have other routines for these than for stacks of small ones."""
    n = 300
    a = np.stack([definite(i, n, dtype) for i in range(2)])
    b = reals(10, (2, n, 3), dtype)
    on_a, on_b = device.put(a), device.put(b)
    size = 10 * norm(b)
    for x in (
        solver.solve(on_a, on_b),
        solver.lu_solve(*solver.lu(on_a), on_b, trans="c"),
        solver.cholesky_solve(solver.cholesky(on_a), on_b),
        solver.inv(on_a) @ on_b,
    ):
        assert_small(norm(a @ value(device, x) - b), dtype, size=size, operations=3 * n)


@of_each_dtype
@pytest.mark.parametrize("n", [1, 3, 40])
def test_choleskys_factor_gives_back_the_matrix(device: Device, dtype: str, n: int) -> None:
    """Theorem 10.3: |A - L Lᴴ| is at most γₙ₊₁ |L| |Lᴴ|; the other triangle is not read."""
    a = np.stack([definite(n + i, n, dtype) for i in range(2)])
    for lower in (True, False):
        half = np.where(np.tri(n, dtype=bool) == lower, a, np.nan)
        half[:, range(n), range(n)] = a[:, range(n), range(n)]
        on = device.put(half.astype(a.dtype))
        factor = solver.cholesky(on, lower=lower)
        got = wide(value(device, factor))
        assert_equal(got, np.tril(got) if lower else np.triu(got))
        left = got if lower else adjoint(got)
        size = np.abs(left) @ np.abs(adjoint(left))
        assert (np.abs(left @ adjoint(left) - a) <= 2 * gamma(n + 1, dtype) * size).all()
        b = reals(n, (2, n, 3), dtype)
        x = wide(value(device, solver.cholesky_solve(factor, device.put(b), lower=lower)))
        assert_small(np.abs(a @ x - b), dtype, size=size @ np.abs(x), operations=3 * n + 1)
        assert (
            value(device, solver.cholesky(on, lower=lower, out=on)).tobytes()
            == value(device, factor).tobytes()
        )


@of_each_dtype
def test_published_matrices_are_solved_nearly(device: Device, dtype: str) -> None:
    """Hilbert's, a graded one and one whose pivots grow: a small residual is all there can be."""
    grades = np.diag(10.0 ** -np.arange(6))
    graded = grades @ definite(4, 6, "float64") @ grades
    for exact in (hilbert(6), graded, growth(20), kahan(9)):
        a, n = exact.astype(dtype), len(exact)
        b = a.sum(axis=1, keepdims=True)
        x = wide(value(device, solver.solve(device.put(a), device.put(b))))
        grown = np.abs(wide(scipy.linalg.lu(a)[2])).max() / np.abs(a).max()
        size = grown * norm(a) * norm(x)
        assert_small(norm(a @ x - b), dtype, size=size, operations=3 * n)
    pivots = value(device, solver.lu(device.put(growth(20).astype(dtype))).lu).diagonal()
    assert_equal(pivots, np.array([1] * 19 + [2**19], dtype))


@of_each_dtype
@pytest.mark.parametrize("n", [1, 2, 5, 33])
def test_an_inverse_has_a_small_residual_on_one_side(device: Device, dtype: str, n: int) -> None:
    """Section 14.3: which side depends on the method."""
    a = reals(n, (2, n, n), dtype)
    on = device.put(a)
    x = wide(value(device, solver.inv(on)))
    errors = [norm(one - np.eye(n)) for one in (a @ x, x @ a)]
    assert_small(np.minimum(*errors), dtype, size=norm(a) * norm(x), operations=3 * n)
    assert_small(norm(value(device, solver.inv(on, out=on)) - x), dtype, size=norm(x), operations=n)


@of_each_dtype
def test_a_determinant_is_what_it_is_by_definition(device: Device, dtype: str) -> None:
    """Leibniz's sum, with the permanent of the magnitudes for its rounding."""
    a = reals(5, (40, 3, 3), dtype)
    exact, size = leibniz(wide(a))
    got = value(device, solver.det(device.put(a)))
    assert (np.abs(got - exact) <= 10 * gamma(27, dtype) * size).all()
    sign, logarithm = (wide(value(device, one)) for one in solver.slogdet(device.put(a)))
    assert (np.abs(sign * np.exp(logarithm) - exact) <= 20 * gamma(27, dtype) * size).all()
    np.testing.assert_allclose(np.abs(sign).astype(float), 1, rtol=20 * EPS[dtype])
    on = device.put(growth(20).astype(dtype))
    assert value(device, solver.det(on)) == 2**19
    points = np.arange(5)
    exact = np.prod([y - x for i, x in enumerate(points) for y in points[i + 1 :]])
    got = value(device, solver.det(device.put(vandermonde(points, 5).astype(dtype))))
    assert abs(got - exact) <= 1e3 * EPS[dtype] * exact
    large = solver.slogdet(device.put(1e30 * np.eye(20, dtype=dtype)))
    assert value(device, large.logabsdet) == pytest.approx(20 * np.log(1e30), rel=1e-5)
    zeros = array.zeros(device, (2, 3, 3), dtype)
    assert (value(device, solver.det(zeros)) == 0).all()
    sign, logarithm = (value(device, one) for one in solver.slogdet(zeros))
    assert (sign == 0).all()
    assert (logarithm == -np.inf).all()
    assert value(device, solver.det(array.zeros(device, (0, 0), dtype))) == 1


@of_each_dtype
@pytest.mark.parametrize("shape", SHAPES)
def test_a_fit_leaves_what_is_orthogonal_to_all_columns(
    device: Device, dtype: str, shape: tuple[int, int]
) -> None:
    """Section 20.1: Aᴴ (A x - b) is 0, and x has nothing of the null space."""
    m, n = shape
    a, b = reals(6, (2, m, n), dtype), reals(7, (2, m, 2), dtype)
    x, rank, s = (value(device, one) for one in solver.lstsq(device.put(a), device.put(b)))
    assert (rank == min(shape)).all()
    size = norm(a) * (norm(a) * norm(x) + norm(b))
    rest = adjoint(wide(a)) @ (a @ wide(x) - b)
    assert_small(norm(rest), dtype, size=size, operations=4 * (m + n))
    exact = np.linalg.svd(wide(a).astype(a.dtype), compute_uv=False)
    assert_small(np.abs(s - exact), dtype, size=norm(a)[:, None], operations=m + n)


@of_each_dtype
def test_of_a_matrix_without_full_rank_the_shortest_fit_is_found(
    device: Device, dtype: str
) -> None:
    a, b = with_values(8, 9, 6, (3, 2, 1), dtype), reals(9, (9, 1), dtype)
    x, rank, _ = (value(device, one) for one in solver.lstsq(device.put(a), device.put(b)))
    assert rank == 3
    within = orthonormal_rows(a, 3)
    outside = wide(x) - adjoint(within) @ (within @ wide(x))
    assert_small(norm(outside), dtype, size=10 * norm(x), operations=60)
    cut = solver.lstsq(device.put(a), device.put(b), rcond=0.5)
    assert value(device, cut.rank) == 2
    line = vandermonde(np.arange(9.0), 2).astype(dtype)
    fit = solver.lstsq(device.put(line), device.put(line @ np.array([3, -2], dtype)))
    np.testing.assert_allclose(value(device, fit.x), [3, -2], rtol=1e3 * EPS[dtype])


@of_each_dtype
def test_a_pivot_that_is_zero_is_named(device: Device, dtype: str) -> None:
    a = np.stack([np.eye(3), np.ones((3, 3)), np.zeros((3, 3))]).astype(dtype)
    on, b = device.put(a), device.put(np.ones((3, 3, 1), dtype))
    for send in (solver.inv, lambda x: solver.solve(x, b), lambda x: solver.lu(x).lu):
        made = send(on)
        after = array.add(made, made)
        with pytest.raises(SingularMatrix, match=r"matrix \[1\] of a is singular: pivot 1 is") as e:
            made.result(WAIT_S)
        assert (e.value.matrix, e.value.pivot) == ((1,), 1)
        assert isinstance(e.value, np.linalg.LinAlgError)
        with pytest.raises(DependencyFailed):
            after.result(WAIT_S)
    alone = solver.inv(device.put(np.diag([1, 2, 0]).astype(dtype)))
    with pytest.raises(SingularMatrix, match="Inv: a is singular: pivot 2 is 0") as caught:
        alone.result(WAIT_S)
    assert caught.value.matrix == ()
    lu = solver.lu(on, may_be_singular=True)
    assert value(device, lu.lu)[1, 1, 1] == 0
    assert (value(device, solver.det(on)) == [1, 0, 0]).all()  # the library is well


@of_each_dtype
def test_a_minor_that_is_not_positive_is_named(device: Device, dtype: str) -> None:
    good, bad = np.eye(4, dtype=dtype), np.diag([1, 2, -1, 3]).astype(dtype)
    for wrong, order in ((bad, 3), (np.ones((4, 4), dtype) * good * np.nan, 1), (0 * good, 1)):
        made = solver.cholesky(device.put(np.stack([good, wrong])))
        words = rf"matrix \[1\] of a is not positive definite.*order {order} is"
        with pytest.raises(NotPositiveDefinite, match=words) as caught:
            made.result(WAIT_S)
        assert (caught.value.order, caught.value.matrix) == (order, (1,))
    hidden = good.copy()
    hidden[3, 1] = np.inf if dtype.startswith("f") else np.nan
    with pytest.raises(MatrixError, match="order 4"):
        solver.cholesky(device.put(hidden)).result(WAIT_S)
    overwritten = device.put(bad)
    made = solver.cholesky(overwritten, out=overwritten)
    got = device.get(made)
    with pytest.raises(DependencyFailed):
        got.result(WAIT_S)
    with pytest.raises(NotPositiveDefinite):
        made.result(WAIT_S)


@of_each_dtype
def test_nans_spread_through_what_does_not_iterate(device: Device, dtype: str) -> None:
    a = np.stack([np.eye(3), np.full((3, 3), np.nan)]).astype(dtype)
    on, b = device.put(a), device.put(np.ones((2, 3, 1), dtype))
    for made in (solver.solve(on, b), solver.inv(on), solver.qr(on).r, solver.lu(on).lu):
        got = value(device, made)
        assert np.isfinite(got[0]).all()
        assert np.isnan(got[1]).any()
    assert np.isnan(value(device, solver.det(on))).tolist() == [False, True]
    for left, right in ((on, b), (device.put(np.stack([np.eye(3)] * 2).astype(dtype)), b * np.inf)):
        with pytest.raises(NotFinite, match="infinity or a NaN"):
            solver.lstsq(left, right).x.result(WAIT_S)


def test_mistakes_are_refused(device: Device) -> None:
    a, b = array.zeros(device, (2, 3, 3)), array.zeros(device, (2, 3, 1))
    pivots, floats = array.zeros(device, (2, 3), "int64"), array.zeros(device, (2, 3))
    doubles, four = array.cast(b, "float64"), array.zeros(device, (4, 3, 1))
    few, one, flat, lone = pivots[:, :2], pivots[0], a[:, :2], b[0, 0, 0]
    trans: Any = "T"
    with refused(device, "LuSolve: trans is 'T'; it may be 'n', 't' or 'c'"):
        solver.lu_solve(a, pivots, b, trans=trans)
    with refused(device, "pivots is float32[2, 3]", "int64"):
        solver.lu_solve(a, floats, b)
    with refused(device, "LuSolve", "of one dtype", "array.cast"):
        solver.lu_solve(a, pivots, doubles)
    for wrong in ((a, few, b), (a, one, b), (flat, pivots, b)):
        with refused(device, "LuSolve", "extents differ", "it takes"):
            solver.lu_solve(*wrong)
    with refused(device, "LuSolve", "leading axes differ in lu float32[2, 3, 3]"):
        solver.lu_solve(a, pivots, four)
    with refused(device, "LuSolve", "b is float32[]", "lacks an axis"):
        solver.lu_solve(a, pivots, lone)
    with refused(device, "LuSolve", "reads an operand while it writes out"):
        solver.lu_solve(a, pivots, a, out=a)
    with refused(device, "Solve: n is 2 and 3 in a float32[2, 2, 3]", "it takes"):
        solver.solve(flat, b)
    for rcond in (-1.0, float("nan"), 1j):
        with refused(device, "Lstsq", "rcond is"):
            solver.lstsq(a, b, rcond=rcond)
    with pytest.raises(MatrixError):
        solver.solve(a, b).result(WAIT_S)


def test_what_is_no_operand_of_lu_solve_is_refused(device: Device) -> None:
    """Of the others the suite of all messages asks it."""
    a, b = array.zeros(device, (3, 3)), array.zeros(device, (3, 1))
    message = LuSolve(a, array.zeros(device, (3,), "int64"), b)
    for field in message.__struct_fields__:
        for wrong in (np.ones(3), "2", object()):
            with pytest.raises(InvalidArgument, match="LuSolve"):
                device.ask(msgspec.structs.replace(message, **{field: wrong}))


def test_pivots_that_are_none_count_as_the_nearest(device: Device) -> None:
    a, b = device.put(2 * np.eye(3)), device.put(np.ones((3, 1)))
    wild = device.put(np.array([-5, 2**40, 2]))
    near = device.put(np.array([0, 2, 2]))
    assert_same(*(value(device, solver.lu_solve(a, pivots, b)) for pivots in (wild, near)))
