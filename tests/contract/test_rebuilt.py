"""What only the device knew, and what was written in place, is there again after a kill."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, System, array
from accel_lab.compute.events.lifecycle import BuffersRebuilt
from accel_lab.errors import ContextLost
from tests.contract.samples import assert_same, value


@pytest.fixture
def lab(backend: Any) -> Iterator[System]:
    with System(backend.__name__.rpartition(".")[2], devices=1, recover="replay") as system:
        yield system


def all_of_unique(x: AccelRef) -> tuple[AccelRef, ...]:
    asked: tuple[AccelRef, ...] = array.unique(x, True, True, True)  # noqa: FBT003 - NumPy's
    return asked


@pytest.mark.parametrize(
    "make",
    [lambda x: (array.mask(x, x > 0), x[x < 0]), all_of_unique, array.nonzero],
    ids=["mask", "unique", "nonzero"],
)
def test_a_result_of_unknown_shape_is_rebuilt_after_a_kill(lab: System, make: Any) -> None:
    (device,) = lab.devices
    x = device.put(np.random.default_rng(0).integers(-9, 9, 500).astype(np.float32))
    made = make(x)
    before = [value(device, ref) for ref in made]
    assert all(one.size for one in before)
    mark, generation = lab.events.published, device.generation
    os.kill(device.run(os.getpid).result(timeout_s=30), signal.SIGKILL)
    fact = lab.events.wait_for(BuffersRebuilt, 60, since=mark)
    assert isinstance(fact, BuffersRebuilt)
    assert fact.lost == 0
    for ref, one in zip(made, before, strict=True):
        assert ref.shape == one.shape
        assert_same(value(device, ref), one)
    assert device.generation == generation + 1


def test_what_was_assigned_is_there_after_a_kill_in_flight(lab: System) -> None:
    (device,) = lab.devices
    x = np.random.default_rng(0).standard_normal((40, 30))
    order = np.argsort(x, 1)
    on = device.put(x)
    half, at = on[::2], device.put(order)
    on[1:, 2] = 5.0
    half[half > 1] = 3.0
    half[[0, 3], 1:4] = np.arange(3)
    array.put_along_axis(on, at[:, :2], np.array([-8.0, 8.0]), 1)
    with pytest.raises(ContextLost):
        lab.inject("kill", device).result(timeout_s=30)
    on[3] = half[0]
    x[1:, 2] = 5.0
    x[::2][x[::2] > 1] = 3.0
    x[::2][[0, 3], 1:4] = np.arange(3)
    np.put_along_axis(x, order[:, :2], np.array([-8.0, 8.0]), 1)
    x[3] = x[0]
    assert_same(value(device, on), x)
    assert_same(value(device, half), x[::2])
