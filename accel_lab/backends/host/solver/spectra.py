"""Singular values and eigenvalues on the host, by SciPy's LAPACK.

LAPACK may not return from a matrix with a NaN, so none is given to it.
"""

from typing import Any

import numpy as np

from accel_lab.backends.host.solver.routines import best_lwork, no_errors, routine
from accel_lab.libraries.solver.library import Eig, Eigh, EighGeneral, RandomizedSvd, Svd
from accel_lab.libraries.solver.message import NOT_FINITE


class HostSpectra:
    """Decomposes one matrix after the other; called beside the dispatcher."""

    def svd(self, m: Svd, a: Any, out: Any, _: Any) -> Any:
        """Write the parts and return what did not converge (LAPACK's gesdd, or gesvd if asked)."""
        if not a.size:
            return _svd_of_nothing(a, out)
        name = "gesvd" if m.driver == "gesvd" else "gesdd"
        return _svd(name, a, out, vectors=m.vectors, full=m.full)

    @np.errstate(all="ignore")
    def randomized_svd(self, m: RandomizedSvd, a: Any, out: Any, _: Any) -> Any:
        """Write the parts and return what did not converge (Halko, Martinsson, Tropp, 4.4, 5.1)."""
        *stack, rows, columns = a.shape
        k = out.s.shape[-1]
        width = min(k + m.oversampling, rows, columns)
        if not a.size or not width:
            return no_errors(a)
        a = np.ascontiguousarray(a)
        drawn = np.random.default_rng(m.seed).standard_normal((columns, width))
        q = np.linalg.qr(a @ drawn.astype(a.dtype))[0]
        adjoint = a.conj().swapaxes(-1, -2)
        for _ in range(m.iterations):
            q = np.linalg.qr(a @ np.linalg.qr(adjoint @ q)[0])[0]
        small = q.conj().swapaxes(-1, -2) @ a
        shapes = (*stack, width, width), (*stack, width), (*stack, width, columns)
        dtypes = a.dtype, out.s.dtype, a.dtype
        parts = type(out)(*map(np.empty, shapes, dtypes))
        info = _svd("gesdd", small, parts, vectors=True, full=False)
        out.u[...] = q @ parts.u[..., :k]
        out.s[...], out.vh[...] = parts.s[..., :k], parts.vh[..., :k, :]
        return info

    def eigh(self, m: Eigh, a: Any, out: Any, _: Any) -> Any:
        """Write the pairs and return what did not converge (LAPACK's syevd, heevd)."""
        info = no_errors(a)
        if not a.size:
            return info
        find = routine("syevd", a.dtype)
        for at in np.ndindex(info.shape):
            half = _half(a[at], lower=m.lower)
            if half is None:
                info[at] = NOT_FINITE
                continue
            out.w[at], v, info[at] = find(half, compute_v=m.vectors, lower=m.lower)
            if out.v is not None:
                out.v[at] = v
        return info

    def eigh_general(self, m: EighGeneral, a: Any, b: Any, out: Any, _: Any) -> Any:
        """Write the pairs and return what is wrong (LAPACK's sygvd, hegvd)."""
        info = no_errors(a)
        if not a.size:
            return info
        find = routine("sygvd", a.dtype)
        options = {"itype": m.itype, "jobz": "NV"[m.vectors], "uplo": "UL"[m.lower]}
        for at in np.ndindex(info.shape):
            halves = _half(a[at], lower=m.lower), _half(b[at], lower=m.lower)
            if halves[0] is None or halves[1] is None:
                info[at] = NOT_FINITE
                continue
            out.w[at], v, info[at] = find(*halves, **options)
            if out.v is not None:
                out.v[at] = v
        return info

    def eig(self, m: Eig, a: Any, out: Any, _: Any) -> Any:
        """Write the pairs and return what did not converge (LAPACK's geev)."""
        info = no_errors(a)
        if not a.size:
            return info
        jobs = {"compute_vl": False, "compute_vr": m.vectors}
        find, lwork = routine("geev", a.dtype), best_lwork("geev", a.dtype, a.shape[-1], **jobs)
        for at in np.ndindex(info.shape):
            if not np.isfinite(a[at]).all():
                info[at] = NOT_FINITE
                continue
            *w, _, v, info[at] = find(a[at], **jobs, lwork=lwork)
            out.w[at] = w[0] if len(w) == 1 else w[0] + 1j * w[1]
            if out.v is not None:
                out.v[at] = v if a.dtype.kind == "c" else _paired(v, w[1])
        return info


def _svd(name: str, a: Any, out: Any, *, vectors: bool, full: bool) -> Any:
    info, jobs = no_errors(a), {"compute_uv": vectors, "full_matrices": full}
    decompose = routine(name, a.dtype)
    lwork = best_lwork(name, a.dtype, *a.shape[-2:], **jobs)
    for at in np.ndindex(info.shape):
        if not np.isfinite(a[at]).all():
            info[at] = NOT_FINITE
            continue
        u, out.s[at], vh, info[at] = decompose(a[at], **jobs, lwork=lwork)
        if vectors:
            out.u[at], out.vh[at] = u, vh
    return info


def _svd_of_nothing(a: Any, out: Any) -> Any:
    """Write identities where there is no element, as an orthonormal basis of what there is."""
    for part in (out.u, out.vh):
        if part is not None:
            part[...] = np.eye(*part.shape[-2:])
    return no_errors(a)


def _half(a: Any, *, lower: bool) -> Any:
    """Return the triangle of a matrix that is read; None if it has an infinity or a NaN."""
    half = np.tril(a) if lower else np.triu(a)
    return half if np.isfinite(half).all() else None


def _paired(v: Any, imaginary: Any) -> Any:
    """Return the eigenvectors of which LAPACK gives real and imaginary parts side by side.

    The first of a pair is v[:, j] + i v[:, j + 1], and the second its conjugate (geev).
    """
    found = v.astype(np.result_type(v, np.complex64))
    for j in np.flatnonzero(imaginary > 0):
        found[:, j] = v[:, j] + 1j * v[:, j + 1]
        found[:, j + 1] = found[:, j].conj()
    return found
