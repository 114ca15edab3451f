"""What only the device knew the shape of is there again after its context was killed."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, System, array
from accel_lab.compute.events.lifecycle import BuffersRebuilt
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
