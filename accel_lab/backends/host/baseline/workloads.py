"""A few calls of each library, of fresh results, as NumPy and SciPy have them.

Runs in both.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.fft
import scipy.linalg
import scipy.signal
import scipy.sparse.linalg

from accel_lab.backends.host.baseline import Call, nothing
from accel_lab.backends.workloads import OPERANDS


def call(name: str, size: int) -> Call:
    """Prepare a workload."""
    label, function = CALLS[name]
    given = OPERANDS[name](size)
    if name.startswith("sparse."):
        values, indices, pointers, x, block = given
        given = (scipy.sparse.csr_array((values, indices, pointers)), x, block)
    return label, partial(function, *given), nothing


def _cg(a: Any, x: Any, _: Any) -> Any:
    return scipy.sparse.linalg.cg(a, x, rtol=1e-5)[0]


def _triangle(a: Any, b: Any) -> Any:
    return scipy.linalg.solve_triangular(a, b, lower=True, check_finite=False)


def _permuted(x: Any, *_: Any) -> Any:
    return np.ascontiguousarray(x.transpose(2, 0, 1))


_draw: Any = np.random.Generator(np.random.Philox(0))
CALLS: dict[str, tuple[str, Callable[..., Any]]] = {
    "blas.axpy": ("np.add", np.add),
    "blas.dot": ("np.dot", np.dot),
    "blas.gemv": ("np.matmul", lambda a, _, x: a @ x),
    "blas.gemm": ("np.matmul", np.matmul),
    "blas.batched": ("np.matmul", np.matmul),
    "blas.trsm": ("scipy solve_triangular", _triangle),
    "blas_lt.relu": ("NumPy", lambda a, b, row: np.maximum(a @ b + row, 0)),
    "fft.c2c": ("scipy.fft.fft", scipy.fft.fft),
    "fft.r2c": ("scipy.fft.rfft", scipy.fft.rfft),
    "fft.2d": ("scipy.fft.rfft2", lambda x, _: scipy.fft.rfft2(x)),
    "fft.dct": ("scipy.fft.dct", scipy.fft.dct),
    "fft.convolve": ("scipy fftconvolve", scipy.signal.fftconvolve),
    "rng.uniform": ("Philox random", lambda n: _draw.random(n, np.float32)),
    "rng.normal": ("Philox standard_normal", lambda n: _draw.standard_normal(n, np.float32)),
    "rng.integers": ("Philox integers", lambda n: _draw.integers(0, 1000, n)),
    "rng.permutation": ("Philox permutation", _draw.permutation),
    "solver.solve": ("np.linalg.solve", np.linalg.solve),
    "solver.cholesky": ("np.linalg.cholesky", np.linalg.cholesky),
    "solver.qr": ("np.linalg.qr", lambda a, _: np.linalg.qr(a).R),
    "solver.svd": ("np.linalg.svd", lambda a, _: np.linalg.svd(a, full_matrices=False).S),
    "solver.eigh": ("np.linalg.eigh", lambda a: np.linalg.eigh(a).eigenvalues),
    "sparse.spmv": ("scipy csr @", lambda a, x, _: a @ x),
    "sparse.spmm": ("scipy csr @", lambda a, _, block: a @ block),
    "sparse.spgemm": ("scipy csr @", lambda a, *_: a @ a),
    "sparse.cg": ("scipy cg", _cg),
    "tensor.contract": ("np.tensordot", lambda a, b, _: np.tensordot(a, b, 2)),
    "tensor.three": (
        "np.einsum",
        lambda a, b, c: np.einsum("ijk,jkl,lm->im", a, b, c, optimize=True),
    ),
    "tensor.reduce": ("np.sum", lambda x, *_: x.sum(axis=1)),
    "tensor.permute": ("np.transpose, copied", _permuted),
    "array.exp": ("np.exp", lambda x, _: np.exp(x)),
    "array.where": ("np.where", lambda x, y: np.where(x > y, x, y)),
    "array.sum": ("np.sum", lambda x, _: x.sum(axis=0)),
    "array.cumsum": ("np.cumsum", lambda x, _: np.cumsum(x, axis=1)),
    "array.sort": ("np.sort", lambda x, _: np.sort(x)),
    "array.take": ("np.take", lambda x, at: x[at]),
    "array.concatenate": ("np.concatenate", lambda x, y: np.concatenate([x, y])),
    "array.unique": ("np.unique", np.unique),
}
