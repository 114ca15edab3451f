"""The contract of `libraries.solver` on singular values and eigenvalues: laws, then SciPy.

The backward errors are those of LAPACK (Users' Guide, 3rd edition, sections 4.7 to 4.10).
"""

from typing import Any, Literal

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings

from accel_lab import array, solver
from accel_lab.compute.device import Device
from accel_lab.errors import DependencyFailed
from accel_lab.libraries.solver.library import (
    Driver,
    Eigenpairs,
    Eigh,
    NotConverged,
    NotFinite,
    NotPositiveDefinite,
    Svd,
    SvdParts,
)
from tests.contract.matrices import (
    SHAPES,
    adjoint,
    assert_small,
    assert_unitary,
    definite,
    hilbert,
    kahan,
    norm,
    wilkinson,
    with_values,
)
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
from tests.contract.tolerances import EPS, WIDE, wide

of_each_dtype = pytest.mark.parametrize("dtype", WIDE)
DRIVERS: tuple[Driver, ...] = ("auto", "gesvd", "gesvdj")
WAIT_S = 30.0


def parts(device: Device, made: SvdParts) -> tuple[Any, Any, Any]:
    assert made.u is not None
    assert made.vh is not None
    return value(device, made.u), value(device, made.s), value(device, made.vh)


def pairs(device: Device, made: Eigenpairs) -> tuple[Any, Any]:
    assert made.v is not None
    return value(device, made.w), value(device, made.v)


@of_each_dtype
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_singular_vectors_give_back_the_matrix(
    device: Device, dtype: str, driver: Driver, shape: tuple[int, int]
) -> None:
    a, k = reals(0, (2, *shape), dtype), min(shape)
    on, steps = device.put(a), sum(shape)
    for full in (False, True):
        u, s, vh = parts(device, solver.svd(on, full=full, driver=driver))
        columns, rows = shape if full else (k, k)
        assert (u.shape, s.shape) == ((2, shape[0], columns), (2, k))
        assert vh.shape == (2, rows, shape[1])
        assert_unitary(u, dtype)
        assert_unitary(adjoint(vh), dtype)
        back = (wide(u[..., :k]) * s[:, None]) @ vh[:, :k]
        assert_small(norm(back - a), dtype, size=norm(a), operations=steps)
        assert (s >= 0).all()
        assert (np.diff(s, axis=-1) <= 0).all()
    alone = solver.svd(on, vectors=False, driver=driver)
    assert alone.u is alone.vh is None
    error = np.abs(value(device, alone.s) - s)
    assert_small(error, dtype, size=norm(a)[:, None], operations=steps)


@of_each_dtype
@pytest.mark.parametrize("driver", DRIVERS)
def test_known_singular_values_are_found(device: Device, dtype: str, driver: Driver) -> None:
    """Each is off by no more than the largest one's rounding (Weyl), however small it is."""
    values = 10.0 ** -np.arange(6)
    for a, exact in (
        (with_values(1, 9, 6, values, dtype), values),
        (hilbert(6).astype(dtype), scipy.linalg.svdvals(hilbert(6))),
        (kahan(8).astype(dtype), scipy.linalg.svdvals(kahan(8))),
        (np.zeros((4, 3), dtype), np.zeros(3)),
        (1e30 * np.eye(4, dtype=dtype), np.full(4, 1e30)),
    ):
        s = value(device, solver.svd(device.put(a), vectors=False, driver=driver).s)
        assert_small(np.abs(s - exact), dtype, size=max(exact), operations=len(a) + 6)


@settings(max_examples=15)
@given(seed=seeds, layout=layouts)
def test_eigenvalues_of_hermitian_matrices(device: Device, seed: int, layout: Layout) -> None:
    """By the residual and orthogonality; one triangle is read, and NaN is in the other."""
    for at, dtype in enumerate(WIDE):
        n = 1 + (seed + at) % 12
        a = reals(seed, (2, n, n), dtype)
        a = ((a + adjoint(a)) / 2).astype(a.dtype)
        for lower in (True, False):
            half = np.where(np.tri(n, dtype=bool) == lower, a, np.nan)
            half[:, range(n), range(n)] = a[:, range(n), range(n)]
            on = place(device, half.astype(a.dtype), layout)
            w, v = pairs(device, solver.eigh(on, lower=lower))
            assert_unitary(v, dtype)
            assert (np.diff(w, axis=-1) >= 0).all()
            error = norm(a @ wide(v) - wide(v) * w[:, None])
            assert_small(error, dtype, size=norm(a), operations=4 * n)
            alone = solver.eigh(on, lower=lower, vectors=False)
            assert alone.v is None
            error = np.abs(value(device, alone.w) - w)
            assert_small(error, dtype, size=norm(a)[:, None], operations=4 * n)


