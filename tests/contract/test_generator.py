"""`rng.Generator`: it counts its words, whoever asks, and its children are strangers."""

import json
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, rng
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument, UnsupportedDtype
from tests.contract.samples import assert_same, value

DRAWS: dict[str, tuple[Callable[[rng.Generator, int], Any], Callable[[int], int]]] = {
    "words": (lambda g, n: g.words(n), lambda n: n),
    "words of 64 bits": (lambda g, n: g.words(n, "uint64"), lambda n: 2 * n),
    "bytes": (lambda g, n: g.integers(256, shape=n, dtype="uint8"), lambda n: n),
    "integers": (lambda g, n: g.integers(-3, 7, n), lambda n: 2 * n),
    "wide integers": (lambda g, n: g.integers(0, 10**12, n), lambda n: 4 * n),
    "uniform": (lambda g, n: g.uniform(n, "float32", -1, 1), lambda n: n),
    "uniform float64": (lambda g, n: g.uniform(n, "float64"), lambda n: 2 * n),
    "normal": (lambda g, n: g.normal(n, "float32", 1, 2), lambda n: n + n % 2),
    "normal float64": (lambda g, n: g.normal(n, "float64"), lambda n: 2 * (n + n % 2)),
}


@settings(max_examples=40)
@given(steps=st.lists(st.tuples(st.sampled_from(sorted(DRAWS)), st.integers(0, 5)), max_size=6))
def test_each_draw_takes_the_next_words(device: Device, steps: list[tuple[str, int]]) -> None:
    generator = rng.Generator(device, seed=77)
    offset = 0
    for name, n in steps:
        draw, consumed = DRAWS[name]
        alone = rng.Generator(device, seed=77)
        alone.state = {**alone.state, "offset": offset}
        assert_same(value(device, draw(generator, n)), value(device, draw(alone, n)))
        offset += consumed(n)
        assert generator.offset == alone.offset == offset


@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_in_two_parts_is_the_draw(device: Device, name: str) -> None:
    draw, _ = DRAWS[name]
    whole = value(device, draw(rng.Generator(device, seed=5), 14))
    generator = rng.Generator(device, seed=5)
    parts = [value(device, draw(generator, n)) for n in (6, 8)]
    assert_same(np.concatenate(parts), whole)


def test_a_generator_and_the_functions_draw_the_same(device: Device) -> None:
    generator = rng.Generator(device, seed=1, stream=2)
    place: dict[str, Any] = {"seed": 1, "stream": 2}
    for mine, plain in (
        (generator.words(4), rng.words(device, 4, **place)),
        (generator.integers(0, 9, 2), rng.integers(device, 0, 9, 2, offset=4, **place)),
        (generator.uniform(), rng.uniform(device, offset=8, **place)),
        (generator.normal((1, 2)), rng.normal(device, (1, 2), offset=9, **place)),
    ):
        assert_same(value(device, mine), value(device, plain))


def test_out_is_drawn_into(device: Device) -> None:
    x = array.zeros(device, (2, 3), "float64")
    generator = rng.Generator(device, seed=4)
    for draw in (generator.uniform, generator.normal):
        at = generator.offset
        ref = draw(out=x)
        assert (ref.id, ref.shape, ref.dtype) == (x.id, (2, 3), "float64")
        plain = rng.uniform if draw == generator.uniform else rng.normal
        assert_same(
            value(device, x), value(device, plain(device, (2, 3), "float64", seed=4, offset=at))
        )
    assert generator.offset == 24


def test_a_draw_that_is_refused_takes_no_words(device: Device) -> None:
    generator = rng.Generator(device, seed=1)
    with pytest.raises(UnsupportedDtype):
        generator.uniform(3, "int8")
    with pytest.raises(InvalidArgument):
        generator.uniform(3, low=2, high=1)
    with pytest.raises(InvalidArgument):
        generator.words(-1)
    assert generator.offset == 0


def test_no_two_threads_draw_the_same_words(device: Device) -> None:
    generator = rng.Generator(device, seed=12)
    with ThreadPoolExecutor(8) as pool:
        refs = list(pool.map(generator.words, [5] * 200))
    drawn = {tuple(value(device, ref).tolist()) for ref in refs}
    words = value(device, rng.words(device, (200, 5), seed=12))
    assert drawn == {tuple(row) for row in words.tolist()}
    assert generator.offset == 1000


