"""What the contract tests of triangles share: matrices of which one half counts."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from accel_lab.compute.arrays.dtypes import is_complex
from accel_lab.libraries.blas.library import Uplo
from tests.contract.samples import reals

UPLO: tuple[Uplo, ...] = ("l", "u")
uplos = st.sampled_from(UPLO)
wide_dtypes = st.sampled_from(("float32", "float64", "complex64", "complex128"))


def factors(dtype: str) -> tuple[Any, Any]:
    """Return an alpha and a beta that round and, of complex dtypes, turn."""
    return (0.5 - 2j, -1.25 + 1j) if is_complex(dtype) else (0.5, -1.25)


def triangle(n: int, uplo: str) -> Any:
    """Return where the named triangle of an (n, n) matrix is, its diagonal with it."""
    lower = np.tri(n, dtype=bool)
    return lower if uplo == "l" else lower.T


def without_the_rest(a: Any, uplo: str, *, unit: bool = False) -> Any:
    """Return a matrix with NaN where nothing may be read."""
    read = triangle(a.shape[-1], uplo) & ~(np.eye(a.shape[-1], dtype=bool) & unit)
    return np.where(read, a, np.nan).astype(a.dtype)


def symmetric(seed: int, n: int, dtype: str, *, adjoint: bool) -> Any:
    """Draw a symmetric or, if `adjoint`, a Hermitian matrix."""
    a = reals(seed, (n, n), dtype)
    lower = np.tril(a, -1)
    diagonal = np.diag(a.diagonal().real if adjoint else a.diagonal())
    return (lower + (lower.conj() if adjoint else lower).T + diagonal).astype(a.dtype)


def triangular(seed: int, n: int, dtype: str, uplo: str, *, unit: bool) -> Any:
    """Draw a triangular matrix that is well conditioned: its diagonal is far from 0, or ones."""
    a = np.where(triangle(n, uplo), reals(seed, (n, n), dtype), 0) / 2
    np.fill_diagonal(a, 1 if unit else 2 + np.abs(a.diagonal()))
    return a.astype(reals(seed, (0,), dtype).dtype)
