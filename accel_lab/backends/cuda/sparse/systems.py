"""Systems with a sparse matrix on cuda: by iteration, and directly by cuSOLVER's QR."""

import contextlib
from collections.abc import Iterator
from typing import Any

import cupy
import numpy as np
from cupy.cuda import device
from cupy_backends.cuda.libs import cusolver
from cupyx import cusparse

from accel_lab.backends.cuda.sparse.matrices import Arrays, by_rows, in_32_bits
from accel_lab.backends.cuda.sparse.triangle import triangle
from accel_lab.backends.krylov import Found, Map, System, bicgstab, cg, gmres
from accel_lab.backends.sparse_structure import bad_diagonal, unpacked
from accel_lab.libraries.sparse.pivots import BadPivot
from accel_lab.libraries.sparse.systems import Bicgstab, Cg, Gmres, Iteration, Spsolve

_ROUTINES = {
    "f": cusolver.scsrlsvqr,
    "d": cusolver.dcsrlsvqr,
    "F": cusolver.ccsrlsvqr,
    "D": cusolver.zcsrlsvqr,
}
_REORDER = 1  # by symrcm, for less fill


class CudaSystems:
    """Waits for the device in each step: for work beside the dispatcher."""

    def cg(self, m: Cg, a: Arrays, b: Any, x0: Any, factor: Any) -> Found:
        """Return what conjugate gradients find."""
        with _system(m, a, b, x0, factor) as system:
            return system.solved(cg)

    def gmres(self, m: Gmres, a: Arrays, b: Any, x0: Any, factor: Any) -> Found:
        """Return what minimal residuals find."""
        with _system(m, a, b, x0, factor) as system:
            return system.solved(gmres(m.restart))

    def bicgstab(self, m: Bicgstab, a: Arrays, b: Any, x0: Any, factor: Any) -> Found:
        """Return what stabilized biconjugate gradients find."""
        with _system(m, a, b, x0, factor) as system:
            return system.solved(bicgstab)

    def spsolve(self, m: Spsolve, a: Arrays, b: Any) -> Any:
        """Return the solution, one column after the other (cusolverSp<t>csrlsvqr).

        Raises:
            BadPivot: the matrix is singular in working precision.
        """
        if not b.size:
            return b.copy()
        values, indices, pointers = map(cupy.ascontiguousarray, in_32_bits("Spsolve", m.shape, *a))
        order = m.shape[0]
        if not values.size:
            raise BadPivot("Spsolve: the matrix stores nothing", row=0)
        tolerance = order * float(np.finfo(values.dtype).eps) * float(cupy.abs(values).max())
        form, handle = cusparse.MatDescriptor.create(), device.get_cusolver_sp_handle()
        places = values.data.ptr, pointers.data.ptr, indices.data.ptr
        right = cupy.array(b.reshape(order, -1).T, order="C")  # by columns
        made = cupy.empty_like(right)
        singular = np.empty(1, np.int32)
        for given, x in zip(right, made, strict=True):
            what = handle, order, values.size, form.descriptor, *places, given.data.ptr
            found = x.data.ptr, singular.ctypes.data
            _ROUTINES[values.dtype.char](*what, tolerance, _REORDER, *found)
            if singular[0] >= 0:
                text = f"Spsolve: the matrix is singular, at pivot {singular[0]} of its order"
                raise BadPivot(text)
        return cupy.ascontiguousarray(made.T).reshape(b.shape)


@contextlib.contextmanager
def _system(m: Iteration, a: Arrays, b: Any, x0: Any, factor: Any) -> Iterator[System]:
    matrix = by_rows(m.shape, *a)
    x = cupy.zeros_like(b) if x0 is None else x0.copy()
    with contextlib.ExitStack() as stack:
        precondition = _preconditioner(m, a, factor, stack)
        right = cupy.ascontiguousarray(b)
        yield System(cupy, lambda x: matrix @ x, precondition, right, x, float(m.rtol), m.most)


def _preconditioner(m: Iteration, a: Arrays, factor: Any, stack: contextlib.ExitStack) -> Map:
    """Return what about solves the system, until the stack closes.

    Raises:
        BadPivot: a diagonal element that divides is 0.
    """
    if m.preconditioner == "none" or not m.shape[0]:
        return lambda r: r
    if m.preconditioner == "jacobi":
        stored = unpacked(cupy, "csr", *a)
        row = int(bad_diagonal(cupy, stored, m.shape[0])[0])
        if row >= 0:
            text = f"{type(m).__name__}: the diagonal of row {row} is zero or not stored"
            raise BadPivot(text, row=row)
        diagonal = stored.values[stored.rows == stored.columns]
        return lambda r: r / diagonal
    parts = factor, a[1], a[2]
    is_lu = m.preconditioner == "ilu0"
    first = stack.enter_context(triangle(parts, 1, unit=is_lu))
    if is_lu:
        second = stack.enter_context(triangle(parts, 1, uplo="u"))
    else:
        second = stack.enter_context(triangle(parts, 1, trans="c"))
    return lambda r: second(first(r)).copy()
