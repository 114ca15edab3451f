"""Two cards: how they reach each other, and copies from the memory of one to that of the other."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, System, array
from accel_lab.compute.device import Device
from accel_lab.errors import AccelError
from tests.faults.conftest import pid_of, settle
from tests.gpu.card import assert_used_at_most, card_bytes

pytestmark = pytest.mark.gpu

WAIT = 60.0
SLACK = 0.95
NBYTES = 1 << 30
A = np.arange(1 << 20, dtype=np.float32)


@pytest.fixture
def lab() -> Iterator[System]:
    """Open two cards of which one reads the other, and switch that way on."""
    from cupy.cuda import runtime

    if (found := runtime.getDeviceCount()) < 2:
        pytest.skip(f"this machine has {found} card")
    with System("cuda", 2, recover="stale", journal=None, max_restarts=10) as lab:
        if not lab.topology.reachable(0, 1):
            pytest.skip("the two cards do not read each other's memory")
        lab.topology.direct = True
        yield lab


def copied(device: Device, ref: AccelRef) -> AccelRef:
    """Copy card to card whatever its size."""
    copy, way = device.copy_of(ref, kept_bytes=0)
    assert way == "ipc"
    return copy


def test_links_are_the_drivers(lab: System) -> None:
    from cupy.cuda import runtime

    for a, b in ((0, 1), (1, 0)):
        assert lab.topology.reachable(a, b) == bool(runtime.deviceCanAccessPeer(a, b))
        link = lab.topology.link(a, b)
        assert link.kind
        assert (link.kind == "NVLink") == (link.nvlinks > 0)
    assert lab.topology.islands == (("gpu0", "gpu1"),)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn", "int64", "complex128"])
def test_a_copy_is_equal(lab: System, dtype: str) -> None:
    first, second = lab.devices
    x = array.cast(first.put(A % 7), dtype)
    there = copied(second, x)
    assert there.get(timeout_s=WAIT).tobytes() == x.get(timeout_s=WAIT).tobytes()
    part = copied(second, x[1000:5000])
    assert part.get(timeout_s=WAIT).tobytes() == x[1000:5000].get(timeout_s=WAIT).tobytes()


def test_copies_to_and_fro_leave_nothing_open(lab: System) -> None:
    first, second = lab.devices
    x = first.put(A)
    before = card_bytes()
    for turn in range(200):
        x = copied((first, second)[(turn + 1) % 2], x) + 1
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A + 200)
    assert settle(lambda: lab.arena().blocks == 0)
    for device in lab.devices:
        device.run(_trim).result(WAIT)
    assert_used_at_most(before)


def test_what_would_write_to_it_waits(lab: System) -> None:
    first, second = lab.devices
    x = first.put(A)
    for turn in range(20):
        there = copied(second, x)
        x[...] = turn
        expected = A if not turn else np.full_like(A, turn - 1)
        np.testing.assert_array_equal(there.get(timeout_s=WAIT), expected)


def test_gaps_are_staged_after_the_first_says_so(lab: System) -> None:
    first, second = lab.devices
    x = first.put(A.reshape(1024, 1024))
    with pytest.raises(AccelError, match=r"lab\.topology\.direct = False"):
        copied(second, x.T).result(WAIT)
    again, way = second.copy_of(x.T, kept_bytes=0)
    assert way == "staged"
    np.testing.assert_array_equal(again.get(timeout_s=WAIT), A.reshape(1024, 1024).T)


@pytest.mark.parametrize("which", [0, 1])
def test_a_card_that_is_lost_in_the_middle_takes_no_other_along(lab: System, which: int) -> None:
    first, second = lab.devices
    x = first.put(A)
    x.result(WAIT)
    copies = [copied(second, x) for _ in range(50)]
    os.kill(pid_of(lab, lab.devices[which]), signal.SIGKILL)
    for copy in copies:
        with suppress(AccelError):  # no name keeps what `get` returns: it lies in the arena
            np.testing.assert_array_equal(copy.get(timeout_s=WAIT), A)
    assert lab.devices[1 - which].generation == 1
    again = copied(second, first.put(A))
    np.testing.assert_array_equal(again.get(timeout_s=WAIT), A)
    assert settle(lambda: lab.arena().blocks == 0)


def test_a_large_copy_is_as_fast_as_the_raw_one(lab: System) -> None:
    """The bound holds where nobody else uses the link."""
    from cupy.cuda import runtime

    runtime.setDevice(1)
    target = runtime.malloc(NBYTES)
    runtime.setDevice(0)
    source = runtime.malloc(NBYTES)
    runtime.deviceEnablePeerAccess(1)
    raw = min(_timed(lambda: _raw(runtime, target, source)) for _ in range(5))
    runtime.free(source)
    runtime.free(target)
    lab.topology.measure(NBYTES, rounds=5)
    figure = lab.topology.bandwidth(0, 1)
    assert figure is not None
    share = figure.gb_per_s / (NBYTES / raw / 1e9)
    assert figure.way == "ipc"
    assert share >= SLACK, f"{figure.gb_per_s:.0f} GB/s, {share:.2f} of the raw copy"


def _trim() -> None:
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()


def _raw(runtime: Any, target: int, source: int) -> None:
    runtime.memcpyPeer(target, 1, source, 0, NBYTES)
    runtime.deviceSynchronize()


def _timed(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun
