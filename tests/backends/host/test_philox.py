"""The host's Philox: Random123's known answers, where no message reaches, and long draws."""

from typing import Any

import numpy as np
import pytest

from accel_lab.backends.host.rng.library import box_muller
from accel_lab.libraries.rng import philox as host
from tests.contract import philox as reference

# philox 4x32 10 in Random123's kat_vectors: counter and key, answer.
KNOWN = [
    ("00000000 " * 6, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff " * 6, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        "243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


def numbers(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(("given", "answer"), KNOWN)
def test_known_answers(given: str, answer: str) -> None:
    *counter, k0, k1 = numbers(given)
    drawn = np.array(host.philox([np.full(3, word, np.uint64) for word in counter], (k0, k1)))
    assert (drawn == np.array(numbers(answer))[:, None]).all()
    assert reference.philox(counter, (k0, k1)) == numbers(answer)


def test_a_draw_over_several_parts_is_the_words_one_by_one() -> None:
    count = 10 * host.BLOCKS
    for offset in (0, 3, 4 * 65536 * 7 - 6):
        drawn = host.words(3, 5, offset, count)
        assert drawn.shape == (count,)
        assert drawn.dtype == np.uint32
        edges = [0, 1, 4 * host.BLOCKS - 4, 4 * host.BLOCKS - 3, 4 * host.BLOCKS, count - 1]
        for at in [*edges, *range(0, count, 997)]:
            assert drawn[at] == reference.word(3, 5, offset + at)


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_normal_numbers_are_exact_at_whole_quarters_of_a_turn(real: Any) -> None:
    unit = np.array([0.5, 0.25, 0.5, 0.5, 0.5, 0.75, 0.5, 1.0, 1.0, 0.3], real)
    r = (-2 * np.log(0.5)) ** 0.5
    assert (box_muller(unit) == np.array([r, 0, 0, -r, -r, 0, 0, r, 0, 0])).all()


@pytest.mark.parametrize("offset", [0, 1, 7, 4 * 65536 - 5, 2**64 - 400])
def test_planes_have_the_words_of_their_counters(offset: int) -> None:
    place = (2**64 - 7, 2**48 - 3, offset)
    elements = np.array([0, 5, 11], np.uint64)
    for plane in (0, 1, 255):
        found = host.gathered(place, 16, 8, elements, plane)
        for row, element in zip(found, elements, strict=True):
            assert row.tolist() == [
                reference.word(*place[:2], offset + 16 * int(element) + i, plane) for i in range(8)
            ]
