import gc
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
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

from accel_lab.compute import dtypes
from accel_lab.compute.arena import Arena
from accel_lab.compute.arena_view import ArenaView
from accel_lab.compute.block import Block, Location
from accel_lab.compute.free_list import FreeList
from accel_lab.compute.hold import Hold
from accel_lab.compute.host_memory import host_memory_bytes
from accel_lab.compute.mapping import Mapping
from accel_lab.compute.segment import Segment
from accel_lab.errors import ArenaFull, InvalidArgument, SystemClosed
from tests.held import descriptors

KIB = 1 << 10
MIB = 1 << 20
SEGMENT = 64 * KIB


@pytest.fixture
def arena() -> Iterator[Arena]:
    arena = Arena(MIB, segment_bytes=SEGMENT)
    yield arena
    arena.close()


def mappings() -> int:
    return Path("/proc/self/maps").read_text().count("memfd:accel_lab")


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
    def end_hold(self, pair: tuple[int, Hold]) -> None:
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


@pytest.mark.parametrize("name", dtypes.NAMES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,), (2, 3, 4)])
def test_an_array_of_any_dtype_and_shape_lives_in_the_arena(
    arena: Arena, name: str, shape: tuple[int, ...]
) -> None:
    array = arena.empty(shape, name)
    assert (array.shape, array.dtype.name) == (shape, name)
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert arena.locate(array) is not None
    array[...] = 1
    assert (array == np.ones(shape, array.dtype)).all()


def test_a_block_is_reused_only_when_the_last_view_is_gone(arena: Arena) -> None:
    array = arena.empty((64, 4), "float32")
    column = array.T[1:, ::2].view("int32")
    del array
    assert arena.statistics().blocks == 1
    del column
    assert arena.statistics().blocks == 0


def test_an_array_in_a_cycle_is_freed_by_the_garbage_collector(arena: Arena) -> None:
    cycle: list[Any] = [arena.empty(8, "float64")]
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert arena.statistics().blocks == 0


def test_a_finalizer_that_runs_while_the_lock_is_held_does_not_deadlock(arena: Arena) -> None:
    array = arena.empty(8, "float64")
    with arena._lock, arena._growth:
        del array
    assert arena.statistics().blocks == 0


def test_an_array_takes_over_its_block(arena: Arena) -> None:
    block = arena.allocate(32)
    block.view[:] = 7
    array = arena.array(block, (2, 2), "uint64")
    block.release()
    assert arena.statistics().blocks == 1
    assert (array == 0x0707070707070707).all()
    with pytest.raises(InvalidArgument, match="belongs to an array"):
        arena.array(block, (2, 2), "uint64")
    del array
    assert arena.statistics().blocks == 0


def test_a_refused_array_leaves_its_block_to_the_caller(arena: Arena) -> None:
    block = arena.allocate(32)
    with pytest.raises(InvalidArgument, match="40 bytes do not fit in a block of 32"):
        arena.array(block, 5, "float64")
    block.release()
    assert arena.statistics().blocks == 0


@pytest.mark.parametrize("shape", [-1, (2, -3), (2.5,), "ab", (1,) * 65])
def test_a_shape_that_numpy_would_refuse_is_refused(arena: Arena, shape: Any) -> None:
    with pytest.raises(InvalidArgument, match="shape"):
        arena.empty(shape, "float32")
    assert arena.statistics().blocks == 0


def test_locate_finds_contiguous_views_and_nothing_else(arena: Arena) -> None:
    array = arena.empty((16, 16), "int32")
    place = arena.locate(array)
    assert place is not None
    assert arena.locate(array[3:]) == (place.segment_id, place.offset + 3 * 64)
    assert arena.locate(array[2, 5:]) == (place.segment_id, place.offset + 2 * 64 + 20)
    assert arena.locate(array.T) is None
    assert arena.locate(array[:, 1:]) is None
    assert arena.locate(array.view(">i4")) is None
    assert arena.locate(np.zeros(4)) is None
    assert arena.locate(array.copy()) is None


