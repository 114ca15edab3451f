"""A context keeps what is freed on the host: new arrays cost no page faults."""

import subprocess
import sys
import time

import pytest

from accel_lab import System

WAIT = 60.0
MIB = 1 << 20


def faults(nbytes: int, count: int) -> int:
    """Return how many page faults a loop of so many arrays costs that were there before."""
    import resource

    import numpy as np

    def fill() -> None:
        for array in [np.empty(nbytes, np.uint8) for _ in range(count)]:
            array.fill(1)

    for _ in range(3):
        fill()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    fill()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.parametrize(("nbytes", "count"), [(3 * MIB, 60), (100 * MIB, 8)])
def test_arrays_have_memory_that_was_freed_before(nbytes: int, count: int) -> None:
    with System("host") as lab:
        assert lab.devices[0].run(faults, nbytes, count).result(WAIT) < 100


def leave_a_hole(nbytes: int) -> int:
    """Free so much below what is still in use, and return what is resident then."""
    import numpy as np

    hole = [np.ones(nbytes // 8, np.uint8) for _ in range(8)]
    globals()["above"] = np.ones(MIB // 2, np.uint8)
    del hole
    return resident()


def resident() -> int:
    """Return what this process has in memory, in bytes."""
    from pathlib import Path

    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_what_a_context_keeps_goes_back_when_it_rests() -> None:
    """All but 256 MiB, though something lies above it."""
    with System("host") as lab:
        gpu = lab.devices[0]
        before = gpu.run(resident).result(WAIT)
        assert gpu.run(leave_a_hole, 1024 * MIB).result(WAIT) - before >= 1000 * MIB
        until = time.monotonic() + WAIT
        while gpu.run(resident).result(WAIT) - before > 300 * MIB:
            assert time.monotonic() < until
            time.sleep(3.0)


SHORT = """
import time
import numpy as np
from accel_lab.compute.machine import host_heap as freed_memory
from tests.compute.machine.test_host_heap import MIB, leave_a_hole, resident
assert freed_memory.keep()
surplus, last, now = freed_memory.Surplus(), object(), time.monotonic()
left = [leave_a_hole(1024 * MIB)]
for later_s, free in (1.0, 1 << 50), (2.0, 0):
    freed_memory.free_host_bytes = lambda free=free: free
    surplus.look(now + later_s, last, busy=True)
    left.append(resident())
print(*left)
"""


def test_what_a_context_keeps_goes_back_when_memory_is_short() -> None:
    """Also while it works; here only how much the machine has left is not real."""
    done = subprocess.run(
        [sys.executable, "-c", SHORT], capture_output=True, text=True, timeout=WAIT, check=True
    )
    before, plenty, short = map(int, done.stdout.split())
    assert plenty >= before - 50 * MIB
    assert short <= before - 900 * MIB


@pytest.mark.parametrize(
    "chosen",
    [
        ("MALLOC_TRIM_THRESHOLD_", "131072"),
        ("MALLOC_MMAP_MAX_", "65536"),
        ("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=131072"),
    ],
    ids=["variable", "maps", "tunable"],
)
def test_what_the_user_has_said_of_that_stays(
    monkeypatch: pytest.MonkeyPatch, chosen: tuple[str, str]
) -> None:
    """Then each page comes from the system again."""
    monkeypatch.setenv(*chosen)
    with System("host") as lab:
        assert lab.devices[0].run(faults, 3 * MIB, 60).result(WAIT) > 10_000
