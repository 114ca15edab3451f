"""Systems whose devices are on several nodes."""

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from accel_lab import System
from accel_lab.compute.process import zygote_cache
from tests.compute.cluster.near_cluster import NearCluster, use


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> NearCluster:
    """Return a cluster of three nodes; this one has room for one device, the others for two."""
    made = NearCluster(own=1, a=2, b=2)
    use(made, monkeypatch)
    return made


@pytest.fixture
def lab(cluster: NearCluster) -> Iterator[System]:
    """Open a system with a device on each node: cpu0 here, cpu1 on a, cpu2 on b."""
    with System("host", cluster="ray") as opened:
        yield opened


@pytest.fixture
def leaves_nothing() -> Iterator[None]:
    """See that no thread, process or descriptor is left."""
    zygote_cache.end()
    gc.collect()
    before = _there()
    yield
    zygote_cache.end()
    gc.collect()
    until(lambda: _there() == before)
    assert _there() == before


def until(holds: Callable[[], bool], limit_s: float = 20.0) -> bool:
    """Wait until something holds; return whether it does."""
    end = time.monotonic() + limit_s
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return holds()


def _there() -> tuple[list[str], list[str], int]:
    threads = sorted(thread.name for thread in threading.enumerate())
    children = []
    for task in os.listdir("/proc/self/task"):  # noqa: PTH208 - no files
        with open(f"/proc/self/task/{task}/children") as file:  # noqa: PTH123
            children += file.read().split()
    return threads, sorted(children), len(os.listdir("/proc/self/fd"))  # noqa: PTH208
