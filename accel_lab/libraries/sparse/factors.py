"""A sparse matrix that is factorized once, and solved with as often as there are right sides."""

from dataclasses import dataclass
from typing import ClassVar

from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.operand import describe
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.sparse.matrix import SparseRef, Trans, require_sparse
from accel_lab.libraries.sparse.message import OfMatrix, require_square, require_word


class SparseFactors:
    """The factors of a sparse matrix, as a device keeps them."""


class Factorize(OfMatrix[Handle[SparseFactors]], frozen=True, tag=367):
    """Factorize a square CSR matrix as L @ U, with exchanges of rows and columns, and keep it.

    The factors are SuperLU's, which the processor finds; on `cuda` the device has them and solves.
    A singular matrix fails it with `BadPivot`.
    """

    def infer(self) -> None:
        """Refuse what is no square CSR matrix; what is made is no buffer."""
        require_square(self)


class FactorSolve(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=368):
    """Solve op(a) @ x = b with the factors of a matrix, for `b` of (n,) or (n, r).

    `trans` is "n" (as it is), "t" (transposed) or "c" (conjugate-transposed).
    """

    library: ClassVar[str] = "sparse"
    dtypes: ClassVar = SINGLE_AND_DOUBLE
    factors: Handle[SparseFactors]
    b: AccelRef
    _: Options
    trans: Trans = "n"

    def infer(self) -> Spec:
        """Return what has the shape of `b`."""
        require_word(self, "trans", self.trans, ("n", "t", "c"))
        if self.b.ndim not in (1, 2):
            text = f"FactorSolve: b is {describe(self.b)}, and is to be (n,) or (n, r)"
            raise InvalidArgument(text)
        return Spec(self.b.shape, self.b.dtype)

    def require_fit(self, order: int, dtype: str) -> None:
        """Refuse right sides that are not of the factors' matrix.

        Raises:
            InvalidArgument: they have another dtype, or not as many rows.
        """
        if self.b.shape[0] != order or self.b.dtype != dtype:
            text = f"FactorSolve: b is {describe(self.b)}, and the factors are {dtype} of {order}"
            raise InvalidArgument(f"{text} rows")


@dataclass(frozen=True, eq=False)
class Factored:
    """A sparse matrix that is factorized: `f.solve(b)`.

    Attributes:
        order: its rows, and columns.
        dtype: of its values.
        factors: the handle of what the device keeps.
    """

    order: int
    dtype: str
    factors: Handle[SparseFactors]

    def solve(self, b: AccelRef, *, trans: Trans = "n") -> AccelRef:
        """Solve op(a) @ x = b, as `FactorSolve`; does not block.

        Raises:
            InvalidArgument: `b` or `trans` does not fit.
        """
        return factor_solve(self, b, trans=trans)

    def result(self, timeout_s: float | None = None) -> "Factored":
        """Wait until it is factorized, and return it."""
        self.factors.result(timeout_s)
        return self

    def free(self) -> None:
        """Give the memory of the factors back; does not block."""
        self.factors.free()


def factorize(a: SparseRef) -> Factored:
    """Factorize a sparse matrix, as `Factorize`, to solve with it more than once; does not block.

    Raises:
        InvalidArgument: it is no square sparse matrix.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    a = require_sparse("Factorize", "a", a).tocsr()
    made = device_of(a.values).ask(Factorize(*a.parts, a.shape, "csr"))
    return Factored(a.shape[0], a.values.dtype, made)


def factor_solve(a: Factored, b: AccelRef, *, trans: Trans = "n") -> AccelRef:
    """Solve op(a) @ x = b with the factors of a matrix, as `FactorSolve`; does not block.

    Raises:
        InvalidArgument: an operand or `trans` does not fit.
    """
    if not isinstance(a, Factored):
        text = f"factor_solve: a is {type(a).__name__}, and is to be Factored"
        raise InvalidArgument(f"{text}; sparse.factorize(a) makes it")
    message = FactorSolve(a.factors, b, trans=trans)
    device = device_of(b)
    if b.known and b.ndim in (1, 2):
        message.require_fit(a.order, a.dtype)
    return device.ask(message)


__all__ = ["FactorSolve", "Factored", "Factorize", "SparseFactors", "factor_solve", "factorize"]
