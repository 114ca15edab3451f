"""The campaign of chosen faults in chosen phases, on a card: real faults, one device."""

import os
import sys
from collections import Counter

import pytest

from accel_lab import System
from tests.faults.campaign.closing import Closing
from tests.faults.campaign.plan import CLOSE, FAULTS, PHASES, Coverage, closings, plan
from tests.faults.campaign.scenes import ARENA_BYTES, Campaign
from tests.faults.campaign.store import Fickle

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


@pytest.mark.timeout(600)
def test_systems_close_whatever_their_device_is_at(capsys: pytest.CaptureFixture[str]) -> None:
    """Everybody is answered within the five seconds that closing may take."""
    coverage, outcomes = Coverage(), Counter[str]()
    closing = Closing(coverage, outcomes, f"ACCEL_LAB_SEED={SEED}")
    rounds = closings(SEED, 1)
    rounds = rounds[: int(len(rounds) * SHARE)]
    for scenes in rounds:
        closing.play("cuda", scenes)
    with capsys.disabled():
        sys.stdout.write(
            f"\nseed {SEED}: {closing.steps} steps, {len(rounds)} systems\n"
            f"answers: {dict(outcomes)}\n{coverage.table([*FAULTS, CLOSE], PHASES[-1:])}\n"
        )
    assert closing.steps >= 300
