"""A user's `__del__` that puts, run in the middle of the arena's books."""

import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import Device, System
from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.arena.ledger import Ledger
from accel_lab.compute.arena.segment import Segment
from accel_lab.compute.arena.staging import CHUNK_BYTES, CopyPool
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import ArenaFull
from tests.faults.conftest import settle
from tests.finalized import Finalized, collecting, in_time

WAIT = 30.0
LARGE = np.ones((256, 256), np.float32)
HUGE = np.arange(2 * CHUNK_BYTES // 4, dtype=np.float32)


@pytest.fixture
def lab() -> Iterator[System]:
    with System("host") as lab:
        yield lab.ready(WAIT)


@pytest.fixture
def gpu(lab: System) -> Device:
    return lab.devices[0]


PLACES = [(Ledger, "take"), (Segment, "carve"), (Ledger, "promise"), (Ledger, "publish")]
PLACES += [(Arena, "_add_segment")]
"""Called with the lock of the books, and with that of growing."""


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place[1])
def test_it_puts_a_large_array(
    lab: System, monkeypatch: pytest.MonkeyPatch, place: tuple[type, str]
) -> None:
    """Also the array of the put in the middle of which it comes arrives whole."""
    gpu, made = lab.devices[0], list[AccelRef]()
    collecting(monkeypatch, *place, lambda: made.append(gpu.put(2 * LARGE)))
    made.append(in_time(lambda: gpu.put(LARGE)))
    total = in_time(lambda: (made[0] + made[1]).get(timeout_s=WAIT))
    np.testing.assert_array_equal(total, 3 * LARGE)
    made.clear()
    del total
    lab.flush()
    assert settle(lambda: lab.arena().blocks == 0)
    assert lab.arena().in_use == 0


def test_it_puts_what_lies_in_the_arena(lab: System, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, made = lab.devices[0], list[AccelRef]()
    inside = lab.empty(LARGE.shape, np.float32)
    inside[:] = 2.0
    collecting(monkeypatch, Segment, "carve", lambda: made.append(gpu.put(inside)))
    in_time(lambda: gpu.put(LARGE))
    np.testing.assert_array_equal(in_time(lambda: made[0].get(timeout_s=WAIT)), 2 * LARGE)
    inside[:] = 3.0  # it is writable


def test_it_puts_in_the_middle_of_a_hand_over(gpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of large arrays are handed to threads, by an executor that has locks of its own."""
    made: list[AccelRef] = []
    pool: CopyPool = gpu._transfers._copies
    submit = pool._executor.submit

    def collect(*arguments: Any) -> Any:
        monkeypatch.setattr(pool._executor, "submit", submit)
        with pool._executor._shutdown_lock:  # as `submit` itself has it
            Finalized(lambda: made.append(gpu.put(HUGE)))
            gc.collect()
        return submit(*arguments)

    monkeypatch.setattr(pool._executor, "submit", collect)
    a = in_time(lambda: gpu.put(HUGE))
    np.testing.assert_array_equal(in_time(lambda: (made[0] + a).get(timeout_s=WAIT)), 2 * HUGE)


def test_no_room_is_waited_for_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever would make some waits for this thread."""
    told: list[ArenaFull] = []
    with System("host", arena_bytes=4 << 20) as lab:
        gpu = lab.ready(WAIT).devices[0]

        def deed() -> None:
            try:
                gpu.put(np.ones(1 << 19, np.float64))
            except ArenaFull as error:
                told.append(error)

        collecting(monkeypatch, Segment, "carve", deed)
        in_time(lambda: gpu.put(LARGE))
        assert "at this moment" in str(told[0])


def test_holds_that_end_in_the_middle_end_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    arena = Arena(1 << 24)
    array = arena.empty(1000, np.float32)
    hold = arena.hold(array)
    collecting(monkeypatch, Segment, "carve", hold.release)
    block = in_time(lambda: arena.allocate(1000))
    array[:] = 1.0
    assert arena.statistics().held == 0
    block.release()
    arena.close()


def test_what_is_made_aside_is_told_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contexts get its segment, and its room is used again."""
    arena = Arena(1 << 24)
    told: list[int] = []
    arena.on_segment.append(lambda segment: told.append(segment.id))
    made: list[Any] = []
    collecting(monkeypatch, Segment, "carve", lambda: made.append(arena.allocate(5000)))
    block = in_time(lambda: arena.allocate(1000))
    assert sorted(told) == [segment.id for segment in arena.segments] == [1, 2]
    assert {made[0].segment_id, block.segment_id} == {1, 2}
    now = arena.statistics()
    assert now.blocks == 2
    assert now.reserved == sum(segment.size for segment in arena.segments)
    made.pop().release()
    assert arena.statistics().blocks == 1
    arena.close()


def test_a_block_that_is_made_and_released_in_the_middle_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arena = Arena(1 << 24)
    first = arena.allocate(1000)
    first.release()
    collecting(monkeypatch, Ledger, "release", lambda: arena.allocate(5000).release())
    assert in_time(arena.statistics).blocks == 0
    assert arena.statistics().in_use == 0
    arena.close()


def test_it_waits_for_no_thread_that_grows() -> None:
    """That thread may need what this one is in the middle of."""
    arena = Arena(1 << 24)
    grows, over = threading.Event(), threading.Event()

    def told(_: Segment) -> None:
        if not grows.is_set():
            grows.set()
            over.wait(WAIT)

    arena.on_segment.append(told)
    other = threading.Thread(target=lambda: arena.allocate(1000))
    other.start()
    assert grows.wait(WAIT)
    arena.busy.append(lambda: True)
    block = in_time(lambda: arena.allocate(1000))
    over.set()
    other.join(WAIT)
    assert block.nbytes == 1000
    arena.close()
