"""Several results on the host, by NumPy."""

from typing import Any

import numpy as np


class HostTrial:
    """Calls NumPy at once."""

    def svd(self, a: Any, out: Any) -> None:
        """Write the parts (numpy.linalg.svd)."""
        if out.u is None:
            out.s[...] = np.linalg.svd(a, compute_uv=False)
        else:
            out.u[...], out.s[...], out.vt[...] = np.linalg.svd(a, full_matrices=False)

    def unique(self, x: Any) -> tuple[Any, Any]:
        """Return values and counts (numpy.unique)."""
        return np.unique(x, return_counts=True)
