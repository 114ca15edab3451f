"""A device of wgpu in this process, where there is an adapter."""

from typing import Any

import pytest

from accel_lab.backends import wgpu
from tests.conftest import require


@pytest.fixture(scope="session")
def adapter() -> Any:
    """Open the first adapter."""
    require("wgpu")
    return wgpu.open_backend(0)
