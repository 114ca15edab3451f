"""The contract of `rng`'s other generators, Sobol's points, weights and permutations.

As in `test_rng_distributions`, a statistical test fails for one seed in 1e6 if all is right.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.stats import qmc

from accel_lab import System, array, rng
from accel_lab.compute.actors.fault import Inject
from accel_lab.compute.device import Device
from accel_lab.compute.events.lifecycle import BuffersRebuilt
from accel_lab.errors import ContextLost, DependencyFailed, InvalidArgument, UnsupportedDtype
from accel_lab.libraries.rng.engines import ENGINES
from tests.contract import philox
from tests.contract.samples import LAYOUTS, Layout, assert_same, place, refused, value

MANY = 100_000
CHANCE = 1e-6
WAIT_S = 60.0
GENERATORS = ("xorwow", "mrg32k3a", "mt19937")
MASK = 2**32 - 1
M1, M2 = 4294967087, 4294944443
# Of R. Simard's RngStreams: what 2**76 steps do to each half of MRG32k3a.
A1P76 = [
    [82758667, 1871391091, 4127413238],
    [3672831523, 69195019, 1871391091],
    [3672091415, 3528743235, 69195019],
]
A2P76 = [
    [1511326704, 3759209742, 1610795712],
    [4292754251, 1511326704, 3889917532],
    [3859662829, 4292754251, 3708466080],
]


def xorwow(seed: int) -> Iterator[int]:
    """Yield Marsaglia's words, a step at a time, seeded as by curand_init."""
    t0 = ((seed & MASK) ^ 0xAAD26B49) * 1099087573 & MASK
    t1 = (seed >> 32 ^ 0xF7DCEFDD) * 2591861531 & MASK
    x, y = 123456789 + t0 & MASK, 362436069 ^ t0
    z, w, v = 521288629 + t1 & MASK, 88675123 ^ t1, 5783321 + t0 & MASK
    d = 6615241 + t1 + t0 & MASK
    while True:
        t = x ^ x >> 2
        x, y, z, w, v = y, z, w, v, (v ^ v << 4 ^ t ^ t << 1) & MASK
        d = d + 362437 & MASK
        yield d + v & MASK


def mrg32k3a(seed: int) -> Iterator[int]:
    """Yield L'Ecuyer's numbers as cuRAND's words, a step at a time."""
    low, high = (seed & MASK) ^ 0x55555555, seed >> 32 ^ 0xAAAAAAAA
    s = [12345 * one % M1 for one in (low, high, low)] if seed else [12345] * 3
    t = [12345 * one % M2 for one in (high, low, high)] if seed else [12345] * 3
    while True:
        p = (1403580 * s[1] - 810728 * s[0]) % M1
        q = (527612 * t[2] - 1370589 * t[0]) % M2
        s, t = [s[1], s[2], p], [t[1], t[2], q]
        yield int((p - q if p > q else p - q + M1) * 1.000000048662)


def mt19937(seed: int) -> Iterator[int]:
    """Yield NumPy's words."""
    twister = np.random.MT19937()
    np.random.RandomState(twister).seed(seed)
    while True:
        yield twister.random_raw()


STEPS: dict[str, Callable[[int], Iterator[int]]] = {
    "xorwow": xorwow,
    "mrg32k3a": mrg32k3a,
    "mt19937": mt19937,
}


# Other generators.


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**63 + 9])
@pytest.mark.parametrize("generator", GENERATORS)
def test_words_are_made_step_by_step(device: Device, generator: Any, seed: int) -> None:
    if generator == "mt19937" and seed >= 2**32:
        pytest.skip("mt19937 has seeds of 32 bits")
    expected = np.array([*islice(STEPS[generator](seed), 2000)], np.uint32)
    for first, count in ((0, 2000), (1, 999), (1000, 1000), (1999, 1), (5, 0)):
        found = rng.generate(device, generator, count, seed=seed, offset=first)
        assert_same(value(device, found), expected[first : first + count])


def test_the_ten_thousandth_word_of_mt19937_is_the_one_of_c_s_standard(device: Device) -> None:
    found = rng.generate(device, "mt19937", 1, seed=5489, offset=9999)
    assert value(device, found).tolist() == [4123659995]


