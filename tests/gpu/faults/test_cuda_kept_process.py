"""A process that is kept by CUDA's checkpoint: its card is free, and all of it comes back."""

import gc
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pynvml
import pytest

from accel_lab import Device, System, fft, memory
from accel_lab.compute.events.lifecycle import ContextStarted
from accel_lab.errors import CannotKeep

pytestmark = pytest.mark.gpu

WAIT_S = 120.0
MIB = 1 << 20


@pytest.fixture
def lab() -> Iterator[System]:
    with System("cuda", devices=1) as system:
        yield system
        system.check()


@pytest.fixture
def gpu(lab: System) -> Device:
    return lab.devices[0]


def on_card(lab: System) -> set[int]:
    """Return those of our processes that NVML sees on the card."""
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    running = {one.pid for one in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)}
    return running & {event.pid for event in lab.events.history(ContextStarted)}


def test_what_does_not_pickle_goes_on_with_the_card_given_back_between(
    lab: System, gpu: Device
) -> None:
    values = np.random.default_rng(0).standard_normal(64 * MIB // 8)
    x = gpu.put(values)
    expected = fft.rfft(x[:4096]).get(timeout_s=WAIT_S)
    gpu.run(_begin, x).result(WAIT_S)
    for turn in range(2):
        assert gpu.run(_go_on).result(WAIT_S) == pytest.approx(values.sum() * turn)
        told = gpu.suspend(keep="process")
        assert (told.keep, told.buffers) == ("process", 1)
        assert not on_card(lab)
        np.testing.assert_array_equal(x.get(timeout_s=WAIT_S), values)
        np.testing.assert_array_equal(fft.rfft(x[:4096]).get(timeout_s=WAIT_S), expected)
    assert (gpu.generation, len(lab.events.history(ContextStarted))) == (1, 1)


def test_longer_than_a_silence_may_last_is_no_hang(gpu: Device) -> None:
    x = gpu.put(np.ones(1000))
    x.result(WAIT_S)
    gpu.suspend(keep="process")
    time.sleep(35.0)
    assert x.get(timeout_s=WAIT_S).sum() == 1000
    assert gpu.generation == 1


def test_it_is_well_after_both_ways_and_ends_in_order(lab: System, gpu: Device) -> None:
    x = memory.growing(gpu, (1000,), 100 * MIB)
    gpu.suspend(keep="process")
    longer = memory.grow(x, 10 * MIB)
    assert longer.get(timeout_s=WAIT_S).sum() == 0
    gpu.suspend()
    assert x.get(timeout_s=WAIT_S).sum() == 0
    assert len(lab.events.history(ContextStarted)) == 2
    gpu.suspend(keep="process")  # and the system is closed


def test_managed_memory_is_refused_by_name_and_can_be_kept_by_the_other_way(gpu: Device) -> None:
    y = memory.managed(gpu, (1000,))
    y.result(WAIT_S)
    with pytest.raises(CannotKeep, match="managed memory"):
        gpu.suspend(keep="process")
    assert gpu.state == "running"
    gpu.suspend()
    assert y.get(timeout_s=WAIT_S).sum() == 0
    del y
    gpu.run(gc.collect).result(WAIT_S)
    assert gpu.suspend(keep="process").keep == "process"


def _begin(x: Any) -> None:
    import builtins

    builtins.sums_that_go_on = (float(x.sum()) * n for n in range(9))  # type: ignore[attr-defined]


def _go_on() -> float:
    import builtins

    return next(builtins.sums_that_go_on)  # type: ignore[attr-defined,no-any-return]
