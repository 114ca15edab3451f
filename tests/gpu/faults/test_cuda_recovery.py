"""Buffers that come back on a card."""

import pytest

from accel_lab.compute.actors.fault import Fault
from tests.faults.digested import assert_given_up

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("fault", ["kill", "poison", "trap"])
def test_what_is_not_as_it_was_recorded_is_given_up(fault: Fault) -> None:
    assert_given_up("cuda", fault)
