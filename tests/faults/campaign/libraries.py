"""The campaign's messages of the mathematical libraries: each with its twin and who is at the gate.

They belong to four families beside the messages that those had before: so each library meets each
fault, and there are as many scenes as without them.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
import scipy.signal
from scipy.stats import qmc

from accel_lab import AccelRef, array, blas, blas_lt, fft, rng, solver, sparse, tensor
from tests.contract import philox
from tests.faults.campaign.twin import Array, Cell, Sent, Twin, leaf, made

DIMENSIONS = POINTS = 8
Chain = tuple[AccelRef, ...]
"""What a way makes, and after it what was made for that alone."""


class Way(NamedTuple):
    """One way to use a library.

    Attributes:
        kind: the message that stops at a gate.
        send: sends it, of a twin, two cells of one shape, and a seed.
    """

    kind: str
    send: Callable[[Twin, Cell, Cell, int], Sent]


def _kept(family: str, kind: str, operands: int, send: Callable[..., Any], compute: Any) -> Way:
    """Return a way to make a buffer, of its operands' shape, that later messages use."""

    def one(twin: Twin, x: Cell, y: Cell, _: int) -> Sent:
        cells = (x, y)[:operands]
        ref, via = _parted(send(*(cell.ref for cell in cells)))
        return made(family, twin, ref, compute, *cells, via=via)

    return Way(kind, one)


def _read(family: str, kind: str, operands: int, send: Callable[..., Any], compute: Any) -> Way:
    """Return a way to make a buffer that is read at once."""

    def one(twin: Twin, x: Cell, y: Cell, _: int) -> Sent:
        cells = (x, y)[:operands]
        ref, via = _parted(send(*(cell.ref for cell in cells)))
        return leaf(family, twin, ref, compute, *cells, via=via)

    return Way(kind, one)


def _parted(sent: AccelRef | Chain) -> tuple[AccelRef, Chain]:
    return (sent[0], sent[1:]) if isinstance(sent, tuple) else (sent, ())


def _drawn(kind: str, send: Callable[..., AccelRef], compute: Any) -> Way:
    """Return a way to draw numbers of a seed."""
    return Way(kind, lambda t, _, __, s: leaf("rng", t, send(t.device, s), lambda: compute(s)))


def _chain(x: AccelRef, y: AccelRef) -> AccelRef:
    """Scale what functions in a row make, which are computed as one and pass no gate."""
    return blas.scal(array.exp(-abs(x * 0.5 + y)) * y, 0.5)


def _gram(x: AccelRef) -> Chain:
    """Return a symmetric matrix whose eigenvalues are 8 at least."""
    eye = array.eye(x.device, x.shape[0], dtype="float64")
    return blas.gemm(x, x, eye, beta=8.0, trans_b="t"), eye


def gram(a: Array) -> Array:
    """Return the same with NumPy."""
    product: Array = a @ a.T + 8 * np.eye(len(a))
    return product


def _solve(x: AccelRef, y: AccelRef) -> Chain:
    matrix = _gram(x)
    return solver.solve(matrix[0], y), *matrix


def _cholesky(x: AccelRef) -> Chain:
    matrix = _gram(x)
    return solver.cholesky(matrix[0]), *matrix


def _spmm(x: AccelRef, y: AccelRef) -> Chain:
    matrix = sparse.from_dense(x)
    return sparse.spmm(matrix, y, alpha=1 / 64), *matrix.parts


def _cg(x: AccelRef, y: AccelRef) -> Chain:
    """Solve with a matrix of which it is known how much it stores: reading waits for no shape."""
    n = x.shape[0]
    line = array.arange(x.device, n, dtype="int32")
    columns, rows = array.tile(line, n), array.arange(x.device, 0, n * n + 1, n, dtype="int32")
    gram, eye = _gram(x)
    matrix = sparse.csr(array.reshape(gram, (n * n,)), columns, rows, (n, n))
    side = array.slice(y, 0)
    found = sparse.cg(matrix, side, preconditioner="jacobi", rtol=1e-13)
    return found.x, line, gram, eye, side, *matrix.parts


