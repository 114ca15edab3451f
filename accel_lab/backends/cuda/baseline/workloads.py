"""A few calls of each library, of fresh results, as CuPy has them: none of narrow numbers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import cupy

from accel_lab.backends.cuda.baseline import Call
from accel_lab.backends.workloads import OPERANDS


def call(name: str, size: int) -> Call:
    """Prepare a workload."""
    label, function = CALLS[name]
    given: list[Any] = [x if isinstance(x, int) else cupy.asarray(x) for x in OPERANDS[name](size)]
    if name.startswith("sparse."):
        from cupyx.scipy.sparse import csr_matrix

        values, indices, pointers, x, block = given
        shape = (len(x), len(x))
        given = [csr_matrix((values, indices, pointers), shape=shape), x, block]
    wait = cupy.cuda.get_current_stream().synchronize
    return label, partial(function, *given), wait


def _cg(a: Any, x: Any, _: Any) -> Any:
    from cupyx.scipy.sparse.linalg import cg

    return cg(a, x)[0]  # its tolerance is 1e-5


def _triangle(a: Any, b: Any) -> Any:
    from cupyx.scipy.linalg import solve_triangular

    return solve_triangular(a, b, lower=True)


def _dct(x: Any) -> Any:
    from cupyx.scipy.fft import dct

    return dct(x)


def _convolve(x: Any, y: Any) -> Any:
    from cupyx.scipy.signal import fftconvolve

    return fftconvolve(x, y)


def _drawn(method: str, *first: int) -> Callable[[int], Any]:
    """Return what draws so many numbers of CuPy's generator of Philox."""
    made: list[Any] = []

    def draw(n: int) -> Any:
        if not made:
            made.append(cupy.random.Generator(cupy.random.Philox4x3210(0)))
        function = getattr(made[0], method)
        return function(*first, n) if first else function(n, dtype=cupy.float32)

    return draw


CALLS: dict[str, tuple[str, Callable[..., Any]]] = {
    "blas.axpy": ("cupy.add", cupy.add),
    "blas.dot": ("cupy.dot", cupy.dot),
    "blas.gemv": ("cupy.matmul", lambda a, _, x: a @ x),
    "blas.gemm": ("cupy.matmul", cupy.matmul),
    "blas.batched": ("cupy.matmul", cupy.matmul),
    "blas.trsm": ("cupyx solve_triangular", _triangle),
    "blas_lt.relu": ("CuPy", lambda a, b, row: cupy.maximum(a @ b + row, 0)),
    "fft.c2c": ("cupy.fft.fft", cupy.fft.fft),
    "fft.r2c": ("cupy.fft.rfft", cupy.fft.rfft),
    "fft.2d": ("cupy.fft.rfft2", lambda x, _: cupy.fft.rfft2(x)),
    "fft.dct": ("cupyx dct", _dct),
    "fft.convolve": ("cupyx fftconvolve", _convolve),
    "rng.uniform": ("Generator.random", _drawn("random")),
    "rng.normal": ("Generator.standard_normal", _drawn("standard_normal")),
    "rng.integers": ("Generator.integers", _drawn("integers", 0, 1000)),
    "rng.permutation": ("cupy.random.permutation", cupy.random.permutation),
    "solver.solve": ("cupy.linalg.solve", cupy.linalg.solve),
    "solver.cholesky": ("cupy.linalg.cholesky", cupy.linalg.cholesky),
    "solver.qr": ("cupy.linalg.qr", lambda a, _: cupy.linalg.qr(a)[1]),
    "solver.svd": ("cupy.linalg.svd", lambda a, _: cupy.linalg.svd(a, full_matrices=False)[1]),
    "solver.eigh": ("cupy.linalg.eigh", lambda a: cupy.linalg.eigh(a)[0]),
    "sparse.spmv": ("cupyx csr @", lambda a, x, _: a @ x),
    "sparse.spmm": ("cupyx csr @", lambda a, _, block: a @ block),
    "sparse.spgemm": ("cupyx csr @", lambda a, *_: a @ a),
    "sparse.cg": ("cupyx cg", _cg),
    "tensor.contract": ("cupy.tensordot", lambda a, b, _: cupy.tensordot(a, b, 2)),
    "tensor.three": (
        "cupy.einsum",
        lambda a, b, c: cupy.einsum("ijk,jkl,lm->im", a, b, c, optimize=True),
    ),
    "tensor.reduce": ("cupy.sum", lambda x, *_: x.sum(axis=1)),
    "tensor.permute": (
        "cupy.transpose, copied",
        lambda x, *_: cupy.ascontiguousarray(x.transpose(2, 0, 1)),
    ),
    "array.exp": ("cupy.exp", lambda x, _: cupy.exp(x)),
    "array.where": ("cupy.where", lambda x, y: cupy.where(x > y, x, y)),
    "array.sum": ("cupy.sum", lambda x, _: x.sum(axis=0)),
    "array.cumsum": ("cupy.cumsum", lambda x, _: cupy.cumsum(x, axis=1)),
    "array.sort": ("cupy.sort", lambda x, _: cupy.sort(x)),
    "array.take": ("cupy.take", lambda x, at: x[at]),
    "array.concatenate": ("cupy.concatenate", lambda x, y: cupy.concatenate([x, y])),
    "array.unique": ("cupy.unique", cupy.unique),
}
