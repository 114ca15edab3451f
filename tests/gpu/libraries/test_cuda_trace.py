"""CUPTI's records of messages beside torch.profiler's and the kernel's own clock; NVTX with them.

torch.profiler and accel_lab each take CUPTI for themselves, so the same session runs in two systems
on the same card, one after the other.
"""

import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np
import pytest

from accel_lab import System, array, blas, fft, jit
from accel_lab.compute.supervision.device_records import Done
from accel_lab.errors import ContextLost, InvalidArgument

pytestmark = pytest.mark.gpu

WAIT, TIMES = 60.0, 40
TIMED = """
__device__ unsigned long long now() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}
extern "C" __global__ void timed(unsigned long long* at, int i, long long clocks) {
    unsigned long long before = now();
    long long begin = clock64();
    while (clock64() - begin < clocks) {}
    at[2 * i] = before;
    at[2 * i + 1] = now();
}
"""
CLOCKS = 220_000
"""Some 120 microseconds."""


class Session:
    """Kernels of ours and of the vendor's, each on operands that are there."""

    def __init__(self, lab: System) -> None:
        (self.gpu,) = lab.devices
        self.kernel = jit.compile(self.gpu, TIMED, "timed").result(WAIT)
        self.at = self.gpu.put(np.zeros(2 * TIMES, np.uint64))
        random = np.random.default_rng(0)
        self.x = self.gpu.put(random.standard_normal((512, 512), dtype=np.float32))
        self.run()  # whatever is loaded or compiled at first
        self.gpu.get(self.at).result(WAIT)

    def run(self) -> None:
        for i in range(TIMES):
            self.kernel(1, 1, (self.at, i, CLOCKS))
        for _ in range(5):
            y = blas.gemm(self.x, self.x)
            array.exp(y)
            fft.r2c(self.x)
        self.gpu.run(id, 0).result(WAIT)

    def seconds(self) -> list[float]:
        """Return what each launch of ours read."""
        read = self.gpu.get(self.at).result(WAIT).reshape(-1, 2).astype("i8")
        return [float(one) / 1e9 for one in np.diff(read)[:, 0]]


@pytest.fixture(scope="module", autouse=True)
def _needs_cupti() -> None:
    if find_spec("cupti") is None:
        pytest.skip("cupti-python is not installed")


@pytest.fixture(scope="module")
def recorded() -> Iterator[tuple[System, Session, list[Done], tuple[int, int]]]:
    with System("cuda", devices=1, timeout_s=WAIT, trace="cupti") as lab:
        session = Session(lab)
        before = len(lab.profile().done)
        first = lab.devices[0].requests.queue.last + 1
        session.run()
        last = lab.devices[0].requests.queue.last
        yield lab, session, list(lab.profile().done[before:]), (first, last)


Recorded = tuple[System, Session, list[Done], tuple[int, int]]


def kernels(done: list[Done]) -> list[Done]:
    return [one for one in done if one.work.kind == "kernel"]


def test_each_launch_is_a_record_of_its_message(recorded: Recorded) -> None:
    _, _, done, (first, last) = recorded
    launches = [one for one in kernels(done) if "timed" in one.work.name]
    assert [one.work.seq for one in launches] == list(range(first, first + TIMES))
    assert all(one.work.grid == one.work.block == (1, 1, 1) for one in launches)
    seen = {one.work.seq for one in kernels(done)} - {0}  # what is nobody's
    assert seen <= set(range(first, last + 1))
    assert set(range(first, first + TIMES + 15)) <= seen  # those behind have each a kernel, too


def test_a_record_is_as_long_as_the_kernel_reads(recorded: Recorded) -> None:
    _, session, done, _ = recorded
    launches = [one.work for one in kernels(done) if "timed" in one.work.name]
    pairs = zip(launches, session.seconds(), strict=True)
    off = [work.duration_ns / 1e9 - read for work, read in pairs]
    assert -1e-6 < median(off) < 5e-6, off  # from its begin to its first look at the clock


def test_records_and_slices_are_at_the_same_time(recorded: Recorded) -> None:
    lab, session, _, _ = recorded
    with lab.closely():
        lab.look(memory=False, work=True)
        time.sleep(0.1)
        session.run()
        lab.profile()
        time.sleep(0.1)
        seen: list[Any] = []
        until = time.monotonic() + WAIT
        while sum(one.name == "timed" for one in seen) < TIMES:
            assert time.monotonic() < until
            for look in lab.look(memory=False, work=True):
                seen += getattr(look, "done", ())
            time.sleep(0.02)
    works = {one.work.seq: one.work for one in lab.profile().done if "timed" in one.work.name}
    slices = [one for one in seen if one.name == "timed"]
    assert median(abs(works[one.seq].start - one.start) for one in slices) < 1e-3


