"""One GPU for the tests that leave it as it is."""

from collections.abc import Iterator

import pytest

from accel_lab.compute.device import Device
from accel_lab.system import System


@pytest.fixture(scope="module")
def gpu() -> Iterator[Device]:
    """Open one GPU; what failed unnoticed fails the module's last test."""
    with System("cuda", devices=1) as lab:
        yield lab.devices[0]
        lab.check()
