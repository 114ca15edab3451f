"""A folder of its own for the feeds of each test, which the systems of this process offer, too."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from accel_lab.system import System
from tests.views.conftest import runtime

__all__ = ["runtime"]


@pytest.fixture
def lab(runtime: Path) -> Iterator[System]:
    """A system that is offered."""
    with System("host", 1, name="train") as lab:
        yield lab
