"""Random numbers on the host: NumPy on words of Philox, a few megabytes at a time."""

from typing import Any

import numpy as np

from accel_lab.backends.host.rng.distributions import HostDistributions
from accel_lab.backends.host.rng.engines import HostEngines
from accel_lab.backends.host.rng.uniform import chosen, parts, store, unit
from accel_lab.libraries.rng.messages import real_type, words_each
from accel_lab.libraries.rng.philox import words

Place = tuple[int, int, int]

_SINES = np.array([1.0, 1.0, -1.0, -1.0])
_COSINES = np.array([1.0, -1.0, -1.0, 1.0])


class HostRng(HostDistributions, HostEngines):
    """Draws at once: on the host, what is enqueued is done."""

    def integers(self, out: Any, place: Place, *, low: int, span: int) -> None:
        """Write integers from `low` on, `span` different ones."""
        each = words_each(span)
        for first, count in parts(out, each):
            drawn = chosen(_drawn(place, each, first, count), each, span)
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
