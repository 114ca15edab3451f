"""The campaign of chosen faults in chosen phases, on a card: real faults, one device."""

import os
import sys

import pytest

from accel_lab import System
from tests.faults.campaign import ARENA_BYTES, Campaign
from tests.faults.campaign_plan import FAULTS, plan
from tests.faults.campaign_store import Fickle

pytestmark = pytest.mark.gpu

SEED = int(os.environ.get("ACCEL_LAB_SEED", "4"))
SHARE = float(os.environ.get("ACCEL_LAB_SHARE", "0.5"))


@pytest.mark.timeout(600)
def test_faults_in_every_phase(capsys: pytest.CaptureFixture[str]) -> None:
    """Each request has one answer with a reason, and each buffer what NumPy says."""
    rounds = plan(SEED, 1, times=1, share=SHARE)
    store = Fickle()
    with System(
        "cuda",
        devices=1,
        max_restarts=1_000_000,
        within_s=0.001,
        arena_bytes=ARENA_BYTES,
        journal=store,
        recover="stale",
    ) as lab:
        repeat = f"ACCEL_LAB_SEED={SEED} ACCEL_LAB_SHARE={SHARE}"
        campaign = Campaign(lab, store, repeat)
        told = campaign.report(rounds, FAULTS, campaign.play(rounds))
    with capsys.disabled():
        sys.stdout.write(told)
    assert campaign.bench.steps >= 300
