"""The contract of cuBLAS's batched LU by its names: laws, and errors with matrix and pivot."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

from accel_lab import blas, solver
from accel_lab.compute.device import Device
from tests.contract.products import TRANS, turn
from tests.contract.samples import layouts as any_layout
from tests.contract.samples import place, reals, refused, seeds, value
from tests.contract.tolerances import EPS, WIDE, wide


@given(
    seed=seeds,
    stack=st.integers(0, 5),
    n=st.sampled_from((0, 1, 2, 7, 33)),
    trans=st.sampled_from(TRANS),
    layout=any_layout,
    dtype=st.sampled_from(WIDE),
)
def test_a_stack_is_factored_solved_and_inverted(
    device: Device, seed: int, stack: int, n: int, trans: Any, layout: Any, dtype: str
) -> None:
    """P @ L @ U is the matrix, op(a) @ x is b, and a @ inverse is 1, by SciPy's own triangles."""
    a = reals(seed, (stack, n, n), dtype) + 8 * np.eye(n, dtype=np.dtype(dtype))
    a, b = a[:, ::-1], reals(seed + 1, (stack, n, 3), dtype)  # rows have to be exchanged
    on_a, on_b = place(device, np.ascontiguousarray(a), layout), place(device, b, layout)
    lu, pivots = blas.getrf_batched(on_a)
    x = wide(value(device, blas.getrs_batched(lu, pivots, on_b, trans=trans)))
    inverse = wide(value(device, blas.matinv_batched(on_a)))
    near: Any = {"rtol": 0, "atol": 400 * EPS[dtype] * max(n, 1)}
    np.testing.assert_allclose(turn(wide(a), trans) @ x, wide(b), **near)
    np.testing.assert_allclose(wide(a) @ inverse, np.broadcast_to(np.eye(n), a.shape), **near)
    for one, factors, exchanges in zip(a, value(device, lu), value(device, pivots), strict=True):
        got = scipy.linalg.lu_solve((factors, exchanges), np.eye(n, dtype=one.dtype)) if n else one
        np.testing.assert_allclose(wide(one) @ wide(got), np.eye(n), **near)


@pytest.mark.parametrize("dtype", WIDE)
def test_an_error_has_the_matrix_and_the_pivot(device: Device, dtype: str) -> None:
    a = np.broadcast_to(np.eye(4), (3, 4, 4)).astype(dtype)
    a[2, 1, 1] = 0
    on_a = device.put(a)
    for made in (blas.getrf_batched(on_a).lu, blas.matinv_batched(on_a)):
        with pytest.raises(solver.SingularMatrix) as caught:
            made.result(30)
        assert (caught.value.matrix, caught.value.pivot) == ((2,), 1)
    assert blas.getrf_batched(on_a, may_be_singular=True).lu.result(30) is not None
    wide_ones = on_a[:, :3]
    with refused(device, "Inv", "(...,n,n)"):
        blas.matinv_batched(wide_ones)
