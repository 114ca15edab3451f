"""Sparse matrices: cuSPARSE and CuPy on `cuda`, SciPy on `host`.

A `SparseRef` is three buffers and a shape. Matrices are canonical: stored places are in order and
none is stored twice. What is stored depends on what the operands store, never on values: a sum that
is zero is stored. Narrow floats (float16, bfloat16) are computed in float32 and rounded once.
"""

# ruff: noqa: PLC0414 - names of this module, wherever they are written

import sys
from collections.abc import Callable
from typing import Any, ClassVar

from accel_lab.compute.execution.launch import Launch, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.default_actor import DefaultActor
from accel_lab.libraries.authoring.operand import element, kind
from accel_lab.libraries.sparse.algebra import Spadd as Spadd
from accel_lab.libraries.sparse.algebra import Spgemm as Spgemm
from accel_lab.libraries.sparse.algebra import spadd as spadd
from accel_lab.libraries.sparse.algebra import spgemm as spgemm
from accel_lab.libraries.sparse.blocked_ell import BlockedEll as BlockedEll
from accel_lab.libraries.sparse.blocked_ell import Ellify as Ellify
from accel_lab.libraries.sparse.blocked_ell import EllMatmul as EllMatmul
from accel_lab.libraries.sparse.blocked_ell import EllParts as EllParts
from accel_lab.libraries.sparse.blocked_ell import Unellify as Unellify
from accel_lab.libraries.sparse.blocked_ell import blocked_ell as blocked_ell
from accel_lab.libraries.sparse.blocked_ell import ell_matmul as ell_matmul
from accel_lab.libraries.sparse.blocked_ell import ellify as ellify
from accel_lab.libraries.sparse.blocked_ell import unellify as unellify
from accel_lab.libraries.sparse.conversion import Convert as Convert
from accel_lab.libraries.sparse.conversion import Densify as Densify
from accel_lab.libraries.sparse.conversion import Sparsify as Sparsify
from accel_lab.libraries.sparse.conversion import Structure as Structure
from accel_lab.libraries.sparse.conversion import Verify as Verify
from accel_lab.libraries.sparse.conversion import bsr as bsr
from accel_lab.libraries.sparse.conversion import convert as convert
from accel_lab.libraries.sparse.conversion import coo as coo
from accel_lab.libraries.sparse.conversion import csc as csc
from accel_lab.libraries.sparse.conversion import csr as csr
from accel_lab.libraries.sparse.conversion import densify as densify
from accel_lab.libraries.sparse.conversion import from_dense as from_dense
from accel_lab.libraries.sparse.conversion import from_scipy as from_scipy
from accel_lab.libraries.sparse.conversion import sparsify as sparsify
from accel_lab.libraries.sparse.conversion import to_scipy as to_scipy
from accel_lab.libraries.sparse.conversion import transpose as transpose
from accel_lab.libraries.sparse.conversion import verify as verify
from accel_lab.libraries.sparse.factors import Factored as Factored
from accel_lab.libraries.sparse.factors import Factorize as Factorize
from accel_lab.libraries.sparse.factors import FactorSolve as FactorSolve
from accel_lab.libraries.sparse.factors import SparseFactors as SparseFactors
from accel_lab.libraries.sparse.factors import factor_solve as factor_solve
from accel_lab.libraries.sparse.factors import factorize as factorize
from accel_lab.libraries.sparse.matrix import Parts as Parts
from accel_lab.libraries.sparse.matrix import SparseRef as SparseRef
from accel_lab.libraries.sparse.matrix import require_sparse
from accel_lab.libraries.sparse.pivots import BadPivot as BadPivot
from accel_lab.libraries.sparse.products import Sddmm as Sddmm
from accel_lab.libraries.sparse.products import Spmm as Spmm
from accel_lab.libraries.sparse.products import Spmv as Spmv
from accel_lab.libraries.sparse.products import sddmm as sddmm
from accel_lab.libraries.sparse.products import spmm as spmm
from accel_lab.libraries.sparse.products import spmv as spmv
from accel_lab.libraries.sparse.structured import Check24 as Check24
from accel_lab.libraries.sparse.structured import Compress24 as Compress24
from accel_lab.libraries.sparse.structured import Halves as Halves
from accel_lab.libraries.sparse.structured import Matmul24 as Matmul24
from accel_lab.libraries.sparse.structured import Prune24 as Prune24
from accel_lab.libraries.sparse.structured import Structured as Structured
from accel_lab.libraries.sparse.structured import check24 as check24
from accel_lab.libraries.sparse.structured import compress24 as compress24
from accel_lab.libraries.sparse.structured import matmul24 as matmul24
from accel_lab.libraries.sparse.structured import prune24 as prune24
from accel_lab.libraries.sparse.systems import Bicgstab as Bicgstab
from accel_lab.libraries.sparse.systems import Cg as Cg
from accel_lab.libraries.sparse.systems import Gmres as Gmres
from accel_lab.libraries.sparse.systems import Iteration as Iteration
from accel_lab.libraries.sparse.systems import NotConverged as NotConverged
from accel_lab.libraries.sparse.systems import Solution as Solution
from accel_lab.libraries.sparse.systems import Spsolve as Spsolve
from accel_lab.libraries.sparse.systems import bicgstab as bicgstab
from accel_lab.libraries.sparse.systems import cg as cg
from accel_lab.libraries.sparse.systems import gmres as gmres
from accel_lab.libraries.sparse.systems import spsolve as spsolve
from accel_lab.libraries.sparse.triangular import Ic0 as Ic0
from accel_lab.libraries.sparse.triangular import Ilu0 as Ilu0
from accel_lab.libraries.sparse.triangular import Incomplete as Incomplete
from accel_lab.libraries.sparse.triangular import Spsm as Spsm
from accel_lab.libraries.sparse.triangular import Spsv as Spsv
from accel_lab.libraries.sparse.triangular import ic0 as ic0
from accel_lab.libraries.sparse.triangular import ilu0 as ilu0
from accel_lab.libraries.sparse.triangular import spsm as spsm
from accel_lab.libraries.sparse.triangular import spsv as spsv


