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
    """A seeded program of views and of writes to them, against NumPy's."""
    (device,) = lab.devices
    rng = np.random.default_rng(0)
    wholes = [rng.integers(-9, 10, (8, 8)).astype(np.float64) for _ in range(3)]
    known = [(device.put(x), x) for x in wholes]
    for step in range(90):
        (on, x), (other, y) = (known[at] for at in rng.integers(0, len(known), 2))
        at, few = rng.permutation(x.shape[0])[:3], np.arange(3.0) + step
        match rng.integers(0, 6):
            case 0 if len(known) < 12:
                known.append((on[1:, ::-1], x[1:, ::-1]) if len(x) > 4 else (on.T, x.T))
            case 1:
                on[1:, at[0] % x.shape[1]] = step
                x[1:, at[0] % x.shape[1]] = step
            case 2:
                on[at, 1:4] = device.put(few)
                x[at, 1:4] = few
            case 3:
                on[on > other[0, 0]] = -1.0
                x[x > y[0, 0]] = -1.0
            case 4:
                array.put_along_axis(on, at[None] % x.shape[1], few[0], 1)
                np.put_along_axis(x, at[None] % x.shape[1], few[0], 1)
            case _:
                on[0, :3] = other[-1, :3]
                x[0, :3] = y[-1, :3].copy()
    with pytest.raises(ContextLost):
        lab.inject("kill", device).result(timeout_s=30)
    for on, x in known:
        on[0, 0] = x[0, 0] = 5.0
        assert_same(value(device, on), x)
