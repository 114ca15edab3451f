"""The contract of `libraries.rng`: words by definition, and what is made of them by its rules."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from accel_lab import array, blas, rng
from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.errors import UnsupportedDtype
from tests.contract import philox
from tests.contract.samples import LAYOUTS, Layout, assert_same, place, refused, value

INTEGERS = [name for name in NAMES if numpy_dtype(name).kind in "biu"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
KINDS: dict[str, Callable[..., Any]] = {
    "Words": rng.words,
    "Integers": lambda *args, **options: rng.integers(args[0], 0, 2, *args[1:], **options),
    "Uniform": rng.uniform,
    "Normal": rng.normal,
}
ANY_DTYPE = {"Words": "uint64", "Integers": "int16", "Uniform": "float64", "Normal": "float32"}
MANY = 150_000  # more than a backend may make at a time

keys = st.integers(0, 2**64 - 1)
streams = st.integers(0, 2**48 - 1)
offsets = st.integers(0, 2**64 - 64) | st.integers(0, 2**20)


def extremes(dtype: str) -> tuple[int, int]:
    if dtype == "bool":
        return 0, 1
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


# Words.


def test_the_first_words_are_random123_s_known_answer(device: Device) -> None:
    drawn = value(device, rng.words(device, 4, seed=0))
    assert [f"{w:08x}" for w in drawn] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]


@settings(max_examples=60)
@given(seed=keys, stream=streams, offset=offsets, count=st.integers(0, 11))
@example(seed=2**64 - 1, stream=2**48 - 1, offset=2**64 - 11, count=11)
@example(seed=1, stream=1, offset=4 * 65536 - 5, count=11)
@example(seed=1, stream=65536, offset=2**50 - 5, count=11)
def test_words_are_philox_s_in_curand_s_order(
    device: Device, seed: int, stream: int, offset: int, count: int
) -> None:
    ref = rng.words(device, count, seed=seed, stream=stream, offset=offset)
    expected = np.array(philox.words(seed, stream, offset, count), np.uint32)
    assert_same(value(device, ref), expected)


def test_words_of_64_bits_are_pairs_the_first_one_low(device: Device) -> None:
    for offset in range(4):
        wide = value(device, rng.words(device, (3, 5), "uint64", seed=9, offset=offset))
        narrow = value(device, rng.words(device, 30, seed=9, offset=offset))
        assert_same(wide.reshape(-1), narrow.view(np.uint64))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("offset", [0, 1, 2, 3, 4 * 65536 - 2])
def test_a_long_draw_is_its_parts_in_a_row(device: Device, kind: str, offset: int) -> None:
    dtype = ANY_DTYPE[kind]
    whole = value(device, KINDS[kind](device, MANY, dtype, seed=7, offset=offset))
    each = {"Words": 2, "Uniform": 2}.get(kind, 1)
    first = 0
    for count in (2, 65_534, 70_002, MANY - 135_538):
        at = offset + each * first
        part = value(device, KINDS[kind](device, count, dtype, seed=7, offset=at))
        assert_same(part, whole[first : first + count])
        first += count


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_draws_the_same_again(device: Device, kind: str) -> None:
    ref = KINDS[kind](device, (3, 4), ANY_DTYPE[kind], seed=5, stream=6, offset=7)
    again = KINDS[kind](device, 12, ANY_DTYPE[kind], seed=5, stream=6, offset=7)
    assert_same(value(device, ref).reshape(-1), value(device, again))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (rng.Words((2,), "uint32", 0), [0x6627E8D5, 0xE169C58D]),
        (rng.Integers((2,), "uint64", 1, 2, 3, low=2**64 - 1, last=2**64 - 1), [2**64 - 1] * 2),
        (rng.Uniform((2,), "float32", 1, low=1, high=1), [1.0, 1.0]),
        (rng.Normal((2,), "float32", 1, mean=-3.5, std=0), [-3.5, -3.5]),
    ],
    ids=lambda case: type(case).__name__,
)
def test_a_message_can_be_built_and_asked_by_hand(
    device: Device, message: rng.Draw, expected: list[float]
) -> None:
    assert value(device, device.ask(message)).tolist() == expected


def test_a_seed_that_is_not_given_is_another_each_time(device: Device) -> None:
    first, second = (value(device, rng.words(device, 4)) for _ in range(2))
    assert (first != second).any()


# Integers.


@settings(max_examples=60)
@given(data=st.data(), dtype=st.sampled_from(INTEGERS), seed=keys, offset=offsets)
def test_integers_are_chosen_by_their_words(
    device: Device, data: st.DataObject, dtype: str, seed: int, offset: int
) -> None:
    ends = st.integers(*extremes(dtype))
    low, last = sorted((data.draw(ends), data.draw(ends)))
    message = rng.Integers((3,), dtype, seed, 0, offset, low=low, last=last)
    each = message.each
    drawn = philox.words(seed, 0, offset, 3 * each)
    expected = [philox.integer(drawn[i : i + each], low, last) for i in range(0, 3 * each, each)]
    assert message.consumes == 3 * each
    assert value(device, device.ask(message)).tolist() == expected


@pytest.mark.parametrize(
    ("count", "words"),
    [
        *[(1, 1), (2, 1), (3, 2), (256, 1), (2**32 - 1, 2), (2**32, 1)],
        *[(2**32 + 1, 4), (2**33, 2), (2**64 - 1, 4), (2**64, 2)],
    ],
)
def test_how_many_words_an_integer_takes(device: Device, count: int, words: int) -> None:
    message = rng.Integers((5,), "uint64", 11, low=0, last=count - 1)
    assert (message.each, message.consumes) == (words, 5 * words)
    drawn = philox.words(11, 0, 0, 5 * words)
    expected = [
        philox.integer(drawn[i : i + words], 0, count - 1) for i in range(0, 5 * words, words)
    ]
    assert value(device, device.ask(message)).tolist() == expected


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_reach_both_ends_of_their_dtype(device: Device, dtype: str) -> None:
    low, last = extremes(dtype)
    drawn = value(device, rng.integers(device, low, last + 1, 4000, dtype, seed=3))
    assert drawn.dtype == numpy_dtype(dtype)
    if drawn.itemsize == 1:
        assert (int(drawn.min()), int(drawn.max())) == (low, last)
    for end in (low, last):
        only = value(device, rng.integers(device, end, end + 1, 3, dtype, seed=3))
        assert [int(x) for x in only] == [end] * 3


@pytest.mark.parametrize("count", [2, 3, 7, 64, 100])
def test_integers_are_equally_often(device: Device, count: int) -> None:
    drawn = value(device, rng.integers(device, -5, count - 5, MANY, "int32", seed=17))
    often = np.bincount(drawn + 5)
    assert len(often) == count
    assert stats.chisquare(often).pvalue > 1e-3


def test_wide_integers_are_spread_evenly(device: Device) -> None:
    count = 3 * 2**62
    drawn = value(device, rng.integers(device, 0, count, MANY, "uint64", seed=18))
    assert stats.kstest(drawn / count, "uniform").pvalue > 1e-3
    assert stats.chisquare(np.bincount((drawn & np.uint64(63)).astype(int))).pvalue > 1e-3


def test_one_bound_is_the_upper_one(device: Device) -> None:
    drawn = value(device, rng.integers(device, 6, shape=1000, seed=1))
    assert drawn.dtype == np.int64
    assert sorted(set(drawn.tolist())) == list(range(6))


# Uniform.


@settings(max_examples=30)
@given(seed=keys, offset=offsets)
def test_uniform_numbers_are_curand_s(device: Device, seed: int, offset: int) -> None:
    drawn = philox.words(seed, 0, offset, 12)
    single = value(device, rng.uniform(device, 12, seed=seed, offset=offset))
    assert_same(single, np.array([philox.unit32(w) for w in drawn], np.float32))
    double = value(device, rng.uniform(device, 6, "float64", seed=seed, offset=offset))
    expected = [philox.unit64(*drawn[i : i + 2]) for i in range(0, 12, 2)]
    assert_same(double, np.array(expected))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("low", "high"),
    # In float32 the sixth begins above its low, so that it would end above its high.
    [(-1, 1), (0.1, 0.3), (-1e30, 1e30), (0, 1e-39), (-3, -3), (16777219, 16777222.9)],
)
def test_uniform_numbers_are_scaled_in_two_rounded_steps(
    device: Device, dtype: str, low: float, high: float
) -> None:
    drawn = value(device, rng.uniform(device, MANY, dtype, low=low, high=high, seed=2, offset=1))
    u = value(device, rng.uniform(device, MANY, dtype, seed=2, offset=1))
    real = u.dtype.type
    product = u * real(high - low)
    assert_same(drawn, np.minimum(product + real(low), real(high)))
    assert real(low) <= drawn.min() <= drawn.max() <= real(high)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 5), (0, 1e-4), (0, 65504)])
def test_narrow_uniform_numbers_are_rounded(
    device: Device, dtype: str, low: float, high: float
) -> None:
    wide = rng.uniform(device, MANY, "float32", low=low, high=high, seed=4)
    narrow = rng.uniform(device, MANY, dtype, low=low, high=high, seed=4)
    assert_same(value(device, narrow), value(device, wide).astype(numpy_dtype(dtype)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_numbers_are_uniform(device: Device, dtype: str) -> None:
    drawn = value(device, rng.uniform(device, MANY, dtype, low=-2, high=6, seed=21))
    drawn = drawn.astype(np.float64)
    assert abs(drawn.mean() - 2) < 5 * (8 / 12**0.5) / MANY**0.5
    if dtype in {"float32", "float64"}:
        assert stats.kstest(drawn, "uniform", (-2, 8)).pvalue > 1e-3


# Normal.


@pytest.mark.parametrize(("dtype", "each"), [("float32", 1), ("float64", 2)])
@pytest.mark.parametrize("offset", [0, 1])
def test_normal_numbers_are_box_and_muller_s(
    device: Device, dtype: str, each: int, offset: int
) -> None:
    drawn = value(device, rng.normal(device, MANY, dtype, seed=31, offset=offset))
    unit = value(device, rng.uniform(device, MANY, dtype, seed=31, offset=offset))
    exact = np.empty(MANY, np.longdouble)
    exact[0::2], exact[1::2] = philox.normals(unit[0::2], unit[1::2])
    ulps = np.abs(drawn - exact) / np.spacing(np.abs(exact).astype(drawn.dtype))
    assert ulps.max() <= 4


def test_an_odd_last_normal_number_takes_a_pair(device: Device) -> None:
    for dtype, words in (("float32", 4), ("float64", 8)):
        message = rng.Normal((3,), dtype, 8)
        assert message.consumes == words
        four = value(device, rng.normal(device, 4, dtype, seed=8))
        assert_same(value(device, device.ask(message)), four[:3])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_numbers_are_scaled_in_two_rounded_steps(device: Device, dtype: str) -> None:
    z = value(device, rng.normal(device, 1001, dtype, seed=6))
    drawn = value(device, rng.normal(device, 1001, dtype, mean=0.7, std=1e-3, seed=6))
    real = z.dtype.type
    assert_same(drawn, z * real(1e-3) + real(0.7))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_normal_numbers_are_rounded(device: Device, dtype: str) -> None:
    wide = rng.normal(device, MANY, "float32", mean=1, std=3, seed=4)
    narrow = rng.normal(device, MANY, dtype, mean=1, std=3, seed=4)
    assert_same(value(device, narrow), value(device, wide).astype(numpy_dtype(dtype)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_numbers_are_normal(device: Device, dtype: str) -> None:
    drawn = value(device, rng.normal(device, MANY, dtype, mean=3, std=2, seed=22))
    z = (drawn.astype(np.float64) - 3) / 2
    assert abs(z.mean()) < 5 / MANY**0.5
    assert abs(z.var() - 1) < 5 * (2 / MANY) ** 0.5
    if dtype in {"float32", "float64"}:
        assert stats.kstest(z, "norm").pvalue > 1e-3
        assert abs(np.corrcoef(z[0::2], z[1::2])[0, 1]) < 5 / (MANY / 2) ** 0.5


# Shapes, dtypes and `out`.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (7,), (2, 3, 4)], ids=str)
def test_a_draw_has_its_shape(device: Device, kind: str, shape: tuple[int, ...]) -> None:
    ref = KINDS[kind](device, shape, ANY_DTYPE[kind], seed=1)
    flat = value(device, KINDS[kind](device, 24, ANY_DTYPE[kind], seed=1))
    assert (ref.shape, ref.dtype) == (shape, ANY_DTYPE[kind])
    assert_same(value(device, ref), flat[: ref.size].reshape(shape))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", NAMES)
def test_a_dtype_is_drawn_or_refused_as_the_table_says(
    device: Device, support: Mapping[str, frozenset[str]], kind: str, dtype: str
) -> None:
    if dtype in support[f"rng.{kind}"]:
        assert value(device, KINDS[kind](device, 5, dtype, seed=1)).dtype == numpy_dtype(dtype)
    else:
        with refused(device, f"rng.{kind}", dtype, error=UnsupportedDtype):
            KINDS[kind](device, 5, dtype, seed=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(), (5,), (4, 3), (2, 0), (3, 2, 5)], ids=str)
def test_a_draw_into_out_is_the_same_draw(
    device: Device, kind: str, layout: Layout, shape: tuple[int, ...]
) -> None:
    dtype = ANY_DTYPE[kind]
    out = place(device, np.zeros(shape, dtype), layout)
    drawn = KINDS[kind](device, seed=13, offset=3, out=out)
    assert drawn.id == out.id
    expected = KINDS[kind](device, shape, dtype, seed=13, offset=3)
    assert_same(value(device, out), value(device, expected))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float16", "uint8", "bool", "float64", "uint64", "uint32"])
def test_a_draw_into_a_view_writes_that_part_only(
    device: Device, support: Mapping[str, frozenset[str]], kind: str, dtype: str
) -> None:
    if dtype not in support[f"rng.{kind}"]:
        pytest.skip(f"there is no {kind} of {dtype}")
    around = np.ones((6, 9), dtype)
    for index in (np.s_[1:5, 2:7], np.s_[::2, ::-3], np.s_[3], np.s_[2:4], np.s_[:, 8]):
        base = device.put(around)
        part = array.slice(base, index)
        KINDS[kind](device, seed=14, out=part)
        expected = around.copy()
        drawn = value(device, KINDS[kind](device, part.shape, dtype, seed=14))
        expected[index] = drawn
        assert_same(value(device, base), expected)


def test_what_is_drawn_is_an_operand_at_once(device: Device) -> None:
    x = rng.uniform(device, (8, 8), seed=1)
    product = value(device, blas.gemm(x, x))
    on_host = value(device, x).astype(np.float64)
    np.testing.assert_allclose(product, on_host @ on_host, rtol=1e-5)


# Mistakes.

REFUSED: dict[str, tuple[Callable[[Any], object], tuple[str, ...]]] = {
    "negative seed": (
        lambda b: rng.words(b.device, 2, seed=-1),
        ("Words: seed", str(2**64 - 1), "-1"),
    ),
    "seed of 65 bits": (lambda b: rng.words(b.device, 2, seed=2**64), ("seed", str(2**64))),
    "seed that is no integer": (lambda b: rng.words(b.device, 2, seed=b.half), ("integer", "0.5")),
    "seed that is a truth": (
        lambda b: b.device.ask(rng.Words((2,), "uint32", True)),  # noqa: FBT003
        ("Words: seed", "True"),
    ),
    "stream of 49 bits": (
        lambda b: rng.uniform(b.device, 2, seed=1, stream=2**48),
        ("Uniform: stream", str(2**48)),
    ),
    "negative offset": (
        lambda b: rng.normal(b.device, 2, seed=1, offset=-1),
        ("Normal: offset", "-1"),
    ),
    "words beyond the stream": (
        lambda b: rng.words(b.device, 3, "uint64", seed=1, offset=2**64 - 5),
        ("Words takes 6 words", str(2**64 - 5), "another stream"),
    ),
    "negative extent": (lambda b: rng.words(b.device, (2, -1)), ("Words", "(2, -1)")),
    "more elements than can be": (
        lambda b: rng.uniform(b.device, (2**40, 2**40)),
        ("Uniform", "elements"),
    ),
    "unknown dtype": (lambda b: rng.uniform(b.device, 2, "float31"), ("float31",)),
    "no integers between": (lambda b: rng.integers(b.device, 3, 3), ("low 3", "2")),
    "no integers below": (lambda b: rng.integers(b.device, 0), ("low 0", "-1")),
    "bound that is no integer": (lambda b: rng.integers(b.device, b.half, 3), ("integer", "0.5")),
    "integers below the dtype": (
        lambda b: rng.integers(b.device, -1, 3, 2, "uint8"),
        ("low is -1", "uint8", "from 0 to 255"),
    ),
    "integers above the dtype": (
        lambda b: rng.integers(b.device, 0, 2**63 + 1),
        ("last is 9223372036854775808", "int64"),
    ),
    "neither true nor false": (lambda b: rng.integers(b.device, 3, dtype=bool), ("last", "bool")),
    "bounds the wrong way": (
        lambda b: rng.uniform(b.device, 2, low=2, high=1),
        ("Uniform: low is 2", "high, 1"),
    ),
    "bound that is not finite": (
        lambda b: rng.uniform(b.device, 2, high=float("inf")),
        ("high is inf", "float32"),
    ),
    "bound that the dtype lacks": (
        lambda b: rng.uniform(b.device, 2, "float16", high=1e5),
        ("high is 100000.0", "float16"),
    ),
    "range too wide": (
        lambda b: rng.uniform(b.device, 2, low=-3e38, high=3e38),
        ("high - low", "float32"),
    ),
    "complex bound": (
        lambda b: rng.uniform(b.device, 2, high=1j),
        ("high is of type float", "1j", "complex"),
    ),
    "bound that is no number": (lambda b: rng.uniform(b.device, 2, low=b.text), ("low", "str")),
    "negative deviation": (lambda b: rng.normal(b.device, 2, std=-1), ("std is -1", "negative")),
    "mean that is not finite": (
        lambda b: rng.normal(b.device, 2, "float64", mean=float("nan")),
        ("mean is nan", "float64"),
    ),
    "out of another shape": (
        lambda b: rng.uniform(b.device, 6, out=b.x),
        ("Uniform results in float32[6]", "out is float32[2, 3]"),
    ),
    "out of another dtype": (
        lambda b: rng.uniform(b.device, dtype="float64", out=b.x),
        ("float64[2, 3]", "float32[2, 3]"),
    ),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_mistake_is_refused_with_what_and_what_was_expected(device: Device, mistake: str) -> None:
    send, words = REFUSED[mistake]
    buffers = SimpleNamespace(device=device, x=array.zeros(device, (2, 3)), half=0.5, text="0")
    with refused(device, *words):
        send(buffers)
