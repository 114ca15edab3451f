"""What a context is told to close of the notebook's memory, and how long that memory is kept."""

import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from accel_lab.actor.clock import FakeClock
from accel_lab.actor.event_loop import EventLoop
from accel_lab.compute.arrays.cuda_arrays import DeviceArray, Tenure
from accel_lab.compute.message.builtin import Unmap
from accel_lab.compute.requests.answers import Settle
from accel_lab.compute.transfer.ipc_memory import LIMIT, RETRY_S, IpcCopy, IpcMemory

LOST = ("process", 1)


class Memory:
    """Memory that is free when nobody refers to it."""


class Array:
    """An array of the user's, compared element by element as arrays are."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def __eq__(self, other: object) -> bool:
        raise TypeError


class Lab:
    """A system thread that the test turns, and the far end of the wire."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.event_loop = EventLoop("system", self.clock)
        self.ipc_memory = IpcMemory(self.post, self.event_loop)
        self.sent: list[tuple[bytes, Settle]] = []
        self.takes = True

    def post(self, message: Unmap, settle: Settle) -> bool:
        if self.takes:
            self.sent.append((message.handle, settle))
        return self.takes

    def put(self, array: Array, handle: bytes = b"a", *, kept: bool = True) -> Settle:
        """Begin a put; the array lives as long as the caller refers to it."""
        loan = self.lend(array, handle, kept=kept)
        loan.keep()
        return loan

    def lend(self, array: Array, handle: bytes = b"a", *, kept: bool = True) -> IpcCopy:
        """Begin it, and note nothing of it yet."""
        tenure = Tenure(array, array.memory) if kept else None
        return self.ipc_memory.lend(handle, DeviceArray(array, 1, ((1,), "int8"), lambda: tenure))

    def turn(self) -> list[bytes]:
        """Let the system thread run; return the handles that the context was told to close."""
        self.event_loop.run_pending()
        return [handle for handle, _ in self.sent]

    def answer(self, lost: Any = None) -> None:
        """Answer what it was told."""
        while self.sent:
            self.sent.pop(0)[1](lost)


@pytest.fixture
def lab() -> Iterator[Lab]:
    made = Lab()
    yield made
    made.event_loop.stop()


def array() -> tuple[Array, "weakref.ref[Memory]"]:
    memory = Memory()
    return Array(memory), weakref.ref(memory)


def test_an_allocation_stays_open_while_its_array_lives(lab: Lab) -> None:
    x, _ = array()
    for _ in range(3):
        lab.put(x)(None)
        assert lab.turn() == []
    assert len(lab.ipc_memory) == 1


def test_memory_is_free_when_the_context_says_that_it_is_closed(lab: Lab) -> None:
    x, memory = array()
    lab.put(x)(None)
    del x
    assert memory() is not None
    assert lab.turn() == [b"a"]
    assert memory() is not None
    lab.answer()
    assert memory() is None
    assert lab.turn() == []


def test_an_array_may_die_in_any_thread_and_by_the_collector(lab: Lab) -> None:
    x, memory = array()
    lab.put(x)(None)
    cycle: list[Any] = [x]
    cycle.append(cycle)
    del x, cycle
    thread = threading.Thread(target=gc.collect)
    thread.start()
    thread.join()
    assert lab.turn() == [b"a"]
    lab.answer()
    assert memory() is None


def test_arrays_of_one_allocation_share_it(lab: Lab) -> None:
    """The memory of one that is gone is free at once: that of the other keeps the allocation."""
    x, of_x = array()
    y, of_y = array()
    lab.put(x)(None)
    lab.put(y)(None)
    del x
    assert lab.turn() == []
    assert of_x() is None
    del y
    assert lab.turn() == [b"a"]
    assert of_y() is not None


def test_what_tells_nothing_of_its_end_is_closed_after_its_copy(lab: Lab) -> None:
    """Until then it lives, though nobody else refers to it."""
    x, memory = array()
    answered = lab.put(x, kept=False)
    del x
    assert lab.turn() == []
    answered(None)
    del answered
    assert lab.turn() == [b"a"]
    assert memory() is not None
    lab.answer()
    assert memory() is None


def test_nothing_is_closed_before_its_copies_are_answered(lab: Lab) -> None:
    """As those are that were taken back."""
    x, memory = array()
    first, second = lab.put(x), lab.put(x)
    first(None)
    del x
    assert lab.turn() == []
    assert memory() is not None
    second(None)
    second(None)
    assert lab.turn() == [b"a"]


