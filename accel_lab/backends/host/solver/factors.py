"""QR, LU and Cholesky on the host, by NumPy's QR and SciPy's LAPACK."""

from typing import Any

import numpy as np

from accel_lab.backends.host.solver.routines import no_errors, routine
from accel_lab.libraries.solver.library import Cholesky, Lu, Qr


class HostFactors:
    """Factors one matrix after the other."""

    @np.errstate(all="ignore")
    def qr(self, m: Qr, a: Any, out: Any) -> None:
        """Write the factors (numpy.linalg.qr)."""
        a = np.ascontiguousarray(a)
        if out.q is not None:
            out.q[...], out.r[...] = np.linalg.qr(a, "complete" if m.complete else "reduced")
            return
        r: Any = np.linalg.qr(a, "r")
        rows = r.shape[-2]
        out.r[..., :rows, :], out.r[..., rows:, :] = r, 0

    def lu(self, _: Lu, a: Any, out: Any) -> Any:
        """Write the factors and return where a pivot is 0 (LAPACK's getrf)."""
        info = no_errors(a)
        if not a.size:
            return info
        factor = routine("getrf", a.dtype)
        for at in np.ndindex(info.shape):
            out.lu[at], out.pivots[at], info[at] = factor(a[at])
        return info

    def cholesky(self, m: Cholesky, a: Any, out: Any) -> Any:
        """Write the factor and return which minor is not positive (LAPACK's potrf)."""
        info = no_errors(a)
        if not a.size:
            return info
        factor = routine("potrf", a.dtype)
        for at in np.ndindex(info.shape):
            made = out[at]
            made[...] = a[at]
            # The transpose, that of the conjugates, lies in memory as LAPACK takes it.
            c, info[at] = factor(made.T, lower=not m.lower, clean=True, overwrite_a=True)
            if not np.may_share_memory(c, made):  # its strides did not do
                made[...] = c.T
            if not info[at]:  # OpenBLAS lets a NaN pass, which LAPACK does not
                info[at] = _not_finite(c.diagonal())
        return info


def _not_finite(diagonal: Any) -> int:
    """Return the number, from 1, of the first element that is not finite; 0 if all are."""
    found = np.flatnonzero(~np.isfinite(diagonal))
    return int(found[0]) + 1 if found.size else 0
