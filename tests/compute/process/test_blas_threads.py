"""NumPy has as many threads in a context as it has in any process that imports it."""

import os
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

from accel_lab import Device, System
from accel_lab.errors import ContextLost

pytestmark = pytest.mark.timeout(150)  # long: it begins before files of short tests

WAIT = 60.0
NAMES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS")
LOOK = """
import json, os, numpy, threadpoolctl
print(json.dumps([
    sorted({(one["internal_api"], one["num_threads"]) for one in threadpoolctl.threadpool_info()}),
    {name: os.environ.get(name) for name in NAMES},
]))
"""


def plain() -> Any:
    """Return what a process has that only imports NumPy: its threads, and the variables."""
    return _plain(tuple(os.environ.get(name) for name in NAMES))


@cache
def _plain(_chosen: tuple[str | None, ...]) -> Any:
    """Look once for each choice of the variables."""
    import json

    command = [sys.executable, "-c", f"NAMES = {NAMES!r}{LOOK}"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def of(device: Device) -> Any:
    """Return the same of a context."""

    def look(names: tuple[str, ...]) -> Any:
        import os

        import threadpoolctl

        found = threadpoolctl.threadpool_info()
        threads = sorted({(one["internal_api"], one["num_threads"]) for one in found})
        return [list(map(list, threads)), {name: os.environ.get(name) for name in names}]

    return device.run(look, NAMES).result(WAIT)


@pytest.mark.parametrize("fork", [True, False], ids=["forked", "executed"])
@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"OPENBLAS_NUM_THREADS": "3"},
        {"OPENBLAS_NUM_THREADS": "0"},
        {"OMP_NUM_THREADS": "3,2"},
        {"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "1"},
    ],
    ids=["as many as there are cores", "its own number", "none", "OpenMP's", "its own first"],
)
def test_a_context_has_the_threads_of_any_process(
    monkeypatch: pytest.MonkeyPatch, chosen: dict[str, str], *, fork: bool
) -> None:
    """Also the next, after a fault; what forks them has one thread."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    for name, value in chosen.items():
        monkeypatch.setenv(name, value)
    if not fork:
        monkeypatch.setenv("ACCEL_LAB_FORK", "0")
    with System("host") as lab:
        device = lab.devices[0]
        assert of(device) == plain()
        zygote = device.run(os.getppid).result(WAIT)
        assert len(os.listdir(f"/proc/{zygote}/task")) == 1  # noqa: PTH208 - no files
        with pytest.raises(ContextLost):
            lab.inject("kill").result()
        lab.ready()
        assert of(device) == plain()


def test_they_share_the_work_of_a_large_product(monkeypatch: pytest.MonkeyPatch) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core")
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)

    def multiply(size: int) -> list[int]:
        """Return how many hundredths of a second each thread has worked, the busiest last."""
        from pathlib import Path

        import numpy as np

        x = np.ones((size, size))
        for _ in range(3):
            x = x @ x / size
        tasks = [one.read_text() for one in Path("/proc/self/task").glob("*/stat")]
        return sorted(int(one.rpartition(")")[2].split()[11]) for one in tasks)

    with System("host") as lab:
        second, first = lab.devices[0].run(multiply, 2000).result(WAIT)[-2:]
    assert second > first // 4
