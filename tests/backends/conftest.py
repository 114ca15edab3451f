"""A host device that can compile."""

from collections.abc import Iterator

import pytest

from accel_lab import System
from accel_lab.compute.device import Device
from tests.conftest import require


@pytest.fixture(scope="module")
def cpu() -> Iterator[Device]:
    """Open one; what failed unnoticed fails the module's last test."""
    require("compiler")
    with System("host", devices=1) as lab:
        yield lab.devices[0]
        lab.check()
