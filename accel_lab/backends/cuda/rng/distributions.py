"""Distributions on cuda: one kernel of accel_lab's own for each, and each dtype; as the host's."""

from typing import Any

import cupy
import numpy as np

from accel_lab.backends.cuda.rng.sampling import PARAMETERS, Sampling, sampling_source
from accel_lab.libraries.rng.distributions import (
    Beta,
    Binomial,
    Cauchy,
    Exponential,
    Gamma,
    LogNormal,
    Poisson,
)
from accel_lab.libraries.rng.messages import Draw

THREADS = 256
BLOCK_LIMIT = 1 << 16  # each thread goes on to the elements that are left
# A product and a sum must not be joined: the host does not.
OPTIONS = ("-fmad=false",)


class CudaDistributions:
    """Enqueues on the device's active stream. A kernel is compiled once, and kept on disk."""

    def __init__(self) -> None:
        super().__init__()
        self._samplings: dict[Sampling, Any] = {}

    def log_normal(self, m: LogNormal, out: Any) -> None:
        """Write exp(z std + mean)."""
        self._sample("log_normal", m, m.parameters, out)

    def exponential(self, m: Exponential, out: Any) -> None:
        """Write -ln(u) scale."""
        self._sample("exponential", m, m.parameters, out)

    def cauchy(self, m: Cauchy, out: Any) -> None:
        """Write median + scale tan(pi (u - 1/2))."""
        self._sample("cauchy", m, m.parameters, out)

    def gamma(self, m: Gamma, out: Any) -> None:
        """Write gamma numbers."""
        self._sample("gamma", m, m.parameters, out)

    def beta(self, m: Beta, out: Any) -> None:
        """Write x / (x + y), of the logarithms of two gamma numbers."""
        self._sample("beta", m, m.parameters, out)

    def poisson(self, m: Poisson, out: Any) -> None:
        """Write Poisson numbers."""
        self._sample("poisson", m, m.parameters, out)

    def binomial(self, m: Binomial, out: Any) -> None:
        """Write binomial numbers."""
        self._sample("binomial", m, m.parameters, out)

    def _sample(self, kind: str, m: Draw, numbers: tuple[float, ...], out: Any) -> None:
        if not out.size:
            return
        dtype = f"uint{8 * out.itemsize}" if "int" in m.dtype else m.dtype
        form = Sampling(kind, dtype, m.each)
        kernel = self._samplings.get(form)
        if kernel is None:
            kernel = cupy.RawKernel(sampling_source(form), form.name, OPTIONS)
            self._samplings[form] = kernel
        filled = [np.float64(number) for number in (*numbers, *[0.0] * PARAMETERS)[:PARAMETERS]]
        place = np.uint64(m.seed), np.uint64(m.stream), np.uint64(m.offset)
        enqueue(kernel, out, lambda whole: (whole, np.int64(whole.size), *place, *filled))


def enqueue(kernel: Any, out: Any, arguments: Any) -> None:
    """Enqueue a kernel that writes elements in a row; what has other strides is copied to."""
    dense = out.flags.c_contiguous
    whole = out if dense else cupy.empty(out.shape, out.dtype)
    blocks = min(-(-whole.size // THREADS), BLOCK_LIMIT)
    kernel((blocks,), (THREADS,), arguments(whole))
    if not dense:
        out[...] = whole
