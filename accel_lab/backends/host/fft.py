"""Fourier transforms on the host, by SciPy's pocketfft."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.fft

from accel_lab.libraries.fft.transform import Norm


class HostFft:
    """Calls SciPy at once: on the host, what is enqueued is done."""

    @np.errstate(all="ignore")
    def c2c(
        self,
        x: Any,
        out: Any,
        *,
        s: tuple[int, ...] | None,
        axes: tuple[int, ...] | None,
        norm: Norm,
        inverse: bool,
    ) -> None:
        """Write the transform (scipy.fft.fftn, ifftn)."""
        transform = scipy.fft.ifftn if inverse else scipy.fft.fftn
        np.copyto(out, transform(x, s, axes, norm))

    @np.errstate(all="ignore")
    def r2c(
        self,
        x: Any,
        out: Any,
        *,
        s: tuple[int, ...] | None,
        axes: tuple[int, ...] | None,
        norm: Norm,
    ) -> None:
        """Write half of the transform (scipy.fft.rfftn)."""
        np.copyto(out, scipy.fft.rfftn(x, s, axes, norm))

    @np.errstate(all="ignore")
    def c2r(
        self,
        x: Any,
        out: Any,
        *,
        s: tuple[int, ...] | None,
        axes: tuple[int, ...] | None,
        norm: Norm,
    ) -> None:
        """Write the real numbers (scipy.fft.irfftn)."""
        np.copyto(out, scipy.fft.irfftn(x, s, axes, norm))

    def statistics(self) -> Mapping[str, int]:
        """Return nothing: pocketfft keeps its plans to itself."""
        return {}
