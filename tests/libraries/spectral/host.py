"""Several results on the host, by NumPy."""

from typing import Any

import numpy as np


class HostSpectral:
    """Calls NumPy at once."""

    def svd(self, a: Any, out: Any) -> None:
        """Write the parts (numpy.linalg.svd)."""
        u, s, vt = np.linalg.svd(a, full_matrices=False)
        out.u[...], out.s[...] = u, s
        if out.vt is not None:
            out.vt[...] = vt
