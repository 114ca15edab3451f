"""A program through every library on `host`, replayed there."""

from collections.abc import Iterator

import pytest

from accel_lab import System
from tests.conftest import require
from tests.journal.every_library import LIBRARIES, assert_equal, libraries_in, run


@pytest.fixture(scope="module")
def source() -> Iterator[System]:
    """Record the program, results and all."""
    require("compiler")
    with System("host", devices=1, results="values") as lab:
        run(lab.devices[0], 28)
        yield lab


def test_the_program_uses_every_library(source: System) -> None:
    assert libraries_in(source) >= LIBRARIES


def test_every_result_is_the_same_bit_for_bit(source: System) -> None:
    with System("host", devices=1, journal=None) as again:
        assert_equal(source, again)
