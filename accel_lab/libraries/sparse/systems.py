"""Systems of equations with a sparse matrix: by iteration, and directly."""

from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import Directive, InvalidArgument, LibraryError
from accel_lab.libraries.authoring.operand import describe, kind, plain
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.sparse.matrix import SparseRef, require_sparse
from accel_lab.libraries.sparse.message import (
    OfMatrix,
    require_dtype,
    require_extents,
    require_square,
    require_word,
)
from accel_lab.libraries.sparse.triangular import ic0, ilu0

Preconditioner: TypeAlias = Literal["none", "jacobi", "ilu0", "ic0"]
PRECONDITIONERS = ("none", "jacobi", "ilu0", "ic0")
_FACTORED = {"ilu0": ilu0, "ic0": ic0}


class NotConverged(LibraryError, fields=("iterations", "residual")):
    """An iteration did not come as near to the solution as was asked for.

    Attributes:
        iterations: how many there were.
        residual: the norm of b - a @ x after the last one, relative to that of b.
    """

    directive = Directive.RESUME  # the library is well, the system is hard
    remedy = "Give it a preconditioner, more iterations, a greater rtol, or must_converge=False."
    iterations: int = 0
    residual: float = 0.0


class Solution(NamedTuple):
    """What an iteration has found.

    Attributes:
        iterations: how many there were, int64 without axes.
        residual: the norm of b - a @ x, relative to that of b; float64 without axes.
    """

    x: AccelRef
    iterations: AccelRef
    residual: AccelRef


class Iteration(OfMatrix[Solution], frozen=True):
    """The fields of the iterations: a @ x = b for a square CSR matrix.

    It ends where the norm of b - a @ x is at most `rtol` times that of b, as SciPy's, or after
    `maxiter` iterations, 10 n if that is 0: then it fails with `NotConverged` if `must_converge`.
    `factor` has the values that `Ilu0` or `Ic0` made of the matrix, for these preconditioners.
    """

    uncaptured: ClassVar = "it waits for the device in each step"
    b: AccelRef
    x0: AccelRef | None = None
    factor: AccelRef | None = None
    _: Options
    preconditioner: Preconditioner = "none"
    rtol: float = 1e-5
    maxiter: int = 0
    must_converge: bool = True

    def infer(self) -> tuple[Spec, Spec, Spec]:
        """Return a vector as `b`, and two numbers."""
        order = require_square(self)
        require_dtype(self, "b", "x0", "factor")
        why = f" beside a matrix of {[order, order]}"
        require_extents(self, "b", (order,), why=why)
        require_extents(self, "x0", (order,), why=why)
        require_word(self, "preconditioner", self.preconditioner, PRECONDITIONERS)
        if (self.preconditioner in _FACTORED) != (self.factor is not None):
            text = f"preconditioner is {self.preconditioner!r} and factor {self.factor!r}"
            raise InvalidArgument(f"{kind(self)}: {text}; 'ilu0' and 'ic0' have one, others none")
        require_extents(self, "factor", self.values.shape, why=", a value for each of the matrix")
        if type(self.rtol) not in (int, float) or not self.rtol >= 0:
            raise InvalidArgument(f"{kind(self)}: rtol is {self.rtol!r}, and is to be 0 or more")
        _require_count(self, "maxiter", 0)
        return Spec((order,), self.values.dtype), Spec((), "int64"), Spec((), "float64")

    @property
    def most(self) -> int:
        """How many iterations there may be."""
        return self.maxiter or 10 * self.shape[0]


class Cg(Iteration, frozen=True, tag=353):
    """Solve a Hermitian positive definite system by conjugate gradients.

    An iteration ends where the norm of b - a @ x is at most `rtol` times that of `b`, or fails with
    `NotConverged`.
    """


class Gmres(Iteration, frozen=True, tag=354):
    """Solve a system by minimal residuals (GMRES), from anew after `restart` iterations.

    Preconditioned from the right, so that the residual is that of the system itself.
    """

    restart: int = 20

    def infer(self) -> tuple[Spec, Spec, Spec]:
        """Return a vector as `b`, and two numbers."""
        _require_count(self, "restart", 1)
        return Iteration.infer(self)


