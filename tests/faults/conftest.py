"""Systems to break, and proof that nothing of them is left."""

import contextlib
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from accel_lab import Device, System, blas
from accel_lab.compute.events.lifecycle import ContextStarted
from accel_lab.compute.process import zygote_cache

_USUAL_TURN_S = sys.getswitchinterval()


class Census(NamedTuple):
    """What this process holds that a system could leave behind."""

    children: int
    threads: int
    descriptors: int
    shared_mappings: int


def census() -> Census:
    """Count children, threads, descriptors and mappings of memfds now.

    The zygote that is kept for the next system, its channel and its thread are left by nobody.
    Python goes on to list a thread of a C library that has once called it; here it counts for as
    long as it runs.
    """
    kept = len(zygote_cache.numbers())
    tasks = Path("/proc/self/task")
    running = {int(task.name) for task in tasks.iterdir()}
    children = 0
    for task in tasks.iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that has just ended
            children += len((task / "children").read_text().split())
    maps = Path("/proc/self/maps").read_text()
    return Census(
        children - kept,
        sum(
            one.name != zygote_cache.THREAD and one.native_id in running
            for one in threading.enumerate()
        ),
        len(list(Path("/proc/self/fd").iterdir())) - kept,
        maps.count("/memfd:"),
    )


def no_more_than(before: Census) -> bool:
    """Whether nothing is left since; what another test had left to its end may be gone."""
    return all(now <= was for now, was in zip(census(), before, strict=True))


def wait_for(gate: Path) -> None:
    """Run until a file is there; in a context."""
    while not gate.exists():
        time.sleep(0.001)


def settle(predicate: Callable[[], bool], timeout_s: float = 20.0) -> bool:
    """Poll until the predicate holds; for what has no event, such as the kernel's tables."""
    deadline = time.monotonic() + timeout_s
    while not predicate():
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(0.01)
    return True


def turns_are_usual() -> bool:
    """Whether the interpreter's threads take turns as they did before any test."""
    return settle(lambda: sys.getswitchinterval() == _USUAL_TURN_S)


def works(device: Device) -> bool:
    """Multiply on the device as it is now."""
    a = device.put(np.ones((8, 8), np.float32))
    return bool((device.get(blas.gemm(a, a)).result(30.0) == 8.0).all())


def pid_of(lab: System, device: Device) -> int:
    """Return the process of a device's current context, as the events tell it."""
    started = [e for e in lab.events.history(ContextStarted) if e.device == device.name]
    return started[-1].pid


def runs(pid: int) -> bool:
    """Whether a process has not ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """Name a file that is not there, for `wait_for`."""
    return tmp_path / "gate"


@pytest.fixture(scope="session")
def first_system() -> None:
    """Open what the first system of a process opens for good, which is no leak."""
    with System("host", recover="stale"):
        pass


@pytest.fixture
def nothing_left(first_system: None) -> Iterator[None]:
    """Fail the test if it leaves a process, a thread, a descriptor or a mapping behind."""
    gc.collect()
    before = census()
    yield
    gc.collect()
    threads = sorted(one.name for one in threading.enumerate())
    assert settle(lambda: no_more_than(before)), (census(), before, threads)


@pytest.fixture
def lab(nothing_left: None) -> Iterator[System]:
    """Run one host device that may be lost as often as a test likes."""
    with System("host", recover="stale", max_restarts=1000) as system:
        yield system


@pytest.fixture
def cpu(lab: System) -> Device:
    """Return its device."""
    return lab.devices[0]
