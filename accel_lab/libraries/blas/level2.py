"""Level 2 of BLAS beside the general product: rank-1 updates, half and banded matrices."""

from typing import ClassVar

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.operand import describe
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.blas.message import BlasMessage, Trans, Uplo, require_options


class Ger(BlasMessage, frozen=True, tag=153):
    """Add an outer product: alpha x yᵀ + a, with `x` (m,), `y` (n,) and `a` (m, n).

    There may be no `a`. With `conjugate` it is `y`'s conjugates that count. `out` may be `a`.
    """

    shapes: ClassVar = "(m),(n),(m,n)?->(m,n)"
    dtypes: ClassVar = SINGLE_AND_DOUBLE
    in_place: ClassVar = ("a",)
    x: AccelRef
    y: AccelRef
    a: AccelRef | None = None
    _: Options
    alpha: Factor = 1.0
    conjugate: bool = False
    out: AccelRef | None = None


class HalfProduct(BlasMessage, frozen=True):
    """The fields of `Symv` and `Hemv`."""

    shapes: ClassVar = "(n,n),(n),(n)?->(n)"
    dtypes: ClassVar = SINGLE_AND_DOUBLE
    scaled_by: ClassVar = {"y": "beta"}
    in_place: ClassVar = ("y",)
    a: AccelRef
    x: AccelRef
    y: AccelRef | None = None
    _: Options
    alpha: Factor = 1.0
    beta: Factor | None = None
    uplo: Uplo = "l"
    out: AccelRef | None = None

    def check(self) -> None:
        """Refuse an option that is none."""
        require_options(self, "uplo")


class Symv(HalfProduct, frozen=True, tag=154):
    """Multiply a symmetric matrix and a vector: alpha a @ x + beta y.

    Of `a` the triangle `uplo` is read, "l" (lower) or "u" (upper). `y` and `beta` come together.
    """


class Hemv(HalfProduct, frozen=True, tag=155):
    """Multiply a Hermitian matrix and a vector: alpha a @ x + beta y.

    Of `a` the triangle `uplo` is read, "l" (lower) or "u" (upper), and its diagonal is to be real.
    `y` and `beta` come together.
    """


class Triangular(BlasMessage, frozen=True):
    """What `Trmv` and `Trsv` refuse."""

    dtypes: ClassVar = SINGLE_AND_DOUBLE

    def check(self) -> None:
        """Refuse an option that is none."""
        require_options(self, "uplo", "trans")


class Trmv(Triangular, frozen=True, tag=156):
    """Multiply a triangular matrix and a vector: op(a) @ x.

    `a` is lower ("l") or upper ("u") triangular, as `uplo` says, and the rest of it is not read;
    nor is its diagonal if it is `unit`, which is ones. `out` may be `x`.
    """

    shapes: ClassVar = "(n,n),(n)->(n)"
    in_place: ClassVar = ("x",)
    a: AccelRef
    x: AccelRef
    _: Options
    uplo: Uplo = "l"
    trans: Trans = "n"
    unit: bool = False
    out: AccelRef | None = None


class Trsv(Triangular, frozen=True, tag=157):
    """Solve a triangular system: op(a) @ x = b.

    `a` is read as by `Trmv`. A zero on its diagonal is no error: there are infinities or NaNs in
    the answer then. `out` may be `b`.
    """

    shapes: ClassVar = "(n,n),(n)->(n)"
    in_place: ClassVar = ("b",)
    a: AccelRef
    b: AccelRef
    _: Options
    uplo: Uplo = "l"
    trans: Trans = "n"
    unit: bool = False
    out: AccelRef | None = None


class Gbmv(BlasMessage, frozen=True, tag=158):
    """Multiply a banded matrix and a vector: alpha A @ x + beta y, with A (m, n).

    `a` (m, k) has a row for each row of A: its `kl` elements left of the diagonal, that on it, and
    those to the right, `a[i, kl + j - i]` for A[i, j]. What lies outside of A is not read. `y` (m,)
    and `beta` come together.
    """

    shapes: ClassVar = "(m,k),(n),(m)?->(m)"
    dtypes: ClassVar = SINGLE_AND_DOUBLE
    scaled_by: ClassVar = {"y": "beta"}
    in_place: ClassVar = ("y",)
    a: AccelRef
    x: AccelRef
    kl: int
    y: AccelRef | None = None
    _: Options
    alpha: Factor = 1.0
    beta: Factor | None = None
    out: AccelRef | None = None

    def check(self) -> None:
        """Refuse more diagonals below the main one than there are."""
        if not 0 <= self.kl < max(1, self.a.shape[1]):
            raise InvalidArgument(
                f"Gbmv: kl is {self.kl!r}, and a {describe(self.a)} has {self.a.shape[1]} "
                "diagonals, of which the main one is at kl"
            )
