"""Uniform numbers and integers of words in NumPy, and where elements go."""

from collections.abc import Iterator
from typing import Any

import numpy as np

CHUNK = 1 << 16  # words; a multiple of what any element, or any pair of them, takes

_FOUR = 4
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


def chosen(drawn: Any, each: int, span: int) -> Any:
    """Return floor(v span / 2**(32 each)) as uint64, where v are the numbers of `each` words."""
    if each == 1:
        if span == 2**32:
            return drawn.astype(np.uint64)
        return drawn * np.uint64(span) >> _HALF
    pairs = drawn.view(np.uint64)
    if span == 2**64:
        return pairs.copy()
    low = _high(pairs[0 :: each // 2], span)[0]
    if each < _FOUR:
        return low
    high, rest = _high(pairs[1::2], span)
    return high + (low + rest < rest)


def _high(x: Any, factor: int) -> tuple[Any, Any]:
    """Return the high and the low 64 bits of uint64 products."""
    f0, f1 = np.uint64(factor & 0xFFFFFFFF), np.uint64(factor >> 32)
    x0, x1 = x & _LOW, x >> _HALF
    low = x0 * f0
    middle = x1 * f0 + (low >> _HALF)
    other = x0 * f1 + (middle & _LOW)
    return x1 * f1 + (middle >> _HALF) + (other >> _HALF), (other << _HALF) | (low & _LOW)


def store(out: Any, first: int, values: Any) -> None:
    """Write elements from the `first` one in C order."""
    if out.flags.c_contiguous:
        out.reshape(-1)[first : first + len(values)] = values
    else:
        out.flat[first : first + len(values)] = values
