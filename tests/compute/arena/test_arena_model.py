"""The arena against a plain model: what lives, what is held, what waits."""

from typing import Any

import numpy.typing as npt
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
)

from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.arena.block import Block, Location
from accel_lab.compute.arena.read_only import ReadOnlyHold
from accel_lab.errors import ArenaFull
from tests.compute.conftest import KIB, SEGMENT


class Allocations(RuleBasedStateMachine):
    """An arena against a plain model: what lives, what is held, what waits for a token."""

    blocks = Bundle("blocks")
    arrays = Bundle("arrays")
    holds = Bundle("holds")

    def __init__(self) -> None:
        super().__init__()
        self.arena = Arena(16 * SEGMENT, segment_bytes=SEGMENT)
        self.live: dict[int, tuple[int, int, int, int]] = {}
        self.waiting: dict[int, int] = {}
        self.reaped: set[int] = set()
        self.held: dict[int, int] = {}
        self.dropped: set[int] = set()
        self.next = 1

    def lives(self, place: Location, nbytes: int) -> int:
        """Enter a new block into the model, and mark its memory."""
        start, end = place.offset, place.offset + nbytes
        assert start % 256 == 0
        for segment, first, last, _ in self.live.values():
            assert segment != place.segment_id or end <= first or last <= start
        key, self.next = self.next, self.next + 1
        self.live[key] = (place.segment_id, start, max(end, start + 1), nbytes)
        return key

    def is_short_of(self, nbytes: int) -> None:
        """Check that no room was left though every idle segment could have gone."""
        pinned = {segment for segment, *_ in self.live.values()}
        taken = sum(segment.size for segment in self.arena.segments if segment.id in pinned)
        assert 16 * SEGMENT - taken < max(nbytes, 1)

    sizes = st.one_of(st.integers(0, 2 * KIB), st.integers(0, SEGMENT // 2), st.just(3 * SEGMENT))

    @rule(target=blocks, nbytes=sizes)
    def allocate(self, nbytes: int) -> Any:
        try:
            block = self.arena.allocate(nbytes, timeout_s=0)
        except ArenaFull:
            self.is_short_of(nbytes)
            return multiple()
        key = self.lives(Location(block.segment_id, block.offset), nbytes)
        block.view[:] = key % 251
        return key, block

    @rule(target=arrays, items=st.integers(0, 4 * KIB))
    def empty(self, items: int) -> Any:
        try:
            array = self.arena.empty((items,), "uint16", timeout_s=0)
        except ArenaFull:
            self.is_short_of(2 * items)
            return multiple()
        place = self.arena.locate(array)
        assert place is not None
        key = self.lives(place, array.nbytes)
        array[...] = key
        return key, [array]

    @rule(pair=consumes(blocks), twice=st.booleans())
    def release(self, pair: tuple[int, Block], *, twice: bool) -> None:
        key, block = pair
        assert (block.view == key % 251).all()
        block.release()
        if twice:
            block.release(after="ignored")
        self.forget(key)

    @rule(pair=consumes(blocks), token=st.integers(0, 3))
    def release_after(self, pair: tuple[int, Block], token: int) -> None:
        key, block = pair
        block.release(after=token)
        if token in self.reaped:
            self.forget(key)
        else:
            self.waiting[key] = token

    @rule(token=st.integers(0, 3))
    def reap(self, token: int) -> None:
        self.arena.reaped(token)
        self.reaped.add(token)
        for key in [key for key, other in self.waiting.items() if other == token]:
            del self.waiting[key]
            self.forget(key)

    @rule(pair=consumes(arrays))
    def drop_array(self, pair: tuple[int, list[npt.NDArray[Any]]]) -> None:
        key, box = pair
        assert (box[0] == key).all()
        box.clear()
        self.dropped.add(key)
        if not self.held.get(key):
            self.forget(key)

    @rule(target=holds, pair=arrays)
    def hold(self, pair: tuple[int, list[npt.NDArray[Any]]]) -> Any:
        key, box = pair
        if not box:
            return multiple()
        self.held[key] = self.held.get(key, 0) + 1
        return key, self.arena.hold(box[0])

    @rule(pair=consumes(holds))
    def end_hold(self, pair: tuple[int, ReadOnlyHold]) -> None:
        key, hold = pair
        hold.release()
        hold.release()
        self.held[key] -= 1
        if not self.held[key] and key in self.dropped:
            self.forget(key)

    @precondition(lambda self: self.live)
    @rule()
    def trim(self) -> None:
        self.arena.trim()
        assert {place[0] for place in self.live.values()} == {s.id for s in self.arena.segments}

    def forget(self, key: int) -> None:
        del self.live[key]

    @invariant()
    def the_numbers_are_the_models(self) -> None:
        now = self.arena.statistics()
        assert now.blocks == len(self.live)
        assert now.in_use == sum(-(-max(n, 1) // 256) * 256 for *_, n in self.live.values())
        assert now.in_use <= now.reserved <= now.limit
        assert now.held == sum(count > 0 for count in self.held.values())
        assert now.quarantined == len(self.waiting)
        assert now.reserved == sum(segment.size for segment in self.arena.segments)

    def teardown(self) -> None:
        self.arena.close()


TestAllocations = Allocations.TestCase
TestAllocations.settings = settings(max_examples=100, stateful_step_count=40)
