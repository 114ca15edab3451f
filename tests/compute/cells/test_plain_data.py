"""What counts as plain data, and that its copies are equal."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab.compute.cells.plain_data import ITEMS, frozen, thawed


@settings(max_examples=200)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text(),
        lambda part: st.lists(part) | st.dictionaries(st.text(), part) | st.tuples(part, part),
    )
)
def test_plain_data_is_what_it_was(value: Any) -> None:
    copy = frozen(value)
    assert copy is not None
    assert repr(thawed(copy)) == repr(value)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        [np.ones(2)],
        {"a": {1: print}},
        type("Listed", (list,), {})(),
        [0] * (ITEMS + 1),
        "x" * (ITEMS + 1),
    ],
    ids=["object", "array", "function", "derived", "long", "text"],
)
def test_what_is_not_plain_is_not_copied(value: Any) -> None:
    assert frozen(value) is None
    loop: list[Any] = []
    loop.append(loop)
    assert frozen(loop) is None


def test_what_is_nested_too_deeply_is_not_copied() -> None:
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    assert frozen(deep) is None
