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
from tests.faults.campaign.libraries import WAYS
from tests.faults.campaign.messages import OWN, gated, ways
from tests.faults.campaign.plan import (
    CLOSE,
    ENDINGS,
    FAULTS,
    PHASES,
    Cell,
    Coverage,
    closings,
    digest,
    plan,
)
from tests.faults.campaign.scenes import TIMES, WORKING, Campaign, opened
from tests.faults.campaign.store import Fickle

DEVICES, REPLAYED, MANY, STEPS = 3, 6, 22, 2000
SEED = int(os.environ.get("ACCEL_LAB_SEED", "4"))
REPEAT = f"ACCEL_LAB_SEED={SEED} ACCEL_LAB_TIMES={TIMES}"


def test_every_fault_is_dealt_every_way_to_use_a_library() -> None:
    """Each way is in flight with each fault, and at the gate of one that ends a context."""
    met: set[tuple[str, str, int]] = set()
    gates: set[str] = set()
    for scene in (scene for scenes in plan(SEED, DEVICES, times=2) for _, scene in scenes):
        met |= {(scene.fault, m.family, m.turn % ways(m.family)) for m in scene.messages}
        if scene.phase == "running" and scene.fault in ENDINGS:
            gates.update(gated(scene.messages[0]))
    lacking = {(fault, f, way) for fault in FAULTS for f in OWN for way in range(ways(f))} - met
    assert not lacking
    assert {way.kind for kinds in WAYS.values() for way in kinds} <= gates


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