def test_a_located_array_is_what_a_context_sees(arena: Arena) -> None:
    view = ArenaView()
    array = arena.empty(1000, "float32")
    array[:] = np.arange(1000)
    place = arena.locate(array)
    assert place is not None
    for segment in arena.segments:
        view.attach(segment.id, os.dup(segment.fd), segment.size)
    seen = view.view(place.segment_id, place.offset, array.nbytes).view(np.float32)
    assert (seen == array).all()
    seen[:] = 3
    assert (array == 3).all()
    view.close()


def test_small_blocks_share_a_segment_and_large_ones_do_not(arena: Arena) -> None:
    small = [arena.allocate(SEGMENT // 2) for _ in range(2)]
    large = arena.allocate(SEGMENT // 2 + 1)
    assert small[0].segment_id == small[1].segment_id != large.segment_id


def test_a_large_segment_is_rounded_and_kept_for_the_best_fit() -> None:
    arena = Arena(64 * MIB, segment_bytes=MIB)
    blocks = [arena.allocate(size * MIB) for size in (9, 5, 3)]
    assert [segment.size // MIB for segment in arena.segments] == [10, 6, 4]
    ids = [block.segment_id for block in blocks]
    for block in blocks:
        block.release()
    assert arena.allocate(4 * MIB - 1).segment_id == ids[2]
    assert arena.allocate(4 * MIB - 1).segment_id == ids[1]
    third = arena.allocate(4 * MIB - 1)
    assert third.segment_id not in ids
    assert arena.statistics().reserved == 24 * MIB
    arena.close()


def test_idle_segments_make_room_and_only_as_many_as_needed() -> None:
    arena = Arena(12 * MIB, segment_bytes=MIB)
    dropped: list[int] = []
    arena.on_drop.append(lambda segment: dropped.append(segment.size // MIB))
    blocks = [arena.allocate(size * MIB) for size in (6, 2, 4)]
    for block in blocks:
        block.release()
    kept = arena.allocate(2 * MIB)
    assert dropped == []
    large = arena.allocate(10 * MIB)
    assert sorted(dropped) == [4, 6]
    with pytest.raises(ArenaFull):
        arena.allocate(MIB, timeout_s=0)
    kept.release()
    large.release()
    arena.close()


def test_trim_returns_what_is_idle_and_tells_so(arena: Arena) -> None:
    dropped: list[int] = []
    arena.on_drop.append(lambda segment: dropped.append(segment.id))
    small, large = arena.allocate(10), arena.allocate(SEGMENT)
    large.release()
    before = arena.statistics().reserved
    freed = arena.trim()
    assert dropped == [large.segment_id]
    assert arena.statistics().reserved == before - freed == SEGMENT
    assert arena.trim() == 0
    small.release()
    assert arena.trim() == SEGMENT
    assert arena.statistics().segments == 0


def test_what_can_never_fit_is_refused_at_once_with_the_numbers(arena: Arena) -> None:
    kept = arena.allocate(1000)
    with pytest.raises(ArenaFull, match=rf"{MIB + 1} bytes: 1024 of {MIB} bytes .* 1 blocks"):
        arena.allocate(MIB + 1, timeout_s=1e9)
    kept.release()
    assert arena.allocate(MIB).nbytes == MIB


def test_a_negative_size_is_refused(arena: Arena) -> None:
    with pytest.raises(InvalidArgument, match="negative"):
        arena.allocate(-1)


def test_a_deadline_ends_the_wait(arena: Arena) -> None:
    kept = arena.allocate(MIB)
    with pytest.raises(ArenaFull, match=r"within 0.01 s"):
        arena.allocate(1, timeout_s=0.01)
    assert arena.statistics().waits == 1
    kept.release()


def wait_for_a_waiter(arena: Arena, count: int = 1) -> None:
    """Return when this many threads have found no room: they sleep, or are about to."""
    while arena.statistics().waits < count:
        os.sched_yield()


def release_block(arena: Arena) -> Callable[[], None]:
    return arena.allocate(MIB).release


def drop_array(arena: Arena) -> Callable[[], None]:
    return [arena.empty(MIB, "uint8")].clear


def reap(arena: Arena) -> Callable[[], None]:
    arena.allocate(MIB).release(after="gone")
    return lambda: arena.reaped("gone")


def end_hold(arena: Arena) -> Callable[[], None]:
    block = arena.allocate(MIB)
    hold = arena.hold(block.view)
    block.release()
    return hold.release


@pytest.mark.parametrize("make", [release_block, drop_array, reap, end_hold])
def test_a_waiting_thread_gets_what_is_given_back(
    arena: Arena, make: Callable[[Arena], Callable[[], None]]
) -> None:
    give_back = make(arena)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(arena.allocate, MIB)
        wait_for_a_waiter(arena)
        assert not waiting.done()
        give_back()
        assert waiting.result(timeout=30).nbytes == MIB


def test_every_waiter_wakes_when_the_arena_closes(arena: Arena) -> None:
    kept = arena.allocate(MIB)
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(arena.allocate, 1) for _ in range(3)]
        wait_for_a_waiter(arena, 3)
        arena.close()
        for one in waiting:
            with pytest.raises(SystemClosed):
                one.result(timeout=30)
    kept.release()


def test_many_threads_share_the_arena_without_overlap(arena: Arena) -> None:
    def work(mark: int) -> None:
        for size in range(200):
            block = arena.allocate((size * 7919 + mark) % SEGMENT)
            block.view[:] = mark
            assert (block.view == mark).all()
            block.release()

    with ThreadPoolExecutor(8) as pool:
        for one in [pool.submit(work, mark) for mark in range(8)]:
            one.result(timeout=60)
    assert arena.statistics().blocks == 0


def test_threads_that_need_the_first_segment_share_it() -> None:
    arena = Arena(8 * MIB, segment_bytes=MIB)
    barrier = threading.Barrier(6)

    def first() -> int:
        barrier.wait()
        return arena.allocate(100).segment_id

    with ThreadPoolExecutor(6) as pool:
        ids = {one.result(timeout=30) for one in [pool.submit(first) for _ in range(6)]}
    assert ids == {1}
    arena.close()


def test_a_held_array_is_read_only_until_the_last_hold_ends(arena: Arena) -> None:
    array = arena.empty(8, "int32")
    array[:] = 1
    first, second = arena.hold(array), arena.hold(array)
    first.release()
    first.release()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 2
    second.release()
    array[0] = 2


def test_an_array_that_was_read_only_stays_so_after_a_hold(arena: Arena) -> None:
    array = arena.empty(8, "int32")
    array.flags.writeable = False
    arena.hold(array).release()
    assert not array.flags.writeable


def test_a_held_block_is_not_reused_though_it_is_released_and_dropped(arena: Arena) -> None:
    block = arena.allocate(MIB)
    block.view[:] = 5
    hold = arena.hold(block.view)
    block.release()
    assert arena.statistics().held == 1
    with pytest.raises(ArenaFull, match="1 held"):
        arena.allocate(1, timeout_s=0)
    hold.release()
    assert arena.allocate(MIB).offset == 0


def test_a_hold_keeps_a_dropped_array(arena: Arena) -> None:
    array = arena.empty(8, "int32")
    hold = arena.hold(array[2:4])
    del array
    assert arena.statistics().blocks == 1
    hold.release()
    assert arena.statistics().blocks == 0


def test_an_array_without_elements_has_a_block_of_its_own(arena: Arena) -> None:
    block = arena.allocate(1)
    array = arena.empty((0, 3), "float32")
    assert arena.locate(array) == (block.segment_id, 256)
    block.release()
    hold = arena.hold(array)
    assert arena.statistics().blocks == 1
    hold.release()


def test_a_foreign_or_scattered_array_cannot_be_held(arena: Arena) -> None:
    for array in (np.zeros(4), arena.empty((4, 4), "int8").T, arena.segments[0].bytes(0, SEGMENT)):
        with pytest.raises(InvalidArgument, match="held"):
            arena.hold(array)
        assert array.flags.writeable


def test_quarantine_lasts_until_the_process_is_reaped(arena: Arena) -> None:
    block = arena.allocate(MIB)
    block.release(after=("gpu0", 1))
    block.release()
    arena.reaped(("gpu0", 2))
    with pytest.raises(ArenaFull, match="1 waiting for a lost context"):
        arena.allocate(1, timeout_s=0)
    arena.reaped(("gpu0", 1))
    late = arena.allocate(MIB)
    late.release(after=("gpu0", 1))
    assert arena.statistics().blocks == 0


def test_each_segment_is_announced_before_its_blocks(arena: Arena) -> None:
    seen: list[tuple[int, int, bool]] = []

    def announce(segment: Segment) -> None:
        os.fstat(segment.fd)
        seen.append((segment.id, segment.size, segment in arena.segments))

    arena.on_segment.append(announce)
    blocks = [arena.allocate(SEGMENT // 2) for _ in range(3)]
    assert seen == [(1, SEGMENT, True), (2, SEGMENT, True)]
    assert [block.segment_id for block in blocks] == [1, 1, 2]


def test_a_segment_that_could_not_be_announced_is_taken_back(arena: Arena) -> None:
    dropped: list[int] = []

    def fail(_: Segment) -> None:
        raise ConnectionError

    gc.collect()
    before = descriptors()
    arena.on_segment.append(fail)
    arena.on_drop.append(lambda segment: dropped.append(segment.id))
    with pytest.raises(ConnectionError):
        arena.allocate(1)
    assert dropped == [1]
    assert arena.statistics().reserved == 0
    assert not descriptors() - before
    arena.on_segment.clear()
    assert arena.allocate(MIB).nbytes == MIB


def test_closing_leaves_no_descriptor_and_the_last_array_no_mapping() -> None:
    gc.collect()
    files, maps = descriptors(), mappings()
    arena = Arena(64 * MIB, segment_bytes=MIB)
    small, large = arena.empty(1000, "int16"), arena.empty(2 * MIB, "int8")
    block = arena.allocate(10)
    held = arena.empty(10, "int8")
    hold = arena.hold(held)
    small[:], large[:] = 5, 6
    arena.close()
    arena.close()
    assert not descriptors() - files
    assert mappings() == maps + 2
    assert (small == 5).all()
    assert (large == 6).all()
    assert arena.locate(small) is None
    hold.release()
    held[:] = 1
    block.release()
    for call in (lambda: arena.allocate(1), lambda: arena.empty(1, "int8")):
        with pytest.raises(SystemClosed):
            call()
    del small, held, hold, block
    assert mappings() == maps + 1
    del large
    assert mappings() == maps
    assert arena.statistics().reserved == 0


def test_a_block_that_is_given_up_keeps_nothing_mapped() -> None:
    gc.collect()
    maps = mappings()
    arena = Arena(64 * MIB, segment_bytes=MIB)
    released, given = arena.allocate(10), arena.allocate(2 * MIB)
    array = arena.array(given, 2 * MIB, "int8")
    released.release()
    arena.close()
    assert mappings() == maps + 1
    del array
    assert mappings() == maps
    assert (released.nbytes, released.view.nbytes, given.view.nbytes) == (10, 0, 0)


def test_an_arena_that_nobody_closes_vanishes_with_its_last_array() -> None:
    gc.collect()
    maps = mappings()
    arena = Arena(MIB, segment_bytes=SEGMENT)
    array = arena.empty(4, "int8")
    gone = weakref.ref(arena)
    arena.close()
    del arena
    assert gone() is None
    array[:] = 1
    del array
    assert mappings() == maps


def test_a_context_cannot_shrink_a_segment_under_the_notebook(arena: Arena) -> None:
    arena.allocate(1)
    with pytest.raises(PermissionError):
        os.ftruncate(arena.segments[0].fd, 0)


def test_a_child_process_does_not_inherit_segments(arena: Arena) -> None:
    arena.allocate(1)
    assert not os.get_inheritable(arena.segments[0].fd)


def test_a_view_refuses_what_is_not_there_and_closes_what_it_is_given(arena: Arena) -> None:
    arena.allocate(1)
    segment = arena.segments[0]
    view = ArenaView()
    with pytest.raises(InvalidArgument, match="segment 1 is not attached"):
        view.view(1, 0, 1)
    gc.collect()
    files, maps = descriptors(), mappings()
    for touch in (True, False):
        view.attach(segment.id, os.dup(segment.fd), segment.size, touch=touch)
    assert not descriptors() - files
    assert view.segment_ids == (1,)
    for offset, nbytes in ((-1, 1), (0, SEGMENT + 1), (SEGMENT, 1), (0, -1)):
        with pytest.raises(InvalidArgument, match="not inside segment 1"):
            view.view(1, offset, nbytes)
    last = view.view(1, SEGMENT - 4, 4)
    view.detach(1)
    view.detach(1)
    last[:] = 9
    assert segment.bytes(SEGMENT - 4, 4).tolist() == [9] * 4
    assert mappings() == maps + 1
    del last
    assert mappings() == maps


def test_a_segment_that_cannot_be_mapped_still_has_its_descriptor_closed() -> None:
    reader, writer = os.pipe()
    with pytest.raises(OSError, match="cannot map"):
        ArenaView().attach(1, reader, 4096)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(reader)
    os.close(writer)


def test_touching_by_hand_changes_no_byte_that_another_process_wrote() -> None:
    fd = os.memfd_create("accel_lab")
    os.ftruncate(fd, SEGMENT)
    mapping = Mapping(fd, SEGMENT)
    os.close(fd)
    mapping.bytes()[:] = 3
    mapping._touch(0, SEGMENT, writing=False)
    assert (mapping.bytes() == 3).all()
    mapping._touch(4096, 4096, writing=True)
    assert np.flatnonzero(mapping.bytes() == 0).tolist() == [4096]


def test_pages_exist_after_they_were_created_by_several_threads() -> None:
    fd = os.memfd_create("accel_lab")
    size = 17 * MIB + 4096
    os.ftruncate(fd, size)
    Mapping(fd, size).create_pages(threads=3)
    assert os.fstat(fd).st_blocks * 512 == size
    os.close(fd)


def test_offsets_beyond_four_gibibytes_are_kept_apart() -> None:
    free = FreeList(1 << 40)
    assert [free.take(5 << 30) for _ in range(3)] == [0, 5 << 30, 10 << 30]
    free.give(5 << 30, 5 << 30)
    assert free.take((5 << 30) + 256) == 15 << 30
    assert free.ranges()[0] == (5 << 30, 5 << 30)


def test_an_arena_smaller_than_a_page_is_refused() -> None:
    for limit, segment in ((100, SEGMENT), (MIB, 100), (-1, SEGMENT)):
        with pytest.raises(InvalidArgument, match="a page"):
            Arena(limit, segment_bytes=segment)


def test_the_default_limit_is_a_quarter_of_what_the_process_may_use() -> None:
    arena = Arena()
    assert arena.statistics().limit == host_memory_bytes() // 4 // 4096 * 4096
    assert arena.statistics().reserved == 0


@pytest.mark.parametrize(
    ("cgroup", "files"),
    [
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "4096", "memory.max": "9000"}),
        ("0::/outside\n", {"memory.max": "4096"}),
        (
            "3:cpu:/x\n4:memory:/j/k\n0::/\n",
            {"memory/j/k/memory.limit_in_bytes": "4096", "memory.max": "max"},
        ),
    ],
)
def test_the_smallest_limit_of_a_control_group_counts(
    tmp_path: Path, cgroup: str, files: dict[str, str]
) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    assert host_memory_bytes(tmp_path) > 4096
    (tmp_path / "proc/self/cgroup").write_text(cgroup)
    for name, text in files.items():
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    assert host_memory_bytes(tmp_path) == 4096
