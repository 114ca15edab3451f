"""Distributions on the host, by the steps that `libraries.rng.distributions` names, in NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np

from accel_lab.backends.host.rng.uniform import parts, store, unit
from accel_lab.libraries.rng import real
from accel_lab.libraries.rng.distributions import (
    PLANES,
    SURE,
    Beta,
    Binomial,
    Cauchy,
    Exponential,
    Gamma,
    LogNormal,
    Poisson,
)
from accel_lab.libraries.rng.messages import Draw, real_type
from accel_lab.libraries.rng.philox import gathered, words

Make = Callable[[Any], tuple[Any, Any]]
"""Returns of words, a row for each element, what they make, and whether it is accepted."""


class HostDistributions:
    """Draws at once what has a distribution of its own."""

    def log_normal(self, m: LogNormal, out: Any) -> None:
        """Write exp(z std + mean)."""
        mean, std = m.parameters
        kind, each = real_type(m.dtype), m.each
        for first, count in parts(out, each):
            pairs = -(-count // 2)
            drawn = words(m.seed, m.stream, m.offset + each * first, 2 * each * pairs)
            drawn = unit(drawn, kind).astype(np.float64).reshape(-1, 2)
            radius = np.sqrt(-2.0 * real.log(drawn[:, 0]))
            z = np.empty((pairs, 2))
            for at, side in enumerate(real.sine_cosine(drawn[:, 1])):
                z[:, at] = radius * side
            store_reals(out, first, real.exp(z.reshape(-1)[:count] * std + mean), m.dtype)

    def exponential(self, m: Exponential, out: Any) -> None:
        """Write -ln(u) scale."""
        (scale,) = m.parameters
        _one_each(m, out, lambda u: -real.log(u) * scale)

    def cauchy(self, m: Cauchy, out: Any) -> None:
        """Write median + scale tan(pi (u - 1/2))."""
        median, scale = m.parameters

        def make(u: Any) -> Any:
            sine, cosine = real.sine_cosine((u - 0.5) * 0.5)
            return median + scale * (sine / cosine)

        _one_each(m, out, make)

    def gamma(self, m: Gamma, out: Any) -> None:
        """Write gamma numbers."""
        *shape, scale = m.parameters

        def make(drawn: Any) -> tuple[Any, Any]:
            cube, power, accepted = _gamma_try(drawn, *shape)
            return scale * (cube * real.exp(power)), accepted

        for first, count in parts(out, m.each):
            store_reals(out, first, _accepted(m, first, count, make), m.dtype)

    def beta(self, m: Beta, out: Any) -> None:
        """Write x / (x + y), of the logarithms of two gamma numbers."""
        a, b = m.parameters[:3], m.parameters[3:]

        def logarithm(*shape: float) -> Make:
            def make(drawn: Any) -> tuple[Any, Any]:
                cube, power, accepted = _gamma_try(drawn, *shape)
                return real.log(np.where(accepted, cube, 1.0)) + power, accepted

            return make

        for first, count in parts(out, m.each):
            x = _accepted(m, first, count, logarithm(*a))
            y = _accepted(m, first, count, logarithm(*b), 8)
            with np.errstate(over="ignore"):
                store_reals(out, first, 1.0 / (1.0 + real.exp(y - x)), m.dtype)

    def poisson(self, m: Poisson, out: Any) -> None:
        """Write Poisson numbers."""
        rejects, *numbers = m.parameters
        if not rejects:
            _inverted(m, out, chances(*numbers), None)
            return
        *hat, mean = numbers

        def logarithm(k: Any) -> Any:
            one = np.maximum(k, 1.0)
            error = real.stirling_error(one) + real.deviance(one, mean)
            scale = real.HALF_LN_TWO_PI + 0.5 * real.log(one)
            return np.where(k < 1.0, -mean, -error - scale)

        _transformed(m, out, hat, logarithm, np.inf, None)

    def binomial(self, m: Binomial, out: Any) -> None:
        """Write binomial numbers."""
        rejects, *numbers = m.parameters
        if not rejects:
            *chance, n, fails = numbers
            _inverted(m, out, chances(*chance), n if fails else None)
            return
        *hat, n, fails, p = numbers
        q = 1.0 - p
        # At the ends, where Stirling's formula says nothing.
        none, all_ = n * real.log(q), n * real.log(p)

        def logarithm(k: Any) -> Any:
            one = np.minimum(np.maximum(k, 1.0), n - 1.0)
            rest = n - one
            errors = real.stirling_error(n) - real.stirling_error(one) - real.stirling_error(rest)
            apart = real.deviance(one, n * p) + real.deviance(rest, n * q)
            scale = real.HALF_LN_TWO_PI + 0.5 * real.log(one * (rest / n))
            inside = (errors - apart) - scale
            return np.where(k < 1.0, none, np.where(k > n - 1.0, all_, inside))

        _transformed(m, out, hat, logarithm, n, n if fails else None)


def store_reals(out: Any, first: int, values: Any, dtype: str) -> None:
    """Write numbers, rounded to float32 before a narrower dtype."""
    with np.errstate(over="ignore", under="ignore"):
        store(out, first, values if dtype == "float64" else values.astype(np.float32))


def open_unit(drawn: Any, each: int) -> Any:
    """Return numbers inside (0, 1), each exactly of one word or of two."""
    if each == 1:
        return (drawn.astype(np.float64) + 0.5) * 2.0**-32
    pairs = np.ascontiguousarray(drawn).view(np.uint64) >> np.uint64(12)
    return (pairs.astype(np.float64) + 0.5) * 2.0**-52


def chances(none: float, n: float, ratio: float) -> Any:
    """Return the sums of chances from 0 on, as a kernel adds them, to where they stay."""
    sums, chance, k = [none], none, 0.0
    while True:
        k += 1.0
        chance = chance * step_of(n, ratio, k)
        after = sums[-1] + chance
        if after == sums[-1] and k > ratio * n + ratio:
            return np.array(sums)
        sums.append(after)


def step_of(n: float, ratio: float, k: float) -> float:
    """Return the chance of k by that of k - 1: of trials, or of Poisson's where n is 0."""
    return ((n - k) * ratio if n else ratio) / k


