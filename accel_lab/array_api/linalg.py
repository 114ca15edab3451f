"""Linear algebra by the standard's names: the extension `linalg`. Nothing here blocks.

What cannot be factored fails when its result is asked for, as `accel_lab.solver` says.
"""

import math
import operator
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from accel_lab.array_api.creation import eye
from accel_lab.array_api.dtypes import astype, result_type
from accel_lab.array_api.linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from accel_lab.array_api.manipulation import broadcast_shapes, broadcast_to
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array import library as array
from accel_lab.libraries.array.message import axis_of
from accel_lab.libraries.array.reduction import reduce
from accel_lab.libraries.authoring.operand import describe
from accel_lab.libraries.authoring.shape import Integers
from accel_lab.libraries.solver import library as solver

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

Order: TypeAlias = float | Literal["fro", "nuc"] | None


class Eigenpairs(NamedTuple):
    """Eigenvalues, and the eigenvectors as columns."""

    eigenvalues: AccelRef
    eigenvectors: AccelRef


class QRParts(NamedTuple):
    """A QR factorization: x = Q @ R."""

    Q: AccelRef
    R: AccelRef


class SlogdetParts(NamedTuple):
    """A determinant: sign * exp(logabsdet)."""

    sign: AccelRef
    logabsdet: AccelRef


class SVDParts(NamedTuple):
    """A singular value decomposition: x = U @ diag(S) @ Vh."""

    U: AccelRef
    S: AccelRef
    Vh: AccelRef


def cholesky(x: AccelRef, /, *, upper: bool = False) -> AccelRef:
    """Return the lower factor L of L @ Lᴴ, or the upper one of Uᴴ @ U."""
    return solver.cholesky(x, lower=not upper)


def cross(x1: AccelRef, x2: AccelRef, /, *, axis: int = -1) -> AccelRef:
    """Return the cross products of the vectors of three elements along an axis."""
    for name, x in (("x1", x1), ("x2", x2)):
        if x.shape[axis_of("cross", x, axis)] != len("xyz"):
            text = f"{name} is {describe(x)}, and has not three elements along axis {axis}"
            raise InvalidArgument(f"cross: {text}")
    a, b = (array.moveaxis(x, axis, -1) for x in (x1, x2))
    turned = [
        a[..., second] * b[..., third] - a[..., third] * b[..., second]
        for second, third in ((1, 2), (2, 0), (0, 1))
    ]
    return array.stack(turned, axis)


def det(x: AccelRef, /) -> AccelRef:
    """Return the determinants."""
    return solver.det(x)


def diagonal(x: AccelRef, /, *, offset: int = 0) -> AccelRef:
    """Return a diagonal of each matrix."""
    return array.diagonal(x, offset, -2, -1)


def eig(x: AccelRef, /) -> Eigenpairs:
    """Return the eigenvalues and eigenvectors of any square matrices, both complex."""
    found = solver.eig(x)
    assert found.v is not None
    return Eigenpairs(found.w, found.v)


def eigh(x: AccelRef, /) -> Eigenpairs:
    """Return the eigenvalues, ascending, and eigenvectors of Hermitian matrices."""
    found = solver.eigh(x)
    assert found.v is not None
    return Eigenpairs(found.w, found.v)


def eigvals(x: AccelRef, /) -> AccelRef:
    """Return the eigenvalues of any square matrices, complex."""
    return solver.eig(x, vectors=False).w


def eigvalsh(x: AccelRef, /) -> AccelRef:
    """Return the eigenvalues of Hermitian matrices, ascending."""
    return solver.eigh(x, vectors=False).w


def inv(x: AccelRef, /) -> AccelRef:
    """Return the inverses."""
    return solver.inv(x)


def matrix_norm(x: AccelRef, /, *, keepdims: bool = False, ord: Order = "fro") -> AccelRef:  # noqa: A002 - the standard's name
    """Return a norm of each matrix: "fro", "nuc", or of 1, 2 and inf the norm or its least value.

    Raises:
        InvalidArgument: there is no such norm, or `x` has no matrices.
    """
    if x.ndim < len("mn"):
        raise InvalidArgument(f"matrix_norm: x is {describe(x)}, and has no matrices")
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord == "nuc":
        norm = reduce("sum", svdvals(x), -1)
    elif ord in (2, -2):
        norm = reduce("max" if ord == 2 else "min", svdvals(x), -1)  # noqa: PLR2004 - a norm's name
    elif ord in (1, -1, math.inf, -math.inf):
        sums = reduce("sum", array.absolute(x), -2 if abs(ord) == 1 else -1)
        norm = reduce("max" if ord > 0 else "min", sums, -1)
    else:
        raise InvalidArgument(
            f"matrix_norm: ord is {ord!r}; it may be 'fro', 'nuc', ±1, ±2 or ±inf"
        )
    return norm[..., None, None] if keepdims else norm


