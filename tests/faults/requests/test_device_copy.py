"""A buffer of one device that is put on another: no call waits for either."""

import os
import signal
import time
from collections.abc import Iterator
from typing import Literal

import numpy as np
import pytest

from accel_lab import Device, System, array
from accel_lab.errors import ContextReplaced, DependencyFailed
from tests.faults.conftest import pid_of, settle

CAME_NOT = r"did not come: ContextLost: cpu0( of \w+)? lost"
WAIT = 60.0
VALUES = np.arange(6000.0).reshape(60, 100)


@pytest.fixture
def lab(nothing_left: None) -> Iterator[System]:
    with System("host", devices=2) as lab:
        yield lab


@pytest.fixture
def two(lab: System) -> tuple[Device, Device]:
    first, second = lab.devices
    return first, second


def test_putting_it_waits_for_no_device(lab: System, two: tuple[Device, Device]) -> None:
    first, second = two
    ref = first.put(VALUES)
    second.put(1.0).result(WAIT)
    ref.result(WAIT)
    assert settle(lambda: lab.arena().blocks == 0)
    slow = first.run(time.sleep, 2.0)
    copy = second.put(ref)
    behind = copy + 1
    assert second.put(3.0).get(timeout_s=WAIT) == 3  # what does not need it passes
    assert not slow.done
    assert not copy.done
    assert (behind.get(timeout_s=WAIT) == VALUES + 1).all()
    assert copy.device is second
    assert slow.done
    assert settle(lambda: lab.arena().blocks == 0)


def test_it_is_as_it_was_when_it_was_put(two: tuple[Device, Device]) -> None:
    first, second = two
    ref = first.put(VALUES)
    copies = [second.put(array.transpose(ref)), second.put(ref), first.put(ref)]
    first.run(lambda x: x.fill(0), ref)
    for copy, expected in zip(copies, (VALUES.T, VALUES, VALUES), strict=True):
        assert (copy.get(timeout_s=WAIT) == expected).all()
    assert second.put(first.put(np.empty((0, 3)))).get(timeout_s=WAIT).shape == (0, 3)


def test_many_go_to_and_fro(two: tuple[Device, Device]) -> None:
    x = two[0].put(VALUES)
    for turn in range(40):
        x = two[(turn + 1) % 2].put(x) + 1
    assert (x.get(timeout_s=WAIT) == VALUES + 40).all()


@pytest.mark.parametrize("recover", ["stale", "replay"])
def test_when_the_first_device_is_lost_it_comes_later_or_says_why(
    nothing_left: None, recover: Literal["stale", "replay"]
) -> None:
    with System("host", devices=2, recover=recover) as lab:
        first, second = lab.devices
        ref = first.put(VALUES)
        ref.result(WAIT)
        first.run(time.sleep, 60)
        copy = second.put(ref)
        os.kill(pid_of(lab, first), signal.SIGKILL)
        if recover == "replay":
            assert (copy.get(timeout_s=WAIT) == VALUES).all()
        else:
            with pytest.raises(DependencyFailed, match=CAME_NOT):
                copy.result(WAIT)
            with pytest.raises(DependencyFailed, match=CAME_NOT):
                copy.get(timeout_s=WAIT)
        assert (second.put(first.put(VALUES)).get(timeout_s=WAIT) == VALUES).all()


def test_when_the_second_device_is_lost_it_says_so_and_works_on(two: tuple[Device, Device]) -> None:
    first, second = two
    ref = first.put(VALUES)
    ref.result(WAIT)
    second.ping().result(WAIT)
    slow = first.run(time.sleep, 1.0)
    copy = second.put(ref)
    second.replace()
    with pytest.raises(ContextReplaced):
        copy.result(WAIT)
    assert not slow.done
    assert (second.put(ref).get(timeout_s=WAIT) == VALUES).all()


def test_a_copy_that_came_is_made_again_after_a_loss(
    lab: System, two: tuple[Device, Device]
) -> None:
    first, second = two
    copy = second.put(first.run(VALUES.copy).result(WAIT))
    copy.result(WAIT)
    assert copy.durability == "checkpointed"
    second.replace()
    assert (copy.get(timeout_s=WAIT) == VALUES).all()


def test_one_of_another_system_is_fetched(two: tuple[Device, Device]) -> None:
    with System("host", devices=1) as other:
        ref = other.devices[0].put(VALUES)
        assert (two[0].put(ref).get(timeout_s=WAIT) == VALUES).all()
