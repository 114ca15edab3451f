"""Random numbers on the host: NumPy on words of Philox, a few megabytes at a time."""

from typing import Any

import numpy as np

from accel_lab.backends.host.philox import words
from accel_lab.backends.host.rng.distributions import HostDistributions
from accel_lab.backends.host.rng.uniform import parts, store, unit
from accel_lab.libraries.rng.messages import real_type, words_each

Place = tuple[int, int, int]

_FOUR = 4
_HALF, _LOW = np.uint64(32), np.uint64(2**32 - 1)
_SINES = np.array([1.0, 1.0, -1.0, -1.0])
_COSINES = np.array([1.0, -1.0, -1.0, 1.0])


class HostRng(HostDistributions):
    """Draws at once: on the host, what is enqueued is done."""

    def integers(self, out: Any, place: Place, *, low: int, span: int) -> None:
        """Write integers from `low` on, `span` different ones."""
        each = words_each(span)
        for first, count in parts(out, each):
            drawn = _scaled(_drawn(place, each, first, count), each, span)
            if low:
                drawn += np.uint64(low % 2**64)
            store(out, first, drawn)

    def uniform(
        self,
        out: Any,
        place: Place,
        *,
        dtype: str,
        low: float,
        span: float,
        high: float,
    ) -> None:
        """Write low + u span, at most `high`."""
        real = real_type(dtype)
        each = 2 if real is np.float64 else 1
        for first, count in parts(out, each):
            drawn = unit(_drawn(place, each, first, count), real)
            if (low, span) != (0, 1):
                drawn *= real(span)
                with np.errstate(over="ignore"):
                    drawn += real(low)
                np.minimum(drawn, real(high), out=drawn)
            store(out, first, drawn)

    def normal(self, out: Any, place: Place, *, dtype: str, mean: float, std: float) -> None:
        """Write z std + mean."""
        real = real_type(dtype)
        each = 2 if real is np.float64 else 1
        for first, count in parts(out, each):
            pairs = -(-count // 2)
            z = box_muller(unit(_drawn(place, each, first, 2 * pairs), real))[:count]
            with np.errstate(over="ignore"):
                drawn = z.astype(real)
                drawn *= real(std)
                drawn += real(mean)
                store(out, first, drawn)


def box_muller(unit: Any) -> Any:
    """Return float64 normal numbers, two for each two uniform ones, u and t, in (0, 1]."""
    u, t = unit[0::2].astype(np.float64), unit[1::2].astype(np.float64)
    radius = np.sqrt(-2 * np.log(u))
    # What is left of the angle after whole quarters of a turn is exact.
    quarter = np.rint(4 * t)
    angle = (t - quarter / 4) * (2 * np.pi)
    sine, cosine = np.sin(angle), np.cos(angle)
    at = quarter.astype(np.intp) & 3
    turned = (at & 1).astype(bool)
    z = np.empty(unit.size)
    z[0::2] = radius * _SINES[at] * np.where(turned, cosine, sine)
    z[1::2] = radius * _COSINES[at] * np.where(turned, sine, cosine)
    return z


def _drawn(place: Place, each: int, first: int, count: int) -> Any:
    seed, stream, offset = place
    return words(seed, stream, offset + each * first, each * count)


def _scaled(drawn: Any, each: int, span: int) -> Any:
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
