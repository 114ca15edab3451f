"""Contexts of two cards that belong together, lost by what a kernel does on one of them."""

import time

import numpy as np
import pytest

from accel_lab import Device, System, array, blas
from accel_lab.compute.actors.fault import Fault
from accel_lab.compute.events.lifecycle import ContextLost as ContextLostEvent
from accel_lab.compute.events.samples import MemorySampled
from accel_lab.errors import ContextLost
from tests.gpu.card import assert_used_at_most, card_bytes

pytestmark = pytest.mark.gpu

WAIT = 60.0
ONES = np.ones((64, 64), np.float32)


@pytest.fixture(autouse=True)
def two_cards() -> None:
    from cupy.cuda import runtime

    if (found := runtime.getDeviceCount()) < 2:
        pytest.skip(f"this machine has {found} card")


def works(device: Device) -> bool:
    a = device.put(ONES)
    return bool((device.get(blas.gemm(a, a)).result(WAIT) == 64.0).all())


@pytest.mark.parametrize("fault", ["kill", "poison", "trap"])
def test_all_lose_their_contexts_with_one_and_their_buffers_come_back(fault: Fault) -> None:
    with System("cuda", 2, recover="replay", strategy="all_for_one", max_restarts=100) as lab:
        one, two = lab.devices
        kept = [blas.scal(device.put(ONES), 3.0) for device in lab.devices]
        for ref in kept:
            ref.result(WAIT)
        with pytest.raises(ContextLost):
            lab.inject(fault, one).result(WAIT)
        assert all((ref.get(timeout_s=WAIT) == 3.0).all() for ref in kept)
        assert [device.generation for device in lab.devices] == [2, 2]
        # How a process ended may be known when the others are long gone.
        told = {event.device: event.cause for event in lab.events.history(ContextLostEvent)}
        assert told.keys() == {one.name, two.name}
        assert "shares state with a device that was lost" in told[two.name]
        assert all(works(device) for device in lab.devices)


def test_what_comes_behind_is_lost_and_what_comes_before_is_not() -> None:
    with System("cuda", 2, recover="stale", strategy="rest_for_one", max_restarts=100) as lab:
        one, two = lab.devices
        kept = one.put(ONES).result(WAIT)
        with pytest.raises(ContextLost):
            lab.inject("poison", two).result(WAIT)
        assert works(two)
        assert [device.generation for device in lab.devices] == [1, 2]
        assert (one.get(blas.gemm(kept, kept)).result(WAIT) == 64.0).all()
        with pytest.raises(ContextLost):
            lab.inject("poison", one).result(WAIT)
        assert all(works(device) for device in lab.devices)
        assert [device.generation for device in lab.devices] == [2, 3]


def test_a_context_is_on_its_own_card_alone_and_tells_of_that() -> None:
    """Whichever of its threads is asked: CUDA has each begin with the first card."""
    with System("cuda", 2) as lab:
        one, two = lab.devices
        taken = array.zeros(one, (8 << 30,), "uint8").result(WAIT)
        kept = two.put(ONES).result(WAIT)
        before, free = card_bytes(), dict[str, int]()
        until = time.monotonic() + WAIT
        while len(free) < 2 and time.monotonic() < until:
            for sample in lab.look(memory=True, work=False):
                if isinstance(sample, MemorySampled) and (sample.used_bytes or 0) >= kept.nbytes:
                    free[sample.device] = sample.free_bytes or 0
            time.sleep(0.05)
        assert free[two.name] - free[one.name] > taken.nbytes // 2
        assert_used_at_most(before)
