"""The contract of `libraries.sparse` on systems: triangular, incomplete, by iteration, direct.

Solutions are judged by their residuals, with Higham's bounds; factorizations by their definition.
"""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, sparse
from accel_lab.compute.device import Device
from accel_lab.errors import DependencyFailed
from accel_lab.libraries.sparse.library import BadPivot, NotConverged
from accel_lab.libraries.sparse.matrix import Trans, Uplo
from tests.contract.products import TRANS, turn
from tests.contract.samples import (
    Layout,
    assert_same,
    layouts,
    place,
    reals,
    refused,
    seeds,
    value,
)
from tests.contract.sparse_matrices import dense, drawn, put
from tests.contract.tolerances import EPS, WIDE, wide

dtypes = st.sampled_from(WIDE)
SOLVERS = ("cg", "gmres", "bicgstab")


def poisson(side: int, dtype: str) -> Any:
    """Return the five-point Laplacian of a square, whose eigenvalues are in (0, 8)."""
    one = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    eye = scipy.sparse.eye_array(side)
    made = scipy.sparse.kron(one, eye) + scipy.sparse.kron(eye, one)
    if dtype.startswith("complex"):  # Hermitian, and not symmetric
        phases = np.exp(1j * np.arange(side * side))
        made = made.multiply(phases[:, None]).multiply(phases.conj())
    return scipy.sparse.csr_array(made).astype(dtype)


@settings(max_examples=60)
@given(
    seed=seeds,
    n=st.sampled_from((0, 1, 2, 5, 17, 60)),
    columns=st.sampled_from((None, 0, 1, 3)),
    dtype=dtypes,
    index_dtype=st.sampled_from(("int32", "int64")),
    uplo=st.sampled_from(("l", "u")),
    trans=st.sampled_from(TRANS),
    unit=st.booleans(),
    layout=layouts,
)
def test_a_triangular_solution_has_a_small_residual_and_reads_one_triangle(
    device: Device,
    seed: int,
    n: int,
    columns: int | None,
    dtype: str,
    index_dtype: str,
    uplo: Uplo,
    trans: Trans,
    layout: Layout,
    *,
    unit: bool,
) -> None:
    """By Higham, theorem 8.5; what may not be read is NaN."""
    whole, stored = drawn(seed, (n, n), dtype)
    half = np.tril(whole, -1) if uplo == "l" else np.triu(whole, 1)
    diagonal = np.ones(n) if unit else 1 + np.abs(reals(seed + 1, (n,), dtype))
    named = np.tri(n, dtype=bool) if uplo == "l" else np.tri(n, dtype=bool).T
    shown = np.where(named, half + np.diag(diagonal), np.nan).astype(dtype)
    if unit:
        np.fill_diagonal(shown, np.nan)
    else:
        np.fill_diagonal(stored, True)  # noqa: FBT003 - NumPy's signature
    a = put(device, np.where(stored, shown, 0), stored, "csr", index_dtype)
    shape = (n,) if columns is None else (n, columns)
    b = reals(seed + 2, shape, dtype)
    solve: Any = sparse.spsv if columns is None else sparse.spsm
    words = {"uplo": uplo, "trans": trans, "unit": unit, "alpha": 2}
    on_b = place(device, b, layout)
    x = value(device, solve(a, on_b, **words))
    op = turn(wide(half + np.diag(diagonal)), trans)
    residual = np.abs(op @ wide(x) - 2 * wide(b))
    bound = np.abs(op) @ np.abs(wide(x)) + 2 * np.abs(wide(b))
    assert np.all(residual <= 8 * (n + 2) * EPS[dtype] * bound)
    assert_same(value(device, on_b), b)
    solve(a, on_b, out=on_b, **words)
    assert_same(value(device, on_b), x)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_a_bad_diagonal_fails_the_solution_by_its_row(device: Device, dtype: str) -> None:
    x = np.eye(4).astype(dtype)
    b, zero, missing = device.put(np.ones(4, dtype)), x.copy(), np.eye(4, dtype=bool)
    zero[2, 2], missing[1, 1] = 0, False
    for a, row in ((put(device, zero, missing | True), 2), (put(device, x, missing), 1)):
        solved = sparse.spsv(a, b)
        after = solved + solved
        with pytest.raises(BadPivot, match=f"row {row} is zero or not stored") as caught:
            solved.result(30)
        assert caught.value.row == row
        with pytest.raises(DependencyFailed):
            after.result(30)
        assert value(device, sparse.spsv(a, b, unit=True)).tolist() == [1, 1, 1, 1]
        for factorize in (sparse.ilu0, sparse.ic0):
            with pytest.raises(BadPivot) as caught:
                factorize(a).values.result(30)
            assert caught.value.row == row
        with pytest.raises(BadPivot):
            sparse.spsolve(a, b).result(30)
        with pytest.raises(BadPivot):
            sparse.cg(a, b, preconditioner="jacobi").x.result(30)


