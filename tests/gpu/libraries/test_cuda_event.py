"""Events on a GPU: reached when a kernel ends, and not when it is sent."""

import numpy as np
import pytest

from accel_lab import event, jit
from accel_lab.compute.device import Device

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

WAIT_S = 60.0
SPIN = """
extern "C" __global__ void spin(long long ns, unsigned *out) {
    unsigned long long now, end;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    end = now + ns;
    while (now < end) asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    out[0] = 1;
}
"""


def test_an_event_is_reached_when_the_kernel_ends(gpu: Device) -> None:
    out = gpu.put(np.zeros(1, "uint32"))
    spin = jit.compile(gpu, SPIN, "spin")
    spin(1, 1, (0, out)).result(WAIT_S)
    start = event.record(gpu, "jit")
    spin(1, 1, (300_000_000, out))
    end = event.record(gpu, "jit")
    whole = event.record(gpu)
    idle = event.record(gpu, "fft")
    event.synchronize(idle).result(WAIT_S)
    assert event.query(start).result(WAIT_S) is True
    assert event.query(end).result(WAIT_S) is False
    assert event.query(whole).result(WAIT_S) is False
    assert event.elapsed(start, end) == pytest.approx(300.0, rel=0.05)
    assert event.query(whole).result(WAIT_S) is True


def test_a_stream_waits_on_the_card(gpu: Device) -> None:
    out = gpu.put(np.zeros(1, "uint32"))
    spin = jit.compile(gpu, SPIN, "spin")
    spin(1, 1, (0, out)).result(WAIT_S)
    spin(1, 1, (200_000_000, out))
    end = event.record(gpu, "jit")
    event.wait(end, stream="fft").result(WAIT_S)
    behind, beside = event.record(gpu, "fft"), event.record(gpu, "blas")
    event.synchronize(beside).result(WAIT_S)
    assert event.query(behind).result(WAIT_S) is False
    assert event.elapsed(end, behind) >= 0.0
