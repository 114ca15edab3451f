"""Test matrices of numerical linear algebra, made from their published definitions.

Chapters are those of Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition.
"""

from typing import Any

import numpy as np

from accel_lab.compute.arrays.dtypes import is_complex, numpy_dtype
from tests.contract.samples import reals
from tests.contract.tolerances import EPS, wide

SHAPES = ((1, 1), (5, 3), (3, 5), (17, 17), (64, 2), (2, 64))
"""Square, odd, tall and flat."""


def hilbert(n: int) -> Any:
    """Return 1 / (i + j + 1): definite, and nearly singular from some n on (section 28.1)."""
    return 1 / np.add.outer(np.arange(n), np.arange(1.0, n + 1))


def kahan(n: int, theta: float = 1.2) -> Any:
    """Return Kahan's triangle, whose diagonal does not show how small it is (section 8.3)."""
    c, s = np.cos(theta), np.sin(theta)
    return np.diag(s ** np.arange(n)) @ (np.eye(n) - c * np.triu(np.ones((n, n)), 1))


def wilkinson(n: int) -> Any:
    """Return W+: tridiagonal, of eigenvalues that lie in close pairs (Wilkinson, 1965, p. 308)."""
    return np.diag(np.abs(np.arange(n) - n // 2) + 0.0) + np.eye(n, k=1) + np.eye(n, k=-1)


def growth(n: int) -> Any:
    """Return the matrix of which the last pivot is 2^(n - 1) (section 9.3)."""
    a = np.eye(n) - np.tri(n, k=-1)
    a[:, -1] = 1
    return a


def vandermonde(points: Any, degrees: int) -> Any:
    """Return the powers of points from 0 on (chapter 22)."""
    return np.power.outer(np.asarray(points, float), np.arange(degrees))


def orthonormal(seed: int, m: int, n: int, dtype: str) -> Any:
    """Return m by n orthonormal columns in double."""
    return np.linalg.qr(reals(seed, (m, n), "complex128" if is_complex(dtype) else "float64"))[0]


def with_values(seed: int, m: int, n: int, values: Any, dtype: str) -> Any:
    """Return a matrix of these singular values, but for rounding to the dtype."""
    k = len(values)
    u, v = orthonormal(seed, m, k, dtype), orthonormal(seed + 1, n, k, dtype)
    return ((u * values) @ adjoint(v)).astype(numpy_dtype(dtype))


def definite(seed: int, n: int, dtype: str) -> Any:
    """Return a Hermitian matrix of the eigenvalues 1 to 10."""
    q = orthonormal(seed, n, n, dtype)
    a = (q * np.linspace(1, 10, n)) @ adjoint(q)
    return ((a + adjoint(a)) / 2).astype(numpy_dtype(dtype))


def adjoint(a: Any) -> Any:
    """Return the conjugate transposes of a stack."""
    return a.conj().swapaxes(-1, -2)


def permutation(pivots: Any) -> Any:
    """Return the matrices that exchange rows as pivots say."""
    n = pivots.shape[-1]
    found = np.broadcast_to(np.eye(n), (*pivots.shape[:-1], n, n)).copy()
    for at in np.ndindex(pivots.shape[:-1]):
        for i, with_ in enumerate(pivots[at]):
            found[at][[i, with_]] = found[at][[with_, i]]
    return found


def leibniz(a: Any) -> tuple[Any, Any]:
    """Return determinants of 3 by 3 matrices, and the permanents of their magnitudes."""
    signs = {(0, 1, 2): 1, (1, 2, 0): 1, (2, 0, 1): 1, (0, 2, 1): -1, (2, 1, 0): -1, (1, 0, 2): -1}
    terms = [(sign, a[:, 0, i] * a[:, 1, j] * a[:, 2, k]) for (i, j, k), sign in signs.items()]
    return sum(sign * term for sign, term in terms), sum(np.abs(term) for _, term in terms)


def orthonormal_rows(a: Any, rank: int) -> Any:
    """Return a basis of what the rows of a matrix span."""
    return np.linalg.svd(a.astype("complex128" if a.dtype.kind == "c" else "float64"))[2][:rank]


def norm(a: Any) -> Any:
    """Return the Frobenius norms of a stack."""
    return np.sqrt((np.abs(wide(a)) ** 2).sum(axis=(-2, -1)))


def gamma(operations: int, dtype: str) -> float:
    """Return Higham's gamma for so many operations, of complex ones as Lemma 3.5."""
    u = EPS[dtype] / 2 * (2 * 2**0.5 if is_complex(dtype) else 1)
    return operations * u / (1 - operations * u)


def assert_small(error: Any, dtype: str, *, size: Any, operations: int) -> None:
    """Compare norms with a backward error bound: some operations' roundings relative to a size."""
    bound = 10 * gamma(operations, dtype) * size
    assert np.all(error <= bound), f"{dtype}: {np.max(error / bound):.3g} of what may be"


def assert_unitary(q: Any, dtype: str) -> None:
    """Assert that columns are orthonormal (Higham, section 19.3)."""
    m, n = q.shape[-2:]
    error = norm(adjoint(wide(q)) @ wide(q) - np.eye(n))
    assert_small(error, dtype, size=max(n, 1) ** 0.5, operations=m + n + 1)