def matmul(a: SparseRef, b: SparseRef | AccelRef) -> Any:
    """Return a @ b: a sparse matrix of a sparse one, else a dense buffer; does not block.

    Raises:
        InvalidArgument: the operands do not fit.
    """
    require_sparse("matmul", "a", a)
    if isinstance(b, SparseRef):
        return spgemm(a, b)
    if not isinstance(b, AccelRef):
        text = f"matmul: b is {type(b).__name__}, and is to be a buffer or a SparseRef"
        raise InvalidArgument(f"{text}; put() the array on the device first")
    return spmv(a, b) if b.ndim == 1 else spmm(a, b)


class SparseActor(DefaultActor):
    """Owns what computes with sparse matrices in one context."""

    library: ClassVar = "sparse"

    @handles(Convert)
    def convert(self, m: Convert, launch: Launch) -> None:
        """Have a matrix stored in another format; of blocks it is waited how many there are."""
        m.infer()  # the notebook could not, where it did not know how much is stored
        parts = _read(m, launch)
        if m.to == "bsr":
            launch.blocking(lambda _: self.lib.convert(m, *parts), _all_of(launch))
        else:
            _all_of(launch)(self.lib.convert(m, *parts))

    @handles(Ellify)
    def ellify(self, m: Ellify, launch: Launch) -> None:
        """Have a matrix of blocks filled up."""
        m.infer()
        parts = _read(m, launch)
        launch.blocking(lambda _: self.lib.ellify(m, *parts), _all_of(launch))

    @handles(Unellify)
    def unellify(self, m: Unellify, launch: Launch) -> None:
        """Have a matrix of blocks stored without what fills it up."""
        m.infer()
        parts = launch.read(m.values), launch.read(m.columns)

        def finish(found: Any) -> None:
            made, bad = found
            launch.take_all(*made)
            launch.hold(bad)  # it is of the worker's stream, which this launch's copies from
            launch.check(bad, m.judge)

        launch.blocking(lambda _: self.lib.unellify(m, *parts), finish)

    @handles(Sparsify)
    def sparsify(self, m: Sparsify, launch: Launch) -> None:
        """Have found what is not zero."""
        x = launch.read(m.x)
        launch.blocking(lambda _: self.lib.sparsify(m, x), _all_of(launch))

    @handles(Spgemm)
    def spgemm(self, m: Spgemm, launch: Launch) -> None:
        """Have two matrices multiplied."""
        m.infer()
        parts, alpha = _read_two(m, launch), element(m, "alpha", m.alpha, m.values.dtype)
        launch.blocking(lambda _: self.lib.spgemm(m, *parts, alpha), _all_of(launch))

    @handles(Spadd)
    def spadd(self, m: Spadd, launch: Launch) -> None:
        """Have two matrices added."""
        m.infer()
        parts, dtype = _read_two(m, launch), m.values.dtype
        factors = element(m, "alpha", m.alpha, dtype), element(m, "beta", m.beta, dtype)
        launch.blocking(lambda _: self.lib.spadd(m, *parts, *factors), _all_of(launch))

    # These wait in each step for a number that the device has, and raise what is wrong themselves.

    @handles(Ilu0)
    def ilu0(self, m: Ilu0, launch: Launch) -> None:
        """Have L and U found."""
        m.infer()
        parts = _read(m, launch)
        launch.blocking(lambda _: self.lib.ilu0(m, *parts), launch.take)

    @handles(Ic0)
    def ic0(self, m: Ic0, launch: Launch) -> None:
        """Have L found."""
        m.infer()
        parts = _read(m, launch)
        launch.blocking(lambda _: self.lib.ic0(m, *parts), launch.take)

    @handles(Spsolve)
    def spsolve(self, m: Spsolve, launch: Launch) -> None:
        """Have a system solved directly."""
        m.infer()
        parts, b = _read(m, launch), launch.read(m.b)
        launch.blocking(lambda _: self.lib.spsolve(m, parts, b), launch.take)

    @handles(Factorize)
    def factorize(self, m: Factorize, launch: Launch) -> None:
        """Have a matrix factorized, and keep the factors."""
        m.infer()
        parts = _read(m, launch)
        launch.blocking(lambda _: self.lib.factorize(m, parts), launch.keep)

    @handles(FactorSolve)
    def factor_solve(self, m: FactorSolve, launch: Launch) -> None:
        """Enqueue a solution with factors that are kept."""
        factors = launch.read(m.factors)
        m.infer()  # the notebook could not, where a shape was unknown to it
        m.require_fit(factors.order, factors.dtype)
        b = launch.read(m.b)
        launch.take(self.lib.factor_solve(m, factors, b))

    @handles(Cg)
    def cg(self, m: Cg, launch: Launch) -> None:
        """Have a system solved by conjugate gradients."""
        _iterate(m, launch, self.lib.cg)

    @handles(Gmres)
    def gmres(self, m: Gmres, launch: Launch) -> None:
        """Have a system solved by minimal residuals."""
        _iterate(m, launch, self.lib.gmres)

    @handles(Bicgstab)
    def bicgstab(self, m: Bicgstab, launch: Launch) -> None:
        """Have a system solved by stabilized biconjugate gradients."""
        _iterate(m, launch, self.lib.bicgstab)


