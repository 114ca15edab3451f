"""Other generators, points and selections on cuda, by accel_lab's own kernels; as the host's.

cuRAND's generators keep a state, are not addressed by a place, and have an order of their own.
"""

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

from accel_lab.backends.cuda.rng.distributions import enqueue
from accel_lab.backends.cuda.rng.engine_source import (
    POWERS,
    chosen_source,
    leapt_source,
    points_source,
    twisted_source,
)
from accel_lab.libraries.rng.engines import ENGINES, Generate
from accel_lab.libraries.rng.points import Sobol
from accel_lab.libraries.rng.selection import Discrete

TWISTER_THREADS = 256


class CudaEngines:
    """Enqueues on the device's active stream. A kernel is compiled once, and kept on disk."""

    def __init__(self) -> None:
        super().__init__()
        self._kernels: dict[tuple[str, ...], Any] = {}
        self._tables: dict[str, Any] = {}

    def generate(self, m: Generate, out: Any) -> None:
        """Write the words of a generator, or what they are as floats."""
        if not out.size:
            return
        start = m.start
        if m.generator == "mt19937":
            kernel = self._kernel("accel_lab_twisted", twisted_source, m.dtype)
            whole = out if out.flags.c_contiguous else cupy.empty(out.shape, out.dtype)
            given = whole, np.int64(whole.size), cupy.asarray(start), np.uint64(m.offset)
            kernel((1,), (TWISTER_THREADS,), given)
            if whole is not out:
                out[...] = whole
            return
        kernel = self._kernel("accel_lab_leapt", leapt_source, m.generator, m.dtype)
        table = self._tables.get(m.generator)
        if table is None:
            table = self._tables[m.generator] = cupy.asarray(ENGINES[m.generator].table(POWERS))
        state = [np.uint32(word) for word in start]
        enqueue(kernel, out, lambda whole: (whole, np.int64(whole.size), table, *state))

    def sobol(self, m: Sobol, out: Any) -> None:
        """Write points."""
        if not out.size:
            return
        kernel = self._kernel("accel_lab_points", points_source, m.dtype)
        directions, shifts = map(cupy.asarray, m.numbers)
        axes, first = np.int64(len(shifts)), np.uint64(m.offset)
        enqueue(
            kernel,
            out,
            lambda whole: (whole, np.int64(whole.size), axes, directions, shifts, first),
        )

    def discrete(self, m: Discrete, weights: Any, out: Any) -> Any:
        """Write indices, each as often as its weight says; return the first bad weight or -1."""
        count = len(weights)
        weights = weights.astype(np.float64)
        bad = ~(cupy.isfinite(weights) & (weights >= 0))
        weights = cupy.where(bad, 0.0, weights)
        largest = weights.max()
        unit = cupy.where(largest > 0, largest, 1.0)
        sums = cupy.cumsum(cupy.floor(weights / unit * m.scale).astype(np.uint64))
        if out.size:
            kernel = self._kernel("accel_lab_chosen", chosen_source, m.dtype)
            place = np.uint64(m.seed), np.uint64(m.stream), np.uint64(m.offset)
            enqueue(
                kernel,
                out,
                lambda whole: (whole, np.int64(whole.size), *place, sums, np.int64(count)),
            )
        none = cupy.where(largest > 0, -1, count)
        return cupy.where(bad.any(), cupy.argmax(bad), none).astype(np.int64).reshape(1)

    def _kernel(self, name: str, source: Callable[..., str], *form: str) -> Any:
        key = (name, *form)
        if key not in self._kernels:
            self._kernels[key] = cupy.RawKernel(source(*form), name, ("-fmad=false",))
        return self._kernels[key]
