"""What a context may still read or write is kept, and not written to in the notebook."""

import numpy as np
import pytest

from accel_lab.compute.arena.arena import Arena
from accel_lab.errors import ArenaFull, InvalidArgument
from tests.compute.conftest import MIB, SEGMENT


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
