"""LU of stacks of small matrices by the names that cuBLAS has for it; `solver` has the messages.

On `cuda` they are cuBLAS's batched routines up to an extent of 256, and cuSOLVER's above.
"""

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.blas.message import Trans
from accel_lab.libraries.solver import library as solver


def getrf_batched(a: AccelRef, *, may_be_singular: bool = False) -> solver.LuParts:
    """Factor each matrix of a stack (..., n, n) as P @ L @ U, as `solver.Lu`; does not block.

    A pivot that is 0 fails with `solver.SingularMatrix`, which has the pivot and the matrix.

    Raises:
        InvalidArgument: it is no stack of matrices.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    return solver.lu(a, may_be_singular=may_be_singular)


def getrs_batched(
    lu: AccelRef,
    pivots: AccelRef,
    b: AccelRef,
    *,
    trans: Trans = "n",
    out: AccelRef | None = None,
) -> AccelRef:
    """Solve op(a) @ x = b for each matrix of a stack, as `solver.LuSolve`; does not block.

    `lu` and `pivots` are what `getrf_batched` made.

    Raises:
        InvalidArgument: the operands or options do not fit.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    return solver.lu_solve(lu, pivots, b, trans=trans, out=out)


def matinv_batched(a: AccelRef) -> AccelRef:
    """Invert each matrix of a stack (..., n, n), as `solver.Inv`; does not block.

    A pivot that is 0 fails with `solver.SingularMatrix`, which has the pivot and the matrix.

    Raises:
        InvalidArgument: they are not square.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    return solver.inv(a)