def test_streams_are_as_far_apart_as_curand_s(device: Device) -> None:
    found = ENGINES["mrg32k3a"].power(76).astype(int)
    assert found[:3, :3].T.tolist() == A1P76
    assert found[3:, 3:].T.tolist() == A2P76
    # Leaps of XORWOW: that of 2**12 words is as many steps, and twice 2**66 are one of 2**67.
    engine = ENGINES["xorwow"]
    states = engine.start(9, 0, 0)[None]
    leapt = engine.apply(engine.power(12), states)
    for _ in range(2**12):
        states = engine.step(states)
    assert_same(leapt, states)
    half = engine.power(66)
    twice = engine.apply(half, engine.apply(half, states))
    assert_same(engine.apply(engine.power(67), states), twice)
    first, second = engine.start(9, 1, 5), engine.start(9, 0, 5)[None]
    assert_same(engine.apply(engine.power(67), second)[0], first)
    for generator in ("xorwow", "mrg32k3a"):
        rows = [value(device, rng.generate(device, generator, 4, seed=9, stream=s)) for s in (0, 1)]
        assert (rows[0] != rows[1]).all()


@pytest.mark.parametrize("generator", GENERATORS)
def test_what_is_made_of_words_follows_uniform_s_rules(device: Device, generator: Any) -> None:
    drawn = value(device, rng.generate(device, generator, MANY, seed=3, offset=5))
    pairs = drawn[: len(drawn) // 2 * 2]
    wide = value(device, rng.generate(device, generator, MANY // 2, "uint64", seed=3, offset=5))
    assert_same(wide, pairs.view(np.uint64))
    single = value(device, rng.generate(device, generator, MANY, "float32", seed=3, offset=5))
    assert_same(single[:99], np.array([philox.unit32(w) for w in drawn[:99]], np.float32))
    double = value(device, rng.generate(device, generator, MANY // 2, "float64", seed=3, offset=5))
    two = [philox.unit64(*map(int, pair)) for pair in drawn[:198].reshape(-1, 2)]
    assert_same(double[:99], np.array(two))
    assert stats.kstest(double, "uniform").pvalue > CHANCE
    for shift in (0, 8, 16, 24):
        often = np.bincount(drawn >> np.uint32(shift) & np.uint32(255), minlength=256)
        assert stats.chisquare(often).pvalue > CHANCE


# Points.


@pytest.mark.parametrize("dtype", ["uint32", "uint64", "float32", "float64"])
def test_points_are_scipy_s(device: Device, dtype: str) -> None:
    bits = 32 if "32" in dtype else 64
    points = value(device, rng.sobol(device, 600, 37, dtype))
    with np.errstate(all="ignore"):
        exact = qmc.Sobol(37, scramble=False, bits=bits).random(1024)[:600]
    if dtype.startswith("uint"):
        assert_same((points / 2.0**bits), exact)
    else:
        # Half a unit is added: of 2**-32 to float32, of 2**-53 to float64.
        assert (np.abs(points - exact) <= (2.0**-24 if dtype == "float32" else 2.0**-52)).all()
        assert (points > 0).all()
    part = value(device, rng.sobol(device, 100, 37, dtype, offset=321))
    assert_same(part, points[321:421])


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_scrambled_points_are_as_even_and_others_with_each_seed(device: Device, dtype: str) -> None:
    bits = 32 if "32" in dtype else 64
    drawn = [
        value(device, rng.sobol(device, 256, 21, dtype, scrambled=True, seed=seed))
        for seed in (1, 2, 1)
    ]
    assert_same(drawn[0], drawn[2])
    assert (drawn[0] != drawn[1]).mean() > 0.99
    cells = drawn[0] >> np.array(bits - 8, dtype)
    assert (np.sort(cells, axis=0) == np.arange(256)[:, None]).all()
    # The first two axes are a (0, 8, 2)-net: each cell of 16 x 16 has one point.
    both = (cells[:, 0] >> np.array(4, dtype)) * np.array(16, dtype)
    both += cells[:, 1] >> np.array(4, dtype)
    assert np.sort(both).tolist() == list(range(256))


def test_means_over_scrambled_points_converge_faster(device: Device) -> None:
    """The integral of the product of (1 + (x - 1/2) / 2) over a cube is 1."""

    def apart(n: int) -> float:
        found = [
            value(device, rng.sobol(device, n, 5, "float64", scrambled=True, seed=seed))
            for seed in range(8)
        ]
        means = [np.prod(1 + (points - 0.5) / 2, axis=1).mean() for points in found]
        return float(np.sqrt(np.mean(np.square(np.array(means) - 1))))

    # Random points would be off by 0.33 / sqrt(n): 0.005 here.
    assert apart(4096) < 0.0005


def test_a_table_of_many_dimensions_is_whole(device: Device) -> None:
    points = value(device, rng.sobol(device, 2, 20_000, "uint32", offset=1))
    assert (points[0] == 2**31).all()
    assert set((points[1] >> np.uint32(30)).tolist()) == {1, 3}


# Weights and permutations.


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_indices_are_chosen_by_their_words(device: Device, dtype: str) -> None:
    weights = np.array([0.5, 0, 3, 1e-4, 0.25, 2, 0], dtype)
    on = device.put(weights)
    place_: dict[str, Any] = {"seed": 5, "stream": 2, "offset": 3}
    found = value(device, rng.discrete(on, (4, 5), "int32", **place_))
    # 7 weights leave 2**59 units for the largest one.
    units = [int(float(w) / 3 * 2.0**59) for w in weights]
    drawn = philox.words(5, 2, 3, 80)
    chosen = [philox.integer(drawn[i : i + 4], 0, sum(units) - 1) for i in range(0, 80, 4)]
    expected = np.searchsorted(np.cumsum(units), chosen, side="right")
    assert_same(found, expected.astype(np.int32).reshape(4, 5))
    often = np.bincount(value(device, rng.discrete(on, MANY, seed=8)), minlength=7)
    assert (often[weights == 0] == 0).all()
    has = weights > 0
    share = weights[has].astype(np.float64)
    assert stats.chisquare(often[has], share / share.sum() * MANY).pvalue > CHANCE


@pytest.mark.parametrize("layout", LAYOUTS)
def test_weights_may_have_any_strides_and_scale(device: Device, layout: Layout) -> None:
    weights = np.random.default_rng(1).random(300)
    expected = value(device, rng.discrete(device.put(weights), 500, seed=1))
    for scale in (1.0, 2.0**-1000, 2.0**900):
        found = rng.discrete(place(device, weights * scale, layout), 500, seed=1)
        assert_same(value(device, found), expected)
    out = array.zeros(device, (500,), "int64")
    assert rng.discrete(device.put(weights), seed=1, out=out).id == out.id
    assert_same(value(device, out), expected)


@pytest.mark.parametrize(
    ("weights", "index", "words"),
    [
        ([1, -1, 2], 1, "weight 1 is negative or not finite"),
        ([float("nan"), 1], 0, "weight 0"),
        ([1, float("inf")], 1, "weight 1"),
        ([0, 0, 0], 3, "every weight is 0"),
    ],
    ids=str,
)
def test_what_is_no_weight_is_an_error_that_names_it(
    device: Device, weights: list[float], index: int, words: str
) -> None:
    ref = rng.discrete(device.put(np.array(weights, np.float64)), 3, seed=1)
    with pytest.raises(rng.InvalidWeights, match=words) as caught:
        ref.result(WAIT_S)
    assert caught.value.index == index
    with pytest.raises(DependencyFailed):
        device.get(ref).result(WAIT_S)
    assert value(device, rng.discrete(device.put(np.ones(1)), 2)).tolist() == [0, 0]


@pytest.mark.parametrize("n", [0, 1, 7, 1000])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_permutation_sorts_numbers_of_two_words(device: Device, n: int, dtype: str) -> None:
    found = value(device, rng.permutation(device, n, dtype, seed=6, stream=1, offset=3))
    drawn = philox.words(6, 1, 3, 2 * n)
    keys = [(drawn[2 * i] | drawn[2 * i + 1] << 32, i) for i in range(n)]
    assert_same(found, np.array([i for _, i in sorted(keys)], dtype))


def test_every_order_is_as_likely(device: Device) -> None:
    generator = rng.Generator(device, 12)
    rows = [generator.permutation(4) for _ in range(480)]
    orders = [tuple(value(device, row).tolist()) for row in rows]
    often = [orders.count(order) for order in set(orders)]
    assert len(often) == 24
    assert stats.chisquare(often).pvalue > CHANCE
    assert generator.offset == 480 * 8


def test_a_generator_chooses_by_weights(device: Device) -> None:
    generator = rng.Generator(device, 12)
    weights = device.put(np.array([1.0, 2, 3]))
    for offset in (0, 20):
        mine, plain = (
            generator.discrete(weights, 5),
            rng.discrete(weights, 5, seed=12, offset=offset),
        )
        assert_same(value(device, mine), value(device, plain))


# A loss.


def test_draws_in_flight_survive_a_kill(backend: Any) -> None:
    name = backend.__name__.rpartition(".")[2]
    with System(name, devices=1, recover="replay") as lab:
        (device,) = lab.devices
        weights = device.put(np.array([1.0, 2, 3]))
        generator = rng.Generator(device, 3)

        def draws() -> list[Any]:
            return [
                generator.gamma(0.5, 999),
                generator.poisson(30, 999),
                generator.discrete(weights, 999),
                generator.permutation(999),
                *[rng.generate(device, one, 999, seed=1, offset=7) for one in GENERATORS],  # type: ignore[arg-type]
                rng.sobol(device, 99, 5, scrambled=True, seed=3),
            ]

        made = draws()
        before = [value(device, ref) for ref in made]
        state, mark = generator.state, lab.events.published
        flying = draws()
        with pytest.raises(ContextLost):
            device.ask(Inject("kill")).result(WAIT_S)
        fact = lab.events.wait_for(BuffersRebuilt, WAIT_S, since=mark)
        assert isinstance(fact, BuffersRebuilt)
        assert fact.lost == 0
        for ref, was in zip(made, before, strict=True):
            assert_same(value(device, ref), was)
        generator.state = state
        for ref, again in zip(flying, draws(), strict=True):
            assert_same(value(device, ref), value(device, again))
        lab.check()


# Mistakes.

REFUSED: dict[str, tuple[Callable[[Any], object], tuple[str, ...]]] = {
    "generator": (lambda d: rng.generate(d, "mwc", 3), ("mt19937", "'mwc'")),  # type: ignore[arg-type]
    "stream": (lambda d: rng.generate(d, "mt19937", 3, stream=1), ("stream 0", "1")),
    "seed": (lambda d: rng.generate(d, "mt19937", 3, seed=2**32), ("2**32 - 1",)),
    "too far": (
        lambda d: rng.generate(d, "mt19937", 3, "uint64", seed=1, offset=2**32 - 5),
        ("6 words from 4294967291", "another generator"),
    ),
    "dimensions": (lambda d: rng.sobol(d, 3, 20_001), ("20000", "(3, 20001)")),
    "no dimension": (lambda d: rng.sobol(d, 3, 0), ("(3, 0)",)),
    "points": (lambda d: rng.sobol(d, 3, offset=2**32 - 2), ("float32 has 2**32", "float64")),
    "negative": (lambda d: rng.permutation(d, -1), ("-1",)),
}
WEIGHTS: dict[str, tuple[tuple[int, ...], str, str, tuple[str, ...]]] = {
    "none": ((0,), "float64", "int64", ("not empty", "float64[0]")),
    "two axes": ((2, 2), "float64", "int64", ("one axis", "float64[2, 2]")),
    "indices": ((2,), "float64", "float32", ("int32 or int64", "float32")),
    "dtype": ((2,), "int32", "int64", ("rng.Discrete of int32",)),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_mistake_is_refused_with_what_and_what_was_expected(device: Device, mistake: str) -> None:
    send, words = REFUSED[mistake]
    with refused(device, *words):
        send(device)


@pytest.mark.parametrize("mistake", WEIGHTS)
def test_weights_that_do_not_fit_are_refused(device: Device, mistake: str) -> None:
    shape, dtype, index, words = WEIGHTS[mistake]
    weights = array.zeros(device, shape, dtype)
    error = UnsupportedDtype if mistake == "dtype" else InvalidArgument
    with refused(device, *words, error=error):
        rng.discrete(weights, 3, index)


def test_sobols_directions_need_no_import_of_scipys_statistics() -> None:
    """That takes most of a second, of every context that follows a lost one."""
    code = (
        "import sys; from accel_lab.libraries.rng.points import joe_kuo; joe_kuo(3, 32); "
        "assert 'scipy.stats' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
