"""Singular values and eigenvalues, with their vectors."""

from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import AccelError
from accel_lab.libraries.authoring.operand import result
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.authoring.shaped import complex_of, real_of, same
from accel_lab.libraries.solver.message import (
    SolverMessage,
    indefinite,
    judged,
    require_count,
    require_one_of,
    unconverged,
)

Driver: TypeAlias = Literal["auto", "gesvd", "gesvdj"]
"""How singular values are found: by the QR iteration, by Jacobi's rotations, or as is best."""
_DRIVERS: tuple[Driver, ...] = ("auto", "gesvd", "gesvdj")


class SvdParts(NamedTuple):
    """A singular value decomposition: a = (u * s[..., None, :]) @ vh."""

    u: AccelRef | None
    s: AccelRef
    vh: AccelRef | None


class Svd(SolverMessage[SvdParts], frozen=True, tag=310):
    """Decompose matrices as u @ diag(s) @ vh, with orthonormal u and vh; s descends.

    For `a` (..., m, n) and k the lesser extent, `u` is (..., m, k), `s` (..., k) and `vh`
    (..., k, n); if `full`, `u` is (..., m, m) and `vh` (..., n, n). Without `vectors` there is s
    alone. `driver` is "gesvd" (the QR iteration), "gesvdj" (Jacobi's rotations) or "auto". A matrix
    with an infinity or a NaN fails with `NotFinite`, and an iteration with `NotConverged`.
    """

    shapes: ClassVar = "(...,m,n)->?"
    asked_by: ClassVar = {"u": "vectors", "vh": "vectors"}
    a: AccelRef
    _: Options
    full: bool = False
    vectors: bool = True
    driver: Driver = "auto"

    def makes(self) -> tuple[Spec | None, Spec, Spec | None]:
        """Return u, s and vh."""
        require_one_of(self, "driver", _DRIVERS)
        dtype = self.a.dtype
        *stack, m, n = self.a.shape
        k = min(m, n)
        s = Spec((*stack, k), real_of(dtype))
        if not self.vectors:
            return None, s, None
        columns, rows = (m, n) if self.full else (k, k)
        u, vh = result(self, (*stack, m, columns), dtype), result(self, (*stack, rows, n), dtype)
        return u, s, vh

    def judge(self, info: Any) -> AccelError | None:
        """Refuse a matrix whose singular values were not found."""
        return judged(self, "a", info, unconverged)


class LowRank(NamedTuple):
    """The leading part of a singular value decomposition."""

    u: AccelRef
    s: AccelRef
    vh: AccelRef


class RandomizedSvd(SolverMessage[LowRank], frozen=True, tag=311):
    """Approximate the `k` largest singular values and their vectors (Halko et al., 2011).

    The range of `a` (..., m, n) is found with `k + oversampling` random vectors and as many
    `iterations` of a @ aᴴ, which is far less work than `Svd` where k is small. `u` is (..., m, k),
    `s` (..., k), `vh` (..., k, n); k is at most the lesser extent. The same `seed` gives the same
    vectors on every backend. What fails is that of `Svd`.
    """

    shapes: ClassVar = "(...,m,n)->?"
    a: AccelRef
    k: int
    _: Options
    oversampling: int = 10
    iterations: int = 2
    seed: int = 0

    def makes(self) -> tuple[Spec, Spec, Spec]:
        """Return u, s and vh."""
        for name in ("k", "oversampling", "iterations", "seed"):
            require_count(self, name)
        dtype = self.a.dtype
        *stack, m, n = self.a.shape
        k = min(self.k, m, n)
        return (
            Spec((*stack, m, k), dtype),
            Spec((*stack, k), real_of(dtype)),
            Spec((*stack, k, n), dtype),
        )

    def judge(self, info: Any) -> AccelError | None:
        """Refuse a matrix whose singular values were not found."""
        return judged(self, "a", info, unconverged)


class Eigenpairs(NamedTuple):
    """Eigenvalues, and the eigenvectors as columns: a @ v = v * w[..., None, :]."""

    w: AccelRef
    v: AccelRef | None


class Eigh(SolverMessage[Eigenpairs], frozen=True, tag=312):
    """Find the eigenvalues, real and ascending, of symmetric or Hermitian matrices.

    With `vectors`, the columns of `v` are orthonormal eigenvectors. Of `a` (..., n, n) the lower
    triangle is read, or the upper one if not `lower`; its diagonal is taken to be real. What fails
    is that of `Svd`.
    """

    shapes: ClassVar = "(...,n,n)->(...,n),(...,n,n)"
    results: ClassVar = (real_of, same)
    asked_by: ClassVar = {"v": "vectors"}
    a: AccelRef
    _: Options
    lower: bool = True
    vectors: bool = True

    def judge(self, info: Any) -> AccelError | None:
        """Refuse a matrix whose eigenvalues were not found."""
        return judged(self, "a", info, unconverged)


class EighGeneral(SolverMessage[Eigenpairs], frozen=True, tag=313):
    """Find the eigenvalues, real and ascending, of Hermitian `a` with positive definite `b`.

    `itype` says of which problem: 1 is a @ v = b @ v * w, 2 is a @ b @ v = v * w, 3 is b @ a @ v =
    v * w. Then vᴴ @ b @ v is the identity; for 3 it is vᴴ @ inv(b) @ v. Of both one triangle is
    read as by `Eigh`. A `b` that is not positive definite fails with `NotPositiveDefinite`.
    """

    shapes: ClassVar = "(...,n,n),(...,n,n)->(...,n),(...,n,n)"
    results: ClassVar = (real_of, same)
    asked_by: ClassVar = {"v": "vectors"}
    a: AccelRef
    b: AccelRef
    _: Options
    itype: int = 1
    lower: bool = True
    vectors: bool = True

    def check(self) -> None:
        """Refuse a problem that is none of the three."""
        require_one_of(self, "itype", (1, 2, 3))

    def judge(self, info: Any) -> AccelError | None:
        """Refuse a matrix that does not do (LAPACK's sygvd)."""
        n = self.a.shape[-1]
        order = info - n
        if (order > 0).any():
            return judged(self, "b", order.clip(0), indefinite)
        return judged(self, "a or b", info, unconverged)


class Eig(SolverMessage[Eigenpairs], frozen=True, tag=314):
    """Find the eigenvalues, complex and in no order, of square matrices.

    With `vectors`, the columns of `v` are eigenvectors of norm 1. Both are complex for real `a`
    too. What fails is that of `Svd`.
    """

    shapes: ClassVar = "(...,n,n)->(...,n),(...,n,n)"
    results: ClassVar = (complex_of, complex_of)
    asked_by: ClassVar = {"v": "vectors"}
    a: AccelRef
    _: Options
    vectors: bool = True

    def judge(self, info: Any) -> AccelError | None:
        """Refuse a matrix whose eigenvalues were not found."""
        return judged(self, "a", info, unconverged)
