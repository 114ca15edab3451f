"""The campaign of chosen faults in chosen phases, on a card: real faults, one device."""

import os
import sys
import time

import pytest

from accel_lab import System
from tests.faults.campaign import ARENA_BYTES, Campaign
from tests.faults.campaign_plan import FAULTS, PHASES, digest, plan

pytestmark = pytest.mark.gpu

SEED = int(os.environ.get("ACCEL_LAB_SEED", "4"))
SHARE = float(os.environ.get("ACCEL_LAB_SHARE", "0.5"))


@pytest.mark.timeout(600)
def test_faults_in_every_phase(capsys: pytest.CaptureFixture[str]) -> None:
    """Each request has one answer with a reason, and each buffer what NumPy says."""
    rounds = plan(SEED, 1, times=1, share=SHARE)
    began = time.perf_counter()
    with System(
        "cuda",
        devices=1,
        max_restarts=1_000_000,
        within_s=0.001,
        arena_bytes=ARENA_BYTES,
        recover="stale",
    ) as lab:
        campaign = Campaign(lab, f"ACCEL_LAB_SEED={SEED} ACCEL_LAB_SHARE={SHARE}")
        campaign.play(rounds)
        bench, losses = campaign.bench, sum(d.generation - 1 for d in lab.devices)
        assert lab.journal.damage is None
    with capsys.disabled():
        sys.stdout.write(
            f"\nseed {SEED}, plan {digest(rounds)}: {bench.steps} steps, {losses} losses, "
            f"{time.perf_counter() - began:.0f} s\nanswers: {dict(bench.outcomes)}\n"
            f"{bench.coverage.table(FAULTS, PHASES[:-1])}\n"
        )
    assert bench.steps >= 300
