"""Uniform numbers of Philox's words in NumPy, and where elements go, a few megabytes at a time."""

from collections.abc import Iterator
from typing import Any

import numpy as np

CHUNK = 1 << 16  # words; a multiple of what any element, or any pair of them, takes

_HALF, _LOW = np.uint64(32), np.uint64(2**32 - 1)


def parts(out: Any, each: int) -> Iterator[tuple[int, int]]:
    """Yield (first element, how many), which are not too many at a time."""
    step = CHUNK // each
    for first in range(0, out.size, step):
        yield first, min(step, out.size - first)


def unit(drawn: Any, real: type[np.float32 | np.float64]) -> Any:
    """Return uniform numbers in (0, 1], from one word each for float32 or two for float64."""
    if real is np.float32:
        unit = drawn.astype(np.float32)
        unit *= np.float32(2.0**-32)
        unit += np.float32(2.0**-33)
        return unit
    pairs = drawn.view(np.uint64)
    unit = ((pairs & _LOW) ^ (pairs >> _HALF << np.uint64(21))).astype(np.float64)
    unit *= 2.0**-53
    unit += 2.0**-54
    return unit


def store(out: Any, first: int, values: Any) -> None:
    """Write elements from the `first` one in C order."""
    if out.flags.c_contiguous:
        out.reshape(-1)[first : first + len(values)] = values
    else:
        out.flat[first : first + len(values)] = values
