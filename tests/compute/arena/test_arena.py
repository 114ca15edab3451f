"""The host arena: what it gives, whom it has wait, and how much there is."""

import gc
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.arena.context_view import ArenaView
from accel_lab.compute.arrays import dtypes
from accel_lab.compute.machine.host_memory import host_memory_bytes
from accel_lab.errors import ArenaFull, InvalidArgument, SystemClosed
from tests.compute.conftest import MIB, SEGMENT


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


@pytest.mark.parametrize(("first", "reserved"), [(MIB + 1, 4), (2 * MIB, 4), (2 * MIB + 1, 64)])
def test_the_first_of_few_small_blocks_takes_little(first: int, reserved: int) -> None:
    """To be there costs a segment some 1.5 ms a MiB, at the first fetch."""
    arena = Arena(1 << 30)
    kept = [arena.allocate(first)]
    assert arena.statistics().reserved == reserved * MIB
    kept.append(arena.allocate(3 * MIB))  # the next one is whole, and serves many
    assert arena.statistics().reserved == (reserved + 64 * (reserved == 4)) * MIB
    kept += [arena.allocate(3 * MIB) for _ in range(10)]
    assert arena.statistics().reserved == (reserved + 64 * (reserved == 4)) * MIB
    arena.close()


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
    said = r"hold 1,048,577 B: 1 KiB of 1,048,576 B are .* 1 block \("
    with pytest.raises(ArenaFull, match=said):
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


def test_an_arena_smaller_than_a_page_is_refused() -> None:
    for limit, segment in ((100, SEGMENT), (MIB, 100), (-1, SEGMENT)):
        with pytest.raises(InvalidArgument, match=r"a page|arena_bytes must be"):
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
