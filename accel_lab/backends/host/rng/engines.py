"""Other generators, points and selections on the host, in NumPy."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from accel_lab.backends.host.rng.uniform import chosen, parts, store, unit
from accel_lab.libraries.rng.engines import ENGINES, LEAP, Generate, words_of
from accel_lab.libraries.rng.messages import real_type
from accel_lab.libraries.rng.philox import words
from accel_lab.libraries.rng.points import BITS, Sobol
from accel_lab.libraries.rng.selection import Discrete, Permutation

LEAPS = 1 << 10  # made together
PIECE = 1 << 18  # words of the twister at a time; a whole number of elements


class HostEngines:
    """Draws at once what does not come from Philox in a row."""

    def generate(self, m: Generate, out: Any) -> None:
        """Write the words of a generator, or what they are as floats."""
        first = 0
        for drawn in _twisted(m) if m.generator == "mt19937" else _leapt(m):
            if m.dtype == "uint32":
                values = drawn
            elif m.dtype == "uint64":
                values = drawn.view(np.uint64)
            else:
                values = unit(drawn, real_type(m.dtype))
            store(out, first, values)
            first += len(values)

    def sobol(self, m: Sobol, out: Any) -> None:
        """Write points."""
        directions, shifts = m.numbers
        bits = BITS[m.dtype]
        for first in range(0, out.shape[0], LEAPS):
            count = min(LEAPS, out.shape[0] - first)
            index = np.arange(count, dtype=np.uint64) + np.uint64(m.offset + first)
            gray = index ^ index >> np.uint64(1)
            points = np.broadcast_to(shifts, (count, len(shifts))).copy()
            for bit in range(int(gray.max()).bit_length()):
                has = (gray >> np.uint64(bit) & np.uint64(1)).astype(points.dtype)
                points ^= has[:, None] * directions[:, bit]
            if m.dtype == "float32":
                out[first : first + count] = unit(points, np.float32)
            elif m.dtype == "float64":
                out[first : first + count] = (points >> np.uint64(bits - 53)) * 2.0**-53 + 2.0**-54
            else:
                out[first : first + count] = points

    @np.errstate(all="ignore")
    def discrete(self, m: Discrete, weights: Any, out: Any) -> Any:
        """Write indices, each as often as its weight says; return the first bad weight or -1."""
        weights = weights.astype(np.float64)
        bad = ~(np.isfinite(weights) & (weights >= 0))
        largest = weights.max()
        if bad.any() or largest == 0:
            return np.array([np.argmax(bad) if bad.any() else len(weights)], np.int64)
        sums = np.cumsum(np.floor(weights / largest * m.scale).astype(np.uint64), dtype=np.uint64)
        for first, count in parts(out, m.each):
            drawn = words(m.seed, m.stream, m.offset + m.each * first, m.each * count)
            store(out, first, np.searchsorted(sums, chosen(drawn, 4, int(sums[-1])), "right"))
        return np.array([-1], np.int64)

    def permutation(self, m: Permutation, out: Any) -> None:
        """Write what sorts as many numbers."""
        keys = words(m.seed, m.stream, m.offset, m.consumes).view(np.uint64)
        out[...] = np.argsort(keys, kind="stable")


def _leapt(m: Generate) -> Iterator[Any]:
    """Yield the words of a draw, of many leaps together."""
    engine, left = ENGINES[m.generator], m.consumes
    state = m.start
    while left > 0:
        count = min(LEAPS, -(-left // LEAP))
        states = engine.leaps(state, count + 1)
        state, states = states[count], states[:count]
        made = np.empty((count, LEAP), np.uint32)
        for at in range(LEAP):
            states = engine.step(states)
            made[:, at] = words_of(m.generator, states)
        yield made.reshape(-1)[:left]
        left -= count * LEAP


def _twisted(m: Generate) -> Iterator[Any]:
    """Yield the words of a draw of mt19937, behind those that come before them."""
    twister = np.random.MT19937()
    np.random.RandomState(twister).seed(m.seed)
    twister.random_raw(m.offset, output=False)
    left = m.consumes
    while left > 0:
        count = min(PIECE, left)
        yield twister.random_raw(count).astype(np.uint32)
        left -= count
