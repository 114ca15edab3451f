"""Singular values, eigenvalues and least squares on cuda; called beside the dispatcher.

These routines ask the device while they work. A matrix with a NaN is computed as zeros instead, so
that none of them iterates without end, and fails by its status.
"""

from typing import Any

import cupy
import numpy as np

from accel_lab.backends.cuda.solver.columns import by_columns, no_errors, place, rows_of, write
from accel_lab.backends.cuda.solver.handle import (
    Routine,
    SolverHandle,
    routines,
    type_of,
    wide_routine,
)
from accel_lab.libraries.authoring.operand import arrived
from accel_lab.libraries.solver.library import (
    Eig,
    Eigh,
    EighGeneral,
    Lstsq,
    RandomizedSvd,
    Svd,
)
from accel_lab.libraries.solver.message import NOT_FINITE

JACOBI_STACK_LIMIT = 32
"""The largest extent that cusolverDnSgesvdjBatched takes."""

_GESVD, _SYEVD = wide_routine("xgesvd"), wide_routine("xsyevd")
_GEEV, _SYEV_STACK = wide_routine("xgeev"), wide_routine("xsyev_batched")
_GESVDJ, _GESVDJ_STACK = routines("gesvdj"), routines("gesvdj_batched")
_SYGVD = routines("sygvd")
_FILL_LOWER, _FILL_UPPER = 0, 1  # cublasFillMode_t