@cache
def _words(seed: int, count: int) -> list[int]:
    return philox.words(seed, 0, 0, count)


def exponential(seed: int) -> Array:
    """Return what eight exponential numbers of a seed are by definition."""
    words = _words(seed, 16)
    numbers = [-np.log(philox.inside(words[2 * i : 2 * i + 2])) for i in range(8)]
    return np.array(numbers, np.float64)


def permutation(seed: int) -> Array:
    """Return what a permutation of eight is by definition."""
    words = _words(seed, 16)
    keys = [words[2 * i] | words[2 * i + 1] << 32 for i in range(8)]
    return np.argsort(np.array(keys, np.uint64), kind="stable")


def mt19937(seed: int) -> Array:
    """Return the words of the Mersenne Twister, as NumPy draws them."""
    return np.random.RandomState(seed).randint(0, 1 << 32, 8, dtype="u4")


def sobol(_: int) -> Array:
    """Return the first points of SciPy's sequence."""
    return np.asarray(qmc.Sobol(DIMENSIONS, scramble=False).random(POINTS))


WAYS: dict[str, tuple[Way, ...]] = {
    "array": (
        _kept("array", "Sort", 1, lambda x: array.sort(x, 0), lambda a: np.sort(a, 0)),
        _read("array", "Scan", 1, lambda x: array.cumsum(x, 1), lambda a: np.cumsum(a, 1)),
        _read(
            "array",
            "Concatenate",
            2,
            lambda x, y: array.concatenate([x, y], 1),
            lambda a, b: np.concatenate([a, b], 1),
        ),
        _kept("array", "Triangle", 1, array.tril, np.tril),
        _kept("array", "Scal", 2, _chain, lambda a, b: np.exp(-abs(a * 0.5 + b)) * b / 2),
    ),
    "blas": (
        _kept(
            "blas",
            "Matmul",
            2,
            lambda x, y: blas_lt.matmul(x, y, alpha=1 / 64, activation="relu"),
            lambda a, b: np.maximum(a @ b / 64, 0),
        ),
        _kept(
            "blas",
            "Contract",
            2,
            lambda x, y: tensor.contract("ij,kj->ik", x, y, alpha=1 / 64),
            lambda a, b: a @ b.T / 64,
        ),
        _read("blas", "Reduce", 1, lambda x: tensor.reduce("ij->j", x), lambda a: a.sum(0)),
        _read(
            "blas",
            "Svd",
            1,
            lambda x: solver.svd(x, vectors=False).s,
            lambda a: np.linalg.svd(a, compute_uv=False),
        ),
        _kept(
            "blas",
            "Solve",
            2,
            _solve,
            lambda a, b: np.linalg.solve(gram(a), b),
        ),
        _read(
            "blas",
            "Cholesky",
            1,
            _cholesky,
            lambda a: np.linalg.cholesky(gram(a)),
        ),
        _kept(
            "blas",
            "Spmm",
            2,
            _spmm,
            lambda a, b: a @ b / 64,
        ),
        _read("blas", "Cg", 2, _cg, lambda a, b: np.linalg.solve(gram(a), b[0])),
    ),
    "fft": (
        _kept(
            "fft",
            "R2R",
            1,
            lambda x: fft.dct(x, norm="ortho"),
            lambda a: scipy.fft.dct(a, norm="ortho"),
        ),
        _read("fft", "C2C", 1, fft.fft2, np.fft.fft2),
        _read(
            "fft",
            "Convolve",
            2,
            lambda x, y: fft.fftconvolve(x, y, "same"),
            lambda a, b: scipy.signal.fftconvolve(a, b, "same"),
        ),
    ),
    "rng": (
        _drawn("Exponential", lambda d, s: rng.exponential(d, 8, "float64", seed=s), exponential),
        _drawn("Permutation", lambda d, s: rng.permutation(d, 8, seed=s), permutation),
        _drawn("Generate", lambda d, s: rng.generate(d, "mt19937", 8, seed=s), mt19937),
        _drawn("Sobol", lambda d, _: rng.sobol(d, POINTS, DIMENSIONS, "float64"), sobol),
    ),
}
