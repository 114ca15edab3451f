"""One host device to suspend, whatever becomes of its buffers when its context is lost."""

from collections.abc import Iterator

import pytest

from accel_lab import System


@pytest.fixture(params=["stale", "replay"])
def lab(request: pytest.FixtureRequest, nothing_left: None) -> Iterator[System]:
    """Run it; what failed unnoticed fails the test. Some restarts wait, none for long."""
    with System("host", recover=request.param, max_restarts=1000, within_s=0.3) as system:
        yield system
        system.check()
