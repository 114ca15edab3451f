"""The contract of sparse factors that are kept: one factorization, and what solves by it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import System, array, sparse
from accel_lab.compute.device import Device
from accel_lab.errors import DependencyFailed, InvalidArgument, StaleRef
from accel_lab.libraries.sparse.matrix import Trans
from tests.contract.products import TRANS, turn
from tests.contract.samples import Layout, layouts, place, reals, refused, seeds, value
from tests.contract.sparse_matrices import drawn, put
from tests.contract.tolerances import EPS, WIDE, wide


def regular(seed: int, n: int, dtype: str) -> tuple[Any, Any]:
    """Draw a matrix whose rows have to be exchanged, and where it stores."""
    x, stored = drawn(seed, (n, n), dtype, 0.2)
    x, stored = x + 8 * np.eye(n, dtype=x.dtype), stored | np.eye(n, dtype=bool)
    mixed = np.random.default_rng(seed).permutation(n)
    return x[mixed], stored[mixed]


@settings(max_examples=40)
@given(
    seed=seeds,
    n=st.sampled_from((0, 1, 3, 20)),
    right=st.sampled_from(((), (0,), (1,), (5,))),
    trans=st.sampled_from(TRANS),
    dtype=st.sampled_from(WIDE),
    layout=layouts,
)
def test_what_is_solved_is_the_right_side(
    device: Device,
    seed: int,
    n: int,
    right: tuple[int, ...],
    trans: Trans,
    dtype: str,
    layout: Layout,
) -> None:
    """op(a) @ x is b, for each of several right sides of one factorization."""
    x, stored = regular(seed, n, dtype)
    factored = sparse.factorize(put(device, x, stored))
    for more in (1, 2):
        b = reals(seed + more, (n, *right), dtype)
        got = value(device, factored.solve(place(device, b, layout), trans=trans))
        assert (got.shape, got.dtype) == (b.shape, b.dtype)
        op = turn(wide(x), trans)
        size = np.abs(op) @ np.abs(wide(got)) + np.abs(wide(b))
        assert np.all(np.abs(op @ wide(got) - wide(b)) <= 100 * EPS[dtype] * size)


def test_a_singular_matrix_fails_what_solves_with_it(device: Device) -> None:
    a = sparse.from_dense(device.put(np.diag([1.0, 0.0, 2.0])))
    factored, b = sparse.factorize(a), device.put(np.ones(3))
    with pytest.raises(sparse.BadPivot, match="Factorize"):
        factored.result(30)
    with pytest.raises(DependencyFailed, match="Factorize"):
        factored.solve(b).result(30)


def test_factors_take_memory_until_they_are_freed(device: Device) -> None:
    a = sparse.from_dense(device.put(np.eye(64) + np.eye(64, k=1)))
    factored = sparse.factorize(a).result(30)
    b = device.put(np.ones(64))
    assert np.isfinite(value(device, factored.solve(b))).all()
    factored.free()
    with pytest.raises(StaleRef):
        factored.solve(b)


def test_factors_come_back_behind_a_fault(backend: Any) -> None:
    """What made them runs again on the new context, and what they solve is equal."""
    with System(backend.__name__.rpartition(".")[2], devices=1) as lab:
        gpu = lab.devices[0]
        x, stored = regular(3, 20, "float64")
        factored = sparse.factorize(put(gpu, x, stored)).result(30)
        b = gpu.put(reals(4, (20,), "float64"))
        before = gpu.get(factored.solve(b)).result(30)
        gpu.replace()
        after = gpu.get(factored.solve(b)).result(60)
        assert before.tobytes() == after.tobytes()


def test_mistakes_are_refused_with_what_and_what_was_expected(device: Device) -> None:
    factored = sparse.factorize(sparse.from_dense(device.put(np.eye(3))))
    b, single, many = (
        array.zeros(device, 4, "float64"),
        array.zeros(device, 3),
        array.zeros(device, (3, 1, 1), "float64"),
    )
    fits = array.zeros(device, 3, "float64")
    tall = sparse.from_dense(array.zeros(device, (3, 2)))
    tall.values.result(30)  # from then on it is known how much it stores
    wrong: Any = "x"
    with refused(device, "FactorSolve: b is float64[4]", "float64 of 3 rows"):
        factored.solve(b)
    with refused(device, "FactorSolve: b is float32[3]", "float64 of 3 rows"):
        factored.solve(single)
    with refused(device, "FactorSolve: b is float64[3, 1, 1]", "(n,) or (n, r)"):
        factored.solve(many)
    with refused(device, "FactorSolve: trans is 'x'", "'n', 't' or 'c'"):
        factored.solve(fits, trans=wrong)
    with refused(device, "Factorize", "square"):
        sparse.factorize(tall)
    with pytest.raises(InvalidArgument, match="Factorize: a is ndarray"):
        sparse.factorize(np.eye(3))  # type: ignore[arg-type]
    sent = device.ask(sparse.FactorSolve(factored.factors, b))  # the context sees it, too
    with pytest.raises(InvalidArgument, match="float64 of 3 rows"):
        sent.result(30)
