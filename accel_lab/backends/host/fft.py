"""Fourier transforms on the host, by SciPy's pocketfft."""

from typing import Any

import numpy as np
import scipy.fft

from accel_lab.libraries.fft.library import C2C, C2R, R2C


class HostFft:
    """Calls SciPy at once: on the host, what is enqueued is done."""

    @np.errstate(all="ignore")
    def c2c(self, m: C2C, x: Any, out: Any) -> None:
        """Write the transform (scipy.fft.fftn, ifftn)."""
        transform = scipy.fft.ifftn if m.inverse else scipy.fft.fftn
        np.copyto(out, transform(x, *m.given))

    @np.errstate(all="ignore")
    def r2c(self, m: R2C, x: Any, out: Any) -> None:
        """Write half of the transform (scipy.fft.rfftn)."""
        np.copyto(out, scipy.fft.rfftn(x, *m.given))

    @np.errstate(all="ignore")
    def c2r(self, m: C2R, x: Any, out: Any) -> None:
        """Write the real numbers (scipy.fft.irfftn)."""
        np.copyto(out, scipy.fft.irfftn(x, *m.given))
