"""What the scenarios of `recurrent` have in common."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.compute.device import Device

BACKEND = os.environ.get("TRIAL_BACKEND", "host")
WAIT = 60
W = np.random.default_rng(7).standard_normal((4, 4))
X = np.arange(4.0)


@pytest.fixture
def lab() -> Iterator[System]:
    with System(BACKEND) as system:
        yield system


@pytest.fixture
def gpu(lab: System) -> Device:
    return lab.devices[0]


def after(steps: int, h: np.ndarray | None = None) -> np.ndarray:
    """Return what is in a state of W after so many steps of X."""
    h = np.zeros(4) if h is None else h
    for _ in range(steps):
        h = np.tanh(W @ h + X)
    return h


def row(gpu: Device, handle: Any) -> Any:
    gpu.ping().result(WAIT)
    rows: list[Any] = [*gpu.resident]
    (found,) = [one for one in rows if handle.id in one.ids]
    return found


def kill(gpu: Device) -> None:
    os.kill(gpu.run(os.getpid).result(WAIT), signal.SIGKILL)


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def until(log: Path, count: int) -> list[str]:
    """Return the lines of a log once there are so many, and a moment has brought no more."""
    end = time.monotonic() + 20
    while len(lines(log)) < count and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(0.2)
    return lines(log)
