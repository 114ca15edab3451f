"""Streams and completion on a GPU: priorities, work that shares a stream, and errors in a wait."""

import contextlib
import time
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, Device, System, blas, event, jit, streams
from accel_lab.errors import ContextLost, DeadlineExceeded, StaleRef

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

WAIT_S = 60.0
SPIN = """
extern "C" __global__ void spin(long long ns, unsigned *out, int breaks) {
    unsigned long long now, end;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    end = now + ns;
    while (now < end) asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (breaks) out = (unsigned *)16;
    out[0] = 1;
}
"""
STRATEGIES: dict[str, Any] = {
    "sync": streams.Sync(look_s=0),
    "polled": streams.Polled(look_s=0),
    "host function": streams.HostFn(look_s=0),
    "host function, looked for": streams.HostFn(),
}


def spinning(gpu: Device) -> tuple[Any, AccelRef]:
    """Return a kernel that is loaded, and what it writes."""
    out = gpu.put(np.zeros(1, "uint32"))
    spin = jit.compile(gpu, SPIN, "spin")
    spin(1, 1, (0, out, 0)).result(WAIT_S)
    return spin, out


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_long_work_is_answered_when_it_ends(strategy: str) -> None:
    with System("cuda", devices=1, completion=STRATEGIES[strategy]) as lab:
        gpu = lab.devices[0]
        spin, out = spinning(gpu)
        for ns in (100_000, 2_000_000, 100_000_000):
            began = time.perf_counter()
            spin(1, 1, (ns, out, 0)).result(WAIT_S)
            took_s = time.perf_counter() - began
            assert ns / 1e9 <= took_s <= ns / 1e9 + 1.0
        x = gpu.put(np.ones((64, 64)))
        assert (gpu.get(blas.gemm(x, x)).result(WAIT_S) == 64.0).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_illegal_address_is_told_while_a_thread_waits(strategy: str) -> None:
    with System("cuda", devices=1, completion=STRATEGIES[strategy], recover="stale") as lab:
        gpu = lab.devices[0]
        spin, out = spinning(gpu)
        broken = spin(1, 1, (500_000_000, out, 1))
        behind: list[Any] = []
        with contextlib.suppress(StaleRef):  # it may be noticed by now
            behind += [spin(1, 1, (0, out, 0)) for _ in range(5)]
        began = time.perf_counter()
        for reply in (broken, *behind):
            with pytest.raises((ContextLost, StaleRef)):
                reply.result(WAIT_S)
        assert isinstance(broken.error, ContextLost)
        assert time.perf_counter() - began < 10.0
        spin, out = spinning(gpu)
        spin(1, 1, (5_000_000, out, 0)).result(WAIT_S)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_kernel_that_hangs_is_ended_while_a_thread_waits(strategy: str) -> None:
    with System("cuda", devices=1, completion=STRATEGIES[strategy], recover="stale") as lab:
        hangs = lab.inject("hang", timeout_s=1.0)
        with pytest.raises(DeadlineExceeded):
            hangs.result(WAIT_S)
        x = lab.devices[0].put(np.ones((64, 64)))
        assert (lab.devices[0].get(blas.gemm(x, x)).result(WAIT_S) == 64.0).all()


def test_a_card_gives_its_highest_priority_and_no_more() -> None:
    with System("cuda", devices=1, streams=streams.PerActor({"blas": 1, "fft": 100})) as lab:
        nodes = {node.name: node for node in lab.tree().walk() if node.kind == "library"}
        assert nodes["blas"].detail.startswith("priority 1")
        words = nodes["fft"].detail.split()
        assert words[0] == "priority"
        assert 1 <= int(words[1]) < 100


def test_one_stream_has_one_kernel_after_the_other() -> None:
    for allocator, waits in ((streams.Single(), True), (streams.PerActor(), False)):
        with System("cuda", devices=1, streams=allocator) as lab:
            gpu = lab.devices[0]
            spin, out = spinning(gpu)
            x = gpu.put(np.ones((64, 64)))
            blas.gemm(x, x).result(WAIT_S)
            spin(1, 1, (300_000_000, out, 0))
            end = event.record(gpu, "jit")
            behind = event.record(gpu, "blas")
            event.synchronize(behind).result(WAIT_S)
            assert event.query(end).result(WAIT_S) is waits
            event.synchronize(end).result(WAIT_S)


def test_the_last_write_does_not_wait_for_the_kernel() -> None:
    with System("cuda", devices=1) as lab:
        gpu = lab.devices[0]
        spin, out = spinning(gpu)
        launched = spin(1, 1, (500_000_000, out, 0))
        write = out.last_write.result(WAIT_S)
        assert not launched.done
        assert (write.stream, write.library, write.request) == ("jit", "jit", gpu.last_number - 1)
        launched.result(WAIT_S)
