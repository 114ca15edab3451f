"""Philox4x32-10 a word at a time, as its paper and the order of `rng` define it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

MASK = 2**32 - 1


def philox(counter: Sequence[int], key: Sequence[int]) -> list[int]:
    """Return the block of a counter and a key, of four and two words."""
    x0, x1, x2, x3 = counter
    k0, k1 = key
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * x0, 2**32)
        high1, low1 = divmod(0xCD9E8D57 * x2, 2**32)
        x0, x1, x2, x3 = high1 ^ x1 ^ k0, low1, high0 ^ x3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return [x0, x1, x2, x3]


def word(seed: int, stream: int, index: int, plane: int = 0) -> int:
    """Return one word of a plane of a stream."""
    block, lane = divmod(index, 4)
    turn, thread = divmod(block, 65536)
    subsequence = stream * 65536 + thread
    counter = (turn & MASK, turn >> 32 | plane << 14, subsequence & MASK, subsequence >> 32)
    return philox(counter, (seed & MASK, seed >> 32))[lane]


def words(seed: int, stream: int, offset: int, count: int) -> list[int]:
    """Return words in a row."""
    return [word(seed, stream, offset + i) for i in range(count)]


def integer(drawn: Sequence[int], low: int, last: int) -> int:
    """Return the integer that an element's words choose."""
    value = sum(w << 32 * i for i, w in enumerate(drawn))
    return low + (value * (last - low + 1) >> 32 * len(drawn))


def unit32(w: int) -> Any:
    """Return curand_uniform's number; the sum is exact in float64, so that it is rounded once."""
    return np.float32(float(np.float32(w)) * 2.0**-32 + 2.0**-33)


def unit64(x: int, y: int) -> float:
    """Return curand_uniform_double's number; Python rounds a quotient of integers once."""
    return (2 * (x ^ (y << 21)) + 1) / 2**54


def normals(u: Any, t: Any) -> tuple[Any, Any]:
    """Return the two exact normal numbers, in 64 bits of precision, of uniform ones."""
    u, t = np.longdouble(u), np.longdouble(t)
    radius = np.sqrt(-2 * np.log(u))
    return radius * _sine(t), -radius * _sine(t - np.longdouble(0.25))


def _sine(turns: Any) -> Any:
    halves = np.rint(2 * turns)
    two_pi = 8 * np.arctan(np.longdouble(1))
    return np.where(halves % 2 == 0, 1, -1) * np.sin(two_pi * (turns - halves / 2))


def inside(drawn: Sequence[int]) -> Any:
    """Return the number inside (0, 1) of one word or two, exactly."""
    if len(drawn) == 1:
        return np.longdouble(2 * drawn[0] + 1) / 2**33
    return np.longdouble(2 * ((drawn[0] | drawn[1] << 32) >> 12) + 1) / 2**53
