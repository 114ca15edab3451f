"""Messages to several devices, in a copy of the project that has the library `grouped`."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from accel_lab.libraries.grouped import SumAll

from accel_lab import System

BACKEND = os.environ.get("TRIAL_BACKEND", "host")
DEVICES = int(os.environ.get("TRIAL_DEVICES", "3"))
WAIT = 60


@pytest.fixture
def lab() -> Iterator[System]:
    with System(BACKEND, DEVICES, max_restarts=1000) as system:
        yield system


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path)


def test_each_rank_has_the_sum(lab: System, folder: str) -> None:
    devices = lab.devices[:2]
    parts = {one: SumAll(one.put(np.full(3, 1.0 + i)), folder) for i, one in enumerate(devices)}
    reply = lab.group(parts)
    twice = [ref * 2 for ref in reply.results]
    reply.result(WAIT)
    for ref, double in zip(reply.results, twice, strict=True):
        np.testing.assert_array_equal(ref.get(), [3, 3, 3])
        np.testing.assert_array_equal(double.get(), [6, 6, 6])
