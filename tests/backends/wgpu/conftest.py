"""A device of wgpu in this process, and one of a system, where there is an adapter."""

from collections.abc import Iterator
from typing import Any

import pytest

from accel_lab import System
from accel_lab.backends import wgpu
from accel_lab.backends.wgpu.adapters import adapters
from accel_lab.compute.device import Device
from tests.conftest import require


@pytest.fixture(scope="session")
def adapter() -> Any:
    """Open the first adapter."""
    require("wgpu")
    return wgpu.open_backend(0)


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    """Open a system with one device; what failed unnoticed in it fails the last test."""
    require("wgpu")
    with System("wgpu", devices=1) as lab:
        yield lab.devices[0]
        lab.check()


@pytest.fixture(scope="session")
def is_literal(adapter: Any) -> bool:
    """Whether it computes what is written: the processor's own does.

    A card's driver may take a product and a sum as one operation, and numbers below the least
    normal one as zero; WGSL allows both.
    """
    del adapter  # there is one
    return adapters()[0].kind == "CPU"