@of_each_dtype
def test_eigenvalues_that_are_known_are_found(device: Device, dtype: str) -> None:
    """Wilkinson's two largest differ in the 15th digit; the second differences' are cosines."""
    w = value(device, solver.eigh(device.put(wilkinson(21).astype(dtype))).w)
    assert_small(np.abs(w[-2:] - 10.746194182903393), dtype, size=11, operations=21)
    n = 12
    second = (2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)).astype(dtype)
    exact = 2 - 2 * np.cos(np.pi * np.arange(1, n + 1) / (n + 1))
    w, v = pairs(device, solver.eigh(device.put(second)))
    assert_small(np.abs(w - exact), dtype, size=4, operations=n)
    sines = np.sin(np.pi * np.outer(np.arange(1, n + 1), np.arange(1, n + 1)) / (n + 1))
    along = np.abs(adjoint(v) @ sines).diagonal() / np.linalg.norm(sines, axis=0)
    np.testing.assert_allclose(along, 1, rtol=1e4 * EPS[dtype])


@of_each_dtype
@pytest.mark.parametrize("itype", [1, 2, 3])
def test_each_general_problem_is_solved(
    device: Device, dtype: str, itype: Literal[1, 2, 3]
) -> None:
    """LAPACK's sygvd: the residual, what the vectors are orthogonal by, and SciPy's values."""
    n = 7
    a = reals(2, (2, n, n), dtype)
    a = ((a + adjoint(a)) / 2).astype(a.dtype)
    b = np.stack([definite(3 + i, n, dtype) for i in range(2)])
    for lower in (True, False):
        half = np.tril if lower else np.triu
        operands = device.put(half(a)), device.put(half(b))
        how: dict[str, Any] = {"itype": itype, "lower": lower}
        w, v = pairs(device, solver.eigh_general(*operands, **how))
        left = {1: a, 2: a @ b, 3: b @ a}[itype] @ wide(v)
        right = (b @ wide(v) if itype == 1 else wide(v)) * w[:, None]
        size = 100 * norm(a) * norm(v)  # the condition of b is 10
        assert_small(norm(left - right), dtype, size=size, operations=4 * n)
        weight = np.linalg.inv(b) if itype == 3 else b
        error = norm(adjoint(v) @ weight @ wide(v) - np.eye(n))
        assert_small(error, dtype, size=100, operations=4 * n)
        alone = solver.eigh_general(*operands, **how, vectors=False)
        expected = np.stack(
            [scipy.linalg.eigvalsh(x, y, type=itype) for x, y in zip(a, b, strict=True)]
        )
        for got in (w, value(device, alone.w)):
            assert_small(np.abs(got - expected), dtype, size=100, operations=4 * n)


@of_each_dtype
@pytest.mark.parametrize("n", [1, 2, 9, 24])
def test_eigenvalues_of_any_matrix(device: Device, dtype: str, n: int) -> None:
    a = reals(n, (3, n, n), dtype)
    on = device.put(a)
    w, v = pairs(device, solver.eig(on))
    assert w.dtype == v.dtype == np.result_type(a.dtype, np.complex64)
    np.testing.assert_allclose(np.linalg.norm(v, axis=-2), 1, rtol=100 * n * EPS[dtype])
    error = norm(a @ wide(v) - wide(v) * w[:, None])
    assert_small(error, dtype, size=norm(a), operations=10 * n)
    trace = np.trace(wide(a), axis1=-2, axis2=-1)
    assert_small(np.abs(w.sum(axis=-1) - trace), dtype, size=n * norm(a), operations=10 * n)
    alone = solver.eig(on, vectors=False)
    assert alone.v is None
    nearest = np.abs(value(device, alone.w)[:, :, None] - w[:, None]).min(axis=-1)
    assert_small(nearest, dtype, size=100 * norm(a)[:, None], operations=10 * n)


@of_each_dtype
def test_roots_of_a_polynomial_are_eigenvalues_of_its_companion(device: Device, dtype: str) -> None:
    """(x² + 1)(x - 1)(x - 2), of which two roots are complex."""
    companion = np.eye(4, k=-1)
    companion[0] = -np.poly([1j, -1j, 1, 2])[1:].real
    w = value(device, solver.eig(device.put(companion.astype(dtype))).w)
    for root in (1j, -1j, 1, 2):
        assert np.abs(w - root).min() <= 1e3 * EPS[dtype]