class CudaSpectra:
    """Decomposes on the worker's stream, with the worker's own handle."""

    def svd(self, m: Svd, a: Any, out: Any, worker: Any) -> Any:
        """Write the parts and return what did not converge (cusolverDnXgesvd, …gesvdj)."""
        if not a.size:
            for part in (out.u, out.vh):
                if part is not None:
                    write(part, cupy.broadcast_to(cupy.eye(*part.shape[-2:]), part.shape))
            return no_errors(a.shape[:-2])
        clean, is_finite = _finite(a)
        handle = worker.handle(SolverHandle)
        u, s, vh, info = _svd(handle, clean, m.driver, vectors=m.vectors, full=m.full)
        write(out.s, s)
        if m.vectors:
            write(out.u, u)
            write(out.vh, vh)
        return _status(info, is_finite)

    def randomized_svd(self, m: RandomizedSvd, a: Any, out: Any, worker: Any) -> Any:
        """Write the parts and return what did not converge (Halko, Martinsson, Tropp, 4.4, 5.1)."""
        rows, columns = a.shape[-2:]
        k = out.s.shape[-1]
        width = min(k + m.oversampling, rows, columns)
        if not a.size or not width:
            return no_errors(a.shape[:-2])
        a, is_finite = _finite(a)
        drawn = np.random.default_rng(m.seed).standard_normal((columns, width))
        q = cupy.linalg.qr(a @ cupy.asarray(drawn.astype(a.dtype)))[0]
        adjoint = a.conj().swapaxes(-1, -2)
        for _ in range(m.iterations):
            q = cupy.linalg.qr(a @ cupy.linalg.qr(adjoint @ q)[0])[0]
        small = q.conj().swapaxes(-1, -2) @ a
        handle = worker.handle(SolverHandle)
        u, s, vh, info = _svd(handle, small, "gesvd", vectors=True, full=False)
        cupy.copyto(out.u, q @ u.reshape(*a.shape[:-2], *u.shape[1:])[..., :k])
        write(out.s, s[..., :k])
        write(out.vh, vh[..., :k, :])
        return _status(info, is_finite)

    def eigh(self, m: Eigh, a: Any, out: Any, worker: Any) -> Any:
        """Write the pairs and return what did not converge (cusolverDnXsyevd, …XsyevBatched)."""
        if not a.size:
            return no_errors(a.shape[:-2])
        half, is_finite = _half(a, lower=m.lower)
        held = by_columns(half)
        count, n, _ = held.shape
        w, info = cupy.ndarray((count, n), a.real.dtype), no_errors((count,))
        handle, kinds = worker.handle(SolverHandle), (type_of(a), type_of(w))
        how = int(m.vectors), _FILL_LOWER if m.lower else _FILL_UPPER, n
        one = (*how, kinds[0], held.data.ptr, n, kinds[1], w.data.ptr, kinds[0])
        if count > 1:
            handle.call_stack(_SYEV_STACK, one, info.data.ptr, count)
        else:
            handle.call(_SYEVD, one, one, info.data.ptr)
        write(out.w, w)
        if out.v is not None:
            write(out.v, rows_of(held))
        return _status(info, is_finite)

    def eigh_general(self, m: EighGeneral, a: Any, b: Any, out: Any, worker: Any) -> Any:
        """Write the pairs and return what is wrong (cusolverDnSsygvd), one after the other."""
        if not a.size:
            return no_errors(a.shape[:-2])
        (half_a, is_finite), (half_b, is_too) = (_half(x, lower=m.lower) for x in (a, b))
        held, other = by_columns(half_a), by_columns(half_b)
        count, n, _ = held.shape
        w, info = cupy.ndarray((count, n), a.real.dtype), no_errors((count,))
        handle = worker.handle(SolverHandle)
        how = m.itype, int(m.vectors), _FILL_LOWER if m.lower else _FILL_UPPER, n
        for i in range(count):
            one = (*how, place(held, i), n, place(other, i), n, place(w, i))
            _run(handle, _SYGVD[a.dtype.char], one, one, a.dtype, (place(info, i),))
        write(out.w, w)
        if out.v is not None:
            write(out.v, rows_of(held))
        return _status(info, is_finite & is_too)

    def eig(self, m: Eig, a: Any, out: Any, worker: Any) -> Any:
        """Write the pairs and return what did not converge (cusolverDnXgeev)."""
        if not a.size:
            return no_errors(a.shape[:-2])
        clean, is_finite = _finite(a)
        held = by_columns(clean)
        count, n, _ = held.shape
        w, v = cupy.ndarray((count, n), out.w.dtype), cupy.ndarray(held.shape, a.dtype)
        info, handle = no_errors((count,)), worker.handle(SolverHandle)
        kind = type_of(a)
        for i in range(count):
            pairs = type_of(w), place(w, i)
            # There are no left vectors; their address is not read.
            vectors = kind, place(v, i), n, kind, place(v, i), n, kind
            one = (0, int(m.vectors), n, kind, place(held, i), n, *pairs, *vectors)
            handle.call(_GEEV, one, one, place(info, i))
        write(out.w, w)
        if out.v is not None:
            found = rows_of(v)
            write(out.v, found if a.dtype.kind == "c" else paired(cupy, found, w.imag))
        return _status(info, is_finite)

    def lstsq(self, m: Lstsq, a: Any, b: Any, out: Any, worker: Any) -> Any:
        """Write the solutions and return what did not converge, by singular values."""
        if not a.size:
            out.x.fill(0)
            out.rank.fill(0)
            return no_errors(a.shape[:-2])
        (a, is_finite), (b, is_too) = _finite(a), _finite(b)
        handle = worker.handle(SolverHandle)
        u, s, vh, info = _svd(handle, a, "auto", vectors=True, full=False)
        least: Any = arrived(m.rcond)
        if least is None:
            least = max(a.shape[-2:]) * float(np.finfo(a.dtype).eps)
        counts = s > least * s[..., :1]
        write(out.s, s)
        write(out.rank, counts.sum(axis=-1))
        weights = cupy.where(counts, 1 / cupy.where(counts, s, 1), 0).astype(s.dtype)
        right = u.conj().swapaxes(-1, -2) @ b.reshape(len(s), *b.shape[-2:])
        write(out.x, vh.conj().swapaxes(-1, -2) @ (weights[..., None] * right))
        return _status(info, is_finite & is_too)


def _svd(handle: Any, a: Any, driver: str, *, vectors: bool, full: bool) -> Any:
    """Return u, s, vh and a status of finite matrices, with one axis at the front.

    cuSOLVER's gesvd takes no matrix with more columns than rows. One that has is transposed; then
    the transposed u and vh are in each other's place.
    """
    is_wide = a.shape[-2] < a.shape[-1]
    held = by_columns(a.swapaxes(-1, -2) if is_wide else a)
    small = max(a.shape[-2:]) <= JACOBI_STACK_LIMIT
    if driver == "gesvdj" or (driver == "auto" and small and len(held) > 1):
        decompose = _jacobi_stack if small and len(held) > 1 else _jacobi
    else:
        decompose = _by_qr
    u, s, vh, info = decompose(handle, held, vectors=vectors, full=full)
    if is_wide:
        u, vh = vh.swapaxes(-1, -2), u.swapaxes(-1, -2)
    return u, s, vh, info


