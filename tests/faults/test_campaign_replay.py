"""Every fault in every phase where buffers come back: what is valid has the value it had."""

import os
import sys

import pytest

from tests.conftest import require
from tests.faults.campaign import WORKING, Campaign, opened
from tests.faults.campaign_plan import FAULTS
from tests.faults.campaign_store import Fickle

DEVICES, TIMES = 6, 5
SEED = int(os.environ.get("ACCEL_LAB_SEED", "4"))


@pytest.mark.timeout(600)
def test_buffers_come_back_whatever_the_fault(
    nothing_left: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `recover="replay"`, and messages that were in flight are run again."""
    require("compiler")
    store = Fickle()
    with opened(DEVICES, store, "replay") as lab:
        campaign = Campaign(lab, store, f"replay, ACCEL_LAB_SEED={SEED}", rebuilds=True)
        told = campaign.complete(SEED, TIMES)
        assert any(entry.kind == "message" for entry in lab.journal)
    with capsys.disabled():
        sys.stdout.write(told)
    assert store.refusals >= TIMES
    assert campaign.bench.coverage.lacking(FAULTS, WORKING, TIMES) == {}