def profiled() -> None:
    """Begin to record, in a context."""
    import torch

    one = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
    one.__enter__()
    vars(torch)["accel_lab_profile"] = one


def told() -> list[tuple[str, float]]:
    """Return the name of each kernel, and how long it took in seconds."""
    import torch

    one = vars(torch)["accel_lab_profile"]
    torch.cuda.synchronize()
    one.__exit__(None, None, None)
    return [
        (event.name, (event.time_range.end - event.time_range.start) / 1e6)
        for event in one.events()
        if event.device_type == torch.autograd.DeviceType.CUDA
        and not event.name.startswith(("Memcpy", "Memset"))
    ]


def plain(names: list[str]) -> Counter[str]:
    """Count kernels by their names without types and arguments; all, where none can tell these."""
    program = shutil.which("c++filt")
    if program is None:
        return Counter(kernels=len(names))
    text = "\n".join(names)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    names = done.stdout.splitlines()
    return Counter(re.split(r"[<(]", name.removeprefix("void "))[0] for name in names)


def test_it_sees_the_kernels_that_torch_s_profiler_sees(
    recorded: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    if find_spec("torch") is None:
        pytest.skip("torch is not installed")
    _, _, done, _ = recorded
    with System("cuda", devices=1, timeout_s=WAIT, fuse=False) as lab:
        session = Session(lab)
        lab.devices[0].run(profiled).result(WAIT)
        session.run()
        theirs = lab.devices[0].run(told).result(WAIT)
    ours = [(one.work.name, one.work.duration_ns / 1e9) for one in kernels(done)]
    counted = plain([name for name, _ in ours]), plain([name for name, _ in theirs])
    longest = [median(s for name, s in side if "timed" in name) for side in (ours, theirs)]
    with capsys.disabled():
        sys.stdout.write(f"\nours {counted[0]}\ntorch's {counted[1]}\ntimed: {longest}\n")
    assert counted[0] == counted[1]
    assert longest[0] == pytest.approx(longest[1], rel=0.05)


def test_copies_are_recorded_with_their_bytes(recorded: Recorded) -> None:
    lab, session, _, _ = recorded
    before = len(lab.profile().done)
    found = session.gpu.get(session.x).result(WAIT)
    copies = [one.work for one in lab.profile().done[before:] if one.work.name == "DTOH"]
    assert sum(one.nbytes or 0 for one in copies) >= found.nbytes, copies


def test_sql_joins_kernels_and_messages(recorded: Recorded) -> None:
    if find_spec("duckdb") is None or find_spec("pandas") is None:
        pytest.skip("duckdb and pandas come with the observability extra")
    lab, *_ = recorded
    found = lab.sql("select count(*) n, min(duration_ns) least from kernels where kernel = 'timed'")
    assert found["n"][0] >= 2 * TIMES
    assert found["least"][0] > 50_000


def test_calls_of_cuda_have_their_message_and_come_before_its_kernel() -> None:
    with System("cuda", devices=1, timeout_s=WAIT, trace="cupti-calls") as lab:
        session = Session(lab)
        before = len(lab.profile().done)
        first = lab.devices[0].requests.queue.last + 1
        session.run()
        done = [one.work for one in lab.profile().done[before:]]
    launches = {one.seq: one for one in done if one.kind == "kernel" and "timed" in one.name}
    calls = {
        one.seq: one
        for one in done
        if one.kind in ("driver", "runtime") and "aunch" in one.name and one.seq in launches
    }
    assert sorted(launches) == sorted(calls) == list(range(first, first + TIMES))
    early = [launches[seq].start - calls[seq].start for seq in calls]
    assert min(early) > -1e-4, min(early)
    assert all(one.duration_ns >= 0 for one in done)


def test_it_is_recorded_again_after_an_illegal_address_and_is_not_suspended() -> None:
    with System("cuda", devices=1, timeout_s=WAIT, trace=("nvtx", "cupti")) as lab:
        (gpu,) = lab.devices
        x = gpu.put(np.ones((8, 8), np.float32))
        blas.gemm(x, x).result(WAIT)
        lab.profile()
        with pytest.raises(ContextLost):
            lab.inject("poison").result(WAIT)
        y = blas.gemm(x, x)
        assert y.get(timeout_s=WAIT).tolist() == [[8.0] * 8] * 8
        profile = lab.profile()
        assert profile.losses == 1
        seq = gpu.requests.queue.last - 1  # the download is behind it
        assert any(one.work.seq == seq for one in kernels(list(profile.done)))
        with pytest.raises(InvalidArgument, match="CUPTI"):
            gpu.suspend()
