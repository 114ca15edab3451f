"""Which of the work that is waited for may run by now; streams are latches that a test opens."""

import threading
from typing import Any

import pytest

from accel_lab.compute.dispatcher.stream_waiter import Batch, Completer
from accel_lab.compute.execution.stream import Stream


class Latches:
    """A native stream whose marks are reached when a test says so."""

    def __init__(self) -> None:
        self.marks: list[threading.Event] = []

    def record(self) -> threading.Event:
        self.marks.append(threading.Event())
        return self.marks[-1]

    def synchronize(self, event: threading.Event) -> None:
        assert event.wait(30)

    def wait(self, event: threading.Event) -> None:
        """Hold later work: these streams have none."""


def stream(name: str) -> Stream:
    native: Any = Latches()
    return Stream(name, native)


def launched(stream: Stream) -> Batch:
    stream.operations += 1
    return Batch([], [stream], 0.5)


def reach(batch: Batch) -> None:
    for _, event in batch.events:
        event.set()


@pytest.fixture
def completer() -> Completer:
    def failed(error: BaseException) -> None:
        raise error

    return Completer(lambda _: None, failed)


def test_what_waits_for_nobody_runs_beside_the_first(completer: Completer) -> None:
    stuck, other = stream("stuck"), stream("other")
    first, second, third = launched(stuck), launched(other), launched(stuck)
    for batch in (first, second, third):
        completer.submit(batch)
    assert list(completer.running()) == [first, second]
    for batch in (first, second, third):
        reach(batch)


def test_what_waits_behind_another_stream_does_not_run_yet(completer: Completer) -> None:
    one, two, three = stream("one"), stream("two"), stream("three")
    first = launched(one)
    two.after(one, one.operations)
    second = launched(two)
    three.after(two, two.operations)  # and so for the first, by way of the second
    third = launched(three)
    for batch in (first, second, third):
        completer.submit(batch)
    assert list(completer.running()) == [first]
    reach(first)
    while first in (running := list(completer.running())):
        threading.Event().wait(0.001)
    assert running == [second]
    reach(second)
    reach(third)


def test_a_wait_for_what_is_long_done_counts_no_more(completer: Completer) -> None:
    one, two = stream("one"), stream("two")
    done = launched(one)
    two.after(one, one.operations)
    completer.submit(done)
    reach(done)
    while not completer.idle:
        threading.Event().wait(0.001)
    first, second = launched(one), launched(two)
    completer.submit(first)
    completer.submit(second)
    assert list(completer.running()) == [first, second]
    reach(first)
    reach(second)
