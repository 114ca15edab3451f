"""One system for the cells of a file, and a new notebook for each test."""

from collections.abc import Iterator

import pytest

from accel_lab import System
from tests.notebook.cells import Notebook


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", max_restarts=20, within_s=0.1) as lab:
        yield lab


@pytest.fixture
def notebook(lab: System) -> Notebook:
    return Notebook(lab)