def test_the_one_that_was_put_longest_ago_gives_way(lab: Lab) -> None:
    """And is opened anew when it is put again."""
    kept = [array()[0] for _ in range(LIMIT)]
    handles = [bytes([i]) for i in range(LIMIT)]
    for x, handle in zip(kept, handles, strict=True):
        lab.put(x, handle)(None)
    lab.put(kept[0], handles[0])(None)
    assert lab.turn() == []
    more, _ = array()
    lab.put(more, b"more")(None)
    assert lab.turn() == [handles[1]]
    lab.answer()
    assert len(lab.ipc_memory) == LIMIT
    lab.put(kept[1], handles[1])(None)
    assert lab.turn() == [handles[2]]
    lab.answer()
    del x, kept
    assert sorted(lab.turn()) == sorted([handles[0], handles[1], *handles[3:]])


def test_an_array_with_other_memory_closes_what_it_had(lab: Lab) -> None:
    x, before = array()
    lab.put(x, b"a")(None)
    x.memory = Memory()
    assert before() is not None
    lab.put(x, b"b")(None)
    assert lab.turn() == [b"a"]
    lab.answer()
    assert before() is None
    assert len(lab.ipc_memory) == 1


@pytest.mark.parametrize("reaped_first", [False, True])
def test_what_a_lost_context_had_open_is_free_when_its_process_is_gone(
    lab: Lab, *, reaped_first: bool
) -> None:
    """Whichever of the two is noticed first. The next context is told nothing."""
    x, of_x = array()
    y, of_y = array()
    lab.put(x, b"x")(None)
    lab.put(y, b"y")(None)
    del y
    assert lab.turn() == [b"y"]  # and it is lost before it has answered
    lab.takes = False
    if reaped_first:
        lab.ipc_memory.reaped(LOST)
    lab.ipc_memory.left(LOST)
    lab.turn()
    lab.answer(LOST)
    del x
    lab.turn()
    if not reaped_first:
        assert of_x() is not None
        assert of_y() is not None
        lab.ipc_memory.reaped(LOST)
    assert of_x() is None
    assert of_y() is None
    lab.takes = True
    assert lab.turn() == []
    assert len(lab.ipc_memory) == 0


def test_a_copy_that_was_lost_leaves_nothing_open(lab: Lab) -> None:
    x, memory = array()
    answered = lab.put(x)
    lab.ipc_memory.left(LOST)
    lab.turn()
    assert len(lab.ipc_memory) == 1  # it may wait for the next context
    answered(LOST)
    del answered, x
    assert lab.turn() == []
    assert memory() is not None  # it may be read until the process is gone
    lab.ipc_memory.reaped(LOST)
    assert memory() is None


def test_a_copy_that_waits_for_a_context_is_kept_open_by_that(lab: Lab) -> None:
    x, memory = array()
    answered = lab.put(x)
    lab.ipc_memory.left(LOST)
    lab.turn()
    lab.ipc_memory.reaped(LOST)
    answered(None)
    assert len(lab.ipc_memory) == 1
    del answered, x
    assert lab.turn() == [b"a"]
    lab.answer()
    assert memory() is None


def test_what_could_not_be_sent_is_sent_later(lab: Lab) -> None:
    """A context that is about to be suspended takes no messages, and may yet stay."""
    x, memory = array()
    lab.put(x)(None)
    lab.takes = False
    del x
    assert lab.turn() == []
    lab.takes = True
    lab.clock.advance(RETRY_S)
    assert lab.turn() == [b"a"]
    lab.answer()
    assert memory() is None


def test_a_closed_system_keeps_nothing(lab: Lab) -> None:
    x, of_x = array()
    y, of_y = array()
    lab.put(x, b"x")(None)
    lab.put(y, b"y")(None)
    del y
    lab.turn()
    lab.ipc_memory.left(LOST)
    lab.turn()
    lab.sent.clear()
    del x
    lab.ipc_memory.forget()
    assert of_x() is None
    assert of_y() is None


def test_a_fork_lets_go_of_nothing_and_asks_for_nothing(lab: Lab) -> None:
    """The memory is the parent's, and so are the system thread and its locks."""
    x, memory = array()
    lab.put(x)(None)
    lab.ipc_memory.orphan()
    del x
    assert lab.turn() == []
    assert memory() is not None
    lab.ipc_memory.forget()


def test_an_answer_that_comes_before_the_loan_is_noted_closes_nothing(lab: Lab) -> None:
    x, memory = array()
    loan = lab.lend(x)
    loan(None)
    assert lab.turn() == []
    loan.keep()
    assert lab.turn() == []
    assert lab.ipc_memory.is_open(b"a")
    del loan, x
    assert lab.turn() == [b"a"]
    lab.answer()
    assert memory() is None