def _iterate(m: Iteration, launch: Launch, solve: Callable[..., Any]) -> None:
    m.infer()
    parts, b = _read(m, launch), launch.read(m.b)
    x0, factor = (None if one is None else launch.read(one) for one in (m.x0, m.factor))

    def work(_: object) -> Any:
        found = solve(m, parts, b, x0, factor)
        if m.must_converge and not found.converged:
            text = f"{kind(m)}: after {found.iterations} iterations the residual is "
            raise NotConverged(
                f"{text}{found.residual:.3g} of b, and was to be {m.rtol:.3g}",
                iterations=found.iterations,
                residual=found.residual,
            )
        return found

    def finish(found: Any) -> None:
        out = launch.empties()
        out.x[...] = found.x
        out.iterations[...] = found.iterations
        out.residual[...] = found.residual

    launch.blocking(work, finish)


def _read(m: Any, launch: Launch) -> tuple[Any, Any, Any]:
    """Return the arrays of a message's matrix."""
    return launch.read(m.values), launch.read(m.indices), launch.read(m.pointers)


def _read_two(m: Any, launch: Launch) -> tuple[tuple[Any, Any, Any], tuple[Any, Any, Any]]:
    """Return the arrays of a message's two matrices."""
    values, indices = launch.read(m.b_values), launch.read(m.b_indices)
    return _read(m, launch), (values, indices, launch.read(m.b_pointers))


def _all_of(launch: Launch) -> Any:
    return lambda made: launch.take_all(*made)


SparseRef.functions = sys.modules[__name__]
