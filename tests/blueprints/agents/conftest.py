"""One device of the CPU for a module's tests, which may be lost as often as they like."""

from collections.abc import Iterator

import pytest

from accel_lab import Device, System
from accel_lab.testing import Bench


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    """Run a device that may be lost as often as a test likes."""
    with System("host", max_restarts=1000) as system:
        yield system
        system.check()


@pytest.fixture(scope="module")
def device(lab: System) -> Device:
    """Give that device."""
    return lab.devices[0]


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Give a place where the test is the clock."""
    with Bench() as found:
        yield found
