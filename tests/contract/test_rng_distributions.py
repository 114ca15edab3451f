"""The contract of `rng`'s distributions: their functions of u, their laws, and how often each is.

A statistical test has a fixed seed, so it fails always or never. For numbers that are right it
would fail for one seed in 1e6: each bound below is that quantile. There are fewer than 100 of them.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from scipy import stats

from accel_lab import rng
from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.compute.device import Device
from tests.contract import philox
from tests.contract.samples import assert_same, place, refused, value

MANY = 60_000
CHANCE = 1e-6
"""How likely a test of correct numbers would fail if its seed were another."""
PLACE: dict[str, Any] = {"seed": 2**63 + 5, "stream": 3, "offset": 7}

Send = Callable[..., Any]
REALS: dict[str, tuple[Send, Any]] = {
    "log-normal": (
        lambda d, *a, **o: rng.log_normal(d, *a, mean=0.3, std=0.7, **o),
        stats.lognorm(0.7, scale=np.exp(0.3)),
    ),
    "exponential": (lambda d, *a, **o: rng.exponential(d, *a, scale=3, **o), stats.expon(scale=3)),
    "Cauchy": (lambda d, *a, **o: rng.cauchy(d, *a, median=1, scale=2, **o), stats.cauchy(1, 2)),
    **{
        f"gamma {alpha:g}": (
            lambda d, *a, alpha=alpha, **o: rng.gamma(d, alpha, *a, scale=2, **o),
            stats.gamma(alpha, scale=2),
        )
        for alpha in (0.1, 1, 2.5, 1e4)
    },
    **{
        f"beta {p:g} {q:g}": (
            lambda d, *a, p=p, q=q, **o: rng.beta(d, p, q, *a, **o),
            stats.beta(p, q),
        )
        for p, q in ((0.5, 0.6), (1, 1), (200, 3))
    },
}
COUNTS: dict[str, tuple[Send, Any]] = {
    **{
        f"Poisson {mean:g}": (
            lambda d, *a, mean=mean, **o: rng.poisson(d, mean, *a, **o),
            stats.poisson(mean),
        )
        for mean in (0.01, 3, 9.99, 10, 40, 1e6)
    },
    **{
        f"binomial {n} {p:g}": (
            lambda d, *a, n=n, p=p, **o: rng.binomial(d, n, p, *a, **o),
            stats.binom(n, p),
        )
        for n, p in ((1, 0.3), (20, 0.5), (25, 0.6), (1000, 0.999), (10**6, 0.2), (2**40, 1e-11))
    },
}
ALL = {**REALS, **COUNTS}


def expected_often(law: Any, count: int) -> tuple[Any, Any]:
    """Return ends of cells and how often a number is up to each and above the one before."""
    ends = np.unique(np.floor(law.ppf(np.linspace(0.001, 0.999, 41))))
    sums = np.concatenate([[0], law.cdf(ends), [1]])
    often = np.diff(sums) * count
    while len(ends) and often[-1] < 10:
        ends, often = ends[:-1], np.append(often[:-2], often[-2:].sum())
    return ends, often


# Laws.


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", REALS)
def test_real_numbers_are_of_their_distribution(device: Device, name: str, dtype: str) -> None:
    send, law = REALS[name]
    drawn = value(device, send(device, MANY, dtype, seed=101)).astype(np.float64)
    assert stats.kstest(drawn, law.cdf).pvalue > CHANCE
    # Neighbours have nothing to do with each other.
    ranks = law.cdf(drawn)
    assert abs(np.corrcoef(ranks[:-1], ranks[1:])[0, 1]) < 4.9 / MANY**0.5


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_as_often_as_they_should(device: Device, name: str) -> None:
    send, law = COUNTS[name]
    drawn = value(device, send(device, MANY, seed=102))
    assert drawn.dtype == np.int64
    ends, often = expected_often(law, MANY)
    found = np.bincount(np.searchsorted(ends, drawn), minlength=len(often))
    assert stats.chisquare(found, often).pvalue > CHANCE


def test_what_is_certain_is_drawn(device: Device) -> None:
    for ref, number in (
        (rng.poisson(device, 0, 5), 0),
        (rng.binomial(device, 0, 0.5, 5), 0),
        (rng.binomial(device, 12, 0, 5), 0),
        (rng.binomial(device, 2**40, 1, 5), 2**40),
        (rng.binomial(device, 2**31 - 1, 1, 5, "int32"), 2**31 - 1),
    ):
        assert value(device, ref).tolist() == [number] * 5
    assert value(device, rng.log_normal(device, 3, std=0)).tolist() == [1.0] * 3


def test_small_shapes_reach_both_ends_and_are_numbers(device: Device) -> None:
    drawn = value(device, rng.beta(device, 1e-300, 1e-300, 1000, "float64", seed=1))
    assert set(drawn.tolist()) == {0.0, 1.0}
    assert (value(device, rng.gamma(device, 1e-300, 1000, seed=1)) == 0).all()


# Functions of u.


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exponential_and_cauchy_numbers_are_functions_of_their_words(
    device: Device, dtype: str
) -> None:
    each = 1 if dtype == "float32" else 2
    drawn = philox.words(PLACE["seed"], PLACE["stream"], PLACE["offset"], 20 * each)
    u = np.array([philox.inside(drawn[i : i + each]) for i in range(0, 20 * each, each)])
    eps = float(np.finfo(dtype).eps)
    found = value(device, rng.exponential(device, 20, dtype, scale=3, **PLACE))
    np.testing.assert_allclose(found, -3 * np.log(u), rtol=2 * eps)
    found = value(device, rng.cauchy(device, 20, dtype, **PLACE))
    np.testing.assert_allclose(found, -1 / np.tan(np.pi * u.astype(float)), rtol=20 * eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_log_normal_numbers_are_e_to_the_normal_ones(device: Device, dtype: str) -> None:
    z = value(device, rng.normal(device, 1001, dtype, **PLACE)).astype(np.float64)
    found = value(device, rng.log_normal(device, 1001, dtype, mean=0.5, std=2, **PLACE))
    # z of `Normal` is within 4 units in the last place.
    error = 4 * float(np.finfo(dtype).eps) * (1 + 2 * np.abs(z))
    assert (np.abs(found / np.exp(2 * z + 0.5) - 1) <= error).all()


@pytest.mark.parametrize("name", REALS)
def test_narrow_numbers_are_float32_s_rounded(device: Device, name: str) -> None:
    send, _ = REALS[name]
    wide = value(device, send(device, 999, "float32", seed=4))
    for dtype in ("float16", "bfloat16"):
        with np.errstate(over="ignore"):
            expected = wide.astype(numpy_dtype(dtype))
        assert_same(value(device, send(device, 999, dtype, seed=4)), expected)


TABLE: dict[str, Send] = {
    "LogNormal": rng.log_normal,
    "Exponential": rng.exponential,
    "Cauchy": rng.cauchy,
    "Gamma": lambda d, *a, **o: rng.gamma(d, 2, *a, **o),
    "Beta": lambda d, *a, **o: rng.beta(d, 2, 3, *a, **o),
    "Poisson": lambda d, *a, **o: rng.poisson(d, 2, *a, **o),
    "Binomial": lambda d, *a, **o: rng.binomial(d, 2, 0.5, *a, **o),
    "Permutation": rng.permutation,
    "Generate": lambda d, *a, **o: rng.generate(d, "mrg32k3a", *a, **o),
    "Sobol": lambda d, n, *a, **o: rng.sobol(d, n, 2, *a, **o),
}


@pytest.mark.parametrize("kind", TABLE)
def test_a_dtype_is_drawn_or_refused_as_the_table_says(
    device: Device, support: Mapping[str, frozenset[str]], kind: str
) -> None:
    for dtype in NAMES:
        if dtype in support[f"rng.{kind}"]:
            drawn = value(device, TABLE[kind](device, 5, dtype, seed=1))
            assert drawn.dtype == numpy_dtype(dtype)
            assert len(drawn) == 5
        else:
            with refused(device, dtype):
                TABLE[kind](device, 5, dtype, seed=1)


# Places.


@pytest.mark.parametrize("name", ALL)
def test_a_draw_is_a_function_of_seed_and_place(device: Device, name: str) -> None:
    send, _ = ALL[name]
    dtype = "float64" if name in REALS else "int64"
    ref = send(device, (30, 40), dtype, **PLACE)
    whole = value(device, ref).reshape(-1)
    words = {
        **dict.fromkeys(COUNTS, 4),
        **{one: 16 if "beta" in one else 8 for one in REALS},
        **dict.fromkeys(("log-normal", "exponential", "Cauchy"), 2),
    }[name]
    place_ = dict(PLACE)
    for first, count in ((0, 502), (502, 698)):
        place_["offset"] = PLACE["offset"] + words * first
        part = value(device, send(device, count, dtype, **place_))
        assert_same(part, whole[first : first + count])
    out = place(device, np.zeros((30, 40), whole.dtype), "reversed")
    assert send(device, out=out, **PLACE).id == out.id
    assert_same(value(device, out).reshape(-1), whole)
    assert value(device, send(device, (2, 0), dtype)).shape == (2, 0)


def test_a_generator_draws_from_word_to_word(device: Device) -> None:
    generator = rng.Generator(device, 9)
    place_: dict[str, Any] = {"seed": 9}
    for mine, plain in (
        (generator.log_normal(3, std=2), rng.log_normal(device, 3, std=2, **place_)),
        (generator.exponential(3), rng.exponential(device, 3, offset=4, **place_)),
        (generator.cauchy(scale=3), rng.cauchy(device, scale=3, offset=7, **place_)),
        (generator.gamma(2, 3), rng.gamma(device, 2, 3, offset=8, **place_)),
        (generator.beta(2, 3, 4), rng.beta(device, 2, 3, 4, offset=32, **place_)),
        (generator.poisson(2, 3), rng.poisson(device, 2, 3, offset=96, **place_)),
        (generator.binomial(9, 0.5, 3), rng.binomial(device, 9, 0.5, 3, offset=108, **place_)),
    ):
        assert_same(value(device, mine), value(device, plain))
    assert generator.offset == 120


# Mistakes.

REFUSED: dict[str, tuple[Callable[[Device], object], tuple[str, ...]]] = {
    "deviation": (lambda d: rng.log_normal(d, std=-1), ("LogNormal: std is -1", "negative")),
    "scale": (lambda d: rng.exponential(d, scale=0), ("Exponential: scale is 0", "above 0")),
    "infinite": (lambda d: rng.cauchy(d, median=float("inf")), ("median is inf", "float32")),
    "scale of Cauchy": (lambda d: rng.cauchy(d, scale=-2), ("scale is -2", "above 0")),
    "shape": (lambda d: rng.gamma(d, 0), ("alpha is 0", "2**32")),
    "large shape": (lambda d: rng.beta(d, 2, 1e10), ("b is 10000000000", "2**32")),
    "shape that is none": (lambda d: rng.gamma(d, float("nan")), ("alpha is nan",)),
    "mean": (lambda d: rng.poisson(d, -1), ("Poisson: mean is -1", "2**40")),
    "mean of int32": (lambda d: rng.poisson(d, 2.147e9, dtype="int32"), ("int32", "draw int64")),
    "trials": (lambda d: rng.binomial(d, -1, 0.5), ("n must be", "-1")),
    "trials of int32": (lambda d: rng.binomial(d, 2**31, 0.5, dtype="int32"), ("2147483647",)),
    "chance": (lambda d: rng.binomial(d, 3, 1.5), ("p is 1.5", "from 0 to 1")),
    "half a trial": (lambda d: rng.binomial(d, 2.5, 0.5), ("integer", "2.5")),  # type: ignore[arg-type]
    "beyond the stream": (lambda d: rng.gamma(d, 1, 2, offset=2**64 - 8), ("Gamma takes 16",)),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_mistake_is_refused_with_what_and_what_was_expected(device: Device, mistake: str) -> None:
    send, words = REFUSED[mistake]
    with refused(device, *words):
        send(device)
