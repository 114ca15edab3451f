"""Triangular systems, and incomplete factorizations that make such."""

from typing import Any, ClassVar

from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.libraries.authoring.operand import (
    Scalar,
    coefficient,
    describe,
    kind,
    plain,
    require_out,
)
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.sparse.matrix import SparseRef, Trans, Uplo, require_sparse
from accel_lab.libraries.sparse.message import (
    OfMatrix,
    require_dtype,
    require_extents,
    require_square,
    require_word,
)
from accel_lab.libraries.sparse.pivots import judged


class Triangular(OfMatrix[AccelRef], frozen=True):
    """The fields of `Spsv` and `Spsm`."""

    in_place: ClassVar = ("b",)
    b: AccelRef
    _: Options
    alpha: Factor = 1.0
    uplo: Uplo = "l"
    trans: Trans = "n"
    unit: bool = False
    out: AccelRef | None = None

    def require_solvable(self) -> int:
        """Return the order of the matrix.

        Raises:
            InvalidArgument: it is not square, or an option is none.
        """
        order = require_square(self)
        require_word(self, "uplo", self.uplo, ("l", "u"))
        require_word(self, "trans", self.trans, ("n", "t", "c"))
        require_dtype(self, "b")
        coefficient(self, "alpha", self.alpha, self.values.dtype)
        return order

    def judge(self, status: Any) -> AccelError | None:
        """Refuse a diagonal that is zero somewhere."""
        return judged(kind(self), status)


class Spsv(Triangular, frozen=True, tag=349):
    """Solve a sparse triangular system: op(a) @ x = alpha b, for a vector `b`.

    `uplo` says which triangle of the CSR matrix is read, and `unit` that its diagonal is ones and
    not read. `out` may be `b`. A zero on the diagonal fails it with `BadPivot`.
    """

    def infer(self) -> Spec:
        """Return a vector as `b`."""
        order = self.require_solvable()
        require_extents(self, "b", (order,), why=f" beside a matrix of {[order, order]}")
        made = Spec((order,), self.values.dtype)
        require_out(self, self.out, made, self.values, self.indices, self.pointers)
        return made


class Spsm(Triangular, frozen=True, tag=350):
    """Solve sparse triangular systems: op(a) @ x = alpha b, for each column of a matrix `b`.

    As `Spsv`.
    """

    def infer(self) -> Spec:
        """Return a matrix as `b`."""
        order = self.require_solvable()
        if self.b.ndim != len(("rows", "columns")) or self.b.shape[0] != order:
            text = f"Spsm: b is {describe(self.b)}, and is to be a matrix of {order} rows"
            raise InvalidArgument(f"{text}; Spsv takes vectors")
        made = Spec(self.b.shape, self.values.dtype)
        require_out(self, self.out, made, self.values, self.indices, self.pointers)
        return made


class Incomplete(OfMatrix[AccelRef], frozen=True):
    """A factorization that stores where the matrix does, and nowhere else."""

    uncaptured: ClassVar = "it waits for the device in each step"

    def infer(self) -> Spec:
        """Return as many values as are stored."""
        require_square(self)
        return Spec(self.values.shape, self.values.dtype)


class Ilu0(Incomplete, frozen=True, tag=351):
    """Factorize a square CSR matrix about into L @ U, stored where the matrix stores: ILU(0).

    The answer is the values of both, L below the diagonal, whose own is ones, and U from it on.
    There is no pivoting: a zero pivot fails it with `BadPivot`.
    """


class Ic0(Incomplete, frozen=True, tag=352):
    """Factorize a Hermitian CSR matrix about into L @ Lᴴ, stored where the matrix stores: IC(0).

    Only the lower triangle is read. The answer is the values of L, with zeros stored above the
    diagonal. A pivot that is not positive fails it with `BadPivot`.
    """


def spsv(
    a: SparseRef,
    b: AccelRef,
    *,
    alpha: Scalar = 1.0,
    uplo: Uplo = "l",
    trans: Trans = "n",
    unit: bool = False,
    out: AccelRef | None = None,
) -> AccelRef:
    """Solve a sparse triangular system, as `Spsv`; does not block.

    A matrix that is not CSR is converted to it first.

    Raises:
        InvalidArgument: the operands or options do not fit.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    a = require_sparse("Spsv", "a", a).tocsr()
    words: Any = {"alpha": plain(alpha), "uplo": uplo, "trans": trans, "unit": unit, "out": out}
    return device_of(a.values).ask(Spsv(*a.parts, a.shape, "csr", b, **words))


def spsm(
    a: SparseRef,
    b: AccelRef,
    *,
    alpha: Scalar = 1.0,
    uplo: Uplo = "l",
    trans: Trans = "n",
    unit: bool = False,
    out: AccelRef | None = None,
) -> AccelRef:
    """Solve sparse triangular systems, as `Spsm`; does not block.

    A matrix that is not CSR is converted to it first.

    Raises:
        InvalidArgument: the operands or options do not fit.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    a = require_sparse("Spsm", "a", a).tocsr()
    words: Any = {"alpha": plain(alpha), "uplo": uplo, "trans": trans, "unit": unit, "out": out}
    return device_of(a.values).ask(Spsm(*a.parts, a.shape, "csr", b, **words))


def ilu0(a: SparseRef) -> SparseRef:
    """Factorize about into L @ U, as `Ilu0`; return both in one matrix. Does not block.

    Raises:
        InvalidArgument: the matrix is not square.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    a = require_sparse("Ilu0", "a", a).tocsr()
    values = device_of(a.values).ask(Ilu0(*a.parts, a.shape, "csr"))
    return SparseRef("csr", a.shape, a.index_dtype, values, a.indices, a.pointers)


def ic0(a: SparseRef) -> SparseRef:
    """Factorize about into L @ Lᴴ, as `Ic0`; return L. Does not block.

    Raises:
        InvalidArgument: the matrix is not square.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    a = require_sparse("Ic0", "a", a).tocsr()
    values = device_of(a.values).ask(Ic0(*a.parts, a.shape, "csr"))
    return SparseRef("csr", a.shape, a.index_dtype, values, a.indices, a.pointers)