def _one_each(m: Draw, out: Any, make: Callable[[Any], Any]) -> None:
    for first, count in parts(out, m.each):
        drawn = words(m.seed, m.stream, m.offset + m.each * first, m.each * count)
        store_reals(out, first, make(open_unit(drawn, m.each)), m.dtype)


def _accepted(m: Draw, first: int, count: int, make: Make, skipped: int = 0) -> Any:
    """Return what each element's first accepted try makes, with words behind the skipped ones."""
    place = m.seed, m.stream, m.offset + skipped
    made = np.empty(count)
    left = np.arange(first, first + count, dtype=np.uint64)
    for plane in range(PLANES):
        drawn = gathered(place, m.each, min(m.each, 8), left, plane)
        values, accepted = make(drawn)
        # One that is refused in the last plane is kept, so that there is an end.
        made[(left - np.uint64(first)).astype(np.intp)] = values
        left = left[~accepted]
        if not left.size:
            break
    return made


def _gamma_try(drawn: Any, d: float, c: float, power: float) -> tuple[Any, Any, Any]:
    """Return a gamma number, the logarithm of what it is to be multiplied by, if it is accepted."""
    u, t, v, boost = (open_unit(drawn[:, 2 * at : 2 * at + 2], 2)[:, 0] for at in range(4))
    z = np.sqrt(-2.0 * real.log(u)) * real.sine_cosine(t)[0]
    root = 1.0 + c * z
    positive = root > 0.0
    root = np.where(positive, root, 1.0)
    cube = (root * root) * root
    bound = ((0.5 * (z * z) + d) - d * cube) + d * real.log(cube)
    accepted = positive & (real.log(v) < bound)
    return d * cube, real.log(boost) * power if power else np.zeros_like(u), accepted


def _inverted(m: Draw, out: Any, sums: Any, mirrored: float | None) -> None:
    """Write the first number whose sum of chances reaches u."""
    for first, count in parts(out, m.each):
        drawn = words(m.seed, m.stream, m.offset + m.each * first, m.each * count)
        k = np.searchsorted(sums, open_unit(drawn.reshape(-1, m.each)[:, :2], 2)[:, 0])
        k = np.minimum(k, len(sums) - 1).astype(np.float64)
        _store_counts(out, first, k, mirrored)


def _transformed(
    m: Draw,
    out: Any,
    hat: list[float],
    logarithm: Callable[[Any], Any],
    most: float,
    mirrored: float | None,
) -> None:
    """Write numbers by transformed rejection, Hörmann's PTRS and BTRS."""
    a, b, centre, surely, weight = hat

    def make(drawn: Any) -> tuple[Any, Any]:
        u, v = (open_unit(drawn[:, 2 * at : 2 * at + 2], 2)[:, 0] for at in range(2))
        u = u - 0.5
        near = 0.5 - np.abs(u)
        k = np.floor((2.0 * a / near + b) * u + centre)
        inside = (k >= 0.0) & (k <= most)
        k = np.where(inside, k, 0.0)
        height = (real.log(v) + weight) - real.log(a / (near * near) + b)
        accepted = (near >= SURE) & (v <= surely) | inside & (height <= logarithm(k))
        return k, accepted

    for first, count in parts(out, m.each):
        _store_counts(out, first, _accepted(m, first, count, make), mirrored)


def _store_counts(out: Any, first: int, k: Any, mirrored: float | None) -> None:
    store(out, first, (k if mirrored is None else mirrored - k).astype(np.int64))
