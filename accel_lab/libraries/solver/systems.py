"""Systems of equations, inverses, determinants and least squares."""

from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.libraries.authoring.operand import (
    arrived,
    describe,
    kind,
    one_dtype,
    require_out,
    result,
)
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.authoring.shaped import real_of, same
from accel_lab.libraries.solver.message import (
    SolverMessage,
    judged,
    require_one_of,
    singular,
    unconverged,
)

Trans: TypeAlias = Literal["n", "t", "c"]
_TRANS: tuple[Trans, ...] = ("n", "t", "c")


class Solve(SolverMessage[AccelRef], frozen=True, tag=303):
    """Solve a @ x = b for square matrices, by LU with exchanges of rows.

    `a` is (..., n, n) and `b` (..., n, r) with equal leading axes; one that has none serves the
    whole stack. `out` may be `b`. A pivot that is exactly 0 fails with `SingularMatrix`.
    """

    shapes: ClassVar = "(...?,n,n),(...?,n,r)->(...,n,r)"
    in_place: ClassVar = ("b",)
    a: AccelRef
    b: AccelRef
    _: Options
    out: AccelRef | None = None

    def judge(self, info: Any) -> AccelError | None:
        """Refuse a pivot that is 0."""
        return judged(self, "a", info, singular)


class LuSolve(SolverMessage[AccelRef], frozen=True, tag=304):
    """Solve op(a) @ x = b with what `Lu` made of square `a`.

    `lu` is (..., n, n), `pivots` (..., n) and `b` (..., n, r) with equal leading axes, or `lu` and
    `pivots` without any. `trans` is "n" (a itself), "t" (transposed) or "c" (conjugate-transposed).
    `out` may be `b`. A pivot outside of the rows counts as the nearest one.
    """

    lu: AccelRef
    pivots: AccelRef
    b: AccelRef
    _: Options
    trans: Trans = "n"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of `b` once all fits."""
        lu, pivots, b = self.lu, self.pivots, self.b
        one_dtype(self, lu, b)
        if pivots.dtype != "int64":
            raise InvalidArgument(f"{kind(self)}: pivots is {describe(pivots)}, and is to be int64")
        require_one_of(self, "trans", _TRANS)
        for name, ref, axes in (("lu", lu, 2), ("pivots", pivots, 1), ("b", b, 2)):
            if ref.ndim < axes:
                raise self._refusal(f"{name} is {describe(ref)}, which lacks an axis")
        n = lu.shape[-1]
        if lu.shape[-2] != n or pivots.shape != lu.shape[:-1] or b.shape[-2] != n:
            raise self._refusal("the extents differ")
        if lu.ndim != len("nn") and b.shape[:-2] not in ((), lu.shape[:-2]):
            raise self._refusal("the leading axes differ")
        stack = lu.shape[:-2] or b.shape[:-2]
        spec = result(self, (*stack, *b.shape[-2:]), b.dtype)
        require_out(self, self.out, spec, lu, pivots)
        return spec

    def _refusal(self, reason: str) -> InvalidArgument:
        given = ", ".join(f"{name} {describe(getattr(self, name))}" for name in self._operands)
        takes = "(...?,n,n),(...?,n),(...?,n,r)->(...,n,r)"
        return InvalidArgument(f"{kind(self)}: {reason} in {given}; it takes {takes}")

    @property
    def _operands(self) -> tuple[str, str, str]:
        return "lu", "pivots", "b"


class CholeskySolve(SolverMessage[AccelRef], frozen=True, tag=305):
    """Solve a @ x = b with what `Cholesky` made of `a`, with the same `lower`.

    `c` is (..., n, n) and `b` (..., n, r) with equal leading axes; one that has none serves the
    whole stack. Of `c` one triangle is read. `out` may be `b`.
    """

    shapes: ClassVar = "(...?,n,n),(...?,n,r)->(...,n,r)"
    in_place: ClassVar = ("b",)
    c: AccelRef
    b: AccelRef
    _: Options
    lower: bool = True
    out: AccelRef | None = None


class Inv(SolverMessage[AccelRef], frozen=True, tag=306):
    """Invert square matrices; to solve a system, `Solve` is faster and more accurate.

    `out` may be `a`. A pivot that is exactly 0 fails with `SingularMatrix`.
    """

    shapes: ClassVar = "(...,n,n)->(...,n,n)"
    in_place: ClassVar = ("a",)
    a: AccelRef
    _: Options
    out: AccelRef | None = None

    def judge(self, info: Any) -> AccelError | None:
        """Refuse a pivot that is 0."""
        return judged(self, "a", info, singular)


class Det(SolverMessage[AccelRef], frozen=True, tag=307):
    """Compute determinants, by LU; that of a singular matrix is 0, and no error.

    It is a product of n numbers, which may be too large or too small for the dtype: see `Slogdet`.
    """

    shapes: ClassVar = "(...,n,n)->(...)"
    a: AccelRef


class SlogdetParts(NamedTuple):
    """A determinant: sign * exp(logabsdet)."""

    sign: AccelRef
    logabsdet: AccelRef


class Slogdet(SolverMessage[SlogdetParts], frozen=True, tag=308):
    """Compute the sign and the logarithm of the magnitude of determinants.

    They neither overflow nor underflow. A complex sign has the magnitude 1. Of a singular matrix
    they are 0 and minus infinity.
    """

    shapes: ClassVar = "(...,n,n)->(...),(...)"
    results: ClassVar = (same, real_of)
    a: AccelRef


class LstsqParts(NamedTuple):
    """A least squares solution, and what was found of the matrix."""

    x: AccelRef
    rank: AccelRef
    s: AccelRef


class Lstsq(SolverMessage[LstsqParts], frozen=True, tag=309):
    """Find the x of least norm among those for which the norm of a @ x - b is least, by SVD.

    `a` is (..., m, n) of any rank and `b` (..., m, r); `x` is (..., n, r), `rank` int64 (...) and
    `s` the singular values. Those below `rcond` times the largest count as 0; if it is None that is
    the dtype's epsilon times the greater of m and n.
    """

    shapes: ClassVar = "(...,m,n),(...,m,r)->(...,n,r),(...),(...,k); k=min(m,n)"
    results: ClassVar = (same, "int64", real_of)
    a: AccelRef
    b: AccelRef
    _: Options
    rcond: Factor | None = None

    def check(self) -> None:
        """Refuse a bound that is none."""
        rcond: Any = arrived(self.rcond)
        if rcond is not None and (isinstance(rcond, complex) or not rcond >= 0):
            raise InvalidArgument(
                f"{kind(self)}: rcond is {rcond!r}; it is a number from 0, or None"
            )

    def judge(self, info: Any) -> AccelError | None:
        """Refuse a matrix whose singular values were not found."""
        return judged(self, "a", info, unconverged)