@pytest.mark.parametrize("dtype", WIDE)
def test_an_incomplete_factorization_is_exact_where_it_stores(device: Device, dtype: str) -> None:
    """(L U)ij = Aij for each stored place (Saad, proposition 10.4), and of full ones it is LU."""
    for a in (poisson(5, dtype), scipy.sparse.csr_array(reals(1, (6, 6), dtype) + 9 * np.eye(6))):
        a = a.astype(dtype)  # noqa: PLW2901 - complex64 and float32 become double in a sum
        on, stored = sparse.from_scipy(device, a), a.toarray() != 0
        both = wide(dense(device, sparse.ilu0(on)))
        lower = np.tril(both, -1) + np.eye(len(both))
        product = (lower @ np.triu(both))[stored]
        bound = 64 * EPS[dtype] * np.abs(a.toarray()).max()
        assert np.abs(product - wide(a.toarray())[stored]).max() <= bound
    a = poisson(5, dtype)
    lower = wide(dense(device, sparse.ic0(sparse.from_scipy(device, a))))
    assert (np.triu(lower, 1) == 0).all()
    stored = a.toarray() != 0
    product = (lower @ lower.conj().T)[stored]
    assert np.abs(product - wide(a.toarray())[stored]).max() <= 64 * EPS[dtype] * 4


def test_a_factorization_that_is_not_positive_is_refused(device: Device) -> None:
    a = sparse.from_dense(device.put(np.array([[1.0, 2], [2, 1]])))
    with pytest.raises(BadPivot, match="row 1 is not positive"):
        sparse.ic0(a).values.result(30)


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("preconditioner", ["none", "jacobi", "ilu0", "ic0"])
@pytest.mark.parametrize("name", SOLVERS)
def test_an_iteration_ends_where_the_residual_is_as_small_as_asked(
    device: Device, name: str, preconditioner: str, dtype: str
) -> None:
    a = poisson(9, dtype)
    solve: Any = getattr(sparse, name)
    b = reals(3, (81,), dtype)
    rtol = 1e-4 if EPS[dtype] > 1e-10 else 1e-10
    on_a, on_b = sparse.from_scipy(device, a), device.put(b)
    found = solve(on_a, on_b, preconditioner=preconditioner, rtol=rtol)
    x, residual = value(device, found.x), float(value(device, found.residual))
    true = np.linalg.norm(wide(b) - wide(a.toarray()) @ wide(x)) / np.linalg.norm(b)
    assert true <= rtol + 32 * EPS[dtype]
    assert abs(true - residual) <= 64 * EPS[dtype]
    iterations = int(value(device, found.iterations))
    assert 0 < iterations <= 100
    again = solve(on_a, on_b, found.x, preconditioner=preconditioner, rtol=2 * rtol)
    assert int(value(device, again.iterations)) == 0
    if preconditioner in ("ilu0", "ic0"):
        plain = solve(on_a, on_b, rtol=rtol)
        assert iterations < int(value(device, plain.iterations))


def test_conjugate_gradients_need_as_many_steps_as_there_are_eigenvalues(device: Device) -> None:
    """Of three different ones it is three (Saad, section 6.11), and GMRES no more."""
    a = sparse.from_dense(device.put(np.diag(np.repeat([1.0, 5, 9], 7))))
    b = device.put(np.ones(21))
    for solve in (sparse.cg, sparse.gmres):
        assert int(value(device, solve(a, b, rtol=1e-12).iterations)) == 3
    nothing = sparse.cg(a, array.zeros(device, 21, "float64"))
    assert not value(device, nothing.x).any()
    assert float(value(device, nothing.residual)) == 0


