"""Dense solvers: cuSOLVER and cuBLAS on `cuda`, LAPACK through NumPy and SciPy on `host`.

Matrices are the last two axes, row-major as NumPy's; all axes before them are a stack. Operands may
be views of any strides, and are not changed unless `out` names one. float32, float64, complex64 and
complex128 are computed in their own precision. What a factorization finds wrong with a matrix, as a
pivot that is 0, fails the request with an error that has its number.
"""

# ruff: noqa: PLC0414 - names of this module, wherever they are written

from collections.abc import Callable
from typing import Any, ClassVar

from accel_lab.compute.execution.launch import Launch, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.authoring.default_actor import DefaultActor
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import Scalar
from accel_lab.libraries.solver.errors import MatrixError as MatrixError
from accel_lab.libraries.solver.errors import NotConverged as NotConverged
from accel_lab.libraries.solver.errors import NotFinite as NotFinite
from accel_lab.libraries.solver.errors import NotPositiveDefinite as NotPositiveDefinite
from accel_lab.libraries.solver.errors import SingularMatrix as SingularMatrix
from accel_lab.libraries.solver.factors import Cholesky as Cholesky
from accel_lab.libraries.solver.factors import Lu as Lu
from accel_lab.libraries.solver.factors import LuParts as LuParts
from accel_lab.libraries.solver.factors import Qr as Qr
from accel_lab.libraries.solver.factors import QrParts as QrParts
from accel_lab.libraries.solver.spectra import Driver as Driver
from accel_lab.libraries.solver.spectra import Eig as Eig
from accel_lab.libraries.solver.spectra import Eigenpairs as Eigenpairs
from accel_lab.libraries.solver.spectra import Eigh as Eigh
from accel_lab.libraries.solver.spectra import EighGeneral as EighGeneral
from accel_lab.libraries.solver.spectra import LowRank as LowRank
from accel_lab.libraries.solver.spectra import RandomizedSvd as RandomizedSvd
from accel_lab.libraries.solver.spectra import Svd as Svd
from accel_lab.libraries.solver.spectra import SvdParts as SvdParts
from accel_lab.libraries.solver.systems import CholeskySolve as CholeskySolve
from accel_lab.libraries.solver.systems import Det as Det
from accel_lab.libraries.solver.systems import Inv as Inv
from accel_lab.libraries.solver.systems import Lstsq as Lstsq
from accel_lab.libraries.solver.systems import LstsqParts as LstsqParts
from accel_lab.libraries.solver.systems import LuSolve as LuSolve
from accel_lab.libraries.solver.systems import Slogdet as Slogdet
from accel_lab.libraries.solver.systems import SlogdetParts as SlogdetParts
from accel_lab.libraries.solver.systems import Solve as Solve
from accel_lab.libraries.solver.systems import Trans as Trans

qr, lu, cholesky = function(Qr), function(Lu), function(Cholesky)
inv, det, slogdet = function(Inv), function(Det), function(Slogdet)
svd, randomized_svd = function(Svd), function(RandomizedSvd)
eigh, eigh_general, eig = function(Eigh), function(EighGeneral), function(Eig)
_solve, _lu_solve = function(Solve), function(LuSolve)
_cholesky_solve, _lstsq = function(CholeskySolve), function(Lstsq)


def solve(a: AccelRef, b: AccelRef, *, out: AccelRef | None = None) -> AccelRef:
    """Solve a @ x = b as `Solve` says; `b` may also be one vector, and so is x then.

    Raises:
        InvalidArgument: the operands do not fit.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    return _columns(lambda b, out: _solve(a, b, out=out), b, out)


def lu_solve(
    lu: AccelRef,
    pivots: AccelRef,
    b: AccelRef,
    *,
    trans: Trans = "n",
    out: AccelRef | None = None,
) -> AccelRef:
    """Solve op(a) @ x = b as `LuSolve` says; `b` may also be one vector, and so is x then.

    Raises:
        InvalidArgument: the operands or options do not fit.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    return _columns(lambda b, out: _lu_solve(lu, pivots, b, trans=trans, out=out), b, out)


def cholesky_solve(
    c: AccelRef, b: AccelRef, *, lower: bool = True, out: AccelRef | None = None
) -> AccelRef:
    """Solve a @ x = b as `CholeskySolve` says; `b` may also be one vector, and so is x then.

    Raises:
        InvalidArgument: the operands do not fit.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    return _columns(lambda b, out: _cholesky_solve(c, b, lower=lower, out=out), b, out)


def lstsq(a: AccelRef, b: AccelRef, *, rcond: Scalar | None = None) -> LstsqParts:
    """Solve by least squares as `Lstsq` says; `b` may also be one vector, and so is x then.

    Raises:
        InvalidArgument: the operands or options do not fit.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    if b.ndim == 1:
        found = _lstsq(a, b[:, None], rcond=rcond)
        return found._replace(x=found.x[..., 0])
    return _lstsq(a, b, rcond=rcond)


def _columns(
    send: Callable[[AccelRef, AccelRef | None], AccelRef], b: AccelRef, out: AccelRef | None
) -> AccelRef:
    """Send with `b` as a column, if it is a vector; `out` then is one, too."""
    if b.ndim != 1:
        return send(b, out)
    column = send(b[:, None], None if out is None else out[..., None])
    return column[..., 0] if out is None else out


class SolverActor(DefaultActor):
    """Has what iterates done beside the dispatcher: it asks the device while it works."""

    library: ClassVar = "solver"

    @handles(Svd)
    def svd(self, m: Svd, launch: Launch) -> None:
        """Have singular values found."""
        self._beside(self.lib.svd, m, launch, m.a)

    @handles(RandomizedSvd)
    def randomized_svd(self, m: RandomizedSvd, launch: Launch) -> None:
        """Have the largest singular values found."""
        self._beside(self.lib.randomized_svd, m, launch, m.a)

    @handles(Eigh)
    def eigh(self, m: Eigh, launch: Launch) -> None:
        """Have eigenvalues found."""
        self._beside(self.lib.eigh, m, launch, m.a)

    @handles(EighGeneral)
    def eigh_general(self, m: EighGeneral, launch: Launch) -> None:
        """Have eigenvalues found."""
        self._beside(self.lib.eigh_general, m, launch, m.a, m.b)

    @handles(Eig)
    def eig(self, m: Eig, launch: Launch) -> None:
        """Have eigenvalues found."""
        self._beside(self.lib.eig, m, launch, m.a)

    @handles(Lstsq)
    def lstsq(self, m: Lstsq, launch: Launch) -> None:
        """Have a solution found."""
        self._beside(self.lib.lstsq, m, launch, m.a, m.b)

    def _beside(
        self, find: Callable[..., Any], m: Any, launch: Launch, *operands: AccelRef
    ) -> None:
        out, arrays = launch.empties(), [launch.read(ref) for ref in operands]

        def judged(info: Any) -> None:
            launch.hold(info)  # it is of the worker's stream, which this launch's copies from
            launch.check(info, m.judge)

        launch.blocking(lambda worker: find(m, *arrays, out, worker), judged)
