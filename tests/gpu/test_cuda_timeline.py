"""The timeline's slices beside the card's own clock, and beside CUPTI's records."""

import sys
import time
from statistics import median
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, System, jit
from accel_lab.compute.events.samples import Slice, WorkTraced

pytestmark = pytest.mark.gpu

WAIT, TIMES = 60.0, 60
TIMED = """
__device__ unsigned long long now() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}
__global__ void timed(unsigned long long* at, int i, long long clocks) {
    unsigned long long before = now();
    long long begin = clock64();
    while (clock64() - begin < clocks) {}
    at[2 * i] = before;
    at[2 * i + 1] = now();
}
"""
CLOCKS = {27: 50_000, 120: 220_000, 270: 510_000, 900: 1_700_000}
"""For about so many microseconds."""
OFF = 0.05
UNREAD_US = 2.0
"""What a kernel takes before it reads the clock first, and after it has read it last."""


def seen(lab: System, last: int) -> list[Slice]:
    """Return the kernel's slices, once there are so many."""
    found: list[Slice] = []
    until = time.monotonic() + WAIT
    while len(found) < last:
        assert time.monotonic() < until, f"{len(found)} of {last} slices"
        for one in lab.look(memory=False, work=True):
            if isinstance(one, WorkTraced):
                found += [slice_ for slice_ in one.done if slice_.name == "timed"]
        time.sleep(0.02)
    return sorted(found, key=lambda one: one.seq)


def launch(lab: System, kernel: Any, at: AccelRef, clocks: int, *, awaited: bool) -> list[Slice]:
    """Launch it time and again, each behind the other or when the last one has been awaited."""
    lab.look(memory=False, work=True)
    time.sleep(0.1)  # until it is watched
    for i in range(TIMES):
        reply = kernel(1, 1, (at, i, clocks))
        if awaited:
            reply.result(WAIT)
            time.sleep(0.001)
    return seen(lab, TIMES)


def ratios(lab: System, *, awaited: bool) -> dict[int, float]:
    """Return the median length of a slice by that which the kernel itself has read."""
    (gpu,) = lab.devices
    kernel = jit.compile(gpu, TIMED, "timed").result(WAIT)
    found = {}
    with lab.closely():
        for name, clocks in CLOCKS.items():
            at = gpu.put(np.zeros(2 * TIMES, np.uint64))
            slices = launch(lab, kernel, at, clocks, awaited=awaited)
            read = np.diff(gpu.get(at).result(WAIT).reshape(-1, 2).astype("i8"))[:, 0] / 1e9
            shown = [one.end - one.start for one in slices if one.end is not None]
            found[name] = median(a / b for a, b in zip(shown, read, strict=True))
    return found


@pytest.mark.parametrize("awaited", [False, True])
def test_slices_are_as_long_as_the_card_s_clock_says(
    awaited: bool,  # noqa: FBT001
    capsys: pytest.CaptureFixture[str],
) -> None:
    with System("cuda", devices=1) as lab:
        found = ratios(lab, awaited=awaited)
    with capsys.disabled():
        sys.stdout.write(f"\nby the card's clock, awaited={awaited}: {found}\n")
    for name, ratio in found.items():
        assert -OFF <= ratio - 1 <= OFF + UNREAD_US / name, (name, ratio)


def margins() -> list[float]:
    """Measure, in a context, what marks add."""
    from accel_lab.backends.cuda.device.clock import CudaClock

    clock, until = CudaClock(0), time.monotonic() + WAIT
    while not all(found := clock.margins()):
        assert time.monotonic() < until
        time.sleep(0.001)
    return list(found)


def test_what_marks_add_is_some_microseconds() -> None:
    with System("cuda", devices=1) as lab:
        (gpu,) = lab.devices
        before, after = gpu.run(margins).result(WAIT)
    assert 0 < after < before + after < 10e-6


def profiler() -> None:
    """Begin to record, in the context."""
    import torch

    one = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
    one.__enter__()
    vars(torch)["accel_lab_profile"] = one


def recorded() -> list[float]:
    """Return the seconds of each kernel, in order."""
    import torch

    one = vars(torch)["accel_lab_profile"]
    torch.cuda.synchronize()
    one.__exit__(None, None, None)
    events = [event for event in one.events() if "timed" in event.name]
    events.sort(key=lambda event: event.time_range.start)
    return [(event.time_range.end - event.time_range.start) / 1e6 for event in events]


@pytest.mark.parametrize("awaited", [False, True])
def test_slices_are_as_long_as_cupti_says(
    awaited: bool,  # noqa: FBT001
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("torch")
    found = {}
    with System("cuda", devices=1, timeout_s=WAIT) as lab, lab.closely():
        (gpu,) = lab.devices
        kernel = jit.compile(gpu, TIMED, "timed").result(WAIT)
        at = gpu.put(np.zeros(2 * TIMES, np.uint64))
        for name, clocks in CLOCKS.items():
            gpu.run(profiler).result(WAIT)
            slices = launch(lab, kernel, at, clocks, awaited=awaited)
            theirs = gpu.run(recorded).result(WAIT)
            shown = [one.end - one.start for one in slices if one.end is not None]
            found[name] = median(a / b for a, b in zip(shown, theirs, strict=True))
    with capsys.disabled():
        sys.stdout.write(f"\nby CUPTI, awaited={awaited}: {found}\n")
    for name, ratio in found.items():
        assert abs(ratio - 1) <= OFF, (name, ratio)
