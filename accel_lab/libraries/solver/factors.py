"""Factorizations: QR, LU with pivots, Cholesky."""

from typing import Any, ClassVar, NamedTuple

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import AccelError
from accel_lab.libraries.authoring.operand import result
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.authoring.shaped import same
from accel_lab.libraries.solver.message import SolverMessage, indefinite, judged, singular


class QrParts(NamedTuple):
    """A QR factorization: a = q @ r."""

    q: AccelRef | None
    r: AccelRef


class Qr(SolverMessage[QrParts], frozen=True, tag=300):
    """Factor matrices as q @ r, with orthonormal columns of q and upper triangular r.

    For `a` (..., m, n) and k the lesser extent, `q` is (..., m, k) and `r` (..., k, n); if
    `complete` they are (..., m, m) and (..., m, n). Without `with_q` there is r alone. Infinities
    and NaNs are no error; they spread.
    """

    shapes: ClassVar = "(...,m,n)->?"
    asked_by: ClassVar = {"q": "with_q"}
    a: AccelRef
    _: Options
    complete: bool = False
    with_q: bool = True

    def makes(self) -> tuple[Spec | None, Spec]:
        """Return q and r."""
        a = self.a
        *stack, m, n = a.shape
        k = m if self.complete else min(m, n)
        q = result(self, (*stack, m, k), a.dtype) if self.with_q else None
        return q, result(self, (*stack, k, n), a.dtype)


class LuParts(NamedTuple):
    """An LU factorization: both triangles in one matrix, and the exchanges of rows."""

    lu: AccelRef
    pivots: AccelRef


class Lu(SolverMessage[LuParts], frozen=True, tag=301):
    """Factor matrices as P @ L @ U, with exchanges of rows; `LuSolve` solves with it.

    `lu` has U in its upper triangle, and below it L, whose diagonal of ones is left out. Row i was
    exchanged with row `pivots[..., i]`, an int64 from 0. A pivot that is exactly 0 fails with
    `SingularMatrix` unless `may_be_singular`.
    """

    shapes: ClassVar = "(...,m,n)->(...,m,n),(...,k); k=min(m,n)"
    results: ClassVar = (same, "int64")
    a: AccelRef
    _: Options
    may_be_singular: bool = False

    def judge(self, info: Any) -> AccelError | None:
        """Refuse a pivot that is 0."""
        return None if self.may_be_singular else judged(self, "a", info, singular)


class Cholesky(SolverMessage[AccelRef], frozen=True, tag=302):
    """Factor Hermitian positive definite matrices as L @ Lᴴ; `CholeskySolve` solves with it.

    Of `a` the lower triangle is read, and the answer is L with zeros above. If not `lower` it is
    the upper triangle, and U of Uᴴ @ U. `out` may be `a`. A minor that is not positive fails with
    `NotPositiveDefinite`.
    """

    shapes: ClassVar = "(...,n,n)->(...,n,n)"
    in_place: ClassVar = ("a",)
    a: AccelRef
    _: Options
    lower: bool = True
    out: AccelRef | None = None

    def judge(self, info: Any) -> AccelError | None:
        """Refuse a minor that is not positive."""
        return judged(self, "a", info, indefinite)
