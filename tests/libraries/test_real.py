"""The elementary functions of random numbers against NumPy's in 64 bits of precision."""

import math
from typing import Any

import numpy as np
import pytest

from accel_lab.libraries.rng import distributions, real

LONG = np.longdouble
UNITS = 4.0
"""How far off a function may be, as its module says."""


def apart(found: Any, exact: Any) -> float:
    """Return the largest error in units in the last place."""
    return float(np.max(np.abs(found - exact) / np.spacing(np.abs(exact).astype(np.float64))))


def spread(seed: int, low: float, high: float, count: int = 100_000) -> Any:
    return np.random.default_rng(seed).uniform(low, high, count)


def sine(turns: Any) -> Any:
    halves = np.rint(2 * LONG(turns))
    turn = 8 * np.arctan(LONG(1))
    return np.where(halves % 2 == 0, 1, -1) * np.sin(turn * (LONG(turns) - halves / 2))


def test_logarithms_are_within_their_bound() -> None:
    near = 1 + np.concatenate([spread(0, -1e-3, 1e-3), spread(1, -1e-12, 1e-12)])
    for x in (spread(2, 2.0**-53, 1), np.exp(spread(3, -700, 700)), near[near != 1]):
        assert apart(real.log(x), np.log(LONG(x))) <= UNITS
    assert real.log(np.ones(1))[0] == 0


def test_exponentials_are_within_their_bound_and_end_where_float64_does() -> None:
    for x in (spread(0, -745, 709.7), spread(1, -1, 1)):
        assert apart(real.exp(x), np.exp(LONG(x))) <= UNITS
    ends = np.array([-np.inf, -1e306, -746, 0, 710, np.inf])
    assert real.exp(ends).tolist() == [0, 0, 0, 1, np.inf, np.inf]


def test_sines_and_cosines_are_within_their_bound() -> None:
    turns = np.concatenate([spread(0, -1, 1), spread(1, -1e-9, 1e-9), spread(2, 0.2499, 0.2501)])
    found = real.sine_cosine(turns)
    assert apart(found[0], sine(turns)) <= UNITS
    assert apart(found[1], -sine(LONG(turns) - LONG(0.25))) <= UNITS
    quarters = np.arange(-4, 5) / 4
    assert [abs(x) for x in real.sine_cosine(quarters)[0]] == [0, 1] * 4 + [0]


def test_stirling_s_error_is_that_of_factorials() -> None:
    k = np.arange(1, 171)
    logs = np.cumsum(np.log(LONG(k)))
    turn = 8 * np.arctan(LONG(1))
    exact = logs - (np.log(turn * k) / 2 + k * np.log(LONG(k)) - k)
    assert np.max(np.abs(real.stirling_error(k.astype(np.float64)) - exact)) < 2e-14


def test_the_deviance_does_not_cancel() -> None:
    mean = np.exp(spread(0, 0, 25))
    x = mean * (1 + spread(1, -0.5, 1))
    part = LONG(x) / LONG(mean) - 1
    exact = LONG(mean) * ((1 + part) * np.log1p(part) - part)
    found = real.deviance(x, mean)
    assert np.max(np.abs(found - exact) / (exact + 1e-3 * x)) < 1e-12


@pytest.mark.parametrize(("n", "p"), [(30, 0.4), (1000, 0.02), (10**6, 0.5)])
def test_chances_of_trials_are_their_logarithms(n: int, p: float) -> None:
    for k in (1, n // 3, round(n * p), n - 1):
        exact = (
            math.lgamma(n + 1)
            - math.lgamma(k + 1)
            - math.lgamma(n - k + 1)
            + k * math.log(p)
            + (n - k) * math.log1p(-p)
        )
        found = distributions.binomial_log(float(k), float(n), p)
        assert found == pytest.approx(exact, rel=1e-9, abs=1e-8)
    assert distributions.log_of_rest(p) == pytest.approx(math.log1p(-p), rel=1e-15)