def matrix_power(x: AccelRef, n: int, /) -> AccelRef:
    """Return the `n`-th power of square matrices, of their inverses if it is negative."""
    count = operator.index(n)
    if x.ndim < len("mn") or x.shape[-1] != x.shape[-2]:
        raise InvalidArgument(f"matrix_power: x is {describe(x)}, and has no square matrices")
    base = inv(x) if count < 0 else x
    power, left = None, abs(count)
    while left:
        if left % 2:
            power = base if power is None else matmul(power, base)
        left //= 2
        if left:
            base = matmul(base, base)
    if power is None:
        one = eye(x.shape[-1], dtype=x.dtype, device=device_of(x))
        return broadcast_to(one, x.shape)
    return array.copy(power) if power is x else power


def matrix_rank(x: AccelRef, /, *, rtol: float | AccelRef | None = None) -> AccelRef:
    """Return how many singular values are above `rtol` times the largest."""
    values = svdvals(x)
    return reduce("sum", _counts(x, values, rtol), -1, dtype="int64")


def outer(x1: AccelRef, x2: AccelRef, /) -> AccelRef:
    """Return the product of each element of a vector with each of another.

    Raises:
        InvalidArgument: one is no vector.
    """
    if x1.ndim != 1 or x2.ndim != 1:
        raise InvalidArgument(f"outer: {describe(x1)} and {describe(x2)} are not two vectors")
    return array.outer(x1, x2)


def pinv(x: AccelRef, /, *, rtol: float | AccelRef | None = None) -> AccelRef:
    """Return the Moore-Penrose inverses.

    Singular values that are not above `rtol` times the largest count as 0.
    """
    u, s, vh = svd(x, full_matrices=False)
    counts = _counts(x, s, rtol)
    weights = array.where(counts, 1 / array.where(counts, s, 1), 0)
    right, left = (array.conjugate(matrix_transpose(one)) for one in (u, vh))
    return matmul(left * array.cast(weights, x.dtype)[..., None, :], right)


def qr(x: AccelRef, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRParts:
    """Return orthonormal columns Q and upper triangular R of x = Q @ R.

    Raises:
        InvalidArgument: there is no such mode.
    """
    if mode not in ("reduced", "complete"):
        raise InvalidArgument(f"qr: mode is {mode!r}; it may be 'reduced' or 'complete'")
    q, r = solver.qr(x, complete=mode == "complete")
    assert q is not None
    return QRParts(q, r)


def slogdet(x: AccelRef, /) -> SlogdetParts:
    """Return the sign and the logarithm of the magnitude of the determinants."""
    return SlogdetParts(*solver.slogdet(x))


def solve(x1: AccelRef, x2: AccelRef, /) -> AccelRef:
    """Return the solutions of x1 @ x = x2, of a vector or of matrices; stacks broadcast."""
    if x2.ndim == 1:
        return solve(x1, x2[:, None])[..., 0]
    stack, dtype = broadcast_shapes(x1.shape[:-2], x2.shape[:-2]), result_type(x1, x2)
    a, b = (
        x if x.shape[:-2] in ((), stack) else broadcast_to(x, (*stack, *x.shape[-2:]))
        for x in (x1, x2)
    )
    return solver.solve(astype(a, dtype, copy=False), astype(b, dtype, copy=False))


def svd(x: AccelRef, /, *, full_matrices: bool = True) -> SVDParts:
    """Return U, S and Vh of x = U @ diag(S) @ Vh, S descending."""
    u, s, vh = solver.svd(x, full=full_matrices)
    assert u is not None
    assert vh is not None
    return SVDParts(u, s, vh)


def svdvals(x: AccelRef, /) -> AccelRef:
    """Return the singular values, descending."""
    return solver.svd(x, vectors=False).s


def trace(x: AccelRef, /, *, offset: int = 0, dtype: object = None) -> AccelRef:
    """Return the sum of a diagonal of each matrix."""
    return array.trace(x, offset, -2, -1, dtype)


def vector_norm(
    x: AccelRef,
    /,
    *,
    axis: Integers | None = None,
    keepdims: bool = False,
    ord: float = 2,  # noqa: A002 - the standard's name
) -> AccelRef:
    """Return the norm of order `ord` over axes, all by default; 0 counts what is not zero."""
    size = array.absolute(x)
    if ord in (math.inf, -math.inf):
        return reduce("max" if ord > 0 else "min", size, axis, keepdims=keepdims)
    if ord == 0:
        counted = array.cast(x != 0, size.dtype)
        return reduce("sum", counted, axis, keepdims=keepdims)
    if ord == 1:
        return reduce("sum", size, axis, keepdims=keepdims)
    if ord == 2:  # noqa: PLR2004 - a norm's name
        return array.sqrt(reduce("sum", size * size, axis, keepdims=keepdims))
    return reduce("sum", size**ord, axis, keepdims=keepdims) ** (1 / ord)


def _counts(x: AccelRef, values: AccelRef, rtol: float | AccelRef | None) -> AccelRef:
    """Return which singular values of `x` are above a share of the largest."""
    if not values.size:
        return values > 0
    if isinstance(rtol, AccelRef):
        return values > rtol[..., None] * values[..., :1]
    if rtol is None:
        rtol = max(x.shape[-2:]) * float(np.finfo(numpy_dtype(values.dtype)).eps)
    return values > rtol * values[..., :1]
