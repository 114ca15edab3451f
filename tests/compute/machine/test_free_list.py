"""The free list of a segment against a plain model."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from accel_lab.compute.machine.free_list import FreeList


class Ranges(RuleBasedStateMachine):
    """A free list against the set of bytes that are taken."""

    taken = Bundle("taken")

    def __init__(self) -> None:
        super().__init__()
        self.free = FreeList(64)
        self.used: set[int] = set()

    @rule(target=taken, nbytes=st.integers(1, 24))
    def take(self, nbytes: int) -> Any:
        gaps = [s for s in range(65 - nbytes) if self.used.isdisjoint(range(s, s + nbytes))]
        start = self.free.take(nbytes)
        assert start == min(gaps, default=None)
        if start is None:
            return multiple()
        self.used |= set(range(start, start + nbytes))
        return start, nbytes

    @rule(block=consumes(taken))
    def give(self, block: tuple[int, int]) -> None:
        start, nbytes = block
        self.free.give(start, nbytes)
        self.used -= set(range(start, start + nbytes))

    @rule(start=st.integers(-2, 66), nbytes=st.integers(1, 8))
    def giving_what_is_free_is_refused(self, start: int, nbytes: int) -> None:
        if not set(range(start, start + nbytes)) <= self.used:
            before = self.free.ranges()
            with pytest.raises(ValueError, match="not taken"):
                self.free.give(start, nbytes)
            assert self.free.ranges() == before

    @invariant()
    def free_ranges_are_the_complement_and_never_touch(self) -> None:
        ranges = self.free.ranges()
        free = [byte for start, nbytes in ranges for byte in range(start, start + nbytes)]
        assert free == sorted(set(range(64)) - self.used)
        assert all(a + n < b for (a, n), (b, _) in pairwise(ranges))
        assert self.free.is_whole == (not self.used)


TestRanges = Ranges.TestCase
TestRanges.settings = settings(max_examples=60, stateful_step_count=40)
