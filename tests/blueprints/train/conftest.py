"""Three devices, and what a module's own `trainer` learns on them when nothing is in its way."""

from collections.abc import Iterator
from typing import Any

import pytest

from accel_lab import System


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    """Run devices that may be lost as often as a module likes."""
    with System("host", 3, max_restarts=1000, within_s=0.2) as opened:
        yield opened


@pytest.fixture(scope="module")
def undisturbed(lab: System, request: pytest.FixtureRequest) -> tuple[list[float], dict[str, Any]]:
    """Return the losses, and the parameters after the last step."""
    made = request.module.trainer(lab.world())
    return made.run(request.module.STEPS), made.parameters()
