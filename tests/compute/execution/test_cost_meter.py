"""What user code costs, on a device that is slower than the code, made up."""

from collections.abc import Callable
from itertools import islice
from typing import Any, cast

import pytest

from accel_lab.compute.execution.backend import Memory, Peak, Streams
from accel_lab.compute.execution.cost_meter import CostMeter, numbers
from accel_lab.compute.execution.stream import Stream


class Card:
    """A backend and its clock: what is enqueued takes a second each, and is done when asked."""

    def __init__(self) -> None:
        self.enqueued = 0
        self.elsewhere = 0
        self.looks = 0
        self.watching = False

    def clock(self) -> "Card":
        return self

    def mark(self, stream: str) -> int:
        assert stream == "native"
        return self.enqueued

    def read(self, mark: int) -> float | None:
        self.looks += 1
        return 100.0 + mark if self.looks > 3 else None

    def join(self) -> None:
        self.enqueued += self.elsewhere

    def watch_peak(self) -> Callable[[], Peak | None]:
        self.watching = True

        def tell() -> Peak:
            self.watching = False
            return Peak(1, 2, "in use")

        return tell


@pytest.fixture
def card() -> Card:
    return Card()


@pytest.fixture
def meter(card: Card) -> CostMeter:
    return CostMeter(
        cast("Streams", card), cast("Memory", card), Stream("run", cast("Any", "native"))
    )


def test_the_time_is_the_devices_and_of_all_streams_that_are_joined(
    card: Card, meter: CostMeter
) -> None:
    card.enqueued = 7  # before the code

    def work() -> None:
        card.enqueued += 2
        card.elsewhere += 3

    assert meter.span(work).device_s == 5.0
    assert card.looks > 3  # it has waited for the device


def test_a_clock_that_was_set_back_gives_no_negative_time(card: Card, meter: CostMeter) -> None:
    def work() -> None:
        card.enqueued -= 1

    assert meter.span(work).device_s == 0.0


def test_a_cost_has_the_memory_too_and_a_failure_ends_the_watch(
    card: Card, meter: CostMeter
) -> None:
    seen = []
    cost = meter.cost(lambda: seen.append(card.watching))
    assert seen == [True]
    assert (cost.peak, card.watching) == (Peak(1, 2, "in use"), False)
    with pytest.raises(ZeroDivisionError):
        meter.cost(lambda: 1 // 0)
    assert not card.watching


def test_numbers_are_those_of_timeit() -> None:
    assert list(islice(numbers(), 7)) == [1, 2, 5, 10, 20, 50, 100]
