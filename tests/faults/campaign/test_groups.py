"""A device is lost, and the others of its group with it, whatever they are at."""

import os
import sys
from typing import Literal

import pytest

from tests.conftest import require
from tests.faults.campaign.group import Group
from tests.faults.campaign.plan import NEIGHBOUR
from tests.faults.campaign.scenes import TIMES, WORKING, opened
from tests.faults.campaign.store import Fickle

DEVICES = 3
SEED = int(os.environ.get("ACCEL_LAB_SEED", "4"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("recover", ["stale", "replay"])
def test_all_are_lost_with_one_in_every_phase(
    recover: Literal["stale", "replay"], nothing_left: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was in flight on the others is answered too, and says whose loss it was."""
    require("compiler")
    store = Fickle()
    with opened(DEVICES, store, recover, "all_for_one") as lab:
        repeat = f"all_for_one, {recover}, ACCEL_LAB_SEED={SEED} ACCEL_LAB_TIMES={TIMES}"
        group = Group(lab, store, repeat, rebuilds=recover == "replay")
        told = group.complete(SEED, TIMES)
    with capsys.disabled():
        sys.stdout.write(told)
    assert group.bench.coverage.lacking([NEIGHBOUR], WORKING, TIMES) == {}
