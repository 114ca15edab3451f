"""A device of wgpu in this process, where there is an adapter."""

import os
from importlib.util import find_spec
from typing import Any

import pytest

from accel_lab.backends import wgpu


@pytest.fixture(scope="session")
def adapter() -> Any:
    """Open the first adapter; skip with the reason where there is none, or fail if promised."""
    reason = wgpu.available()
    if reason is not None:
        if "wgpu" in os.environ.get("ACCEL_LAB_REQUIRE", "").split(","):
            pytest.fail(f"ACCEL_LAB_REQUIRE names wgpu: {reason}", pytrace=False)
        pytest.skip(f"wgpu: {reason}")
    assert find_spec("wgpu") is not None
    return wgpu.open_backend(0)
