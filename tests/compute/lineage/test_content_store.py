"""Uploaded bytes that recoveries need: kept once, and within their budgets."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab.compute.lineage.content_store import Contents


def test_contents_are_kept_once_and_within_their_budgets() -> None:
    contents = Contents(memory_bytes=100, spill_bytes=100)
    a, b, c = bytes(60), bytes([1]) * 60, bytes([2]) * 60
    first = contents.put(a)
    assert first is not None
    assert contents.put(memoryview(a)) == first
    second = contents.put(b)  # spilled
    assert second is not None
    assert contents.spilled_bytes == 60
    assert contents.put(c) is None
    assert (contents.get(first), contents.get(second)) == (a, b)
    assert [contents.nbytes(key) for key in (first, second, "of nobody")] == [60, 60, None]
    contents.retain({second})
    assert contents.get(first) == a, "nobody may have told yet what needs it"
    contents.retain({second})
    assert contents.get(first) is None
    third = contents.put(c)
    assert third is not None
    assert (contents.get(second), contents.get(third)) == (b, c)
    contents.close()
    assert contents.get(second) is None


@settings(max_examples=10, deadline=None)
@given(nbytes=st.integers(0, 1 << 20), seed=st.integers(0, 255))
def test_large_contents_are_kept_whole(nbytes: int, seed: int) -> None:
    """They are copied in pieces, so that nobody waits long for the interpreter."""
    data = np.random.default_rng(seed).bytes(nbytes)
    contents = Contents()
    key = contents.put(memoryview(data))
    assert key is not None
    assert contents.get(key) == data


def test_contents_are_crowded_only_when_there_is_something_new_to_forget() -> None:
    contents = Contents(memory_bytes=1600, spill_bytes=0)
    first = contents.put(bytes(1300))
    assert first is not None
    assert contents.crowded
    contents.retain({first})
    assert not contents.crowded
    assert contents.put(bytes([1]) * 200) is not None
    assert contents.crowded


def test_what_was_spilled_is_forgotten_though_the_memory_is_full_of_what_is_needed() -> None:
    contents = Contents(memory_bytes=1600, spill_bytes=1600)
    needed = contents.put(bytes(1600))
    assert needed is not None
    contents.retain({needed})
    for number in range(1, 100):
        assert contents.put(bytes([number]) * 100) is not None
        if contents.crowded:
            contents.retain({needed})
    assert contents.spilled_bytes < 1600