@of_each_dtype
def test_the_largest_singular_values_are_approximated(device: Device, dtype: str) -> None:
    """Halko, Martinsson, Tropp, theorem 10.7: little above the first value that is left out."""
    values = 0.5 ** np.arange(30)
    a = np.stack([with_values(seed, 60, 40, values, dtype) for seed in (4, 6)])
    on = device.put(a)
    u, s, vh = parts(device, SvdParts(*solver.randomized_svd(on, 5, seed=1)))
    assert (u.shape, s.shape, vh.shape) == ((2, 60, 5), (2, 5), (2, 5, 40))
    assert_unitary(u, dtype)
    assert_unitary(adjoint(vh), dtype)
    left = np.linalg.norm(a - (u * s[:, None]) @ vh, 2, axis=(-2, -1))
    assert (left <= 1.01 * values[5]).all()
    np.testing.assert_allclose(s, np.stack([values[:5]] * 2), rtol=max(1e-6, 100 * EPS[dtype]))
    again, other = (solver.randomized_svd(on, 5, seed=seed, iterations=0) for seed in (1, 2))
    same = solver.randomized_svd(on, 5, seed=1, iterations=0)
    assert_same(value(device, again.vh), value(device, same.vh))
    assert (value(device, again.vh) != value(device, other.vh)).any()
    slow = with_values(8, 60, 40, 0.9 ** np.arange(40), dtype)
    errors = []
    for count in (0, 4):
        made = solver.randomized_svd(device.put(slow), 5, oversampling=2, iterations=count)
        u, s, vh = parts(device, SvdParts(*made))
        errors.append(np.linalg.norm(slow - (u * s) @ vh, 2))
    assert errors[1] < 1.05 * 0.9**5 < errors[0]
    low = device.put(with_values(7, 20, 30, (3, 2), dtype))
    u, s, vh = parts(device, SvdParts(*solver.randomized_svd(low, 99, oversampling=0)))
    assert s.shape == (20,)
    error = norm((wide(u) * s) @ vh - value(device, low))
    assert_small(error, dtype, size=4, operations=60)


@of_each_dtype
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_matrix_that_is_not_finite_is_named(device: Device, dtype: str, wrong: float) -> None:
    a = np.stack([np.eye(3)] * 3).astype(dtype)
    a[2, 1, 0] = wrong
    on, good = device.put(a), device.put(a[:2].copy())
    made = [
        solver.svd(on).s,
        solver.svd(on, driver="gesvdj").s,
        solver.randomized_svd(on, 2).s,
        solver.eigh(on).w,
        solver.eig(on).w,
        solver.eigh_general(good[[0, 0, 0]], on).w,
        solver.eigh_general(on, good[[0, 0, 0]]).w,
    ]
    after = array.add(made[0], made[0])
    for one in made:
        with pytest.raises(NotFinite, match=r"matrix \[2\] of .* has an infinity or a NaN") as e:
            one.result(WAIT_S)
        assert e.value.matrix == (2,)
    with pytest.raises(DependencyFailed):
        after.result(WAIT_S)
    assert (value(device, solver.eigh(good).w) == 1).all()
    assert (value(device, solver.eigh(on, lower=False).w) == 1).all()  # that triangle is finite


def test_a_second_matrix_that_is_not_definite_is_named(device: Device) -> None:
    eyes = np.stack([np.eye(3)] * 2)
    b = eyes.copy()
    b[1, 1, 1] = -1
    for itype in (1, 2, 3):
        made = solver.eigh_general(device.put(eyes), device.put(b), itype=itype)
        with pytest.raises(NotPositiveDefinite, match=r"matrix \[1\] of b .* order 2 is") as e:
            made.w.result(WAIT_S)
        assert (e.value.order, e.value.matrix) == (2, (1,))


def test_a_status_of_an_iteration_says_so(device: Device) -> None:
    """What LAPACK hardly ever reports: a status that is neither 0 nor of an argument."""
    a = array.zeros(device, (2, 3, 3))
    for message in (Svd(a), Eigh(a)):
        error = message.judge(np.array([0, 2], np.int32))
        assert isinstance(error, NotConverged)
        assert (error.unconverged, error.matrix) == (2, (1,))
        assert message.judge(np.zeros(2, np.int32)) is None
        refused_argument = message.judge(np.array([0, -4], np.int32))
        assert "argument 4" in str(refused_argument)


def test_what_there_is_nothing_of_has_identities(device: Device) -> None:
    u, s, vh = parts(device, solver.svd(array.zeros(device, (2, 0, 3)), full=True))
    assert (u.shape, s.shape) == ((2, 0, 0), (2, 0))
    assert (vh == np.eye(3)).all()
    q = solver.qr(array.zeros(device, (3, 0)), complete=True).q
    assert q is not None
    assert (value(device, q) == np.eye(3)).all()
    fit = solver.lstsq(array.zeros(device, (0, 3)), array.zeros(device, (0, 2)))
    assert (value(device, fit.x) == np.zeros((3, 2))).all()
    assert value(device, fit.rank) == 0


def test_mistakes_are_refused(device: Device) -> None:
    a: Any = array.zeros(device, (3, 4))
    square: Any = array.zeros(device, (3, 3))
    wrong: Any = "gesdd"
    with refused(device, "Svd: driver is 'gesdd'; it may be 'auto', 'gesvd' or 'gesvdj'"):
        solver.svd(a, driver=wrong)
    with refused(device, "EighGeneral: itype is 4; it may be 1, 2 or 3"):
        solver.eigh_general(square, square, itype=4)
    with refused(device, "RandomizedSvd: k is -1; it is an integer from 0"):
        solver.randomized_svd(a, -1)
    with refused(device, "RandomizedSvd: iterations is -2"):
        solver.randomized_svd(a, 2, iterations=-2)
    with refused(device, "Eig: n is 3 and 4 in a float32[3, 4]", "it takes"):
        solver.eig(a)
