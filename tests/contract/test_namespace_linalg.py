"""The namespace's linear algebra is NumPy's, on every backend: values, laws, dtypes, refusals.

Factors are not unique; what they multiply to is. Operands are well conditioned, so that 100 n eps
bounds the relative error of each (Higham, 2002, chapters 10, 14 and 19).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, array_api
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from tests.contract.samples import value

linalg: Any = array_api.linalg
DTYPES = ("float32", "float64", "complex64", "complex128")


def drawn(seed: int, shape: tuple[int, ...], dtype: str) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    return (x if dtype.startswith("complex") else x.real).astype(dtype)


def adjoint(x: Any) -> Any:
    return x.conj().swapaxes(-1, -2)


@pytest.fixture(params=DTYPES)
def dtype(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def square(dtype: str) -> Any:
    return drawn(0, (2, 4, 4), dtype) + 3 * np.eye(4, dtype=dtype)


@pytest.fixture
def hermitian(square: Any) -> Any:
    return square @ adjoint(square) + np.eye(4, dtype=square.dtype)


class Near:
    """Compares what a device has with what NumPy computes."""

    def __init__(self, device: Device, dtype: str) -> None:
        self.device = device
        self.bound = 4e3 * float(np.finfo(dtype).eps)

    def __call__(self, got: AccelRef, exact: Any) -> None:
        """Expect the same shape and dtype, and values to within the bound."""
        exact = np.asarray(exact)
        assert (got.shape, str(got.dtype)) == (exact.shape, str(exact.dtype))
        scale = np.abs(exact).max(initial=1)
        np.testing.assert_allclose(value(self.device, got), exact, atol=self.bound * scale)


@pytest.fixture
def near(device: Device, dtype: str) -> Near:
    return Near(device, dtype)


def test_systems_inverses_and_determinants(
    device: Device, near: Near, square: Any, dtype: str
) -> None:
    a, b, v = square, drawn(1, (2, 4, 3), dtype), drawn(2, (4,), dtype)
    on_a, on_b, on_v = map(device.put, (a, b, v))
    near(linalg.inv(on_a), np.linalg.inv(a))
    near(linalg.det(on_a), np.linalg.det(a))
    found, exact = linalg.slogdet(on_a), np.linalg.slogdet(a)
    near(found.sign, exact.sign)
    near(found.logabsdet, exact.logabsdet)
    near(linalg.solve(on_a, on_b), np.linalg.solve(a, b))
    near(linalg.solve(on_a[0], on_b), np.linalg.solve(a[0], b))
    near(linalg.solve(on_a, on_b[0]), np.linalg.solve(a, b[0]))
    near(linalg.solve(on_a, on_v), np.stack([np.linalg.solve(one, v) for one in a]))
    wide = "complex128" if dtype.startswith("complex") else "float64"
    mixed = linalg.solve(on_a, array_api.astype(on_b, wide))
    assert mixed.dtype == wide
    for power in (-2, 0, 1, 2, 5):
        near(linalg.matrix_power(on_a, power), np.linalg.matrix_power(a, power))


def test_factors_multiply_to_the_matrix(
    device: Device, near: Near, hermitian: Any, dtype: str
) -> None:
    tall, h = drawn(3, (2, 5, 3), dtype), device.put(hermitian)
    lower, upper = linalg.cholesky(h), linalg.cholesky(h, upper=True)
    near(lower, np.linalg.cholesky(hermitian))
    near(upper, adjoint(np.linalg.cholesky(hermitian)))
    for mode, columns in (("reduced", 3), ("complete", 5)):
        q, r = linalg.qr(device.put(tall), mode=mode)
        assert (q.shape, r.shape) == ((2, 5, columns), (2, columns, 3))
        near(q @ r, tall)
    for full, columns in ((True, 5), (False, 3)):
        u, s, vh = linalg.svd(device.put(tall), full_matrices=full)
        assert (u.shape, vh.shape) == ((2, 5, columns), (2, 3, 3))
        near(u[..., :3] @ (array_api.astype(s, tall.dtype)[..., None] * vh), tall)
    near(linalg.svdvals(device.put(tall)), np.linalg.svdvals(tall))
    w, v = linalg.eigh(h)
    near(v @ (array_api.astype(w, hermitian.dtype)[..., None] * array_api.conj(v.mT)), hermitian)
    near(linalg.eigvalsh(h), np.linalg.eigvalsh(hermitian))


def test_eigenvalues_of_any_matrix(device: Device, near: Near, square: Any) -> None:
    w, v = linalg.eig(device.put(square))
    near(device.put(square.astype(v.dtype)) @ v, value(device, v) * value(device, w)[:, None, :])
    found, exact = value(device, linalg.eigvals(device.put(square))), np.linalg.eigvals(square)
    for one, other in zip(found, exact, strict=True):
        np.testing.assert_allclose(np.sort_complex(one), np.sort_complex(other), rtol=near.bound)


def test_norms_ranks_and_pseudo_inverses(device: Device, near: Near, dtype: str) -> None:
    a = drawn(4, (2, 4, 3), dtype)
    on_a = device.put(a)
    for order in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        for keep in (False, True):
            exact = np.linalg.matrix_norm(a, ord=order, keepdims=keep)
            near(linalg.matrix_norm(on_a, ord=order, keepdims=keep), exact)
    for power in (0, 1, 2, 3, 2.5, -1, math.inf, -math.inf):
        for axis in (None, 1, (0, -1)):
            exact = np.linalg.vector_norm(a, ord=power, axis=axis)
            near(linalg.vector_norm(on_a, ord=power, axis=axis), exact)
    low = drawn(5, (5, 2), dtype) @ drawn(6, (2, 4), dtype)
    assert value(device, linalg.matrix_rank(device.put(low))) == np.linalg.matrix_rank(low) == 2
    near(linalg.pinv(device.put(low), rtol=1e-4), np.linalg.pinv(low, rtol=1e-4))
    near(linalg.pinv(on_a), np.linalg.pinv(a))
    none = array_api.zeros((0, 3), dtype=dtype, device=device)
    assert value(device, linalg.matrix_rank(none)) == 0
    near(linalg.pinv(none), np.zeros((3, 0), dtype))


def test_products_and_diagonals(device: Device, near: Near, square: Any, dtype: str) -> None:
    x, y = drawn(7, (2, 3), dtype), drawn(8, (3,), dtype)
    on_x, on_y, on_a = map(device.put, (x, y, square))
    near(linalg.cross(on_x, on_y), np.cross(x, y))
    near(linalg.cross(on_x.mT, on_x.mT * 2 + 1, axis=0), np.cross(x, x * 2 + 1).T)
    near(linalg.outer(on_y, on_y), np.outer(y, y))
    for offset in (-5, -1, 0, 2):
        near(linalg.diagonal(on_a, offset=offset), np.linalg.diagonal(square, offset=offset))
        near(linalg.trace(on_a, offset=offset), np.linalg.trace(square, offset=offset))


def test_what_does_not_fit_is_refused(device: Device) -> None:
    x = device.put(np.ones((2, 3)))
    row = x[0]
    refusals: list[tuple[Callable[[], object], str]] = [
        (lambda: linalg.matrix_norm(row), r"x is float64\[3\], and has no matrices"),
        (lambda: linalg.matrix_norm(x, ord=3), "ord is 3; it may be 'fro'"),
        (lambda: linalg.matrix_power(x, 2), "has no square matrices"),
        (lambda: linalg.outer(x, row), "are not two vectors"),
        (lambda: linalg.cross(x, x, axis=0), "has not three elements along axis 0"),
        (lambda: linalg.qr(x, mode="raw"), "mode is 'raw'"),
        (lambda: linalg.inv(x), "Inv"),
    ]
    for call, words in refusals:
        with pytest.raises(InvalidArgument, match=words):
            call()
