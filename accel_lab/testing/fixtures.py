"""Fixtures of pytest: `pytest_plugins = ["accel_lab.testing.fixtures"]` in a conftest.py has them.

Runs in the notebook's process.
"""

from collections.abc import Iterator

import pytest

from accel_lab.system import System
from accel_lab.testing.bench import Bench


@pytest.fixture
def accel_bench() -> Iterator[Bench]:
    """Give a place for patterns whose clock the test moves."""
    with Bench() as bench:
        yield bench


@pytest.fixture
def accel_lab_host() -> Iterator[System]:
    """Run two devices on the CPU, which may lose their contexts as often as a test likes."""
    with System("host", 2, max_restarts=1000) as system:
        yield system