def _by_qr(handle: Any, held: Any, *, vectors: bool, full: bool) -> Any:
    count, n, rows = held.shape
    columns = rows if full else n
    u, vh = (
        cupy.ndarray((count, columns, rows), held.dtype),
        cupy.ndarray((count, n, n), held.dtype),
    )
    s, info = cupy.ndarray((count, n), held.real.dtype), no_errors((count,))
    job = ord(("A" if full else "S") if vectors else "N")
    kind, real = type_of(held), type_of(s)
    for i in range(count):
        into = (real, place(s, i), kind, place(u, i), rows, kind, place(vh, i), n)
        one = (job, job, rows, n, kind, place(held, i), rows, *into, kind)
        handle.call(_GESVD, one, one, place(info, i))
    return rows_of(u), s, rows_of(vh), info


def _jacobi(handle: Any, held: Any, *, vectors: bool, full: bool) -> Any:
    count, n, rows = held.shape
    columns = rows if full else n
    u, v = cupy.ndarray((count, columns, rows), held.dtype), cupy.ndarray((count, n, n), held.dtype)
    s, info = cupy.ndarray((count, n), held.real.dtype), no_errors((count,))
    routine = _GESVDJ[held.dtype.char]
    for i in range(count):
        into = place(s, i), place(u, i), rows, place(v, i), n
        one = (int(vectors), int(not full), rows, n, place(held, i), rows, *into)
        _run(
            handle, routine, (*one, handle.jacobi), one, held.dtype, (place(info, i), handle.jacobi)
        )
    return rows_of(u), s, rows_of(v).conj().swapaxes(-1, -2), info


def _jacobi_stack(handle: Any, held: Any, *, vectors: bool, full: bool) -> Any:
    count, n, rows = held.shape
    u, v = cupy.ndarray((count, rows, rows), held.dtype), cupy.ndarray((count, n, n), held.dtype)
    s, info = cupy.ndarray((count, n), held.real.dtype), no_errors((count,))
    routine = _GESVDJ_STACK[held.dtype.char]
    one = (int(vectors), rows, n, held.data.ptr, rows, s.data.ptr, u.data.ptr, rows, v.data.ptr, n)
    last = handle.jacobi, count
    _run(handle, routine, (*one, *last), one, held.dtype, (info.data.ptr, *last))
    columns = rows if full else n
    return rows_of(u)[..., :columns], s, rows_of(v).conj().swapaxes(-1, -2), info


def _run(
    handle: Any,
    routine: Routine,
    asked: tuple[Any, ...],
    arguments: tuple[Any, ...],
    dtype: Any,
    last: tuple[Any, ...],
) -> None:
    """Call a routine of one dtype; its workspace, in elements, stands before `last`."""
    elements = routine.size(handle.handle, *asked)
    work = cupy.ndarray((elements,), dtype)
    routine.run(handle.handle, *arguments, work.data.ptr, elements, *last)


def _finite(a: Any) -> tuple[Any, Any]:
    """Return contiguous matrices with zeros in place of each that is not finite; which were."""
    is_finite = cupy.isfinite(a).all(axis=(-2, -1))
    return cupy.where(is_finite[..., None, None], a, a.dtype.type(0)), is_finite


def _half(a: Any, *, lower: bool) -> tuple[Any, Any]:
    """Return the triangles that are read, as `_finite` does."""
    return _finite(cupy.tril(a) if lower else cupy.triu(a))


def _status(info: Any, is_finite: Any) -> Any:
    """Return the status of each matrix of a stack."""
    return cupy.where(is_finite, info.reshape(is_finite.shape), np.int32(NOT_FINITE))


def paired(xp: Any, v: Any, imaginary: Any) -> Any:
    """Return the eigenvectors of which LAPACK gives real and imaginary parts side by side.

    The first of a pair is v[:, j] + i v[:, j + 1], and the second its conjugate (geev).
    """
    first, second = (imaginary > 0)[..., None, :], (imaginary < 0)[..., None, :]
    real = xp.where(second, xp.roll(v, 1, -1), v)
    return real + 1j * xp.where(first, xp.roll(v, -1, -1), xp.where(second, -v, 0))
