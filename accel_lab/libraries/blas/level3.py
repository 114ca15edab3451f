"""Level 3 of BLAS beside the general product: half matrices, triangular systems, sums."""

from typing import ClassVar

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.authoring.dtype_sets import SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.blas.message import (
    BlasMessage,
    Side,
    Trans,
    Uplo,
    require_options,
    require_real,
    require_side,
)


class HalfTimes(BlasMessage, frozen=True):
    """The fields of `Symm` and `Hemm`."""

    shapes: ClassVar = "(p,p),(m,n),(m,n)?->(m,n)"
    dtypes: ClassVar = SINGLE_AND_DOUBLE
    scaled_by: ClassVar = {"c": "beta"}
    in_place: ClassVar = ("c",)
    a: AccelRef
    b: AccelRef
    c: AccelRef | None = None
    _: Options
    alpha: Factor = 1.0
    beta: Factor | None = None
    side: Side = "l"
    uplo: Uplo = "l"
    out: AccelRef | None = None

    def check(self) -> None:
        """Refuse an option that is none, and an `a` that does not fit its side."""
        require_options(self, "side", "uplo")
        require_side(self, "a", self.b)


class Symm(HalfTimes, frozen=True, tag=159):
    """Multiply by a symmetric matrix: alpha a @ b + beta c, or alpha b @ a + beta c on side "r".

    Of `a` the triangle `uplo` is read, "l" (lower) or "u" (upper). `c` and `beta` come together.
    """


class Hemm(HalfTimes, frozen=True, tag=160):
    """Multiply by a Hermitian matrix: alpha a @ b + beta c, or alpha b @ a + beta c on side "r".

    Of `a` the triangle `uplo` is read, "l" (lower) or "u" (upper), and its diagonal is to be real.
    `c` and `beta` come together.
    """


class HalfUpdate(BlasMessage, frozen=True):
    """The fields of `Syrk` and `Herk`."""

    shapes: ClassVar = "trans(n,k),(n,n)?->(n,n)"
    dtypes: ClassVar = SINGLE_AND_DOUBLE
    scaled_by: ClassVar = {"c": "beta"}
    in_place: ClassVar = ("c",)
    a: AccelRef
    c: AccelRef | None = None
    _: Options
    alpha: Factor = 1.0
    beta: Factor | None = None
    uplo: Uplo = "l"
    trans: Trans = "n"
    out: AccelRef | None = None

    def check(self) -> None:
        """Refuse an option that is none."""
        require_options(self, "uplo")


class Syrk(HalfUpdate, frozen=True, tag=161):
    """Multiply a matrix with its transpose: the triangle `uplo` of alpha op(a) @ op(a)ᵀ + beta c.

    The other triangle of the answer is that of `c`, which is not computed with; it is zero where
    there is no `c`, or where `beta` is 0. `c` and `beta` come together.
    """


class Herk(HalfUpdate, frozen=True, tag=162):
    """Multiply a matrix with its adjoint: the triangle `uplo` of alpha op(a) @ op(a)ᴴ + beta c.

    `alpha` and `beta` are real, the diagonal of `c` is taken to be, and that of the answer is.
    The other triangle is as of `Syrk`.
    """

    def check(self) -> None:
        """Refuse an option that is none, and factors that would leave it not Hermitian."""
        require_options(self, "uplo")
        require_real(self, "alpha", "beta")


class TriangularTimes(BlasMessage, frozen=True):
    """The fields of `Trmm` and `Trsm`."""

    shapes: ClassVar = "(...?,p,p),(...?,m,n)->(...,m,n)"
    dtypes: ClassVar = SINGLE_AND_DOUBLE
    in_place: ClassVar = ("b",)
    a: AccelRef
    b: AccelRef
    _: Options
    alpha: Factor = 1.0
    side: Side = "l"
    uplo: Uplo = "l"
    trans: Trans = "n"
    unit: bool = False
    out: AccelRef | None = None

    def check(self) -> None:
        """Refuse an option that is none, and an `a` that does not fit its side."""
        require_options(self, "side", "uplo", "trans")
        require_side(self, "a", self.b)


class Trmm(TriangularTimes, frozen=True, tag=163):
    """Multiply by a triangular matrix: alpha op(a) @ b, or alpha b @ op(a) on side "r".

    `a` is lower ("l") or upper ("u") triangular, as `uplo` says, and the rest of it is not read;
    nor is its diagonal if it is `unit`, which is ones. Both may be stacks with equal batch axes; a
    single matrix is used for the whole stack. A NaN in `b` may count for the whole of its column,
    or its row on side "r". `out` may be `b`.
    """


class Trsm(TriangularTimes, frozen=True, tag=164):
    """Solve triangular systems: op(a) @ x = alpha b, or x @ op(a) = alpha b on side "r".

    `a` is read as by `Trmm`, and there are stacks as there. A zero on its diagonal is no error:
    there are infinities or NaNs in the answer then. `out` may be `b`.
    """


class Geam(BlasMessage, frozen=True, tag=165):
    """Add matrices, turned or not: alpha op(a) + beta op(b), both (m, n).

    An operand whose factor is 0 does not count: no infinity or NaN there does.
    """

    shapes: ClassVar = "trans_a(m,n),trans_b(m,n)->(m,n)"
    dtypes: ClassVar = SINGLE_AND_DOUBLE
    a: AccelRef
    b: AccelRef
    _: Options
    alpha: Factor = 1.0
    beta: Factor = 1.0
    trans_a: Trans = "n"
    trans_b: Trans = "n"
    out: AccelRef | None = None


class Dgmm(BlasMessage, frozen=True, tag=166):
    """Scale the rows of a matrix, diag(x) @ a, or its columns on side "r", a @ diag(x).

    `out` may be `a`.
    """

    shapes: ClassVar = "(p),(m,n)->(m,n)"
    dtypes: ClassVar = SINGLE_AND_DOUBLE
    in_place: ClassVar = ("a",)
    x: AccelRef
    a: AccelRef
    _: Options
    side: Side = "l"
    out: AccelRef | None = None

    def check(self) -> None:
        """Refuse an option that is none, and an `x` that does not fit its side."""
        require_options(self, "side")
        require_side(self, "x", self.a)
