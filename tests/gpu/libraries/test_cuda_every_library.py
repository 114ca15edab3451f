"""A program through every library that a card has run: the same there, and near on `host`."""

from collections.abc import Iterator

import pytest

from accel_lab import System
from tests.conftest import require
from tests.journal.every_library import assert_equal, assert_near, run

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def source() -> Iterator[System]:
    """Record the program, results and all."""
    with System("cuda", devices=1, results="values") as lab:
        run(lab.devices[0], 28)
        yield lab


def test_it_is_the_same_bit_for_bit(source: System) -> None:
    with System("cuda", devices=1, journal=None) as again:
        assert_equal(source, again)


def test_on_the_host_it_is_within_tolerance(source: System) -> None:
    require("compiler")
    with System("host", devices=1, journal=None) as again:
        assert_near(source, again)
