"""A singular value decomposition on cuda, by CuPy."""

from typing import Any

import cupy


class CudaSpectral:
    """Enqueues on the active stream."""

    def svd(self, _: Any, a: Any, out: Any) -> Any:
        """Write the parts (cupy.linalg.svd, gesvd); return whether a value is none."""
        u, s, vt = cupy.linalg.svd(a, full_matrices=False)
        out.u[...], out.s[...] = u, s
        if out.vt is not None:
            out.vt[...] = vt
        return cupy.isnan(s).any().astype("int32")