def test_a_state_is_plain_data_that_goes_on_where_it_was(device: Device) -> None:
    generator = rng.Generator(device, seed=2**64 - 1, stream=2**48 - 1)
    generator.normal(7)
    generator.spawn(2)
    state = generator.state
    assert state == {"seed": 2**64 - 1, "stream": 2**48 - 1, "offset": 8, "spawned": 2}
    for copied in (
        pickle.loads(pickle.dumps(state)),  # noqa: S301 - its own
        json.loads(json.dumps(state)),
    ):
        other = rng.Generator(device)
        other.state = copied
        copied["offset"] = 0
        assert other.state == state
        assert_same(
            value(device, other.words(5)),
            value(device, rng.words(device, 5, seed=2**64 - 1, stream=2**48 - 1, offset=8)),
        )
        assert other.spawn(1)[0].state == generator_child(device, 2)
    assert generator.state == state


def generator_child(device: Device, index: int) -> rng.State:
    """Return what a child of that generator begins as."""
    parent = rng.Generator(device, seed=2**64 - 1, stream=2**48 - 1)
    return parent.spawn(index + 1)[index].state


@pytest.mark.parametrize(
    "state",
    [
        None,
        {},
        {"seed": 1, "stream": 0, "offset": 0},
        {"seed": -1, "stream": 0, "offset": 0, "spawned": 0},
        {"seed": 1, "stream": 2**48, "offset": 0, "spawned": 0},
        {"seed": 1, "stream": 0, "offset": 2**64 + 1, "spawned": 0},
        {"seed": 1, "stream": 0, "offset": 0.0, "spawned": 0},
    ],
    ids=str,
)
def test_what_is_no_state_is_refused(device: Device, state: Any) -> None:
    generator = rng.Generator(device, seed=1)
    before = generator.state
    with pytest.raises(InvalidArgument):
        generator.state = state
    assert generator.state == before


@pytest.mark.parametrize("options", [{"seed": -1}, {"seed": 2**64}, {"seed": 0.5}, {"stream": -1}])
def test_what_is_no_seed_is_refused(device: Device, options: Any) -> None:
    with pytest.raises(InvalidArgument):
        rng.Generator(device, **options)


def test_a_stream_can_be_used_up_to_its_last_word(device: Device) -> None:
    generator = rng.Generator(device, seed=3)
    generator.state = {**generator.state, "offset": 2**64 - 3}
    with pytest.raises(InvalidArgument, match="another stream"):
        generator.words(4)
    last = generator.words(3)
    assert generator.offset == 2**64
    assert_same(value(device, last), value(device, rng.words(device, 3, seed=3, offset=2**64 - 3)))
    with pytest.raises(InvalidArgument):
        generator.words(1)


def test_a_seed_of_its_own_is_shown(device: Device) -> None:
    first, second = rng.Generator(device), rng.Generator(device)
    assert first.seed != second.seed
    again = rng.Generator(device, seed=first.seed)
    assert_same(value(device, first.words(4)), value(device, again.words(4)))
    assert repr(rng.Generator(device, seed=5)) == (
        f"<Generator on {device.name}, seed 5, stream 0, at 0>"
    )


def test_children_are_the_same_again_and_never_twice(device: Device) -> None:
    one, other = rng.Generator(device, seed=6), rng.Generator(device, seed=6)
    one.words(100)
    children = [child.state for child in [*one.spawn(3), *one.spawn(2)]]
    assert children == [child.state for child in other.spawn(5)]
    grandchildren = [g.state for child in other.spawn(20) for g in child.spawn(20)]
    places = {(s["seed"], s["stream"]) for s in [one.state, *children, *grandchildren]}
    assert len(places) == 1 + 5 + 400
    assert all(s["stream"] > 0 for s in [*children, *grandchildren])
    with pytest.raises(InvalidArgument):
        one.spawn(-1)


def test_parents_children_and_streams_do_not_correlate(device: Device) -> None:
    n = 100_000
    parent = rng.Generator(device, seed=8)
    family = [parent, *parent.spawn(2), rng.Generator(device, seed=8, stream=1)]
    family += [family[1].spawn(1)[0], rng.Generator(device, seed=9)]
    drawn = np.array([value(device, one.uniform(n, "float64")) for one in family])
    apart = np.corrcoef(drawn) - np.eye(len(family))
    assert np.abs(apart).max() < 5 / n**0.5
