"""Patterns on a bench with a fake clock, and on two devices of the CPU; nothing of them is left."""

from collections.abc import Iterator

import pytest

from accel_lab import System
from accel_lab.testing import Bench
from tests.faults.conftest import census, settle


@pytest.fixture(autouse=True)
def _no_threads_left() -> Iterator[None]:
    """Fail the test if it leaves a thread behind."""
    before = census()
    yield
    assert settle(lambda: census().threads <= before.threads), census()


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Give a place where the test is the clock."""
    with Bench() as found:
        yield found


@pytest.fixture
def lab() -> Iterator[System]:
    """Run two devices that may be lost as often as a test likes."""
    with System("host", 2, max_restarts=1000) as system:
        yield system
