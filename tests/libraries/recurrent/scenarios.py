"""Handles of what is no array, in a copy of the project that has the library `recurrent`."""

import os
from collections.abc import Iterator

import numpy as np
import pytest

from accel_lab import System
from accel_lab.compute.device import Device
from accel_lab.libraries import recurrent

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


def test_a_state_is_made_written_and_read(gpu: Device) -> None:
    x = gpu.put(X)
    state = recurrent.make_state(gpu.put(W))
    first, second = recurrent.step(state, x), recurrent.step(state, x)
    np.testing.assert_allclose(first.get(), after(1))
    np.testing.assert_allclose(second.get(), after(2))
    np.testing.assert_allclose(recurrent.blend(state, like=x).get(), after(2))
    assert state.result(WAIT) is state
    assert state.kind == "RnnState"
