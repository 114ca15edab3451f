"""Every fault in every phase with every family of messages, several times, and no surprise.

The plan is drawn from a seed, which a failure prints: with it in ACCEL_LAB_SEED the same actions
are done again.
"""

import gc
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from accel_lab import System
from tests.conftest import require
from tests.faults.campaign import ARENA_BYTES, Campaign
from tests.faults.campaign_closing import Closing
from tests.faults.campaign_plan import CLOSE, FAULTS, PHASES, Coverage, closings, digest, plan
from tests.faults.conftest import census, no_more_than, settle

DEVICES, MANY, TIMES, STEPS = 3, 22, 5, 2000
SEED = int(os.environ.get("ACCEL_LAB_SEED", "4"))
WORKING = PHASES[:-1]


@pytest.fixture
def balanced(first_system: None) -> Iterator[None]:
    """Fail the test if the campaign leaves anything behind."""
    gc.collect()
    before = census()
    yield
    gc.collect()
    assert settle(lambda: no_more_than(before)), (census(), before)


@pytest.mark.timeout(600)
def test_every_fault_in_every_phase_with_every_message(
    balanced: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each request has one answer with a reason, and each buffer what NumPy says."""
    require("compiler")
    rounds = plan(SEED, DEVICES, times=TIMES)
    began = time.perf_counter()
    with System(
        "host",
        DEVICES,
        max_restarts=1_000_000,
        within_s=0.001,
        arena_bytes=ARENA_BYTES,
        recover="stale",
    ) as lab:
        campaign = Campaign(lab, f"ACCEL_LAB_SEED={SEED}")
        campaign.play(rounds)
        bench, losses = campaign.bench, sum(d.generation - 1 for d in lab.devices)
        assert sum(entry.kind == "message" for entry in lab.journal) > STEPS // 2
        assert lab.journal.damage is None
    with capsys.disabled():
        sys.stdout.write(
            f"\nseed {SEED}, plan {digest(rounds)}: {bench.steps} steps, {losses} losses, "
            f"{time.perf_counter() - began:.0f} s\nanswers: {dict(bench.outcomes)}\n"
            f"{bench.coverage.table(FAULTS, WORKING)}\n"
        )
    assert bench.steps >= STEPS
    assert bench.coverage.missing(FAULTS, WORKING, TIMES) == []


@pytest.mark.timeout(300)
def test_every_system_closes_whatever_its_devices_are_at(
    balanced: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Everybody is answered within the five seconds that closing may take."""
    require("compiler")
    rounds, coverage, outcomes = closings(SEED, MANY), Coverage(), Counter[str]()
    closing = Closing(coverage, outcomes, f"ACCEL_LAB_SEED={SEED}")

    def missing() -> list[str]:
        late = coverage.missing([*FAULTS, CLOSE], PHASES[-1:], TIMES)
        return coverage.missing([CLOSE], WORKING, TIMES) + late

    for scenes in rounds:
        closing.play("host", scenes)
    for more in range(3):
        if not missing():
            break
        # A device was up again, and had answered, before its system was closed.
        for scenes in closings(SEED + 1 + more, MANY):
            closing.play("host", scenes)
    with capsys.disabled():
        sys.stdout.write(
            f"\nseed {SEED}, plan {digest(rounds)}: {closing.steps} steps, {len(rounds)} systems\n"
            f"answers: {dict(outcomes)}\n{coverage.table([CLOSE], WORKING)}\n"
            f"{coverage.table([*FAULTS, CLOSE], PHASES[-1:])}\n"
        )
    assert missing() == []


@pytest.mark.timeout(600)
def test_buffers_come_back_whatever_the_fault(
    balanced: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `recover="replay"` what is valid after a loss has the value it had before."""
    require("compiler")
    rounds = plan(SEED, DEVICES, times=1)
    with System(
        "host",
        DEVICES,
        max_restarts=1_000_000,
        within_s=0.001,
        arena_bytes=ARENA_BYTES,
        recover="replay",
    ) as lab:
        campaign = Campaign(lab, f"ACCEL_LAB_SEED={SEED}", rebuilds=True)
        campaign.play(rounds)
        bench, losses = campaign.bench, sum(d.generation - 1 for d in lab.devices)
        assert sum(entry.kind == "message" for entry in lab.journal) > STEPS // 2
        assert lab.journal.damage is None
    with capsys.disabled():
        sys.stdout.write(
            f"\nreplay, seed {SEED}, plan {digest(rounds)}: {bench.steps} steps, {losses} losses\n"
            f"answers: {dict(bench.outcomes)}\n"
        )
