"""The segments of an arena: shared memory that contexts map, and that nobody leaves behind."""

import gc
import os
import weakref
from pathlib import Path

import numpy as np
import pytest

from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.arena.context_view import ArenaView
from accel_lab.compute.arena.segment import Segment
from accel_lab.compute.machine.free_list import FreeList
from accel_lab.compute.machine.memfd_mapping import Mapping
from accel_lab.errors import InvalidArgument, SystemClosed
from tests.compute.conftest import MIB, SEGMENT
from tests.held import descriptors


def mappings() -> int:
    return Path("/proc/self/maps").read_text().count("memfd:accel_lab")


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
