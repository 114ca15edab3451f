"""What the contract tests of `libraries.fft` share: cases, and SciPy's answers in long double."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.fft
from hypothesis import strategies as st

from accel_lab.compute.arrays.dtypes import is_complex, real_of
from accel_lab.libraries.fft.transform import NORMS, Norm
from tests.contract.samples import Layout, layouts, seeds
from tests.contract.tolerances import wide

SINGLE_AND_DOUBLE = ("complex64", "complex128")
REALS = ("float32", "float64")
COMPLEX = {"float32": "complex64", "float64": "complex128"}

norms = st.sampled_from(NORMS)
dtypes = st.sampled_from((*REALS, *SINGLE_AND_DOUBLE))


@dataclass(frozen=True)
class Case:
    """One transform of an array of any shape along some of its axes."""

    seed: int
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    s: tuple[int, ...] | None
    norm: Norm
    layout: Layout

    @property
    def options(self) -> dict[str, Any]:
        """Give what SciPy calls by the same names."""
        return {"s": self.s, "axes": self.axes, "norm": self.norm}

    @property
    def points(self) -> int:
        """Count the points of one transform, at most."""
        lengths = self.s or [self.shape[axis] for axis in self.axes]
        return 2 * math.prod(lengths)


@st.composite
def cases(draw: st.DrawFn, *, least: int = 1, most_axes: int = 4) -> Case:
    """Draw shapes of up to five axes, of which some are transformed, cropped or padded."""
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=least, max_size=5)))
    order = draw(st.permutations(range(len(shape))))
    count = draw(st.integers(least, min(most_axes, len(shape))))
    axes = tuple(axis - draw(st.sampled_from([0, len(shape)])) for axis in order[:count])
    s = tuple(draw(st.integers(1, 8)) for _ in axes) if draw(st.booleans()) else None
    return Case(draw(seeds), shape, axes, s, draw(norms), draw(layouts))


def definition(x: Any, *, inverse: bool = False) -> Any:
    """Return the sums over j of x[j] exp(-+ 2 pi i j k / n) along the last axis, precisely."""
    n = x.shape[-1]
    # Reduced modulo n first: a large angle would lose digits.
    turns = np.outer(np.arange(n), np.arange(n)) % n / np.longdouble(n)
    angle = 2 * np.arccos(np.longdouble(-1)) * turns
    matrix = np.cos(angle) + (1j if inverse else -1j) * np.sin(angle)
    return wide(x) @ matrix


def scipy_s(name: str, x: Any, **options: Any) -> Any:
    """Return SciPy's answer in long double."""
    return getattr(scipy.fft, name)(wide(x), **options)


def computed_in(dtype: str) -> str:
    """Return the complex dtype in whose precision a transform is computed."""
    return dtype if is_complex(dtype) else COMPLEX[real_of(dtype)]
