"""Level 2 of BLAS beside the general product: rank-1 updates, half and banded matrices."""

from typing import ClassVar

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.operand import MAX_ELEMENTS, describe
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
    """Multiply a banded matrix and a vector: alpha op(A) @ x + beta y.

    `a` (m, k) has a row for each row of A: its `kl` elements left of the diagonal, that on it, and
    those to the right, `a[i, kl + j - i]` for A[i, j]. What lies outside of A is not read. `trans`
    is as of `Gemv`. Turned, A has `n` columns, as many as `y` if that is given; else it has as many
    as `x`. `y` and `beta` come together.
    """

    shapes: ClassVar = "(m,k),(p),(q)?->?"
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
    trans: Trans = "n"
    n: int | None = None

    def check(self) -> None:
        """Refuse more diagonals below the main one than there are, and vectors that do not fit."""
        require_options(self, "trans")
        rows, diagonals = self.a.shape
        if not 0 <= self.kl < max(1, diagonals):
            raise InvalidArgument(
                f"Gbmv: kl is {self.kl!r}, and a {describe(self.a)} has {diagonals} "
                "diagonals, of which the main one is at kl"
            )
        columns = self.columns()
        taken, made = (columns, rows) if self.trans == "n" else (rows, columns)
        for name, ref, extent in (("x", self.x, taken), ("y", self.y, made)):
            if ref is not None and ref.shape != (extent,):
                text = f"{name} is {describe(ref)}, and op(A) of A ({rows}, {columns}) takes"
                raise InvalidArgument(f"Gbmv: {text} {extent} elements there")

    def columns(self) -> int:
        """Return how many columns A has.

        Raises:
            InvalidArgument: nothing says it.
        """
        beside = self.x if self.trans == "n" else self.y
        n = self.n
        if n is not None and (type(n) is not int or not 0 <= n <= MAX_ELEMENTS):
            raise InvalidArgument(f"Gbmv: n is {n!r}, and is to be how many columns A has")
        if n is None and beside is None:
            text = "say n, how many columns A has: there is no y that does"
            raise InvalidArgument(f"Gbmv: trans is {self.trans!r}; {text}")
        return n if n is not None else beside.shape[0]  # type: ignore[union-attr]

    def makes(self) -> Spec:
        """Return the extent of op(A)'s rows."""
        extent = self.a.shape[0] if self.trans == "n" else self.columns()
        return Spec((extent,), self.a.dtype)
