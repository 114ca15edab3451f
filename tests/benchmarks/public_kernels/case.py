"""One kernel of somebody else's, what it is given, and what NumPy says it makes of that."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Case(NamedTuple):
    """A kernel and a launch of it.

    Attributes:
        files: what its text is cut from, one behind another.
        kernel: with its template arguments.
        args: arrays, which become buffers, and numbers.
        expected: what the buffers of these places hold afterwards.
        variables: what the source's `__constant__` and `__device__` variables hold before.
        rtol: of the largest number that is expected.
        on_host: options that only the host is given.
    """

    files: tuple[str, ...]
    kernel: str
    grid: Any
    block: Any
    args: tuple[Any, ...]
    expected: Mapping[int, Any]
    shared_bytes: int = 0
    cooperative: bool = False
    variables: Mapping[str, Any] = {}
    options: tuple[str, ...] = ()
    rtol: float = 2e-6
    on_host: tuple[str, ...] = ()

    def wrong(self, place: int, found: Array) -> str:
        """Say how a buffer differs from what was expected; empty if it does not."""
        wanted = np.asarray(self.expected[place])
        got = found.reshape(wanted.shape)
        if wanted.dtype.kind in "biu":
            return "" if np.array_equal(got, wanted) else f"argument {place} differs"
        if not np.array_equal(np.isfinite(got), np.isfinite(wanted)):
            return f"argument {place} has other infinities"
        finite = np.isfinite(wanted)
        scale = max(1.0, float(np.abs(wanted[finite]).max(initial=0)))
        off = np.abs(got[finite].astype(np.float64) - wanted[finite]).max(initial=0) / scale
        return "" if off <= self.rtol else f"argument {place} is off by {off:.1e}"


def uniform(*shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> Array:
    """Return float32 between two bounds."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def integers(*shape: int, below: int, seed: int = 0, dtype: str = "int32") -> Array:
    """Return integers from 0."""
    return np.random.default_rng(seed).integers(0, below, shape).astype(dtype)


def zeros(*shape: int, dtype: str = "float32") -> Array:
    """Return zeros."""
    return np.zeros(shape, dtype)
