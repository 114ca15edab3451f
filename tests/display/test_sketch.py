"""Two arrays in small: what is drawn of them are their own elements, and a difference is seen."""

from typing import Any
from xml.etree import ElementTree as ET

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab.display.sketch import HIGH, WIDE, Sketch, sketch, svg

SHAPES = st.sampled_from([(2,), (48,), (1000,), (3, 4), (40, 70), (1, 9), (5, 4, 3), (17, 1)])


@settings(max_examples=30)
@given(shape=SHAPES, at=st.integers(0, 10**6), more=st.floats(1, 100))
def test_one_element_that_differs_is_seen(shape: tuple[int, ...], at: int, more: float) -> None:
    one = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    other = one.copy()
    other.flat[at % one.size] += more
    drawn = sketch(one, other)
    assert drawn is not None
    assert len(drawn.before) == len(drawn.after) == drawn.wide * drawn.high
    assert drawn.wide <= WIDE
    assert drawn.high <= HIGH
    differing = [pair for pair in zip(drawn.before, drawn.after, strict=True) if pair[0] != pair[1]]
    place = float(at % one.size)
    ((before, after),) = differing
    assert before == place
    assert after == pytest.approx(place + more, rel=1e-5)
    assert set(drawn.before) <= set(one.ravel().tolist())


@pytest.mark.parametrize(
    "dtype", ["int8", "bool", "complex64", "float16", ml_dtypes.bfloat16, ml_dtypes.float8_e5m2]
)
def test_numbers_of_each_kind_are_drawn(dtype: Any) -> None:
    one = np.array([0, 1, 1]).astype(dtype)
    drawn = sketch(one, one[::-1])
    assert drawn is not None
    assert drawn[:4] == (3, 1, [0, 1, 1], [1, 1, 0])


def test_what_is_not_finite_is_a_gap() -> None:
    nan, inf = np.nan, np.inf
    drawn = sketch(np.array([1, nan, nan, 2.0]), np.array([1, nan, 3, inf]))
    assert drawn == Sketch(4, 1, [1, None, None, 2], [1, None, 3, None], 1, 3)
    assert "nan" not in svg(drawn, "then", "now")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.zeros(3), np.zeros(4)),
        (np.float64(1), np.float64(2)),
        (np.array(["a", "b"]), np.array(["a", "c"])),
        (np.array([1, None]), np.array([1, 2], object)),
        (np.full(3, np.nan), np.full(3, np.inf)),
        (np.zeros(2, [("a", "i4")]), np.zeros(2, [("a", "i4")])),
    ],
    ids=["shapes", "numbers", "texts", "objects", "not finite", "structured"],
)
def test_what_has_no_picture_has_none(one: Any, other: Any) -> None:
    assert sketch(one, other) is None


@pytest.mark.parametrize("shape", [(40,), (3, 60), (100, 2)])
def test_the_picture_is_whole_and_escapes_its_words(shape: tuple[int, ...]) -> None:
    one = np.arange(np.prod(shape)).reshape(shape)
    drawn = sketch(one, one * 2)
    assert drawn is not None
    root = ET.fromstring(svg(drawn, "<then>", "now & here"))  # noqa: S314 - our own
    words = " ".join(text for part in root.iter() for text in part.itertext())
    assert "<then>" in words
    assert "now & here" in words
    wide, high = float(root.get("width", 0)), float(root.get("height", 0))
    for part in root.iter("{http://www.w3.org/2000/svg}rect"):
        assert float(part.get("x", 0)) + float(part.get("width", 0)) <= wide
        assert float(part.get("y", 0)) + float(part.get("height", 0)) <= high