class Bicgstab(Iteration, frozen=True, tag=355):
    """Solve a system by stabilized biconjugate gradients (BiCGSTAB).

    One iteration multiplies by the matrix twice.
    """


class Spsolve(OfMatrix[AccelRef], frozen=True, tag=356):
    """Solve a sparse system directly: a @ x = b, for a square CSR matrix and (n,) or (n, r).

    By LU with pivoting on `host` (SuperLU), by QR on `cuda` (cuSOLVER). A singular matrix fails it
    with `BadPivot`.
    """

    uncaptured: ClassVar = "it waits for the device"
    b: AccelRef

    def infer(self) -> Spec:
        """Return what has the shape of `b`."""
        order = require_square(self)
        require_dtype(self, "b")
        if self.b.ndim not in (1, 2) or self.b.shape[0] != order:
            text = f"Spsolve: b is {describe(self.b)}, and is to be {[order]} or of {order} rows"
            raise InvalidArgument(text)
        return Spec(self.b.shape, self.values.dtype)


def _require_count(m: Any, name: str, least: int) -> None:
    value = getattr(m, name)
    if type(value) is not int or not least <= value < 2**31:
        text = f"{kind(m)}: {name} is {value!r}, and is to be an int from {least}"
        raise InvalidArgument(text)


def _ask(message: Any, a: Any, b: AccelRef, x0: AccelRef | None, **options: Any) -> Solution:
    a = require_sparse(message.__name__, "a", a).tocsr()
    preconditioner = options["preconditioner"]
    known = type(preconditioner) is str and preconditioner in _FACTORED
    factor = _FACTORED[preconditioner](a).values if known else None
    options = {name: plain(value) for name, value in options.items()}
    made: Solution = device_of(a.values).ask(
        message(*a.parts, a.shape, "csr", b, x0, factor, **options)
    )
    return made


def cg(
    a: SparseRef,
    b: AccelRef,
    x0: AccelRef | None = None,
    *,
    preconditioner: Preconditioner = "none",
    rtol: float = 1e-5,
    maxiter: int = 0,
    must_converge: bool = True,
) -> Solution:
    """Solve by conjugate gradients, as `Cg`; does not block.

    Raises:
        InvalidArgument: the operands or options do not fit.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    return _ask(
        Cg,
        a,
        b,
        x0,
        preconditioner=preconditioner,
        rtol=rtol,
        maxiter=maxiter,
        must_converge=must_converge,
    )


def gmres(
    a: SparseRef,
    b: AccelRef,
    x0: AccelRef | None = None,
    *,
    preconditioner: Preconditioner = "none",
    rtol: float = 1e-5,
    maxiter: int = 0,
    must_converge: bool = True,
    restart: int = 20,
) -> Solution:
    """Solve by minimal residuals, as `Gmres`; does not block.

    Raises:
        InvalidArgument: the operands or options do not fit.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    return _ask(
        Gmres,
        a,
        b,
        x0,
        preconditioner=preconditioner,
        rtol=rtol,
        maxiter=maxiter,
        must_converge=must_converge,
        restart=restart,
    )


def bicgstab(
    a: SparseRef,
    b: AccelRef,
    x0: AccelRef | None = None,
    *,
    preconditioner: Preconditioner = "none",
    rtol: float = 1e-5,
    maxiter: int = 0,
    must_converge: bool = True,
) -> Solution:
    """Solve by stabilized biconjugate gradients, as `Bicgstab`; does not block.

    Raises:
        InvalidArgument: the operands or options do not fit.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    return _ask(
        Bicgstab,
        a,
        b,
        x0,
        preconditioner=preconditioner,
        rtol=rtol,
        maxiter=maxiter,
        must_converge=must_converge,
    )


def spsolve(a: SparseRef, b: AccelRef) -> AccelRef:
    """Solve a sparse system directly, as `Spsolve`; does not block.

    Raises:
        InvalidArgument: the operands do not fit.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    a = require_sparse("Spsolve", "a", a).tocsr()
    return device_of(a.values).ask(Spsolve(*a.parts, a.shape, "csr", b))


__all__ = [
    "Bicgstab",
    "Cg",
    "Gmres",
    "NotConverged",
    "Solution",
    "Spsolve",
    "bicgstab",
    "cg",
    "gmres",
    "spsolve",
]
