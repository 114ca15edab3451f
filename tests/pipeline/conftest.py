"""Pipelines leave nothing behind, whatever ends them."""

from collections.abc import Iterator

import pytest

from accel_lab import System
from accel_lab.compute.assembly import Recover
from tests.faults.conftest import census, settle


@pytest.fixture(autouse=True)
def _no_threads_left() -> Iterator[None]:
    """Fail the test if it leaves a thread behind."""
    before = census()
    yield
    assert settle(lambda: census().threads <= before.threads), census()


@pytest.fixture
def lab(request: pytest.FixtureRequest) -> Iterator[System]:
    """Run two host devices that may be lost as often as a test likes."""
    recover: Recover = getattr(request, "param", "replay")
    with System("host", 2, recover=recover, max_restarts=1000) as system:
        yield system