def test_gmres_begins_anew_and_bicgstab_solves_what_is_not_symmetric(device: Device) -> None:
    rng = np.random.default_rng(5)
    x = np.where(rng.random((40, 40)) < 0.2, rng.standard_normal((40, 40)), 0) + 6 * np.eye(40)
    on, b = sparse.from_dense(device.put(x)), rng.standard_normal(40)
    for found in (
        sparse.gmres(on, device.put(b), restart=3, rtol=1e-9),
        sparse.bicgstab(on, device.put(b), rtol=1e-9),
    ):
        np.testing.assert_allclose(x @ value(device, found.x), b, atol=1e-7)
        assert int(value(device, found.iterations)) > 3


@pytest.mark.parametrize("name", SOLVERS)
def test_an_iteration_that_does_not_converge_says_how_far_it_is(device: Device, name: str) -> None:
    solve: Any = getattr(sparse, name)
    a, b = sparse.from_scipy(device, poisson(9, "float64")), device.put(np.ones(81))
    found = solve(a, b, rtol=1e-12, maxiter=2)
    with pytest.raises(NotConverged, match="after 2 iterations") as caught:
        found.x.result(30)
    assert caught.value.iterations == 2
    assert 1e-12 < caught.value.residual < 10
    best = solve(a, b, rtol=1e-12, maxiter=2, must_converge=False)
    assert float(value(device, best.residual)) == caught.value.residual
    singular = put(device, np.zeros((3, 3)), np.eye(3, dtype=bool))
    with pytest.raises(NotConverged):
        solve(singular, array.full(device, 3, 1, "float64")).x.result(30)


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("columns", [None, 3])
def test_a_direct_solution_has_a_small_residual(
    device: Device, dtype: str, columns: int | None
) -> None:
    """Backward stable (Higham, theorem 9.4), for a matrix that needs pivots."""
    x, stored = drawn(7, (30, 30), dtype)
    x[np.arange(30), np.arange(29, -1, -1)] += 3
    stored[np.arange(30), np.arange(29, -1, -1)] = True
    b = reals(8, (30,) if columns is None else (30, columns), dtype)
    got = value(device, sparse.spsolve(put(device, x, stored, "csc"), device.put(b)))
    residual = np.abs(wide(x) @ wide(got) - wide(b)).max()
    size = np.abs(wide(x)).sum(axis=1).max() * np.abs(wide(got)).max()
    assert residual <= 900 * EPS[dtype] * size


def test_mistakes_are_refused(device: Device) -> None:
    wrong: Any = "best"
    a, b = put(device, np.eye(3), np.eye(3, dtype=bool)), array.zeros(device, 4, "float64")
    wide_ = put(device, np.eye(3, 4), np.eye(3, 4, dtype=bool))
    matrix = array.zeros(device, (3, 2), "float64")
    three = array.zeros(device, 3, "float64")
    with refused(device, "Spsv: b is float64[4]", "[3] beside a matrix of [3, 3]"):
        sparse.spsv(a, b)
    with refused(device, "Spsv: uplo is 'best'", "'l' or 'u'"):
        sparse.spsv(a, three, uplo=wrong)
    with refused(device, "Spsm: b is float64[3]", "Spsv takes vectors"):
        sparse.spsm(a, three)
    with refused(device, "Ilu0: the matrix is [3, 4]", "square"):
        sparse.ilu0(wide_)
    with refused(device, "Cg: preconditioner is 'best'", "'jacobi'"):
        sparse.cg(a, three, preconditioner=wrong)
    with refused(device, "Gmres: restart is 0", "from 1"):
        sparse.gmres(a, three, restart=0)
    with refused(device, "Cg: rtol is -1"):
        sparse.cg(a, three, rtol=-1)
    with refused(device, "Bicgstab: b is float64[3, 2]"):
        sparse.bicgstab(a, matrix)
    with refused(device, "Spsolve: b is float64[4]"):
        sparse.spsolve(a, b)
    with refused(device, "Cg", "'ilu0' and 'ic0' have one"):
        device.ask(sparse.Cg(*a.parts, a.shape, "csr", three, preconditioner="ilu0"))


def test_nothing_is_solved_too(device: Device) -> None:
    none = put(device, np.zeros((0, 0)), np.zeros((0, 0), bool))
    b = array.zeros(device, 0, "float64")
    for name in SOLVERS:
        assert value(device, getattr(sparse, name)(none, b).x).shape == (0,)
    assert value(device, sparse.spsolve(none, b)).shape == (0,)
    assert value(device, sparse.ilu0(none).values).shape == (0,)
