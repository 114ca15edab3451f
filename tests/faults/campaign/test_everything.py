"""Every fault in every phase with every family of messages, several times, and no surprise.

The plan is drawn from a seed, which a failure prints: with it in ACCEL_LAB_SEED, and as many times
in ACCEL_LAB_TIMES, the same actions are done again. Each campaign has several contexts at work: in
one file, and so on one worker of xdist, campaigns do not take the cores from one another.
"""

import os
import sys
from collections import Counter

import pytest

from tests.conftest import require
from tests.faults.campaign.closing import Closing
from tests.faults.campaign.plan import CLOSE, FAULTS, PHASES, Cell, Coverage, closings, digest
from tests.faults.campaign.scenes import TIMES, WORKING, Campaign, opened
from tests.faults.campaign.store import Fickle

DEVICES, REPLAYED, MANY, STEPS = 3, 6, 22, 2000
SEED = int(os.environ.get("ACCEL_LAB_SEED", "4"))
REPEAT = f"ACCEL_LAB_SEED={SEED} ACCEL_LAB_TIMES={TIMES}"


@pytest.mark.timeout(600)
def test_every_fault_in_every_phase_with_every_message(
    nothing_left: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each request has one answer with a reason, and each buffer what NumPy says."""
    require("compiler")
    store = Fickle()
    with opened(DEVICES, store, "stale") as lab:
        campaign = Campaign(lab, store, REPEAT)
        told = campaign.complete(SEED, TIMES)
        assert sum(entry.kind == "message" for entry in lab.journal) > STEPS // 2
    with capsys.disabled():
        sys.stdout.write(told)
    assert campaign.bench.steps >= STEPS
    assert store.refusals >= TIMES
    assert campaign.bench.coverage.lacking(FAULTS, WORKING, TIMES) == {}


@pytest.mark.timeout(600)
def test_buffers_come_back_whatever_the_fault(
    nothing_left: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `recover="replay"`, and messages that were in flight are run again."""
    require("compiler")
    store = Fickle()
    with opened(REPLAYED, store, "replay") as lab:
        campaign = Campaign(lab, store, f"replay, {REPEAT}", rebuilds=True)
        told = campaign.complete(SEED, TIMES)
        assert any(entry.kind == "message" for entry in lab.journal)
    with capsys.disabled():
        sys.stdout.write(told)
    assert store.refusals >= TIMES
    assert campaign.bench.coverage.lacking(FAULTS, WORKING, TIMES) == {}


@pytest.mark.timeout(300)
def test_every_system_closes_whatever_its_devices_are_at(
    nothing_left: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Everybody is answered within the five seconds that closing may take."""
    require("compiler")
    coverage, outcomes = Coverage(), Counter[str]()
    rounds = closings(SEED, MANY, times=TIMES)
    closing = Closing(coverage, outcomes, REPEAT)

    def lacking() -> dict[Cell, int]:
        late = coverage.lacking([*FAULTS, CLOSE], PHASES[-1:], TIMES)
        return coverage.lacking([CLOSE], WORKING, TIMES) | late

    for scenes in rounds:
        closing.play("host", scenes)
    for more in range(6):
        if not lacking():
            break
        # A device was up again, and had answered, before its system was closed.
        for scenes in closings(SEED + 1 + more, MANY, times=TIMES):
            closing.play("host", scenes)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{REPEAT}, plan {digest(rounds)}: {closing.steps} steps, {len(rounds)} systems\n"
            f"answers: {dict(outcomes)}\n{coverage.table([CLOSE], WORKING)}\n"
            f"{coverage.table([*FAULTS, CLOSE], PHASES[-1:])}\n"
        )
    assert lacking() == {}
