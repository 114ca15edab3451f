"""What the workloads of every library compute with: the same numbers wherever they run.

Runs in both.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

COLUMNS = 8
INNER = 64
SHORT = 256


def vectors(n: int) -> tuple[Any, ...]:
    """Make two vectors."""
    return _normal(n), _normal(n, seed=1)


def squares(n: int) -> tuple[Any, ...]:
    """Make two square matrices."""
    return _normal(n, n), _normal(n, n, seed=1)


def layer(n: int) -> tuple[Any, ...]:
    """Make two square matrices and a row."""
    return *squares(n), _normal(n, seed=2)


def stacks(count: int) -> tuple[Any, ...]:
    """Make two stacks of small matrices."""
    return _normal(count, INNER, INNER), _normal(count, INNER, INNER, seed=1)


def triangle(n: int) -> tuple[Any, ...]:
    """Make a lower triangle that is far from singular, and right sides."""
    a = np.tril(_normal(n, n)) / np.float32(n)
    np.fill_diagonal(a, 1.0)
    return a, _normal(n, INNER, seed=1)


def waves(n: int) -> tuple[Any, ...]:
    """Make complex numbers."""
    return (_normal(n, 2).view(np.complex64)[:, 0],)


def lines(rows: int) -> tuple[Any, ...]:
    """Make rows of a thousand."""
    return (_normal(rows, 1024),)


def signals(n: int) -> tuple[Any, ...]:
    """Make a long line and a short one."""
    return _normal(n), _normal(SHORT, seed=1)


def system(n: int) -> tuple[Any, ...]:
    """Make a matrix of double precision that is far from singular, and right sides."""
    a = _normal(n, n).astype(np.float64) + 4 * np.sqrt(n) * np.eye(n)
    return a, _normal(n, COLUMNS, seed=1).astype(np.float64)


def positive(n: int) -> tuple[Any, ...]:
    """Make a symmetric, positive definite matrix of double precision."""
    a = _normal(n, n).astype(np.float64)
    return (a @ a.T / n + np.eye(n),)


def laplacian(side: int) -> tuple[Any, ...]:
    """Make the five-point Laplacian of a square as CSR's three arrays, a vector and a block."""
    n = side * side
    at = np.arange(n, dtype=np.int32)
    row, column = np.divmod(at, side)
    there = np.stack([row > 0, column > 0, at >= 0, column < side - 1, row < side - 1], axis=1)
    where = np.stack([at - side, at - 1, at, at + 1, at + side], axis=1)
    number = np.broadcast_to([-1.0, -1.0, 4.0, -1.0, -1.0], there.shape)
    pointers = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int32)
    right = _normal(n, COLUMNS).astype(np.float64)
    return number[there], where[there], pointers, right[:, 0].copy(), right


def cubes(n: int) -> tuple[Any, ...]:
    """Make two tensors of three axes, and a matrix."""
    return _normal(n, n, n), _normal(n, n, n, seed=1), _normal(n, n, seed=2)


def rows(n: int) -> tuple[Any, ...]:
    """Make a square matrix, and rows to take of it."""
    return _normal(n, n), np.random.default_rng(1).integers(0, n, n)


def digits(n: int) -> tuple[Any, ...]:
    """Make many small integers."""
    return (np.random.default_rng(0).integers(0, 1000, n, dtype=np.int32),)


def count(n: int) -> tuple[Any, ...]:
    """Say how many numbers to draw, or how many rows matrices of narrow numbers have."""
    return (n,)


OPERANDS: dict[str, Callable[[int], tuple[Any, ...]]] = {
    "blas.axpy": vectors,
    "blas.dot": vectors,
    "blas.gemv": layer,
    "blas.gemm": squares,
    "blas.batched": stacks,
    "blas.trsm": triangle,
    "blas_lt.relu": layer,
    "blas_lt.bf16": count,
    "blas_lt.fp8": count,
    "blas_lt.fp8-fast": count,
    "fft.c2c": waves,
    "fft.r2c": lines,
    "fft.2d": squares,
    "fft.dct": lines,
    "fft.convolve": signals,
    "rng.uniform": count,
    "rng.normal": count,
    "rng.integers": count,
    "rng.permutation": count,
    "solver.solve": system,
    "solver.cholesky": positive,
    "solver.qr": system,
    "solver.svd": system,
    "solver.eigh": positive,
    "sparse.spmv": laplacian,
    "sparse.spmm": laplacian,
    "sparse.spgemm": laplacian,
    "sparse.cg": laplacian,
    "tensor.contract": cubes,
    "tensor.three": cubes,
    "tensor.reduce": cubes,
    "tensor.permute": cubes,
    "array.exp": squares,
    "array.where": squares,
    "array.sum": squares,
    "array.cumsum": squares,
    "array.sort": squares,
    "array.take": rows,
    "array.concatenate": squares,
    "array.unique": digits,
}
"""The operands of each workload, of a size; its name begins with its library's."""


def _normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
